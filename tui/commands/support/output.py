"""The results of commands: data on stdout, messages on stderr, and the exit code.

All text is sanitized, because some of it comes from a server; only a pipe or a file can get it verbatim.
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from difflib import get_close_matches
from enum import IntEnum
from typing import Any, Self, TextIO

import click

from api_client.errors import (
    ApiClientError,
    ConfigurationError,
    ErrorAnswer,
    NotFound,
    ReadOnlyError,
    RequestError,
    Unauthorized,
)
from api_client.files import FULL_DISK, WRONG_PLACE, why_not_written
from api_client.words import listed
from tui.text.names import natural_key
from tui.text.sanitize import clip, sanitize, sanitize_lines, sanitize_whole
from tui.text.units import counted

TABLE, JSON, CSV, TEXT, NDJSON, JSONL = "table", "json", "csv", "text", "ndjson", "jsonl"
MARKDOWN, CHART = "markdown", "chart"
OFFICIAL_TABLES = ("cli-table", "text")


def known_names_text(names: Iterable[str]) -> str:
    """Return sorted names as text, at most a few of them: ``a, b and 7 more``."""
    sorted_names = sorted(set(names), key=natural_key)
    return listed(list(map(_clipped_name, sorted_names)), max_names=12) or "none"


def unknown_value(noun: str, typed: str, known_values: Iterable[str]) -> str:
    """Return ``unknown status 'runing', did you mean running? known: …``; names keep the given order."""
    names = list(known_values)
    similar_names = get_close_matches(typed.lower(), names, n=1)
    hint = f", did you mean {_clipped_name(similar_names[0])}?" if similar_names else ";"
    return f"unknown {noun} {_clipped_name(typed)!r}{hint} known: {', '.join(map(_clipped_name, names))}"


def _clipped_name(name: str) -> str:
    return clip(sanitize(name), cells=60)


class ExitCode(IntEnum):
    """The published exit codes, each with its meaning."""

    meaning: str

    def __new__(cls, value: int, meaning: str = "") -> Self:
        member = int.__new__(cls, value)
        member._value_, member.meaning = value, meaning
        return member

    OK = 0, "success; the followed job completed"
    UNEXPECTED = 1, "other error, such as a request that the server refuses"
    USAGE = 2, "invalid usage or settings; preflight errors; refused by --readonly"
    JOB_FAILED = 3, "the followed job failed (or ended with an unknown status)"
    JOB_STOPPED = 4, "the followed job was stopped or preempted, or expired"
    DEPLOY_FAILED = 5, "the followed job or model failed to deploy"
    AUTH = 6, "no API key, or the key was refused"
    NOT_FOUND = 7, "no such job, project, node, cache, checkpoint or file"
    UNREACHABLE = 8, "the server is unreachable or keeps failing"
    TIMED_OUT = 9, "timed out while waiting"
    WARNING = 10, "health: warnings"
    CRITICAL = 11, "health: critical; a job is wasting GPU time"
    HUNG_UP = 129, "ended because its terminal was closed (SIGHUP)"
    INTERRUPTED = 130, "interrupted (ctrl-c)"
    TERMINATED = 143, "ended by SIGTERM"


EXIT_CODE_OF_STATUS = {
    "TRAINING_JOB_COMPLETED": ExitCode.OK,
    "TRAINING_JOB_FAILED": ExitCode.JOB_FAILED,
    "TRAINING_JOB_DEPLOY_FAILED": ExitCode.DEPLOY_FAILED,
    "TRAINING_JOB_STOPPED": ExitCode.JOB_STOPPED,
    "TRAINING_JOB_PREEMPTED": ExitCode.JOB_STOPPED,
    "TRAINING_JOB_EXPIRED": ExitCode.JOB_STOPPED,
}
"""Exit codes of commands that follow a job, by the final status of the job."""


def outcome_exit_code(status: str) -> ExitCode:
    """Return the exit code of a command that followed a job until it ended with ``status``.

    An unknown status counts as a failure, because it might be one.
    """
    return EXIT_CODE_OF_STATUS.get(status, ExitCode.JOB_FAILED)


EXIT_CODE_OF_SEVERITY = {"critical": ExitCode.CRITICAL, "warning": ExitCode.WARNING}
EXIT_CODES_WORST_FIRST = (
    ExitCode.CRITICAL,
    ExitCode.JOB_FAILED,
    ExitCode.DEPLOY_FAILED,
    ExitCode.JOB_STOPPED,
    ExitCode.WARNING,
    ExitCode.AUTH,
    ExitCode.UNREACHABLE,
    ExitCode.UNEXPECTED,
    ExitCode.OK,
)
"""Exit codes by severity, worst first: for several jobs a command returns the worst code."""


def worst_code(codes: Iterable[ExitCode]) -> ExitCode:
    return min(codes, key=EXIT_CODES_WORST_FIRST.index, default=ExitCode.OK)


DEBUG_VARIABLE = "BT_TUI_DEBUG"

NO_REMOTE_HELP = """no remote is configured. Set one up:
  1. export BASETEN_API_KEY=…   use a key from your Baseten workspace's settings
  2. bt-tui login               store a key in ~/.trussrc, shared with truss
Or, without an account, on this machine:
  3. bt-tui demo                explore a demo world
  4. bt-tui --remote local …    run it on an emulator, which really runs jobs
"""


class CommandFailed(Exception):
    def __init__(self, message: str, exit_code: ExitCode) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def refuse_if(condition: object, problem: str) -> None:
    """Raise click.UsageError with the message ``problem`` if the condition is true."""
    if condition:
        raise click.UsageError(problem)


_CODE_OF_ERROR = {ReadOnlyError: ExitCode.USAGE, Unauthorized: ExitCode.AUTH, NotFound: ExitCode.NOT_FOUND}


def not_in_job_error(job_id: str, noun: str, name: str, known_values: Iterable[str]) -> CommandFailed:
    """Return the error to raise: ``job abc1234 has no checkpoint 'x' (it has: a, b)``."""
    message = f"job {job_id} has no {noun} {_clipped_name(name)!r} (it has: {known_names_text(known_values)})"
    return CommandFailed(message, ExitCode.NOT_FOUND)


def explain(error: Exception) -> tuple[str, ExitCode]:
    """Return the message and the exit code for any exception that a command raised.

    Errors of the client have a readable message and never contain a key. Any other exception is a bug.
    """
    if isinstance(error, CommandFailed):
        return str(error), error.exit_code
    # A deployment whose response was lost is not retryable, but the cause of the error is.
    causes = (error, error.__cause__)
    is_full_disk = any(isinstance(cause, OSError) and cause.errno in FULL_DISK for cause in causes)
    if isinstance(error, ConfigurationError) and not is_full_disk:
        # already imported by the code that raised the error
        from api_client.recordings.archive import RecordingError
        from api_client.remotes import KeyMissing, RemoteNotConfigured

        if isinstance(error, RemoteNotConfigured):
            return NO_REMOTE_HELP.rstrip(), ExitCode.AUTH
        if isinstance(error, KeyMissing):
            return str(error), ExitCode.AUTH
        is_missing = isinstance(error, RecordingError) and isinstance(error.__cause__, FileNotFoundError)
        return str(error), ExitCode.NOT_FOUND if is_missing else ExitCode.USAGE
    if isinstance(error, ApiClientError):
        code = next((code for class_, code in _CODE_OF_ERROR.items() if isinstance(error, class_)), None)
        is_unreachable = any(isinstance(cause, RequestError) and cause.retryable for cause in causes)
        return str(error), code or (ExitCode.UNREACHABLE if is_unreachable else ExitCode.UNEXPECTED)
    message = f"unexpected {type(error).__name__}: {error}"
    if isinstance(error, OSError) and error.strerror:
        file_name = "" if error.filename is None else f"{error.filename}: "
        message = file_name + (why_not_written(error) if is_full_disk else error.strerror)
    return f"{message} ({DEBUG_VARIABLE}=1 shows details)", ExitCode.UNEXPECTED


def request_details(error: Exception) -> str:
    """Return method, path, status and id of the failed request, as text; empty for other errors."""
    if not isinstance(error, RequestError) or not error.method:
        return ""
    parts = [f"{error.method} {error.path}", f"sent {counted(error.attempts, 'time')}"]
    if isinstance(error, ErrorAnswer):
        parts.append(f"status {error.status}")
        parts += [f"code {error.code}"] if error.code else []
        parts += [f"id {error.request_id}"] if error.request_id else []
    return f"request: {', '.join(parts)}"


def wants_details() -> bool:
    return bool(os.environ.get(DEBUG_VARIABLE))


DELETE_CHARACTER = "\x7f"
"""The only control character that ASCII JSON does not escape."""

SGR_OF_TONE = {
    "running": "32",
    "starting": "36",
    "waiting": "33",
    "good": "32",
    "bad": "31",
    "caution": "33",
    "unknown": "35",
    "name": "36",
    "muted": "2",
    "strong": "1",
}
"""Tone name → SGR parameter; the terminal's own 16 colors suit any theme."""

_RESET = "\x1b[0m"
_OUR_COLOR_SEQUENCE = re.compile(
    rf"(\x1b\[(?:0|{'|'.join(sorted(set(SGR_OF_TONE.values())))}|38;5;[0-9]{{1,3}})m)"
)
"""Color sequences to keep: those of ``paint``, and the 256-color sequences of charts."""


def _with_own_colors(line: str) -> str:
    """Sanitize a line but keep our color sequences; reset the color at its end."""
    segments = _OUR_COLOR_SEQUENCE.split(line)
    segments[::2] = map(sanitize_lines, segments[::2])
    if len(segments) > 1 and segments[-2] != _RESET:
        segments.append(_RESET)
    return "".join(segments)


class OutputClosed(Exception):
    """The reader of stdout closed the pipe (``bt-tui logs … | head``)."""


class CommandOutput:
    """Prints the results of a command to stdout, and its messages to stderr."""

    def __init__(
        self,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
        environ: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> None:
        self._stdout = stdout if stdout is not None else sys.stdout
        self._name = name
        self._stderr = stderr if stderr is not None else sys.stderr
        environ = os.environ if environ is None else environ
        self.is_terminal = self._stdout.isatty()
        self.has_color = self.is_terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
        self._is_verbatim = False
        self.format = TEXT
        self._convert_json: Callable[[Any], Any] | None = None
        self._has_json_lines = False

    @property
    def width_cells(self) -> int | None:
        """The terminal's width in cells; None if the output is not a terminal."""
        return shutil.get_terminal_size().columns if self.is_terminal else None

    @property
    def is_closed_by_reader(self) -> bool:
        """True if stdout is a pipe without a reader, detected without having to write."""
        try:
            descriptor = self._stdout.fileno()
            if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                return False
            poller = select.poll()
            poller.register(descriptor, 0)
            return any(events & select.POLLERR for _, events in poller.poll(0))
        except (OSError, ValueError, AttributeError):  # no file descriptor, or a system without poll
            return False

    def verbatim(self) -> CommandOutput:
        """Return a copy that writes text to pipes and files unsanitized; a terminal gets sanitized text."""
        modified_copy = copy(self)
        modified_copy._is_verbatim = not self.is_terminal
        return modified_copy

    def write_text(self, text: str) -> None:
        """Write to stdout, sanitized, and flush. The caller adds line breaks.

        Raises OutputClosed if the reader has gone, and CommandFailed if the output cannot be written.
        """
        self._write(text if self._is_verbatim else self._sanitized(text))

    def clear_screen(self) -> None:
        if self.is_terminal:
            self._write("\x1b[H\x1b[2J")

    def _sanitized(self, text: str) -> str:
        if text.replace("\n", "").isprintable():
            return text  # fast path in C: there may be 100,000 lines
        if not self.has_color:
            return sanitize_lines(text)
        return "\n".join(map(_with_own_colors, text.split("\n")))

    def _write(self, text: str) -> None:
        try:
            self._stdout.write(text)
            self._stdout.flush()
        except BrokenPipeError:
            raise OutputClosed from None
        except OSError as error:
            raise cannot_write_error(self._name or self._stdout.name.strip("<>"), error) from None

    def with_json_conversion(self, convert: Callable[[Any], Any]) -> CommandOutput:
        """Return a copy that applies ``convert`` to each JSON document before writing it."""
        modified_copy = copy(self)
        modified_copy._convert_json = convert
        return modified_copy

    def with_format(self, name: str) -> CommandOutput:
        """Return a copy with this output format; ``jsonl`` is JSON with one line for each record."""
        modified_copy = copy(self)
        modified_copy.format = JSON if name == JSONL else name
        modified_copy._has_json_lines = name in (JSONL, NDJSON)
        return modified_copy

    def print_result(
        self,
        document: Any | Callable[[], Any],
        text: str | Callable[[], str],
        csv: str | Callable[[], str] = "",
    ) -> None:
        """Write the result in the chosen format: ``document`` as JSON or ndjson, ``csv``, or else ``text``.

        Values that are slow to create are passed as functions; only the function that is needed is called.
        """
        value_or_function = {JSON: document, NDJSON: document, CSV: csv}.get(self.format, text)
        value = value_or_function() if callable(value_or_function) else value_or_function
        write = self.print_json if self.format in (JSON, NDJSON) else self.write_text
        write(value)

    def print_json(self, value: Any) -> None:
        """Write one JSON document: ASCII without control characters, models as objects, NaN as null."""
        document = value if self._convert_json is None else self._convert_json(value)
        if not self._has_json_lines:
            self._write_json(document, indent=2)
            return
        for record in document if isinstance(document, list) else [document]:
            self._write_json(record, indent=None)

    def _write_json(self, value: Any, indent: int | None) -> None:
        from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

        try:
            document = to_json(
                value, indent=indent, by_alias=False, inf_nan_mode="null", ensure_ascii=True
            ).decode("ascii")
        except PydanticSerializationError:  # a lone surrogate, which only Python's own encoder can escape
            plain = to_jsonable_python(value, by_alias=False, inf_nan_mode="null")
            document = json.dumps(plain, indent=indent)
        self.write_text(document.replace(DELETE_CHARACTER, "\\u007f") + "\n")

    def print_message(self, text: str) -> None:
        """Write a message to stderr, sanitized; without effect if stderr is closed."""
        try:
            self._stderr.write(f"bt-tui: {sanitize_whole(text)}\n")
            self._stderr.flush()
        except (OSError, ValueError):
            return

    def paint(self, text: str, tone: str | None) -> str:
        sgr = SGR_OF_TONE.get(tone or "") if self.has_color else None
        return f"\x1b[{sgr}m{text}{_RESET}" if sgr and text else text


def cannot_write_error(name: object, error: OSError) -> CommandFailed:
    """Return the error to raise for a stream or a file that cannot be written.

    The exit code distinguishes a wrong path from a full or failing disk.
    """
    code = ExitCode.USAGE if error.errno in WRONG_PLACE else ExitCode.UNEXPECTED
    return CommandFailed(f"can't write {name}: {why_not_written(error)}", code)


def ascii_json(value: Any) -> str:
    """Return one line of JSON without control characters or non-ASCII letters, whatever the text contains."""
    return json.dumps(value, ensure_ascii=True).replace(DELETE_CHARACTER, "\\u007f")
