"""Recordings that are open in the dashboard: their clock, and the moments of a run worth going to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from api_client.models import TrainingJob
from api_client.models.logs import NS_PER_S
from api_client.recordings.playback import Playback
from api_client.recordings.reading import Recording
from api_client.recordings.stamps import moment_at
from tui.analysis.health.rules import DEFAULT_RULES, HealthRules
from tui.analysis.logs.errors import error_text
from tui.analysis.progress.lines.custom import ProgressPattern
from tui.readers.timeline import Timeline

Kind = Literal["checkpoint", "error", "finding"]
SAME_ERROR_NS = 60 * NS_PER_S
"""Errors within this time of one another are one moment: a crash logs many lines, on every node."""
MAX_ERRORS = 1_000
ROUND_UP = timedelta(microseconds=1)
"""Lines have nanoseconds, the clock microseconds: a line is visible just after its time."""
WORK_S = 0.02
"""Maximum time to read at once, followed by a pause of the same length, to give priority to keys."""


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """A moment that a user may want to see; ``text`` may contain text from the log."""

    at: datetime
    kind: Kind
    text: str


class RecordedRun:
    """A recorded run and the clock of the dashboard that shows it."""

    def __init__(
        self,
        recording: Recording,
        clock: Playback,
        *,
        rules: HealthRules = DEFAULT_RULES,
        patterns: Sequence[ProgressPattern] = (),
    ) -> None:
        self._recording = recording
        self._rules = rules
        self._patterns = patterns
        self.clock = clock
        self.log_read = asyncio.Event()
        """Set once the screen has read the log of the moment; the search for moments waits for that."""
        self.begin, self.end = recording.begin, max(recording.begin, recording.until)

    @property
    def at(self) -> datetime:
        """The moment that is shown, within the run."""
        return min(max(self.clock.now(), self.begin), self.end)

    @property
    def job(self) -> TrainingJob:
        """The job as it was at that moment."""
        return self._recording.job_at(self.clock.now())

    def seek(self, at: datetime) -> None:
        self.clock.seek(min(max(at, self.begin), self.end))

    async def moments(self) -> AsyncIterator[list[Moment]]:
        """Yield the moments found so far, in order of time; reading a long run takes a while."""
        found = [
            Moment(one.created_at, "checkpoint", one.checkpoint_id)
            for one in self._recording.checkpoints_at(self.end) or ()
            if one.created_at is not None
        ]
        yield sorted(found)
        for new in (self._errors(), self._findings()):
            while (part := await asyncio.to_thread(_some, new)) is not None:
                found += part
                if part:
                    yield sorted(found)
                await asyncio.sleep(WORK_S)
                await self.log_read.wait()

    def _errors(self) -> Iterator[Moment | None]:
        newest_ns, count = -SAME_ERROR_NS, 0
        for each in self._recording.log.entries():
            line = each.line
            text = error_text(line.message, line.level) if line is not None else None
            if text is not None and each.arrived_ns - newest_ns >= SAME_ERROR_NS and count < MAX_ERRORS:
                newest_ns, count = each.arrived_ns, count + 1
                yield Moment(moment_at(each.arrived_ns) + ROUND_UP, "error", text)
            else:
                yield None

    def _findings(self) -> Iterator[Moment | None]:
        timeline, known = Timeline(self._recording, self._rules, self._patterns), 0
        while not timeline.is_done:
            timeline.look()
            periods = timeline.findings
            for one in periods[known:]:
                yield Moment(one.first_seen, "finding", one.finding.short)
            known = len(periods)
            yield None


def _some(moments: Iterator[Moment | None]) -> list[Moment] | None:
    """Return those that are found within ``WORK_S``; None at the end."""
    until, found = time.monotonic() + WORK_S, []
    for one in moments:
        if one is not None:
            found.append(one)
        if time.monotonic() >= until:
            return found
    return found or None


@dataclass(frozen=True)
class OpenRecordings:
    """The recordings of a dashboard, all shown as of the same moment."""

    recordings: Sequence[Recording]
    clock: Playback

    @property
    def name(self) -> str:
        first, *more = self.recordings
        return f"{first.name} and {len(more)} more" if more else first.name

    def of_job(self, job_id: str) -> Recording | None:
        return next((one for one in self.recordings if one.job.id == job_id), None)
