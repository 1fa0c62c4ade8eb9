"""What the commands that read whole runs share: reading with a progress line, and what is said of gaps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from tui.commands.configured import configuration_if_any
from tui.commands.output import Output
from tui.commands.progress_line import ProgressLine
from tui.insight.units import count, percent

if TYPE_CHECKING:
    from api_client.client import TrainingClient
    from api_client.models import Checkpoint, TrainingJob
    from tui.feeds.checkpoint_evidence import Evidence
    from tui.feeds.run_reading import RunReading


@contextmanager
def reading_line() -> Iterator[ProgressLine]:
    """A line on a terminal's stderr, gone afterwards."""
    line = ProgressLine()
    try:
        yield line
    finally:
        line.clear()


async def read_with_line(
    client: TrainingClient,
    job: TrainingJob,
    output: Output,
    *,
    since: datetime | None = None,
    prices: Mapping[str, float] | None = None,
    with_vitals: bool = False,
    stream: str | None = None,
    place: str = "",
) -> RunReading:
    """Read a run with a line of progress, which begins with ``place``; remark what could not be read of it.

    Raises RequestError.
    """
    from tui.feeds.run_reading import read_run

    own = configuration_if_any()
    with reading_line() as line:
        reading = await read_run(
            client,
            job,
            since=since,
            prices=prices,
            with_vitals=with_vitals,
            on_part=_shown_on(line, job, place),
            stream=stream,
            patterns=own.progress_patterns if own is not None else (),
            own_prices=own.prices if own is not None else None,
        )
    if reading.gap_count:
        what = "1 stretch" if reading.gap_count == 1 else f"{reading.gap_count} stretches"
        output.remark(f"{what} of the log of {job.id} could not be read")
    for part, error in reading.unread.items():
        output.remark(f"the {part} of {job.id} could not be read: {error}")
    return reading


async def read_evidence(
    client: TrainingClient, job: TrainingJob, checkpoints: Sequence[Checkpoint]
) -> Evidence:
    """Read what the checkpoints are judged by, showing how far that is."""
    from tui.feeds.checkpoint_evidence import evidence_of
    from tui.insight.health.rules import DEFAULT_RULES

    own = configuration_if_any()
    with reading_line() as line:
        return await evidence_of(
            client,
            job,
            checkpoints,
            rules=own.health if own is not None else DEFAULT_RULES,
            patterns=own.progress_patterns if own is not None else (),
            on_part=_shown_on(line, job),
        )


def _shown_on(line: ProgressLine, job: TrainingJob, place: str = "") -> Callable[[float | None, int], None]:
    label = f"{place}reading the log of {job.id}"
    line.show(label, 0, 0)

    def on_part(part: float | None, lines: int) -> None:
        note = "" if part is None else f"{percent(part)}, "
        line.show(label, 0, 0, f"{note}{count(lines)} lines")

    return on_part
