"""Options of commands that read one run: a start time, and a progress line while its log is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import click

from api_client.client import TrainingClient
from api_client.models import Checkpoint, TrainingJob
from tui.commands.support.options import Command
from tui.commands.support.output import Output
from tui.commands.support.progress_line import ProgressLine, lines_note
from tui.commands.support.remotes import run_settings
from tui.readers.watcher import CheckedRun, LoadedRun, evidence_of, read_run
from tui.text.times import LogTimes, moment_of, span_of
from tui.text.units import counted

EPOCH_DIGITS = {10: 1, 13: 1_000, 16: 1_000_000, 19: 1_000_000_000}
"""Digits of an epoch time of this century → its units per second."""


def parse_since(typed: str, now: datetime) -> datetime:
    """Return the moment for ``2h`` (that long ago) or any form of ``parse_moment``. Raises ValueError."""
    try:
        return now - span_of(typed)
    except ValueError:
        return parse_moment(typed, now, now)
    except OverflowError:
        raise ValueError(f"date out of range: {typed[:40]}") from None


def parse_moment(typed: str, beginning: datetime, now: datetime) -> datetime:
    """Parse a time of day, a date, ISO 8601, an epoch time (s, ms, µs, ns), ``-15m``, ``15m ago``, ``now``.

    A bare duration such as ``1h20m`` counts from the run's ``beginning``. Times are local unless they
    name a timezone. Raises ValueError.
    """
    text = typed.strip()
    if text.isascii() and text.isdigit() and len(text) in EPOCH_DIGITS:
        return datetime.fromtimestamp(int(text) / EPOCH_DIGITS[len(text)], UTC)
    return moment_of(text, LogTimes(oldest=beginning, newest=now, here=now))


def _check(_context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    resolve_since(value, datetime.now(UTC), parameter.opts[0])
    return value


def since_option(description: str, *names: str) -> Callable[[Command], Command]:
    """Add ``--since TIME``: a duration (``2h``: that long ago) or a time; checked and passed on as typed."""
    return click.option(*(names or ("--since",)), metavar="TIME", callback=_check, help=description)


def resolve_since(typed: str | None, now: datetime, option: str = "--since") -> datetime | None:
    if typed is None:
        return None
    try:
        moment = parse_since(typed, now)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from None
    if moment > now and option != "--end":
        raise click.BadParameter(f"{typed!r} is in the future", param_hint=option)
    return moment


async def read_with_line(
    client: TrainingClient,
    job: TrainingJob,
    output: Output,
    *,
    since: datetime | None = None,
    prices: Mapping[str, float] | None = None,
    with_health_metrics: bool = False,
    stream: str | None = None,
    prefix: str = "",
) -> LoadedRun:
    """Read a run with a progress line that starts with ``prefix``; remark any part that could not be read.

    Raises RequestError.
    """
    with ProgressLine() as line:
        reading = await read_run(
            client,
            job,
            run_settings(),
            since=since,
            prices=prices,
            with_health_metrics=with_health_metrics,
            on_part=_shown_on(line, job, prefix),
            stream=stream,
        )
    if reading.gap_count:
        output.remark(f"{counted(reading.gap_count, 'part')} of the log of {job.id} could not be read")
    for part, error in reading.unread.items():
        output.remark(f"the {part} of {job.id} could not be read: {error}")
    return reading


async def read_evidence(
    client: TrainingClient, job: TrainingJob, checkpoints: Sequence[Checkpoint]
) -> CheckedRun:
    with ProgressLine() as line:
        return await evidence_of(client, job, checkpoints, run_settings(), on_part=_shown_on(line, job))


def _shown_on(line: ProgressLine, job: TrainingJob, prefix: str = "") -> Callable[[float | None, int], None]:
    label = f"{prefix}reading the log of {job.id}"
    line.show(label)
    return lambda part, lines: line.show(label, note=lines_note(part, lines))
