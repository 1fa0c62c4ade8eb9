"""Index a recorded run: its progress at any time, its findings, and the moments to jump to.

The log is folded once, from its beginning. Copies of the fold are stored at intervals, so that the progress
at another time needs only the nearest earlier copy and the lines after it. A long log takes minutes, so this
runs in a separate process, which answers each request in a fraction of a second.
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
    """The period in which a finding was present; ``finding`` is the newest version of highest severity."""

    finding: HealthFinding
    first_seen: datetime
    last_seen: datetime


class Timeline:
    """The findings of a recorded run; each ``advance`` checks the run at the next time, until ``is_done``."""

    def __init__(self, recording: Recording, settings: RunSettings) -> None:
        self._recording = recording
        self._rules = settings.rules
        self._progress = ProgressFold(patterns=settings.patterns)
        self._metrics = health_metrics_fold(recording.job)
        self._position = (0, 0)
        self._metrics_until_ns = epoch_ns(recording.begin) - 1
        self._findings: tuple[HealthFinding, ...] = ()
        self._open_periods: dict[str, FindingPeriod] = {}
        self._closed_periods: list[FindingPeriod] = []
        # Limit the number of checks to 40,000: in a run of over two weeks, they are more than 30 s apart.
        self._interval = max(timedelta(seconds=30), (recording.until - recording.begin) / 40_000)
        self.at = recording.begin
        self.is_done = False

    @property
    def findings(self) -> list[FindingPeriod]:
        """All findings so far, in the order in which they were first seen."""
        return sorted(
            [*self._closed_periods, *self._open_periods.values()], key=lambda period: period.first_seen
        )

    def advance(self) -> None:
        recording, at = self._recording, self.at
        job = recording.job_at(at)
        new_lines, self._position = recording.log.arriving(self._position, recording.now_ns(at))
        self._progress.add(line.entry for line in new_lines)
        now_ns = epoch_ns(at)
        new_samples = recording.metrics.select(self._metrics_until_ns + 1, now_ns, step_s=HEALTH_STEP_S)
        self._metrics_until_ns = now_ns
        self._metrics.fold(new_samples, HEALTH_STEP_S)
        checkpoints = recording.checkpoints_at(at)
        metrics = self._metrics.snapshot
        run = RunSnapshot(
            job,
            at,
            at,
            progress=self._progress.snapshot(),
            metrics=metrics,
            metrics_at=at,
            health_metrics=metrics,
            health_metrics_at=at,
            checkpoints=None if checkpoints is None else tuple(checkpoints),
            queue=recording.queue_at(at),
            history_known=True,
            log_read=True,
        )
        self._findings = judged(run, self._rules, previous=self._findings).findings
        self._update_periods(at)
        self.is_done = at >= recording.until
        self.at = min(at + self._interval, recording.until)

    def _update_periods(self, at: datetime) -> None:
        current_findings = {finding.key: finding for finding in self._findings}
        for key in self._open_periods.keys() - current_findings.keys():
            self._closed_periods.append(self._open_periods.pop(key))
        for key, finding in current_findings.items():
            period = self._open_periods.get(key)
            if period is None:
                self._open_periods[key] = FindingPeriod(finding, at, at)
            elif SEVERITIES.index(finding.severity) <= SEVERITIES.index(period.finding.severity):
                self._open_periods[key] = FindingPeriod(finding, period.first_seen, at)
            else:
                self._open_periods[key] = replace(period, last_seen=at)


MomentKind = Literal["checkpoint", "error", "finding"]
SAME_ERROR_NS = 60 * NS_PER_S
"""Errors within this time after an error get no moment: a crash logs many lines, on every node."""
LINES_PER_CALL = 1000
MAX_COPIES = 16
"""Number of stored copies of a run's fold; with 500 ranks, a copy takes up to 10 MB."""


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """A moment of a recording to jump to; ``text`` is not sanitized."""

    at: datetime
    kind: MomentKind
    text: str


@dataclass
class _FoldedLog:
    """The fold of all lines before ``position``; ``arrived_ns`` is when the last folded line arrived."""

    fold: ProgressFold
    position: tuple[int, int] = (0, 0)
    arrived_ns: int = 0

    def advance(self, log: RecordedLog, until_ns: int) -> list[RecordedLine]:
        """Fold and return the next lines that arrived up to ``until_ns``; empty if there are no more."""
        lines, self.position = log.arriving(self.position, until_ns, limit=LINES_PER_CALL)
        self.fold.add(line.entry for line in lines)
        self.arrived_ns = lines[-1].arrived_ns if lines else self.arrived_ns
        return lines


class RecordingIndex:
    """The progress and the moments of a recorded run; each call takes a fraction of a second."""

    def __init__(self, recording: Recording, settings: RunSettings) -> None:
        self._log = recording.log
        self._first_pass = _FoldedLog(ProgressFold(patterns=settings.patterns))
        self._replayed: _FoldedLog | None = None
        """The fold for the last requested time before the end of the first pass."""
        self._copies: list[tuple[int, bytes]] = []
        """Pickled, compressed copies of the first pass, each with the arrival time of its last line (ns)."""
        self._store_copy()
        self._next_copy = self._blocks_between_copies = len(self._log.blocks.items) // MAX_COPIES + 1
        self._newest_error_ns = -SAME_ERROR_NS
        self._moments: list[Moment] = []
        self._moment_search = self._find_moments(Timeline(recording, settings))

    def progress_at(self, until_ns: int) -> ProgressSnapshot | None:
        """Return the progress from the lines that arrived up to ``until_ns``.

        Return None while the first pass over the log has not reached that time: call again to continue it.
        """
        first_pass = self._first_pass
        if first_pass.arrived_ns <= until_ns:
            return None if self._advance_first_pass(until_ns) else first_pass.fold.snapshot()
        copy_ns, packed_copy = [copy for copy in self._copies if copy[0] <= until_ns][-1]
        if self._replayed is None or not copy_ns <= self._replayed.arrived_ns <= until_ns:
            self._replayed = pickle.loads(zlib.decompress(packed_copy))
        while self._replayed.advance(self._log, until_ns):
            pass
        return self._replayed.fold.snapshot()

    def moments_after(self, known_count: int) -> tuple[list[Moment], bool]:
        """Continue the search; return all but the first ``known_count`` moments, and True if complete.

        The moments are in the order in which they were found: errors, then findings.
        """
        is_complete = next(self._moment_search, True) is True
        return self._moments[known_count:], is_complete

    def _advance_first_pass(self, until_ns: int) -> bool:
        """Fold the next lines of the first pass; return False if no more arrived up to ``until_ns``."""
        first_pass = self._first_pass
        lines = first_pass.advance(self._log, until_ns)
        for line in lines:
            self._add_error(line)
        if first_pass.position[0] >= self._next_copy:
            self._next_copy = first_pass.position[0] + self._blocks_between_copies
            self._store_copy()
        return bool(lines)

    def _store_copy(self) -> None:
        packed = zlib.compress(pickle.dumps(self._first_pass, pickle.HIGHEST_PROTOCOL), 1)
        self._copies.append((self._first_pass.arrived_ns, packed))

    def _add_error(self, recorded: RecordedLine) -> None:
        line = recorded.entry
        text = None if isinstance(line, LogGap) else error_text(line.message, line.level)
        is_new = recorded.arrived_ns - self._newest_error_ns >= SAME_ERROR_NS
        if text is not None and is_new and len(self._moments) < 1_000:  # errors only: findings come later
            self._newest_error_ns = recorded.arrived_ns
            # The clock has only microseconds: round up to a time at which the line is visible.
            visible_at = clamped_moment(recorded.arrived_ns) + timedelta(microseconds=1)
            self._moments.append(Moment(visible_at, "error", text))

    def _find_moments(self, timeline: Timeline) -> Iterator[None]:
        while self._advance_first_pass(FOREVER_NS):
            yield
        period_count = 0
        while not timeline.is_done:
            timeline.advance()
            periods = timeline.findings
            self._moments += [
                Moment(period.first_seen, "finding", period.finding.short)
                for period in periods[period_count:]
            ]
            period_count = len(periods)
            yield


def main() -> None:
    """Serve requests from stdin until it ends; each is a pickled pair of a method's name and its argument."""
    os.nice(10)  # reading a long log takes minutes and must not slow the dashboard
    request_stream, response_stream = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    path, settings = pickle.load(request_stream)
    with Recording(path) as recording, suppress(EOFError, BrokenPipeError):
        index = RecordingIndex(recording, settings)
        while True:
            method, argument = pickle.load(request_stream)
            pickle.dump(getattr(index, method)(argument), response_stream)
            response_stream.flush()
