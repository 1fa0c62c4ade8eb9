"""What a person reads, and which exit code a script gets, when a command fails."""

from __future__ import annotations

import os

from tui.commands.exit_codes import ExitCode

DEBUG_VARIABLE = "BT_TUI_DEBUG"

NO_REMOTE_HELP = """no remote to talk to. One of these sets one:
  1. export BASETEN_API_KEY=…      (a key from your Baseten workspace's settings)
  2. bt-tui login                  asks for a key and keeps it in ~/.trussrc, which the truss CLI reads too
Without an account, on this machine:
  3. bt-tui demo                   a whole demo world to look around in
  4. bt-tui --remote local …       the same command on an emulator, which really runs what you submit
"""


class CommandFailed(Exception):
    """A command that ends early with a message for the person and a code for the script."""

    def __init__(self, message: str, exit_code: ExitCode) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def explain(error: Exception) -> tuple[str, ExitCode]:
    """The message and the exit code of whatever a command raised.

    The client's errors explain themselves and never hold a key. Anything else is a fault of ours.
    """
    from api_client.errors import (
        ApiClientError,
        ConfigurationError,
        NotFound,
        ReadOnlyError,
        RequestError,
        Unauthorized,
    )

    if isinstance(error, CommandFailed):
        return str(error), error.exit_code
    if isinstance(error, ConfigurationError):
        return _explain_configuration(error)
    if isinstance(error, ReadOnlyError):
        return str(error), ExitCode.USAGE
    if isinstance(error, Unauthorized):
        return str(error), ExitCode.AUTH
    if isinstance(error, NotFound):
        return str(error), ExitCode.NOT_FOUND
    if isinstance(error, RequestError) and error.retryable:
        return str(error), ExitCode.UNREACHABLE
    if isinstance(error, ApiClientError):
        return str(error), ExitCode.UNEXPECTED
    if isinstance(error, OSError) and error.strerror:
        from api_client.files import FULL_DISK, why_not_written

        reason = why_not_written(error) if error.errno in FULL_DISK else error.strerror
        place = "" if error.filename is None else f"{error.filename}: "
        return f"{place}{reason} ({DEBUG_VARIABLE}=1 shows the details)", ExitCode.UNEXPECTED
    kind = type(error).__name__
    return f"unexpected {kind}: {error} ({DEBUG_VARIABLE}=1 shows the details)", ExitCode.UNEXPECTED


def _explain_configuration(error: Exception) -> tuple[str, ExitCode]:
    from api_client.remotes import RemoteNotConfigured

    if isinstance(error, RemoteNotConfigured):
        return NO_REMOTE_HELP.rstrip(), ExitCode.AUTH
    return str(error), ExitCode.USAGE


def request_details(error: Exception) -> str:
    """Return which request failed, for whoever looks for it in a server's log; empty for other errors."""
    from api_client.errors import ErrorAnswer, RequestError

    if not isinstance(error, RequestError) or not error.method:
        return ""
    parts = [f"{error.method} {error.path}", f"sent {error.attempts} times"]
    if isinstance(error, ErrorAnswer):
        parts.append(f"status {error.status}")
        parts += [
            f"{name} {value}" for name, value in (("code", error.code), ("id", error.request_id)) if value
        ]
    return f"request: {', '.join(parts)}"


def wants_details() -> bool:
    """Whether the person asked for tracebacks."""
    return bool(os.environ.get(DEBUG_VARIABLE))
