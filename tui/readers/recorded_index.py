"""A recorded run at any moment: its progress, what a dashboard would have found, the moments worth going to.

The log is folded once, from its beginning. Copies of that fold are kept on the way, so that the progress at
another moment takes only the lines after the copy before it. A long log takes minutes, so this runs in a
process of its own, which answers each question in a fraction of a second.
"""

from __future__ import annotations

import os
import pickle
import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from api_client.clock import epoch_ns
from api_client.models.logs import NS_PER_S, LogGap
from api_client.recordings.blocks import clamped_moment
from api_client.recordings.log import RecordedLine, RecordedLog
from api_client.recordings.reading import FOREVER_NS, Recording
from tui.analysis.health.judge import judged
from tui.analysis.logs.errors import error_text
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.finding import SEVERITIES, HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.readers.health_metrics import HEALTH_STEP_S, health_metrics_fold
from tui.settings.runs import RunSettings


@dataclass(frozen=True, slots=True)
class FindingPeriod:
    """A finding and the time in which it was shown; ``finding`` is its worst and then newest form."""

    finding: HealthFinding
    first_seen: datetime
    last_seen: datetime


class Timeline:
    """The findings of a recorded run; ``look`` goes on to the next moment until ``is_done``."""

    def __init__(self, recording: Recording, settings: RunSettings) -> None:
        self._recording = recording
        self._rules = settings.rules
        self._progress = ProgressFold(patterns=settings.patterns)
        self._metrics = health_metrics_fold(recording.job)
        self._position = (0, 0)
        self._metrics_until_ns = epoch_ns(recording.begin) - 1
        self._found: tuple[HealthFinding, ...] = ()
        self._open: dict[str, FindingPeriod] = {}
        self._closed: list[FindingPeriod] = []
        # runs of more than two weeks are judged at longer intervals
        self._interval = max(timedelta(seconds=30), (recording.until - recording.begin) / 40_000)
        self.at = recording.begin
        self.is_done = False

    @property
    def findings(self) -> list[FindingPeriod]:
        """All findings so far, in the order in which they were first seen."""
        return sorted([*self._closed, *self._open.values()], key=lambda period: period.first_seen)

    def look(self) -> None:
        recording, at = self._recording, self.at
        job = recording.job_at(at)
        lines, self._position = recording.log.arriving(self._position, recording.now_ns(at))
        self._progress.add(line.entry for line in lines)
        now_ns = epoch_ns(at)
        new_samples = recording.metrics.select(self._metrics_until_ns + 1, now_ns, step_s=HEALTH_STEP_S)
        self._metrics_until_ns = now_ns
        self._metrics.fold(new_samples, HEALTH_STEP_S)
        checkpoints = recording.checkpoints_at(at)
        samples = self._metrics.snapshot
        run = RunSnapshot(
            job,
            at,
            at,
            progress=self._progress.snapshot(),
            metrics=samples,
            metrics_at=at,
            health_metrics=samples,
            health_metrics_at=at,
            checkpoints=None if checkpoints is None else tuple(checkpoints),
            queue=recording.queue_at(at),
            history_known=True,
            log_read=True,
        )
        self._found = judged(run, self._rules, previous=self._found).findings
        self._note(at)
        self.is_done = at >= recording.until
        self.at = min(at + self._interval, recording.until)

    def _note(self, at: datetime) -> None:
        current = {finding.key: finding for finding in self._found}
        for key in self._open.keys() - current.keys():
            self._closed.append(self._open.pop(key))
        for key, finding in current.items():
            period = self._open.get(key)
            if period is None:
                self._open[key] = FindingPeriod(finding, at, at)
            elif SEVERITIES.index(finding.severity) <= SEVERITIES.index(period.finding.severity):
                self._open[key] = FindingPeriod(finding, period.first_seen, at)
            else:
                self._open[key] = replace(period, last_seen=at)


Kind = Literal["checkpoint", "error", "finding"]
SAME_ERROR_NS = 60 * NS_PER_S
"""Errors within this time of one another are one moment: a crash logs many lines, on every node."""
LINES_AT_ONCE = 1000
COPIES = 16
"""Copies of a run's fold: up to some 10 MB each if it has 500 ranks."""


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """A moment that a user may want to see; ``text`` may contain text from the log."""

    at: datetime
    kind: Kind
    text: str


@dataclass
class _Progress:
    """A fold of the log up to a position, which arrived at ``arrived_ns``."""

    fold: ProgressFold
    position: tuple[int, int] = (0, 0)
    arrived_ns: int = 0

    def advance(self, log: RecordedLog, until_ns: int) -> list[RecordedLine]:
        """Fold some of the lines that arrived until then and return them; none if there are no more."""
        lines, self.position = log.arriving(self.position, until_ns, limit=LINES_AT_ONCE)
        self.fold.add(line.entry for line in lines)
        self.arrived_ns = lines[-1].arrived_ns if lines else self.arrived_ns
        return lines


class RecordingIndex:
    """The progress and the moments of a recorded run; each call works for a fraction of a second."""

    def __init__(self, recording: Recording, settings: RunSettings) -> None:
        self._log = recording.log
        self._first_pass = _Progress(ProgressFold(patterns=settings.patterns))
        self._shown: _Progress | None = None
        self._copies: list[tuple[int, bytes]] = []
        """When the last line of each copy arrived, and the copy, packed."""
        self._copy()
        self._next_copy = self._blocks_between = len(self._log.blocks.items) // COPIES + 1
        self._newest_error_ns = -SAME_ERROR_NS
        self._moments: list[Moment] = []
        self._search = self._search_run(Timeline(recording, settings))

    def progress_at(self, until_ns: int) -> ProgressSnapshot | None:
        """Return what the lines that arrived until then say; None if it needs another call to get there.

        It needs one only until the first pass has been there.
        """
        first = self._first_pass
        if first.arrived_ns <= until_ns:
            return None if self._advance(until_ns) else first.fold.snapshot()
        copy_ns, packed = [copy for copy in self._copies if copy[0] <= until_ns][-1]
        if self._shown is None or not copy_ns <= self._shown.arrived_ns <= until_ns:
            self._shown = pickle.loads(zlib.decompress(packed))
        while self._shown.advance(self._log, until_ns):
            pass
        return self._shown.fold.snapshot()

    def moments_after(self, count: int) -> tuple[list[Moment], bool]:
        """Continue to search; return the moments after the first ``count``, and True at the end.

        Errors, then findings, as they are found.
        """
        is_complete = next(self._search, True) is True
        return self._moments[count:], is_complete

    def _advance(self, until_ns: int) -> bool:
        """Fold some more lines of the first pass; return False if there are no more until then."""
        first = self._first_pass
        lines = first.advance(self._log, until_ns)
        for line in lines:
            self._note_error(line)
        if first.position[0] >= self._next_copy:
            self._next_copy = first.position[0] + self._blocks_between
            self._copy()
        return bool(lines)

    def _copy(self) -> None:
        packed = zlib.compress(pickle.dumps(self._first_pass, pickle.HIGHEST_PROTOCOL), 1)
        self._copies.append((self._first_pass.arrived_ns, packed))

    def _note_error(self, recorded: RecordedLine) -> None:
        line = recorded.entry
        text = None if isinstance(line, LogGap) else error_text(line.message, line.level)
        is_new = recorded.arrived_ns - self._newest_error_ns >= SAME_ERROR_NS
        if text is not None and is_new and len(self._moments) < 1_000:  # findings come after all errors
            self._newest_error_ns = recorded.arrived_ns
            # Lines have nanoseconds, the clock microseconds: a line is visible just after its time.
            visible_at = clamped_moment(recorded.arrived_ns) + timedelta(microseconds=1)
            self._moments.append(Moment(visible_at, "error", text))

    def _search_run(self, timeline: Timeline) -> Iterator[None]:
        while self._advance(FOREVER_NS):
            yield
        count = 0
        while not timeline.is_done:
            timeline.look()
            periods = timeline.findings
            self._moments += [
                Moment(period.first_seen, "finding", period.finding.short) for period in periods[count:]
            ]
            count = len(periods)
            yield


def main() -> None:
    """Answer questions, which are names of methods with their arguments, until stdin ends."""
    os.nice(10)  # the whole log takes minutes; the dashboard comes first
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    path, settings = pickle.load(questions)
    with Recording(path) as recording, suppress(EOFError, BrokenPipeError):
        index = RecordingIndex(recording, settings)
        while True:
            method, argument = pickle.load(questions)
            pickle.dump(getattr(index, method)(argument), answers)
            answers.flush()
