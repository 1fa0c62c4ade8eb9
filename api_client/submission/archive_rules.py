"""Check the archive: its size, files left out, and the scripts that the start commands run.

Start commands are shell code, and only a shell knows for sure what they do. This module handles the simple
cases (``./run.sh``, ``bash run.sh``, ``cd src && torchrun … train.py``) and ignores the rest.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal

from api_client.definitions.job_request import JobRequest
from api_client.definitions.jobs import WORKING_FOLDER
from api_client.submission.archive import MAXIMUM_BYTES, ArchivePlan
from api_client.submission.findings import Finding

SHELLS = frozenset({"bash", "sh", "dash", "zsh"})
SOURCING = frozenset({"source", "."})
LAUNCHERS = frozenset({"torchrun", "accelerate", "deepspeed", "uv", "mpirun", "srun", "poetry"})
WRAPPERS = frozenset(
    {"exec", "sudo", "nohup", "time", "env", "stdbuf", "nice", "then", "do", "else", "!", "{"}
)
HARMLESS = frozenset(
    {
        "pip", "pip3", "uv", "apt", "apt-get", "conda", "mamba", "export", "set", "unset", "ulimit", "echo",
        "printf", "mkdir", "ls", "pwd", "cat", "date", "hostname", "sleep", "wait", "true", "nvidia-smi",
        "df", "free", "id", "which", "trap", "umask", "fi", "done", "}",
    }
)  # fmt: skip
"""Commands that do not change the scripts in the working directory."""
BRINGS_FILES = frozenset(
    {
        "git", "wget", "curl", "cp", "mv", "ln", "tar", "unzip", "aws", "gsutil", "gcloud", "rsync", "hf",
        "huggingface-cli", "s5cmd", "rclone", "tee", "touch", "install", "make", "cmake", "dd", "base64",
    }
)  # fmt: skip
"""Commands that may add files to the working directory that are not in the archive."""
CONDITIONS = frozenset({"if", "elif", "while", "until", "for", "case", "[", "[[", "test", "function"})
"""Words after which it is impossible to tell what runs."""

_SEPARATORS = frozenset({"&&", "||", ";", "|", "&", "|&", ";;", "(", ")"})
_HERE_DOCUMENT = "<<"
_PUNCTUATION = "();<>|&\n"
_BLANKS = " \t\r"
READ_CHARACTERS = 64 * 1024
"""Maximum number of characters to read of a command or a shell script."""
REDIRECTIONS = frozenset({">", ">>", "<", ">&", "&>", "<<<", ">|", _HERE_DOCUMENT})
ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_PYTHON = re.compile(r"python[0-9.]*")
_DYNAMIC = re.compile(r"[$`*?\[\]{}~]")
_SCRIPT = re.compile(r".+\.(py|sh|bash)")
_GIVES_EXECUTION = re.compile(r"([ugoa]*\+[rwst]*x[rwxst]*)|([0-7]*[1357][0-7]*)")

Doubt = Literal["none", "some", "much"]


@dataclass(frozen=True, slots=True)
class ScriptUse:
    """A file that a command runs.

    ``path`` is relative to the archive's root; ``executes`` says that the file itself must be executable;
    ``doubt`` is how likely it is that an earlier command creates the file, or that the file is not run at
    all.
    """

    path: str
    executes: bool
    doubt: Doubt = "none"


@dataclass(slots=True)
class _Place:
    """Effect of the previous commands on the working directory; a folder of None is unknown."""

    folder: PurePosixPath | None = field(default_factory=PurePosixPath)
    doubt: Doubt = "none"
    made_executable: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)


def script_uses(commands: tuple[str, ...]) -> list[ScriptUse]:
    """Return the files that start commands run, in order. All run in one shell, so a ``cd`` persists."""
    state = _Place()
    uses: list[ScriptUse] = []
    for command in commands:
        for simple_command in simple_commands(command):
            uses.extend(_read(simple_command, state))
    return uses


class _Source(io.StringIO):
    """Text that a comment is skipped in up to the end of its line, which ends a command."""

    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]
        while character := self.read(1):
            if character == "\n":
                self.seek(self.tell() - 1)
                break
        return ""


def simple_commands(command: str) -> Iterator[list[str]]:
    """Yield the words of each simple command, if the text is plain shell; of a long text, its beginning."""
    source = _Source(command[:READ_CHARACTERS].replace("\\\n", " "))
    reader = shlex.shlex(source, posix=True, punctuation_chars=_PUNCTUATION)
    reader.whitespace = _BLANKS
    reader.whitespace_split = True
    words: list[str] = []
    reads_document = False
    while True:
        try:
            token = reader.get_token()
        except ValueError:  # a quote that is never closed
            return
        ends_line = token is None or ("\n" in token and not token.strip(_PUNCTUATION))
        if not ends_line and token not in _SEPARATORS:
            assert token is not None
            words.append(token)
            reads_document = reads_document or token == _HERE_DOCUMENT
            continue
        if words:
            yield words
        if token is None or (ends_line and reads_document):  # its content follows, up to its end marker
            return
        words = []


def _read(words: list[str], place: _Place) -> Iterator[ScriptUse]:
    """Yield the file that one simple command runs, if any; update ``place`` with the command's effect."""
    words = _without_redirections(words, place)
    while words and (ASSIGNMENT.fullmatch(words[0]) or words[0] in WRAPPERS or words[0].startswith("-")):
        words = words[1:]
    if not words:
        return
    name = words[0]
    if name == "cd":
        place.folder = _joined(place.folder, words[1]) if len(words) > 1 else None
    elif name == "chmod":
        _note_chmod(words[1:], place)
    elif name in BRINGS_FILES or name in CONDITIONS:
        place.doubt = "much"
    else:
        script, executes = _script_of(words)
        path = _joined(place.folder, script) if script else None
        if path is not None and str(path) not in place.written:
            needs_mode = executes and not _is_made_executable(str(path), place)
            yield ScriptUse(str(path), needs_mode, place.doubt)
        if place.doubt == "none" and (script is not None or name not in HARMLESS):
            place.doubt = "some"


def _script_of(words: list[str]) -> tuple[str | None, bool]:
    """Return the file that a command runs, and True if it is executed directly."""
    name, arguments = PurePosixPath(words[0]).name, words[1:]
    if name in SOURCING or name in LAUNCHERS:
        return next((argument for argument in arguments if _SCRIPT.fullmatch(argument)), None), False
    if name in SHELLS or _PYTHON.fullmatch(name):
        return _interpreted(arguments), False
    in_environment = PurePosixPath(words[0]).parent.name == "bin"  # .venv/bin/pip: created at run time
    return (words[0], True) if "/" in words[0] and not in_environment else (None, False)


def _interpreted(arguments: list[str]) -> str | None:
    for argument in arguments:
        if argument == "-m":  # python -m torch.distributed.run … train.py launches a script as well
            return next((name for name in arguments if name.endswith(".py")), None)
        if argument in ("-c", "-"):
            return None
        if not argument.startswith("-"):
            return argument if _SCRIPT.fullmatch(argument) or "/" in argument else None
    return None


def _without_redirections(words: list[str], place: _Place) -> list[str]:
    remaining: list[str] = []
    skip = False
    for index, word in enumerate(words):
        if skip:
            skip = False
        elif word in REDIRECTIONS:
            skip = True
            if ">" in word and index + 1 < len(words):
                written = _joined(place.folder, words[index + 1])
                if written is not None:
                    place.written.add(str(written))
        else:
            remaining.append(word)
    return remaining


def _note_chmod(arguments: list[str], place: _Place) -> None:
    plain = [argument for argument in arguments if not argument.startswith("-")]
    if plain and _GIVES_EXECUTION.fullmatch(plain[0]):
        for argument in plain[1:]:
            # A pattern or a whole folder: assume that it covers all scripts.
            path = _joined(place.folder, argument)
            place.made_executable.add(str(path) if path is not None else "*")


def _is_made_executable(path: str, place: _Place) -> bool:
    parents = [str(parent) for parent in PurePosixPath(path).parents]
    return bool({path, "*", *parents} & place.made_executable)


def _joined(folder: PurePosixPath | None, path: str) -> PurePosixPath | None:
    """Return the path relative to the archive's root; None if it is unknown or leads outside."""
    if folder is None or _DYNAMIC.search(path):
        return None
    target = PurePosixPath(path)
    if target.is_absolute():
        if not target.is_relative_to(WORKING_FOLDER):
            return None
        folder, target = PurePosixPath(), target.relative_to(WORKING_FOLDER)
    parts = list(folder.parts)
    for part in target.parts:
        if part == "..":
            if not parts:
                return None
            parts.pop()
        else:
            parts.append(part)
    return PurePosixPath(*parts)


NEAR_LIMIT_BYTES = MAXIMUM_BYTES * 9 // 10
ADVISED_BYTES = 10**9
"""The documentation advises an object store for more."""
NAMES_SHOWN = 5
FIRST_LINE_BYTES = 256
SHELL_SUFFIXES = (".sh", ".bash")
_EXECUTABLE = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


def archive_findings(request: JobRequest, plan: ArchivePlan) -> Iterator[Finding]:
    on_disk = {name: path for path, name, _size in plan.files}
    seen = set()
    for use in script_uses(request.start_commands):
        if use not in seen:
            seen.add(use)
            yield from _script_findings(use, request, plan, on_disk)
    yield from _size_findings(plan)
    for warning in plan.warnings:
        yield Finding("warning", "archive", warning)
    yield from _dropped_findings(plan)


def _script_findings(
    use: ScriptUse, request: JobRequest, plan: ArchivePlan, on_disk: dict[str, Path]
) -> Iterator[Finding]:
    field = "runtime.start_commands"
    path = on_disk.get(use.path)
    if path is None:
        yield _missing(use, request, plan, field)
        return
    if use.executes and not _is_executable(path):
        remedy = f"chmod +x {use.path}, or start it with: bash {use.path}"
        yield Finding("error", field, f"{use.path} is not executable", remedy)
    if use.path.endswith(SHELL_SUFFIXES) and _has_windows_lines(path):
        problem = f"{use.path} has Windows line endings (CRLF), which break Linux shells"
        yield Finding("warning", field, problem, "save it with LF line endings")


def _missing(use: ScriptUse, request: JobRequest, plan: ArchivePlan, field: str) -> Finding:
    problem = f"{use.path} is not in the archive"
    for name, reason in plan.dropped:
        if use.path == name or use.path.startswith(name.rstrip("/") + "/"):
            remedy = "add a .truss_ignore file to replace the built-in ignore rules"
            return Finding("error", field, f"{problem}: {reason}", remedy)
    if use.doubt == "much":
        return Finding("info", field, f"{problem}; an earlier command must create it")
    if use.doubt == "some":
        return Finding("warning", field, f"{problem}, unless an earlier command creates it")
    if not request.uses_workdir:
        remedy = "make sure the image has it in its working directory"
        return Finding("warning", field, problem, remedy)
    return Finding("error", field, problem, "put it next to the config, or fix the command")


def _size_findings(plan: ArchivePlan) -> Iterator[Finding]:
    if plan.size_bytes > NEAR_LIMIT_BYTES:
        problem = f"{plan.size_bytes / 1024**3:.2f} GiB is close to the limit of 5 GiB"
        yield Finding("warning", "archive", problem, "keep data in an object store or the cache")
    elif plan.size_bytes > ADVISED_BYTES:
        problem = f"{plan.size_bytes / 10**9:.2f} GB; above 1 GB, an object store is advised"
        yield Finding("warning", "archive", problem, "deliver data as weights, or download it in the job")


def _dropped_findings(plan: ArchivePlan) -> Iterator[Finding]:
    names = [name for name, _reason in plan.dropped]
    if names:
        more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
        yield Finding("info", "archive", f"excluded: {', '.join(names[:NAMES_SHOWN])}{more}")


def _is_executable(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & _EXECUTABLE) or os.name == "nt"  # Windows has no such bit
    except OSError:
        return True  # packing reports what is wrong with it


def _has_windows_lines(path: Path) -> bool:
    try:
        with path.open("rb") as opened:
            return opened.readline(FIRST_LINE_BYTES).endswith(b"\r\n")
    except OSError:
        return False
