"""``bt-tui logs``: Print, filter, follow or save the log of a job."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from typing import Any

import click

from api_client import RequestError, TrainingClient
from api_client.models import (
    RUNNABLE_STATUSES,
    WAITING_STATUSES,
    JobStatus,
    QueueContext,
    TrainingJob,
    short_status,
)
from api_client.models.jobs import CLOCK_SKEW
from api_client.models.logs import NS_PER_S, LogBatch, LogEnd, LogEntry, LogGap, LogLine, stamp_ns
from tui.analysis.run.waiting import waited, waiting_text
from tui.commands.logs.options import DRAIN_VARIABLE, LogRequest, log_options, open_target
from tui.commands.logs.printing import LogLineFilter, LogPrinter, NodeChooser, OutputLine
from tui.commands.support.options import JobChoice, examples, newest_job, project_id_of
from tui.commands.support.output import (
    EXIT_CODE_OF_STATUS,
    CommandFailed,
    CommandOutput,
    ExitCode,
    OutputClosed,
    outcome_exit_code,
)
from tui.commands.support.progress_line import ProgressLine, lines_note
from tui.commands.support.session import client_command
from tui.readers.session import read_status_changes
from tui.text.names import shortened
from tui.text.units import counted, duration

WAITING_INTERVAL_S = 5.0


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
async def logs(client: TrainingClient, output: CommandOutput, request: LogRequest) -> ExitCode:
    """Print a job's whole log as it arrives, oldest line first, all nodes merged by time.

    Without JOB_ID, the newest job is used: of --project if given, else of all projects.

    With --follow the command waits for more lines until the job ends, and its exit code shows the outcome: 0
    completed, 3 failed, 4 stopped, preempted or expired, 5 deploy failed. While the job has not started,
    stderr shows what the job waits for. Lines may arrive up to a minute after the end, so the command waits
    for late lines (--drain); ctrl-c then exits with the job's exit code.

    With ndjson every line is an object, with json all lines are one array (not with --follow, which supports
    ndjson). The objects have timestamp (ns, a string), time, replica, level and message, "late": true if the
    line arrived after newer ones, and "context": true if it is only a context line of a match. A time range
    that could not be read is {"gap": {"start", "end", "reason"}}. With raw only the messages are printed.
    """
    job = await job_of(client, request, output)
    with open_target(request.target, output, follows=request.follow) as target:
        reader = RequestedLogReader(client, job, request)
        with reader.progress_line:
            code = await _print(reader, output, target)
    if reader.gap_count:
        ranges = counted(reader.gap_count, "part")
        output.print_message(f"{ranges} of the log could not be read (marked as gaps in the output)")
    if not reader.line_count and not request.follow:
        reason = "the log is empty, or no line matches the options"
        output.print_message(f"no lines: {'none could be read' if reader.gap_count else reason}")
    if request.target.file is not None:
        output.print_message(f"saved {counted(reader.line_count, 'line')} to {request.target.file}")
    return code


async def job_of(client: TrainingClient, request: LogRequest, output: CommandOutput) -> TrainingJob:
    """Return the requested job, else the newest job of the project, else the newest of all jobs.

    Raises RequestError, and CommandFailed if there are no jobs.
    """
    if request.job_id is not None:
        return await JobChoice(request.job_id, request.project).find(client)
    newest = await newest_job(client, await project_id_of(client, request.project))
    if newest is None:
        raise CommandFailed("no jobs", ExitCode.NOT_FOUND)
    output.print_message(f"log of the newest job, {newest.id}" + (f" ({newest.name})" if newest.name else ""))
    return newest


class RequestedLogReader:
    """Reads a job's log once, from its start or its end.

    ``gap_count`` is the number of time ranges that could not be read.

    Raises CommandFailed once all available lines are read, if the request names a node that the job lacks.
    """

    def __init__(self, client: TrainingClient, job: TrainingJob, request: LogRequest) -> None:
        self.client = client
        self.job = job
        self.request = request
        self.progress_line = ProgressLine()
        self.shows_progress = False
        self.gap_count = 0
        self.line_count = 0
        self._start, self._end = request.time_range(job, client.clock.now())
        self._nodes = NodeChooser(request.nodes)

    async def history(self) -> AsyncGenerator[list[OutputLine], None]:
        """Yield the lines available now, oldest first."""
        if self.request.last is not None:
            yield await self._last_matches(self.request.last)
        else:
            line_filter = self.request.new_filter(self._nodes)
            async with aclosing(self._history()) as batches:
                async for batch in batches:
                    yield self._filtered(line_filter, batch)
        self._nodes.check(self.job)

    def _history(self, *, newest_first: bool = False) -> AsyncGenerator[LogBatch, None]:
        start = self._start or self.job.earliest_time(self.client.clock.now())
        return self.client.logs.history(
            self.job.project_id, self.job.id, start=start, end=self._end, newest_first=newest_first
        )

    async def follow(
        self, on_finished: Callable[[TrainingJob], object]
    ) -> AsyncGenerator[list[OutputLine] | LogEnd, None]:
        """Yield existing and new lines until the job has ended; the last item is its LogEnd."""
        start = self._start
        newest_lines: deque[OutputLine] | None = None
        if self.request.last is not None:
            last_matches = await self._last_matches(self.request.last)
            newest_lines = deque(maxlen=len(last_matches) or 1)
            if last_matches:
                start = datetime.fromtimestamp(stamp_ns(last_matches[0].entry) // NS_PER_S, UTC)
            elif start is None:
                start = self.client.clock.now() - CLOCK_SKEW
            self.gap_count = 0
        line_filter = self.request.new_filter(self._nodes)
        stream = self.client.logs.follow(
            self.job.project_id, self.job.id, start=start, drain_s=self.request.drain_s
        )
        async with aclosing(stream) as items:
            async for item in items:
                if isinstance(item, LogEnd):
                    yield item
                    continue
                if item.finished_job is not None:
                    on_finished(item.finished_job)
                output_lines = self._filtered(line_filter, item)
                if item.caught_up:
                    self._nodes.check(self.job)
                if newest_lines is None:
                    yield output_lines
                elif item.caught_up:
                    yield [*newest_lines, *output_lines]
                    newest_lines = None
                else:
                    newest_lines.extend(output_lines)

    async def _last_matches(self, count: int) -> list[OutputLine]:
        """Return the last `count` matches with their context, reading backwards no further than needed."""
        if count == 0:
            return []
        line_filter = self.request.new_filter(self._nodes)
        lines_newest_first: list[OutputLine] = []
        async with aclosing(self._history(newest_first=True)) as batches:
            async for entry in _newest_first(batches):
                output_lines = line_filter.filter_entry(entry, only_context=count == 0)
                lines_newest_first += output_lines
                count -= sum(isinstance(line.entry, LogLine) and not line.is_context for line in output_lines)
                if count == 0 and not line_filter.needs_context:
                    break
        self._count_lines(lines_newest_first)
        return lines_newest_first[::-1]

    def _filtered(self, line_filter: LogLineFilter, batch: LogBatch) -> list[OutputLine]:
        output_lines = [line for entry in batch.entries for line in line_filter.filter_entry(entry)]
        self._count_lines(output_lines)
        if batch.read_part is not None and self.shows_progress:
            self.progress_line.show("reading", note=lines_note(batch.read_part, self.line_count))
        return output_lines

    def _count_lines(self, lines: list[OutputLine]) -> None:
        gap_count = sum(isinstance(line.entry, LogGap) for line in lines)
        self.gap_count += gap_count
        self.line_count += len(lines) - gap_count


async def _newest_first(batches: AsyncIterator[LogBatch]) -> AsyncIterator[LogEntry]:
    async for batch in batches:
        for entry in reversed(batch.entries):
            yield entry


async def _print(reader: RequestedLogReader, output: CommandOutput, target: CommandOutput) -> ExitCode:
    request = reader.request
    reader.shows_progress = reader.progress_line.is_terminal and not target.is_terminal
    printer = request.printer(target, reader.job, reader.client.clock)
    if request.follow:
        return await _follow(reader, output, printer)
    async with aclosing(reader.history()) as batches:
        async for batch in batches:
            printer.print(batch)
    printer.end()
    return ExitCode.OK


async def follow_log(client: TrainingClient, job: TrainingJob, output: CommandOutput) -> ExitCode:
    drain_s = os.environ.get(DRAIN_VARIABLE)
    request = LogRequest(drain_s=float(drain_s) if drain_s else None)
    return await _follow(RequestedLogReader(client, job, request), output, LogPrinter(output))


async def _follow(reader: RequestedLogReader, output: CommandOutput, printer: LogPrinter) -> ExitCode:
    """Print the log until it ends; return the exit code of the job's outcome.

    Ctrl-c while waiting for late lines skips them.
    """
    ended_jobs: list[TrainingJob] = []

    def on_finished(job: TrainingJob) -> None:
        reader.progress_line.clear()
        ended_jobs[:] = [job]
        _print_outcome(job, output, ", waiting for late lines (ctrl-c to skip)")

    side_tasks = [asyncio.create_task(_cancel_without_reader(printer.output, asyncio.current_task()))]
    if _is_starting(reader.job):
        side_tasks.append(asyncio.create_task(_report_waiting(reader.client, reader.job, output)))
    try:
        async with aclosing(reader.follow(on_finished)) as items:
            async for item in items:
                if not isinstance(item, LogEnd):
                    printer.print(item)
                elif ended_jobs and ended_jobs[0].current_status == item.job.current_status:
                    return outcome_exit_code(item.job.current_status)
                else:
                    return _print_outcome(item.job, output)
    except asyncio.CancelledError:
        if printer.output.is_closed_by_reader:
            raise OutputClosed from None
        if not ended_jobs:
            raise
        return outcome_exit_code(ended_jobs[0].current_status)
    finally:
        for task in side_tasks:
            task.cancel()
    raise CommandFailed(f"the log of job {reader.job.id} ended before the job", ExitCode.UNEXPECTED)


async def _cancel_without_reader(target: CommandOutput, following: asyncio.Task[Any] | None) -> None:
    """Cancel ``following`` once the reader of the output pipe is gone (``| grep -m1``).

    Writing would notice that too, but only when a new line arrives.
    """
    # polled, because no event reports that the reader closed the pipe
    while not target.is_closed_by_reader:  # noqa: ASYNC110
        await asyncio.sleep(1.0)
    if following is not None:
        following.cancel()


def _print_outcome(job: TrainingJob, output: CommandOutput, suffix: str = "") -> ExitCode:
    code = outcome_exit_code(job.current_status)
    reason = f": {job.error_message}" if job.error_message and code is not ExitCode.OK else ""
    status = shortened(short_status(job.current_status), 40)
    output.print_message(f"job {job.id} ended: {status}{reason}{suffix}")
    if job.current_status not in EXIT_CODE_OF_STATUS:
        output.print_message(f"unknown status; reported as exit code {int(code)}")
    return code


def _is_starting(job: TrainingJob) -> bool:
    return job.current_status in RUNNABLE_STATUSES - {JobStatus.RUNNING}


async def _report_waiting(client: TrainingClient, job: TrainingJob, output: CommandOutput) -> None:
    """Report the wait, the server's hint and each new status of a job, until the job starts."""
    reported_status: tuple[str, str | None] | None = None
    queue = await read_status_changes(client, job)
    with suppress(RequestError):  # the task that follows the log reports errors
        async for current in client.jobs.watch(job.project_id, job.id, interval_s=WAITING_INTERVAL_S):
            if (current.current_status, current.error_message) != reported_status and not current.is_finished:
                output.print_message(f"job {job.id} {_waiting_state(current, queue)}")
            reported_status = current.current_status, current.error_message
            if not _is_starting(current):
                return


def _waiting_state(job: TrainingJob, queue: QueueContext | None) -> str:
    now = datetime.now(UTC)
    if job.current_status in WAITING_STATUSES:
        _, waiting_for = waiting_text(job, job.node_count or 1, queue, now)
        return f"is {waiting_for}" + (f" · {job.error_message}" if job.error_message else "")
    waited_s = waited(job, now)
    elapsed = f" after {duration(waited_s)}" if waited_s is not None else ""
    return f"is {short_status(job.current_status)}{elapsed}"
