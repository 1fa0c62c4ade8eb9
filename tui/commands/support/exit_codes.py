"""The end of commands: exit codes, messages for every exception, and suggestions for unknown names."""

from __future__ import annotations

import os
from collections.abc import Iterable
from difflib import get_close_matches
from enum import IntEnum
from typing import Self

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
from api_client.files import FULL_DISK, why_not_written
from tui.text.names import listed, natural_key
from tui.text.sanitize import clip, sanitize
from tui.text.units import counted


def known_names(names: Iterable[str]) -> str:
    """List names in natural order: ``a, b and 7 more``."""
    sorted_names = sorted(set(names), key=natural_key)
    return listed(list(map(_shown, sorted_names)), most=12) or "none"


def unknown_value(what: str, typed: str, known: Iterable[str]) -> str:
    """Return ``unknown status 'runing', did you mean running? known: …``; names keep the given order."""
    names = list(known)
    close = get_close_matches(typed.lower(), names, n=1)
    hint = f", did you mean {_shown(close[0])}?" if close else ";"
    return f"unknown {what} {_shown(typed)!r}{hint} known: {', '.join(map(_shown, names))}"


def _shown(name: str) -> str:
    return clip(sanitize(name), cells=60)


class ExitCode(IntEnum):
    """The published exit codes, each with its meaning."""

    meaning: str

    def __new__(cls, value: int, meaning: str = "") -> Self:
        member = int.__new__(cls, value)
        member._value_, member.meaning = value, meaning
        return member

    OK = 0, "success; the followed job completed"
    UNEXPECTED = 1, "other error"
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


OUTCOMES = {
    "TRAINING_JOB_COMPLETED": ExitCode.OK,
    "TRAINING_JOB_FAILED": ExitCode.JOB_FAILED,
    "TRAINING_JOB_DEPLOY_FAILED": ExitCode.DEPLOY_FAILED,
    "TRAINING_JOB_STOPPED": ExitCode.JOB_STOPPED,
    "TRAINING_JOB_PREEMPTED": ExitCode.JOB_STOPPED,
    "TRAINING_JOB_EXPIRED": ExitCode.JOB_STOPPED,
}
"""Exit codes for following a job, by the final statuses that are known."""


def outcome_exit_code(status: str) -> ExitCode:
    """Return the exit code for following a job that ended with ``status``.

    An unknown status counts as an end, and as a failure, since it might be one.
    """
    return OUTCOMES.get(status, ExitCode.JOB_FAILED)


OF_SEVERITY = {"critical": ExitCode.CRITICAL, "warning": ExitCode.WARNING}
WORST_FIRST = (
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
"""Exit codes by severity, worst first: for several jobs a command returns the worst one."""


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    return min(codes, key=WORST_FIRST.index, default=ExitCode.OK)


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


def refuse(condition: object, problem: str) -> None:
    """Raise click.UsageError if the condition holds: options that make no sense together, or are missing."""
    if condition:
        raise click.UsageError(problem)


_CODES = {ReadOnlyError: ExitCode.USAGE, Unauthorized: ExitCode.AUTH, NotFound: ExitCode.NOT_FOUND}


def not_in_job(job_id: str, what: str, name: str, known: Iterable[str]) -> CommandFailed:
    """Return the error to raise: ``job abc1234 has no checkpoint 'x' (it has: a, b)``."""
    message = f"job {job_id} has no {what} {_shown(name)!r} (it has: {known_names(known)})"
    return CommandFailed(message, ExitCode.NOT_FOUND)


def explain(error: Exception) -> tuple[str, ExitCode]:
    """Return the message and the exit code for any exception that a command raised.

    Errors of the client have a readable message and never contain a key. Any other exception is a bug.
    """
    if isinstance(error, CommandFailed):
        return str(error), error.exit_code
    # A deployment whose answer was lost is not retryable itself, but its cause is.
    causes = (error, error.__cause__)
    is_full_disk = any(isinstance(cause, OSError) and cause.errno in FULL_DISK for cause in causes)
    if isinstance(error, ConfigurationError) and not is_full_disk:
        from api_client.remotes import RemoteNotConfigured  # loaded by whatever raised the error

        if isinstance(error, RemoteNotConfigured):
            return NO_REMOTE_HELP.rstrip(), ExitCode.AUTH
        return str(error), ExitCode.USAGE
    if isinstance(error, ApiClientError):
        code = next((code for class_, code in _CODES.items() if isinstance(error, class_)), None)
        is_unreachable = any(isinstance(cause, RequestError) and cause.retryable for cause in causes)
        return str(error), code or (ExitCode.UNREACHABLE if is_unreachable else ExitCode.UNEXPECTED)
    message = f"unexpected {type(error).__name__}: {error}"
    if isinstance(error, OSError) and error.strerror:
        file_name = "" if error.filename is None else f"{error.filename}: "
        message = file_name + (why_not_written(error) if is_full_disk else error.strerror)
    return f"{message} ({DEBUG_VARIABLE}=1 shows details)", ExitCode.UNEXPECTED


def request_details(error: Exception) -> str:
    """Return which request failed, to find it in a server's log; empty for other errors."""
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
