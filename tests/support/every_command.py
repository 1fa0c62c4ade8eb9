"""Every command of the program: what it takes to run it, or why it prints no data in a format."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

import click

from tui.cli import cli as program
from tui.commands.support.catalogue import walk_commands
from tui.commands.support.output import JSONL, OFFICIAL_TABLES

MACHINE_FORMATS = frozenset({"json", "csv", "ndjson"})
JOB, ENDED, WAITING = "job00001", "job00002", "job00003"
PROJECT = "llama-sft"
OF_JOB = ("--job-id", JOB)
SERVING, SPARE, INACTIVE, BROKEN = "dep00001", "dep00002", "dep00003", "dep00004"
"""Deployments: the one in production, another that serves, one that is stopped, one that failed."""
SERVED = (
    *(*OF_JOB, "--checkpoint", "checkpoint-100", "--model-name", "m"),
    *("--gpu", "H100:1", "--lora-rank", "16"),
)

CHANGING: dict[str, tuple[str, ...]] = {
    "stop": (JOB,),
    "delete": (ENDED, "--yes"),
    "recreate": (JOB,),
    "update": (WAITING, "--priority", "3"),
    "push": ("code/config.py", "--yes"),
    "workstation": ("--gpu-count", "2", "--yes"),
    "deploy_checkpoints": (*SERVED, "--yes"),
    "deployments promote": (SPARE, "--yes"),
    "deployments deactivate": (SERVING, "--yes"),
    "deployments activate": (INACTIVE, "--yes"),
    "deployments retry": (BROKEN, "--yes"),
    "download": (JOB,),
    "record": (JOB,),
    "resume": (ENDED, "--yes"),
    "guard": (JOB, "--once", "--stop-on", "stalled"),
    "capacity update": ("--team", "Research", "--gpu-type", "H100", "--capacity", "64"),
    "checkpoints download": (*OF_JOB, "--existing", "overwrite"),
    "init": ("my-run",),
}
"""What changes something, here or there, tried once."""

ONE_VALUE = "prints one thing that another program reads: a path, a script, a block of a file"
TELLS_ONLY = "has no data: what it did is a remark on stderr"
A_SCREEN = "is a screen or a server, for people"
SCREENS = ("", "watch", "demo", "open", "serve", "serve-page", "emulator", "mcp")
TELLING = (
    *("emulator stop", "login", "logout", "secrets set", "secrets delete", "update_session"),
    *("config edit", "config validate"),
)
VALUES = (
    *("config path", "completion", "ssh-config"),
    *("checkpoints urls", "checkpoints snippet"),
)
WITHOUT_FORMAT: dict[str, str] = {
    **dict.fromkeys(SCREENS, A_SCREEN),
    **dict.fromkeys(TELLING, TELLS_ONLY),
    **dict.fromkeys(VALUES, ONE_VALUE),
    "ssh": "prints what the command on the node prints",
    "ssh-proxy": "passes on what ssh says",
    "ssh-sign": "is called by ssh, which reads the certificate from its file",
}
"""Commands without ``-o``, and why."""


def commands() -> Iterator[tuple[str, click.Command]]:
    return walk_commands(program)


def format_option_of(command: click.Command) -> click.Option | None:
    return next((each for each in command.params if "-o" in each.opts), None)  # type: ignore[return-value]


def formats_of(command: click.Command) -> tuple[str, ...]:
    """What its ``-o`` may be, without other names of the default and of JSON, and without files.

    One option for all commands makes ``jsonl`` JSON by the line: ``test_official_clis`` reads it.
    """
    option = format_option_of(command)
    if option is None:
        return ()
    if not isinstance(option.type, click.Choice):
        return ("text", "ndjson", "raw")
    names = [each for each in map(str, option.type.choices) if each not in (*OFFICIAL_TABLES, JSONL)]
    return tuple(dict.fromkeys((option.default, *names)))


IN_EXAMPLES = {"abc1234": JOB, "def5678": ENDED, "wxy7890": SERVING} | dict.fromkeys(
    ("checkpoint-400", "checkpoint-500"), "checkpoint-100"
)
"""What the help's examples name, and what is there in its place."""


def example_of(words: str, command: click.Command, names: Mapping[str, str] = IN_EXAMPLES) -> tuple[str, ...]:
    """The arguments of the first example in a command's help, without comment and redirection."""
    lines = map(str.strip, (command.epilog or "").splitlines())
    line = next((each for each in lines if each.startswith(f"bt-tui {words}")), "")
    assert line, f"bt-tui {words}: its help has no example of it; add @examples"
    given = shlex.split(re.split(r"  | [|<>&]", line)[0])[1 + len(words.split()) :]
    return tuple(names.get(word, word) for word in given)


DRY_RUNS: dict[str, tuple[str, ...]] = {
    "push": ("code/config.py", "--dry-run"),
    "workstation": ("--gpu-count", "2", "--dry-run"),
    "deploy_checkpoints": (*SERVED, "--dry-run"),
    "init": ("--list-examples",),
}
READING: dict[str, tuple[str, ...]] = DRY_RUNS | {
    words: example_of(words, command)
    for words, command in commands()
    if formats_of(command) and words not in CHANGING
}
"""What only reads, tried at every width: its first example."""
