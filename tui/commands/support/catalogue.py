"""The group of all commands, which reads their names and help from docstrings, without importing them.

The docstring of a module below ``tui.commands`` has a line "``bt-tui NAME``: HELP" for each command of the
module; without HELP the command is hidden. So ``--help`` imports no command, and a command line imports only
the module of its command.

``bt-tui`` can replace ``baseten`` and ``truss`` in command lines: the words after ``train`` are a command of
ours, or a key of ``OWN_LINE_OF_OFFICIAL_COMMAND``. Our commands themselves accept the official options.
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

ConvertJson = Callable[[Any], Any]


def _download_document(document: Any) -> dict[str, Any]:
    target = "out_dir" if document["is_unpacked"] else "out_file"
    return {"job_id": document["job_id"], target: document["path"]}


def _cache_document(document: Any) -> dict[str, Any]:
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
class OwnCommandLine:
    """The words of our command that does the same as an official command, and how to convert its JSON."""

    words: str
    convert_json: ConvertJson | None = None
    """Converts our JSON document to that of the baseten CLI; None if both are the same."""


OWN_LINE_OF_OFFICIAL_COMMAND: Mapping[str, OwnCommandLine] = {
    "checkpoint": OwnCommandLine("checkpoints"),
    "deploy": OwnCommandLine("deploy_checkpoints"),
    "deploy-checkpoints": OwnCommandLine("deploy_checkpoints"),
    "deploy_checkpoint": OwnCommandLine("deploy_checkpoints"),
    "get_checkpoint_urls": OwnCommandLine("checkpoints urls"),
    "isession": OwnCommandLine("sessions --messages"),
    "ssh setup": OwnCommandLine("ssh-config --install"),
    "train cache summarize": OwnCommandLine("cache summarize --files"),
    "train capacity describe": OwnCommandLine("capacity view"),
    "train capacity update": OwnCommandLine(
        "capacity update", lambda changed: {"team_gpu_capacity": changed}
    ),
    "train checkpoint deploy": OwnCommandLine("deploy_checkpoints"),
    "train checkpoint files": OwnCommandLine("checkpoints files --urls", lambda document: document["files"]),
    "train checkpoint list": OwnCommandLine("checkpoints list --order desc"),
    "train job describe": OwnCommandLine(
        "job", lambda job: {"training_job": job, "training_project": job.training_project}
    ),
    "train job download": OwnCommandLine("download", _download_document),
    "train job list": OwnCommandLine("jobs --direction desc", lambda jobs: {"training_jobs": jobs}),
    "train job logs": OwnCommandLine("logs"),
    "train job metrics": OwnCommandLine("metrics"),
    "train job recreate": OwnCommandLine("recreate"),
    "train job session describe": OwnCommandLine("sessions --messages"),
    "train job stop": OwnCommandLine("stop", lambda jobs: {"training_job": jobs[0] if jobs else None}),
    "train job update": OwnCommandLine("update", lambda job: {"training_job": job}),
    "train project cache describe": OwnCommandLine(
        "cache summarize --sort size --order desc", _cache_document
    ),
    "train project list": OwnCommandLine("projects", lambda projects: {"training_projects": projects}),
    "train workstation create": OwnCommandLine("workstation"),
}
"""Commands of the official CLIs that differ from ours: they work, but are not listed in the help."""


def _with_tail_as_last(arguments: Sequence[str]) -> list[str]:
    """Replace ``--tail 20``, as in kubectl, by ``--last 20``; ``--tail`` alone means ``--follow``."""
    rewritten_arguments = list(arguments)
    for index, number in enumerate(rewritten_arguments[1:], start=1):
        if (
            rewritten_arguments[index - 1] == "--tail"
            and number.isdecimal()
            and "logs" in rewritten_arguments[: index - 1]
        ):
            rewritten_arguments[index - 1] = "--last"
    return rewritten_arguments


def translate_official(arguments: Sequence[str]) -> tuple[list[str], ConvertJson | None]:
    """Return our command line for an official one, and the conversion of its JSON, if there is any."""
    remaining = _with_tail_as_last(arguments)
    for word_count in range(len(remaining), 0, -1):
        own_line = OWN_LINE_OF_OFFICIAL_COMMAND.get(" ".join(remaining[:word_count]))
        if own_line is not None:
            return [*own_line.words.split(), *remaining[word_count:]], own_line.convert_json
    if remaining[0] == "train" and len(remaining) > 1:
        return translate_official(remaining[1:])
    return remaining, None


PROGRAM = "bt-tui"
COMPLETION_VARIABLE = "_BT_TUI_COMPLETE"
"""Set by the shell's completion script; click derives its name from the program's."""


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command that need not be imported: the name of its module, and its help (empty: hidden)."""

    module: str
    help: str


@cache
def command_entries() -> Mapping[str, CommandEntry]:
    """Return all commands by name, sorted."""
    commands = {}
    for path in Path(__file__).parents[1].glob("*/[!_]*.py"):
        docstring = path.read_text(encoding="utf-8").split('"""', 2)[1]
        for line in docstring.splitlines():
            usage, _, help_line = line.partition("``: ")
            name = usage.removeprefix(f"``{PROGRAM} ").removesuffix("`` (hidden)")
            # a name with a space is a command of a group, or has an option
            if usage != name and " " not in name:
                commands[name] = CommandEntry(f"tui.commands.{path.parent.name}.{path.stem}", help_line)
    return dict(sorted(commands.items()))


class LazyGroup(click.Group):
    """A group whose commands are imported on first use."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; translate command lines of the official CLIs first."""
        args, convert_json = translate_official(args)
        name = args[0]
        similar_names = (
            get_close_matches(name, _visible_commands(), n=1) if name not in command_entries() else []
        )
        if similar_names and not ctx.resilient_parsing:
            ctx.fail(f"No such command {name!r}. Did you mean {similar_names[0]!r}?")
        if convert_json is not None:
            settings = ctx.ensure_object(CommandSettings)
            ctx.obj = replace(settings, output=settings.output.with_json_conversion(convert_json))
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the sorted names of all commands, also of hidden commands, which the help omits."""
        return list(command_entries())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; return None if no command has this name."""
        entry = command_entries().get(cmd_name)
        if entry is None:
            return None
        members = vars(import_module(entry.module)).values()
        command = next(
            member for member in members if isinstance(member, click.Command) and member.name == cmd_name
        )
        command.short_help, command.hidden = entry.help, not entry.help
        if os.environ.get(COMPLETION_VARIABLE):
            for _words, member in walk_commands(command):
                complete_parameters(member)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in _visible_commands().items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete command names and options, without importing the commands."""
        completions = [
            CompletionItem(name, help=entry.help)
            for name, entry in _visible_commands().items()
            if name.startswith(incomplete)
        ]
        return [*completions, *click.Command.shell_complete(self, ctx, incomplete)]


def _visible_commands() -> Mapping[str, CommandEntry]:
    return {name: entry for name, entry in command_entries().items() if entry.help}


def walk_commands(command: click.Command, words: Sequence[str] = ()) -> Iterator[tuple[str, click.Command]]:
    """Yield each runnable command below ``command``, also hidden ones, with the words that call it."""
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield " ".join(words), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            subcommand = command.get_command(context, name)
            if subcommand is not None:
                yield from walk_commands(subcommand, (*words, name))


KIND_OF_PARAMETER: Mapping[str, str] = {
    "job-id": JOBS,
    "checkpoint-from-job": JOBS,
    "project": PROJECTS,
    "project-id": PROJECTS,
    "checkpoint": CHECKPOINTS,
    "checkpoint-name": CHECKPOINTS,
    "metric": METRICS,
    "remote": REMOTES,
}
"""Kinds of server names, by the options, and metavars of arguments (JOB_ID), that such names complete."""


def name_kind_of(parameter: click.Parameter) -> str | None:
    """Return the kind of server names that complete a parameter; None if there is none."""
    is_argument = isinstance(parameter, click.Argument)
    spellings = re.findall(r"\w+", parameter.metavar or "")[:1] if is_argument else parameter.opts
    names = {spelling.strip("-").lower().replace("_", "-") for spelling in spellings}
    return next((kind for name, kind in KIND_OF_PARAMETER.items() if name in names), None)


class ServerNameType(click.types.StringParamType):
    """A text parameter that completes server names of one kind."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from tui.commands.support.completing import fetch_completions

        given_values = ctx.params.get(param.name or "")
        given_jobs = [
            ctx.params.get(parameter.name or "")
            for parameter in ctx.command.params
            if name_kind_of(parameter) == JOBS
        ]
        # before an option's value is typed, click has not parsed the arguments
        job_id = next((word for word in (*given_jobs, *ctx.args) if isinstance(word, str)), None)
        with suppress(Exception):  # completion cannot show errors
            completions = fetch_completions(
                self._kind, ctx.find_object(CommandSettings) or CommandSettings(), job_id, incomplete
            )
            return [
                CompletionItem(word, help=description or None)
                for word, description in completions
                if word.startswith(incomplete)
                and not (isinstance(given_values, tuple) and word in given_values)
            ]
        return []


def complete_parameters(command: click.Command) -> None:
    """Enable completion of server names for the parameters of this command."""
    for parameter in command.params:
        kind = name_kind_of(parameter)
        if kind is not None and parameter.type is click.STRING:
            parameter.type = ServerNameType(kind)


def answer_completion(root: click.Group) -> NoReturn:
    """Print the completions that the shell requests through environment variables, and exit.

    Exits at once with ``os._exit``: a pending name lookup or a slow server must not delay the shell.
    """
    code = 0
    with redirect_stderr(io.StringIO()):
        try:
            complete_parameters(root)
            root.main(args=[], prog_name=PROGRAM)
        except SystemExit as exit_request:
            code = exit_request.code if isinstance(exit_request.code, int) else 1
        except Exception:  # noqa: BLE001 - completion cannot show errors
            code = 1
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(code)


def help_document(root: click.Group) -> dict[str, Any]:
    """Return what ``--help`` shows of all commands as one JSON document, without hidden commands."""
    return {
        "program": PROGRAM,
        "version": __version__,
        "options": _parameter_records(root, "option"),
        "commands": [
            {
                "name": name,
                "help": command.get_short_help_str(limit=200),
                "arguments": _parameter_records(command, "argument"),
                "options": _parameter_records(command, "option"),
            }
            for name, command in walk_commands(root)
            if name and not command.hidden
        ],
        "exit_codes": [{"code": int(code), "meaning": code.meaning} for code in ExitCode],
    }


def _parameter_records(command: click.Command, kind: str) -> list[dict[str, Any]]:
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
