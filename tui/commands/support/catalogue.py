"""The group of all commands. They are found by the docstrings of the modules below ``tui.commands``.

A docstring has a line "``bt-tui NAME``: HELP" for each command of its module; without HELP the command is
hidden. So ``--help`` imports no command, and a command line only the module of its own.

``bt-tui`` takes the place of ``baseten`` and ``truss``: what follows ``train`` is a command of ours, except
for the phrases below. Our commands accept the official options themselves.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem

from api_client.version import __version__
from tui.commands.support.options import (
    CHECKPOINTS,
    JOBS,
    METRICS,
    PROJECTS,
    REMOTES,
    CommandSettings,
)
from tui.commands.support.output import ExitCode

Shape = Callable[[Any], Any]


def _downloaded(document: Any) -> dict[str, Any]:
    target = "out_dir" if document["is_unpacked"] else "out_file"
    return {"job_id": document["job_id"], target: document["path"]}


def _cached(document: Any) -> dict[str, Any]:
    return {
        "project_id": document["project_id"],
        "timestamp": document["timestamp"],
        "file_summaries": [
            {
                "path": file["path"],
                "size_bytes": file["size_bytes"],
                "file_type": file["type"],
                "modified": file["modified"],
                "permissions": file["permissions"],
            }
            for file in document["files"]
        ],
    }


@dataclass(frozen=True, slots=True)
class Spelling:
    """Translation of an official phrase."""

    ours: str
    shape: Shape | None = None
    """Makes the baseten CLI's JSON of our document, where they differ."""


OFFICIAL: Mapping[str, Spelling] = {
    "checkpoint": Spelling("checkpoints"),
    "deploy": Spelling("deploy_checkpoints"),
    "deploy-checkpoints": Spelling("deploy_checkpoints"),
    "deploy_checkpoint": Spelling("deploy_checkpoints"),
    "get_checkpoint_urls": Spelling("checkpoints urls"),
    "isession": Spelling("sessions --messages"),
    "ssh setup": Spelling("ssh-config --install"),
    "train cache summarize": Spelling("cache summarize --files"),
    "train capacity describe": Spelling("capacity view"),
    "train capacity update": Spelling("capacity update", lambda changed: {"team_gpu_capacity": changed}),
    "train checkpoint deploy": Spelling("deploy_checkpoints"),
    "train checkpoint files": Spelling("checkpoints files --urls", lambda document: document["files"]),
    "train checkpoint list": Spelling("checkpoints list --order desc"),
    "train job describe": Spelling(
        "job", lambda job: {"training_job": job, "training_project": job.training_project}
    ),
    "train job download": Spelling("download", _downloaded),
    "train job list": Spelling("jobs --direction desc", lambda jobs: {"training_jobs": jobs}),
    "train job logs": Spelling("logs"),
    "train job metrics": Spelling("metrics"),
    "train job recreate": Spelling("recreate"),
    "train job session describe": Spelling("sessions --messages"),
    "train job stop": Spelling("stop", lambda jobs: {"training_job": jobs[0] if jobs else None}),
    "train job update": Spelling("update", lambda job: {"training_job": job}),
    "train project cache describe": Spelling("cache summarize --sort size --order desc", _cached),
    "train project list": Spelling("projects", lambda projects: {"training_projects": projects}),
    "train workstation create": Spelling("workstation"),
}
"""Words of the official CLIs that differ from ours: they work but are not listed."""


def _with_last(arguments: Sequence[str]) -> list[str]:
    """Replace ``--tail 20``, meant as in kubectl, by ``--last 20``; ``--tail`` alone follows."""
    words = list(arguments)
    for index, number in enumerate(words[1:], start=1):
        if words[index - 1] == "--tail" and number.isdecimal() and "logs" in words[: index - 1]:
            words[index - 1] = "--last"
    return words


def translated(arguments: Sequence[str]) -> tuple[list[str], Shape | None]:
    """Return the command line in our words, and the shape of its JSON if that differs."""
    rest = _with_last(arguments)
    for count in range(len(rest), 0, -1):
        spelling = OFFICIAL.get(" ".join(rest[:count]))
        if spelling is not None:
            return [*spelling.ours.split(), *rest[count:]], spelling.shape
    if rest[0] == "train" and len(rest) > 1:
        return translated(rest[1:])
    return rest, None


PROGRAM = "bt-tui"
COMPLETION_VARIABLE = "_BT_TUI_COMPLETE"
"""Set by the shell's completion script; click derives its name from the program's."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A command that is not imported yet: the name of its module, and its help (empty: hidden)."""

    module: str
    help: str


@cache
def listed_commands() -> Mapping[str, Listed]:
    """Return all commands by name, sorted."""
    commands = {}
    for path in Path(__file__).parents[1].glob("*/[!_]*.py"):
        docstring = path.read_text(encoding="utf-8").split('"""', 2)[1]
        for line in docstring.splitlines():
            title, _, help_line = line.partition("``: ")
            name = title.removeprefix(f"``{PROGRAM} ").removesuffix("`` (hidden)")
            if title != name and " " not in name:  # with a space: a command of a group, or an option
                commands[name] = Listed(f"tui.commands.{path.parent.name}.{path.stem}", help_line)
    return dict(sorted(commands.items()))


class LazyGroup(click.Group):
    """A group whose commands are imported on first use."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; command lines of the official CLIs become ours first."""
        args, shape = translated(args)
        name = args[0]
        close = get_close_matches(name, _shown(), n=1) if name not in listed_commands() else []
        if close and not ctx.resilient_parsing:
            ctx.fail(f"No such command {name!r}. Did you mean {close[0]!r}?")
        if shape is not None:
            settings = ctx.ensure_object(CommandSettings)
            ctx.obj = replace(settings, output=settings.output.with_json_shape(shape))
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, sorted; hidden ones are left out when they are shown."""
        return list(listed_commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None if there is none with that name."""
        listed = listed_commands().get(cmd_name)
        if listed is None:
            return None
        members = vars(import_module(listed.module)).values()
        command = next(
            member for member in members if isinstance(member, click.Command) and member.name == cmd_name
        )
        command.short_help, command.hidden = listed.help, not listed.help
        if os.environ.get(COMPLETION_VARIABLE):
            for _words, member in walk(command):
                complete_parameters(member)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, listed.help) for name, listed in _shown().items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete command names and options, without importing the commands."""
        completions = [
            CompletionItem(name, help=listed.help)
            for name, listed in _shown().items()
            if name.startswith(incomplete)
        ]
        return [*completions, *click.Command.shell_complete(self, ctx, incomplete)]


def _shown() -> Mapping[str, Listed]:
    return {name: listed for name, listed in listed_commands().items() if listed.help}


def walk(command: click.Command, words: Sequence[str] = ()) -> Iterator[tuple[str, click.Command]]:
    """Yield what can be run below a command, hidden commands too, by the words of its command line."""
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield " ".join(words), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from walk(below, (*words, name))


KINDS: Mapping[str, str] = {
    "job-id": JOBS,
    "checkpoint-from-job": JOBS,
    "project": PROJECTS,
    "project-id": PROJECTS,
    "checkpoint": CHECKPOINTS,
    "checkpoint-name": CHECKPOINTS,
    "metric": METRICS,
    "remote": REMOTES,
}
"""The kind of the server's names that complete an option, or an argument with that metavar (JOB_ID)."""


def kind_of(parameter: click.Parameter) -> str | None:
    """Return which kind of the server's names completes a parameter."""
    is_argument = isinstance(parameter, click.Argument)
    shown = re.findall(r"\w+", parameter.metavar or "")[:1] if is_argument else parameter.opts
    names = {spelling.strip("-").lower().replace("_", "-") for spelling in shown}
    return next((kind for name, kind in KINDS.items() if name in names), None)


class ServerWord(click.types.StringParamType):
    """A text parameter that completes words of one kind."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from tui.commands.support.completing import fetch_completions

        typed = ctx.params.get(param.name or "")
        jobs = [
            ctx.params.get(parameter.name or "")
            for parameter in ctx.command.params
            if kind_of(parameter) == JOBS
        ]
        # before an option's value is typed, click has not parsed the arguments
        job_id = next((word for word in (*jobs, *ctx.args) if isinstance(word, str)), None)
        with suppress(Exception):  # at tab there is nobody to tell
            completions = fetch_completions(
                self._kind, ctx.find_object(CommandSettings) or CommandSettings(), job_id, incomplete
            )
            return [
                CompletionItem(word, help=about or None)
                for word, about in completions
                if word.startswith(incomplete) and not (isinstance(typed, tuple) and word in typed)
            ]
        return []


def complete_parameters(command: click.Command) -> None:
    """Enable completion of words of the server for the command's own parameters."""
    for parameter in command.params:
        kind = kind_of(parameter)
        if kind is not None and parameter.type is click.STRING:
            parameter.type = ServerWord(kind)


def answer_completion(root: click.Group) -> NoReturn:
    """Answer the shell's completion request from the environment, print only the words, and exit.

    Exits at once with ``os._exit``: a pending name lookup or a slow server must not delay the shell.
    """
    code = 0
    with redirect_stderr(io.StringIO()):
        try:
            complete_parameters(root)
            root.main(args=[], prog_name=PROGRAM)
        except SystemExit as over:
            code = over.code if isinstance(over.code, int) else 1
        except Exception:  # noqa: BLE001 - at tab there is nobody to tell
            code = 1
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(code)


def help_document(root: click.Group) -> dict[str, Any]:
    """Return what ``--help`` shows of all commands as one JSON document; hidden ones are left out."""
    return {
        "program": PROGRAM,
        "version": __version__,
        "options": _parameters(root, "option"),
        "commands": [
            {
                "name": name,
                "help": command.get_short_help_str(limit=200),
                "arguments": _parameters(command, "argument"),
                "options": _parameters(command, "option"),
            }
            for name, command in walk(root)
            if name and not command.hidden
        ],
        "exit_codes": [{"code": int(code), "meaning": code.meaning} for code in ExitCode],
    }


def _parameters(command: click.Command, kind: str) -> list[dict[str, Any]]:
    context = click.Context(command)
    return [
        {
            "names": [*parameter.opts, *parameter.secondary_opts] if kind == "option" else [parameter.name],
            "value": None if getattr(parameter, "is_flag", False) else parameter.make_metavar(context),
            "choices": list(parameter.type.choices) if isinstance(parameter.type, click.Choice) else None,
            "required": parameter.required,
            "repeatable": parameter.multiple or parameter.nargs == -1,
            "help": getattr(parameter, "help", None),
        }
        for parameter in command.params
        if parameter.param_type_name == kind and not getattr(parameter, "hidden", False)
    ]
