"""``bt-tui logs``: Print, filter, follow or save the log of a job."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeVar

import click

from api_client.client import TrainingClient
from api_client.errors import RequestError, TimedOut, Unreachable
from api_client.http.retry import is_transient
from api_client.models import TrainingJob, short_status
from api_client.models.logs import LogEnd
from tui.commands.logs.options import DRAIN_VARIABLE, LogRequest, log_options, open_target
from tui.commands.logs.printing import JsonArray, LogLineFilter, NodeChooser, OutputLine
from tui.commands.logs.reading import LogRange, LogRead
from tui.commands.logs.waiting import is_starting, report_waiting
from tui.commands.support.exit_codes import OUTCOMES, CommandFailed, ExitCode, outcome_exit_code
from tui.commands.support.lookups import JobChoice, newest_job, project_id_of
from tui.commands.support.options import JSON, examples
from tui.commands.support.output import Output, OutputClosed
from tui.commands.support.progress_line import ProgressLine, lines_note
from tui.commands.support.session import client_command
from tui.text.names import shortened
from tui.text.units import counted

T = TypeVar("T")

STATUS_CHARACTERS = 40  # an unknown status may be of any length
ROUNDS = 4
"""Number of attempts after a retryable or invalid answer, each with the client's own retries."""


async def job_of(client: TrainingClient, request: LogRequest, output: Output) -> TrainingJob:
    """Return the requested job, else the newest job of the project, else the newest of all.

    Raises RequestError, or CommandFailed if there is none.
    """
    if request.job_id is not None:
        return await _retry_lookup(lambda: JobChoice(request.job_id, request.project).find(client))
    project_id = await _retry_lookup(lambda: project_id_of(client, request.project))
    newest = await _retry_lookup(lambda: newest_job(client, project_id))
    if newest is None:
        raise CommandFailed("no jobs", ExitCode.NOT_FOUND)
    output.remark(f"log of the newest job, {newest.id}" + (f" ({newest.name})" if newest.name else ""))
    return newest


async def _retry_lookup(call: Callable[[], Awaitable[T]]) -> T:
    """Await `call`, repeating it if that may help, except while the server cannot be reached."""
    for _ in range(ROUNDS - 1):
        try:
            return await call()
        except RequestError as error:
            is_offline = isinstance(error, Unreachable) and not isinstance(error, TimedOut)
            if is_offline or not is_transient(error):
                raise
    return await call()


READER_INTERVAL_S = 1.0
"""Interval at which to check that something still reads the output while following."""


@examples(
    "bt-tui logs abc1234 | less",
    "bt-tui logs abc1234 --since 2h --min-level WARNING --node 3",
    "bt-tui logs abc1234 --last 200 --grep 'loss|nan' --context 2",
    "bt-tui logs abc1234 --follow -o ndjson | jq -r 'select(.level == \"ERROR\") | .message'",
    "bt-tui logs abc1234 --output run.log",
)
@click.command()
@log_options
@client_command
async def logs(client: TrainingClient, output: Output, request: LogRequest) -> ExitCode:
    """Print a job's whole log as it arrives, oldest line first, all nodes merged by time.

    Without JOB_ID, the newest job is used: of --project if given, else of all.

    With --follow the command waits for more lines until the job ends, and its exit code shows the
    outcome: 0 completed, 3 failed, 4 stopped, preempted or expired, 5 deploy failed. While the job has not
    started, stderr shows what it waits for. Lines may arrive up to a minute after the end, so it waits for
    them (--drain); ctrl-c then exits with the job's exit code.

    With ndjson every line is an object, with json all of them are one array (not with --follow, which
    supports ndjson). The objects have timestamp (ns, a string), time, replica, level and message, "late":
    true if the line arrived after newer ones, and "context": true if it is only a context line of a
    match. A time range that could not be read is {"gap": {"start", "end", "reason"}}. With raw only the
    messages are printed.
    """
    job = await job_of(client, request, output)
    with open_target(request.target, output, follows=request.follow) as target:
        code, line_count = await _print(client, job, request, output, target)
    if request.target.file is not None:
        output.remark(f"saved {counted(line_count, 'line')} to {request.target.file}")
    return code


async def _print(
    client: TrainingClient, job: TrainingJob, request: LogRequest, output: Output, target: Output
) -> tuple[ExitCode, int]:
    line = ProgressLine()
    shows_progress = line.is_terminal and not target.is_terminal

    def progress(part: float | None, line_count: int) -> None:
        if shows_progress:
            line.show("reading", note=lines_note(part, line_count))

    now = client.clock.now()
    nodes = NodeChooser(request.nodes)
    reading = LogRead(client, job, request.log_range(job, now), request.new_filter, progress, nodes)
    array = JsonArray() if request.target.format == JSON else None
    render = array.render if array is not None else request.renderer(target, job, client.clock)
    try:
        if request.follow:
            code = await _follow(reading, output, target, render, request.drain_s, line.clear)
        else:
            code = ExitCode.OK
            async with aclosing(reading.history()) as batches:
                async for batch in batches:
                    _write(batch, target, render)
            if array is not None:
                target.data(array.end())
    finally:
        line.clear()
    if reading.gap_count:
        parts = counted(reading.gap_count, "part")
        output.remark(f"{parts} of the log could not be read (marked as gaps in the output)")
    if not reading.line_count and not request.follow:
        empty = "the log is empty, or no line matches the options"
        output.remark(f"no lines: {'none could be read' if reading.gap_count else empty}")
    return code, reading.line_count


def drain_from_environment() -> float | None:
    try:
        return float(os.environ[DRAIN_VARIABLE])
    except (KeyError, ValueError):
        return None


async def follow_log(
    client: TrainingClient, job: TrainingJob, output: Output, render: Callable[[OutputLine], str]
) -> ExitCode:
    reading = LogRead(client, job, LogRange(), lambda _nodes: LogLineFilter(), lambda _part, _count: None)
    return await _follow(reading, output, output, render, drain_from_environment(), lambda: None)


async def _follow(
    reading: LogRead,
    output: Output,
    target: Output,
    render: Callable[[OutputLine], str],
    drain_s: float | None,
    clear_progress: Callable[[], object],
) -> ExitCode:
    """Print until the end. Ctrl-c while waiting for late lines exits with the job's exit code."""
    ended: list[TrainingJob] = []

    def finished(job: TrainingJob) -> None:
        clear_progress()
        ended[:] = [job]
        _print_outcome(job, output, ", waiting for late lines (ctrl-c to skip)")

    stream = reading.follow(finished, drain_s=drain_s)
    aside = [asyncio.create_task(_end_without_reader(target, asyncio.current_task()))]
    if is_starting(reading.job):
        aside.append(asyncio.create_task(report_waiting(reading.client, reading.job, output)))
    try:
        async with aclosing(stream):
            async for item in stream:
                if not isinstance(item, LogEnd):
                    _write(item, target, render)
                elif ended and ended[0].current_status == item.job.current_status:
                    return outcome_exit_code(item.job.current_status)
                else:
                    return _print_outcome(item.job, output)
    except asyncio.CancelledError:
        if target.output_closed_by_reader:
            raise OutputClosed from None
        if not ended:
            raise
        return outcome_exit_code(ended[0].current_status)
    finally:
        for task in aside:
            task.cancel()
    raise CommandFailed(f"the log of job {reading.job.id} ended before the job", ExitCode.UNEXPECTED)


async def _end_without_reader(target: Output, following: asyncio.Task[Any] | None) -> None:
    """Cancel following once the pipe's reader is gone (``| grep -m1``), even without new lines."""
    while not target.output_closed_by_reader:  # noqa: ASYNC110 – a pipe has no event for it
        await asyncio.sleep(READER_INTERVAL_S)
    if following is not None:
        following.cancel()


def _write(batch: list[OutputLine], target: Output, render: Callable[[OutputLine], str]) -> None:
    if batch:
        target.data("".join([render(shown) for shown in batch]))


def _print_outcome(job: TrainingJob, output: Output, more: str = "") -> ExitCode:
    code = outcome_exit_code(job.current_status)
    reason = f": {job.error_message}" if job.error_message and code is not ExitCode.OK else ""
    status = shortened(short_status(job.current_status), STATUS_CHARACTERS)
    output.remark(f"job {job.id} ended: {status}{reason}{more}")
    if job.current_status not in OUTCOMES:
        output.remark(f"unknown status; reported as exit code {int(code)}")
    return code
