"""Check where a job reads and writes data: sources of weights, temporary files, data that all processes need.

Paths are recognized in plain shell only: in redirections, in options and variables named like an output or a
cache, and in commands that create files. The rest is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from api_client.definitions.job_request import JobRequest
from api_client.submission.archive import ArchivePlan
from api_client.submission.archive_rules import (
    ASSIGNMENT,
    BRINGS_FILES,
    READ_CHARACTERS,
    REDIRECTIONS,
    SHELL_SUFFIXES,
    WRAPPERS,
    script_uses,
    simple_commands,
)
from api_client.submission.findings import Finding

PUBLISHED_SCHEMES = ("hf", "s3", "gs", "r2", "cw")
"""Sources of weights that the API describes."""
LAUNCHERS = frozenset({"torchrun", "accelerate", "deepspeed", "mpirun", "srun"})
"""Commands that start a process per GPU."""
COMMANDS = "runtime.start_commands"
PATHS_SHOWN = 3

_UNMANAGED = re.compile(r"/(?:tmp|root)(?:/[^\s:]*)?")
_WRITTEN_OPTION = re.compile(r"--?[\w.-]*(?:out|save|cache|tmp|temp|log)[\w.-]*", re.IGNORECASE)
_WRITTEN_VARIABLE = re.compile(r"\w*(?:DIR|HOME|CACHE|TMP|TEMP|OUTPUT)\w*")
_CREATES = frozenset({"mkdir", "touch", "tee"})
_COPIES = frozenset({"cp", "mv"})
_PYTHON = re.compile(r"python[0-9.]*")


def storage_findings(
    request: JobRequest, plan: ArchivePlan, *, on_emulator: bool | None
) -> Iterator[Finding]:
    """Yield the findings; ``on_emulator`` says where the job is sent, None if that is unknown."""
    if not on_emulator:
        yield from _weights(request, is_known=on_emulator is not None)
    commands = [
        list(simple_command)
        for text in _shell_texts(request, plan)
        for simple_command in simple_commands(text)
    ]
    yield from _temporary_files(request, commands)
    yield from _unseeded(request, commands)


def _weights(request: JobRequest, *, is_known: bool) -> Iterator[Finding]:
    for number, source_definition in enumerate(request.weights):
        source = source_definition.get("source") if isinstance(source_definition, dict) else None
        scheme = source.partition("://")[0] if isinstance(source, str) else ""
        field = f"weights[{number}].source"
        remedy = f"use {', '.join(f'{name}://' for name in PUBLISHED_SCHEMES)}"
        if scheme == "file":
            problem = f"{source}: only an emulator can read files of this machine"
            yield Finding("error" if is_known else "warning", field, problem, remedy)
        elif scheme and scheme not in PUBLISHED_SCHEMES:
            yield Finding("warning", field, f"{scheme}:// is not in the API's description", remedy)


def _shell_texts(request: JobRequest, plan: ArchivePlan) -> Iterator[str]:
    """Yield the start commands, then the shell scripts of the archive that they run."""
    yield from request.start_commands
    on_disk = {name: path for path, name, _size in plan.files}
    for name in dict.fromkeys(use.path for use in script_uses(request.start_commands)):
        if name in on_disk and name.endswith(SHELL_SUFFIXES):
            yield _beginning(on_disk[name])


def _beginning(path: Path) -> str:
    try:
        with path.open("rb") as opened:
            return opened.read(READ_CHARACTERS).decode(errors="replace")
    except OSError:
        return ""  # packing reports what is wrong with it


def _temporary_files(request: JobRequest, commands: Sequence[list[str]]) -> Iterator[Finding]:
    variables = [(name, value) for name, value in request.environment.items() if isinstance(value, str)]
    written = [value for name, value in variables if _WRITTEN_VARIABLE.fullmatch(name)]
    for simple_command in commands:
        written += _written(simple_command)
    managed = [request.load_folder, request.checkpoint_path, request.cache_mount if request.caching else None]
    paths = [
        path
        for path in dict.fromkeys(written)
        if _UNMANAGED.fullmatch(path)
        and not any(folder and PurePosixPath(path).is_relative_to(folder) for folder in managed)
    ]
    if paths:
        more = f" and {len(paths) - PATHS_SHOWN} more" if len(paths) > PATHS_SHOWN else ""
        problem = f"writes to {', '.join(paths[:PATHS_SHOWN])}{more}, which Baseten does not manage"
        yield Finding("warning", COMMANDS, problem, "write temporary files to $BT_SCRATCH_DIR")


def _written(words: list[str]) -> Iterator[str]:
    """Yield the words of a command that name what it writes."""
    plain = [word for word in words[1:] if not word.startswith("-") and word not in REDIRECTIONS]
    if words[0] in _CREATES:
        yield from plain
    elif words[0] in _COPIES:
        yield from plain[-1:]
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, separator, value = word.partition("=")
        if ">" in word and word in REDIRECTIONS:
            yield following
        elif ASSIGNMENT.fullmatch(word) and _WRITTEN_VARIABLE.fullmatch(name):
            yield value
        elif _WRITTEN_OPTION.fullmatch(name):
            yield value if separator else following


def _unseeded(request: JobRequest, commands: Sequence[list[str]]) -> Iterator[Finding]:
    """Remark on processes that all load the same data at once, if nothing ran before them."""
    if request.total_gpus < 2 or not request.caching:
        return
    for simple_command in commands:
        name = next((PurePosixPath(word).name for word in simple_command if not _is_prefix(word)), "")
        if name in LAUNCHERS or any(word.startswith("torch.distributed") for word in simple_command):
            problem = f"nothing before {name} loads the data, so each of its processes may"
            remedy = "load it into the cache once, in an earlier start command with a script of its own"
            yield Finding("info", COMMANDS, problem, remedy)
            return
        if name in BRINGS_FILES or _PYTHON.fullmatch(name):
            return


def _is_prefix(word: str) -> bool:
    return bool(ASSIGNMENT.fullmatch(word)) or word in WRAPPERS
