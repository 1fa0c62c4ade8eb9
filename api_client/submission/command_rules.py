"""Check what a job's start commands run, write and load.

Start commands are shell code, and only a shell knows for sure what they do. This module reads simple commands
in order (``./run.sh``, ``bash run.sh``, ``cd src && torchrun … train.py``), and the shell scripts of the
archive that they run; it ignores all other code.
"""

from __future__ import annotations

import os
import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, dropwhile
from pathlib import Path, PurePosixPath
from typing import Literal

from api_client.definitions.job_request import JobRequest
from api_client.definitions.jobs import WORKING_FOLDER
from api_client.submission.archive import ArchivePlan
from api_client.submission.findings import Finding
from api_client.words import listed

START_COMMANDS_FIELD = "runtime.start_commands"
PARALLEL_LAUNCHERS = frozenset({"torchrun", "accelerate", "deepspeed", "mpirun", "srun"})
"""Commands that start a process per GPU."""
LAUNCHERS = PARALLEL_LAUNCHERS | {"uv", "poetry", "source"}
"""Commands that run a script, which is one of their arguments."""
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
FILE_CREATING_COMMANDS = frozenset(
    {
        "git", "wget", "curl", "cp", "mv", "ln", "tar", "unzip", "aws", "gsutil", "gcloud", "rsync", "hf",
        "huggingface-cli", "s5cmd", "rclone", "tee", "touch", "install", "make", "cmake", "dd", "base64",
    }
)  # fmt: skip
"""Commands that may create files in the working directory, which then need not be in the archive."""
CONDITIONS = frozenset({"if", "elif", "while", "until", "for", "case", "[", "[[", "test", "function"})
"""Shell keywords after which it is unknown which commands run."""

_REDIRECTIONS = frozenset({">", ">>", "<", ">&", "&>", ">|"})
MAX_READ_CHARACTERS = 64 * 1024
"""Only this many characters of a command or a shell script are read."""
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_WRITTEN_VARIABLE = re.compile(r"\w*(?:DIR|HOME|CACHE|TMP|TEMP|OUTPUT)\w*")

Uncertainty = Literal["none", "some", "much"]


def command_findings(request: JobRequest, plan: ArchivePlan) -> Iterator[Finding]:
    checker = _CommandChecker(request, plan)
    for text in request.start_commands:
        for words in simple_commands(text):
            yield from checker.run(words)
    yield from _temporary_file_findings(request, checker.written)
    if checker.first_loader and request.total_gpus > 1 and request.caching:
        problem = f"nothing before {checker.first_loader} loads the data, so each of its processes may"
        yield Finding(
            "info", START_COMMANDS_FIELD, problem, "run a script that fills the cache before training starts"
        )


def simple_commands(text: str) -> Iterator[list[str]]:
    """Yield each simple command as a list of words, up to a here-document or ``MAX_READ_CHARACTERS``."""
    text = text[:MAX_READ_CHARACTERS].partition("<<")[0].replace("\\\n", " ")
    # A line break ends a command. It is kept, too, because shlex drops a comment up to the next line break.
    reader = shlex.shlex(text.replace("\n", "\n; "), posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    words: list[str] = []
    with suppress(ValueError):  # a quote that is never closed
        for token in chain(reader, ";"):
            if token not in {"&&", "||", ";", "|", "&", "|&", ";;", "(", ")"}:
                words.append(token)
            elif words:
                yield words
                words = []


def _without_prefixes(words: Sequence[str]) -> list[str]:
    """Return a command's words without redirections, assignments and wrappers such as ``nohup``."""
    arguments = [
        word
        for previous, word in zip(["", *words], words, strict=False)
        if word not in _REDIRECTIONS and previous not in _REDIRECTIONS
    ]
    return list(dropwhile(_is_prefix, arguments))


def _is_prefix(word: str) -> bool:
    return bool(_ASSIGNMENT.fullmatch(word)) or word in WRAPPERS or word.startswith("-")


def _is_python(name: str) -> bool:
    return name.rstrip("0123456789.") == "python"


def _is_script(path: str) -> bool:
    return PurePosixPath(path).suffix in (".py", ".sh", ".bash")


def _written_paths(words: Sequence[str]) -> Iterator[str]:
    """Yield the paths that a command seems to write, such as redirections and values of ``--output``."""
    name, *arguments = _without_prefixes(words) or [""]
    paths = [argument for argument in arguments if not argument.startswith("-")]
    if name in ("mkdir", "touch", "tee"):
        yield from paths
    elif name in ("cp", "mv"):
        yield from paths[-1:]
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option, separator, value = word.partition("=")
        if ">" in word and word in _REDIRECTIONS:
            yield following
        elif _ASSIGNMENT.fullmatch(word) and _WRITTEN_VARIABLE.fullmatch(option):
            yield value
        elif re.fullmatch(r"--?[\w.-]*(?:out|save|cache|tmp|temp|log)[\w.-]*", option, re.IGNORECASE):
            yield value if separator else following


class _CommandChecker:
    """Checks the commands in order, and tracks the effects of earlier commands."""

    def __init__(self, request: JobRequest, plan: ArchivePlan) -> None:
        self._request = request
        self._plan = plan
        self._paths = {name: path for path, name, _size in plan.files}
        self._folder: str | None = WORKING_FOLDER
        """The working directory; None if it is unknown."""
        self._uncertainty: Uncertainty = "none"
        """How uncertain it is that a missing file is a problem: an earlier command may create it, or the
        command that needs it may not run."""
        self._are_modes_known = True
        self._created_paths: set[str | None] = set()
        self._may_have_loaded_data = False
        self.written: list[str] = []
        self.first_loader = ""
        """The first parallel launcher, unless an earlier command may have loaded the data; else empty."""

    def run(self, words: list[str]) -> Iterator[Finding]:
        self._record_effects(words)
        name, *arguments = _without_prefixes(words) or [""]
        if name == "cd":
            self._folder = self._absolute(arguments[0]) if arguments else None
        elif name == "chmod":
            self._are_modes_known = False
        elif name in FILE_CREATING_COMMANDS or name in CONDITIONS:
            self._uncertainty = "much"
        elif name:
            script, executes = _script_of(name, arguments)
            path = self._absolute(script) if script else None
            if path is not None and path not in self._created_paths and path.startswith(f"{WORKING_FOLDER}/"):
                yield from self._script_findings(path.removeprefix(f"{WORKING_FOLDER}/"), executes=executes)
            if self._uncertainty == "none" and (script or name not in HARMLESS):
                self._uncertainty = "some"

    def _record_effects(self, words: list[str]) -> None:
        """Record what a command writes, and whether it loads data."""
        paths = list(_written_paths(words))
        self.written += paths
        self._created_paths.update(map(self._absolute, paths))
        name = PurePosixPath(next(iter(_without_prefixes(words)), "")).name
        is_parallel = name in PARALLEL_LAUNCHERS or any(
            word.startswith("torch.distributed") for word in words
        )
        if is_parallel and not self._may_have_loaded_data:
            self.first_loader = name
        self._may_have_loaded_data |= is_parallel or name in FILE_CREATING_COMMANDS or _is_python(name)

    def _absolute(self, path: str) -> str | None:
        """Return the absolute path; None if it is unknown."""
        if self._folder is None or re.search(r"[$`*?\[\]{}~]", path):
            return None
        return posixpath.normpath(posixpath.join(self._folder, path))

    def _script_findings(self, name: str, *, executes: bool) -> Iterator[Finding]:
        path = self._paths.get(name)
        if path is None:
            yield from self._missing_script_findings(name)
            return
        if executes and self._are_modes_known and not os.access(path, os.X_OK):
            remedy = f"chmod +x {name}, or start it with: bash {name}"
            yield Finding("error", START_COMMANDS_FIELD, f"{name} is not executable", remedy)
        if name.endswith((".sh", ".bash")):
            text = _read_beginning(path)
            if text.partition("\n")[0].endswith("\r"):
                problem = f"{name} has Windows line endings (CRLF), which break Linux shells"
                yield Finding("warning", START_COMMANDS_FIELD, problem, "save it with LF line endings")
            for words in simple_commands(text):
                self._record_effects(words)

    def _missing_script_findings(self, script: str) -> Iterator[Finding]:
        problem = f"{script} is not in the archive"
        for name, reason in self._plan.dropped:
            if script == name or script.startswith(name.rstrip("/") + "/"):
                remedy = "add a .truss_ignore file to replace the built-in ignore rules"
                yield Finding("error", START_COMMANDS_FIELD, f"{problem}: {reason}", remedy)
                return
        if self._uncertainty == "some":
            yield Finding("warning", START_COMMANDS_FIELD, f"{problem}, unless an earlier command creates it")
        elif self._uncertainty == "none" and not self._request.uses_workdir:
            yield Finding(
                "warning",
                START_COMMANDS_FIELD,
                problem,
                "make sure the image has it in its working directory",
            )
        elif self._uncertainty == "none":
            yield Finding(
                "error", START_COMMANDS_FIELD, problem, "put it next to the config, or fix the command"
            )


def _script_of(name: str, arguments: list[str]) -> tuple[str | None, bool]:
    """Return the script that a command runs, if any, and True if it is executed directly."""
    program = PurePosixPath(name)
    if program.name in LAUNCHERS:
        return next(filter(_is_script, arguments), None), False
    if program.name in {"bash", "sh", "dash", "zsh"} or _is_python(program.name):
        return _interpreted_script(arguments), False
    in_environment = program.parent.name == "bin"  # such as .venv/bin/pip, which is created at run time
    return (name, True) if "/" in name and not in_environment else (None, False)


def _interpreted_script(arguments: list[str]) -> str | None:
    for argument in arguments:
        if argument == "-m":  # python -m torch.distributed.run … train.py launches a script as well
            return next((name for name in arguments if name.endswith(".py")), None)
        if argument in ("-c", "-"):
            return None
        if not argument.startswith("-"):
            return argument if _is_script(argument) or "/" in argument else None
    return None


def _read_beginning(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_READ_CHARACTERS).decode(errors="replace")
    except OSError:
        return ""  # writing the archive reports the error


def _temporary_file_findings(request: JobRequest, written: Sequence[str]) -> Iterator[Finding]:
    variables = [
        value
        for name, value in request.environment.items()
        if isinstance(value, str) and _WRITTEN_VARIABLE.fullmatch(name)
    ]
    managed = [request.load_folder, request.checkpoint_path, request.cache_mount if request.caching else None]
    paths = [
        path
        for path in dict.fromkeys([*variables, *written])
        if re.fullmatch(r"/(?:tmp|root)(?:/[^\s:]*)?", path)
        and not any(folder and PurePosixPath(path).is_relative_to(folder) for folder in managed)
    ]
    if paths:
        problem = f"writes to {listed(paths, 3)}, which Baseten does not manage"
        yield Finding("warning", START_COMMANDS_FIELD, problem, "write temporary files to $BT_SCRATCH_DIR")
