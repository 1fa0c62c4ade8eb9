"""Run a command's requests with a client for the chosen remote."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from functools import wraps
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NoReturn, cast

import click

from api_client import Remote, RemoteNotConfigured, RequestEvent, TrainingClient
from api_client.words import retrying_words
from tui.commands.support.options import CommandSettings, check_recording_options, remote_option
from tui.commands.support.output import CommandOutput, ExitCode
from tui.commands.support.remotes import chosen_remote, read_only_by
from tui.text.times import local_time

if TYPE_CHECKING:
    from api_client.recordings.reading import Recording
    from api_client.replay import Replay


RunningCommand = Coroutine[Any, Any, ExitCode | None]
"""A coroutine that returns the command's exit code; None is success."""
ClientAction = Callable[[TrainingClient, CommandOutput], RunningCommand]


def run_on_remote(settings: CommandSettings, action: ClientAction) -> ExitCode | None:
    """Resolve the remote, run ``action`` with a client for it, and return its exit code.

    The client refuses changes if ``--readonly`` or the settings forbid them. Raises the client's errors;
    waits before retries are printed to stderr as they happen. Without a remote, the action still runs, up
    to its first use of the client, so that mistakes in the command line are reported first.
    """
    if settings.recording is not None:
        return _run_on_recording(settings.recording, settings, action)
    try:
        remote = chosen_remote(settings)
    except RemoteNotConfigured as missing_remote:
        return asyncio.run(action(cast("TrainingClient", _NoClient(missing_remote)), settings.output))
    return run_with(remote, settings, action)


def _run_on_recording(
    recording: Recording, settings: CommandSettings, action: ClientAction
) -> ExitCode | None:
    """Run ``action`` with a client that replays the last moment of a recording."""
    # slow to import; most commands read no recording
    from api_client.recordings.playback import Playback
    from api_client.replay import Replay

    report_recording_problems(recording, settings.output)
    replay = Replay([recording], Playback(recording.begin, recording.until))
    return run_with(replay.remote, settings, action, replay=replay)


def report_recording_problems(recording: Recording, output: CommandOutput) -> None:
    """Print which parts of a recording cannot be read, and whether the recording ends before the log."""
    for problem in recording.problems:
        output.print_message(f"{recording.path}: {problem}")
    if not recording.manifest.complete:
        until = local_time(recording.until)
        output.print_message(
            f"{recording.path}: recorded until {until}, before the end of the log; record again to continue"
        )


class _NoClient:
    """Stands in for the client without a remote: every use raises ``missing_remote``."""

    def __init__(self, missing_remote: RemoteNotConfigured) -> None:
        self._missing_remote = missing_remote

    def __getattr__(self, _name: str) -> NoReturn:
        raise self._missing_remote


def client_command(
    action: Callable[..., RunningCommand],
) -> Callable[..., ExitCode | None]:
    """Make ``action(client, output, **parameters)`` the callback of a command; adds ``--remote``."""

    @remote_option
    @click.pass_context
    @wraps(action)
    def run(context: click.Context, /, **parameters: Any) -> ExitCode | None:
        settings = context.ensure_object(CommandSettings)
        if settings.recording is not None:
            check_recording_options(context.params)
        return run_on_remote(settings, lambda client, output: action(client, output, **parameters))

    return run


def run_with(
    remote: Remote, settings: CommandSettings, action: ClientAction, *, replay: Replay | None = None
) -> ExitCode | None:
    output, forbidden_by = settings.output, read_only_by(settings.readonly)

    async def session() -> ExitCode | None:
        async with TrainingClient(
            remote, replay=replay, on_event=_retry_reporter(output), read_only_by=forbidden_by
        ) as client:
            return await action(client, output)

    try:
        return asyncio.run(session())
    finally:
        if remote.login is not None and remote.login.save_problem:
            output.print_message(f"the renewed login could not be saved: {remote.login.save_problem}")


def _retry_reporter(output: CommandOutput) -> Callable[[RequestEvent], None]:
    """Return a callback that prints to stderr why requests are retried.

    Each reason is printed once per path, until that path responds: an outage may last hours. Rate limits
    concern all paths, and are printed once a minute.
    """
    reported: dict[str, set[str]] = {}
    quiet_until = datetime.min.replace(tzinfo=UTC)

    def report(event: RequestEvent) -> None:
        nonlocal quiet_until
        if event.kind == "answered":
            reported.pop(event.path, None)
        if event.kind != "waiting":
            return
        if event.status == HTTPStatus.TOO_MANY_REQUESTS:
            if event.at < quiet_until:
                return
            quiet_until = event.at + timedelta(minutes=1)
        elif event.reason in (reported_reasons := reported.setdefault(event.path, set())):
            return
        else:
            reported_reasons.add(event.reason)
        output.print_message(f"{event.reason}; {retrying_words(event.delay_s)}")

    return report
