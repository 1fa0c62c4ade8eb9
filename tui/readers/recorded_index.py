"""Find the progress of a recorded run at any moment, and the moments worth going to.

The log is folded once, from its beginning. Copies of that fold are kept on the way, so that the progress at
another moment takes only the lines after the copy before it.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from api_client.models.logs import NS_PER_S, LogGap
from api_client.recordings.log import RecordedLine, RecordedLog
from api_client.recordings.reading import FOREVER_NS, Recording
from api_client.recordings.stamps import moment_at
from tui.analysis.logs.errors import error_text
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.readers.timeline import Timeline
from tui.settings.runs import RunSettings

Kind = Literal["checkpoint", "error", "finding"]
SAME_ERROR_NS = 60 * NS_PER_S
"""Errors within this time of one another are one moment: a crash logs many lines, on every node."""
MAX_ERRORS = 1_000
ROUND_UP = timedelta(microseconds=1)
"""Lines have nanoseconds, the clock microseconds: a line is visible just after its time."""
LINES_AT_ONCE = 250
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


@dataclass(frozen=True)
class _Copy:
    """A packed ``_Progress``."""

    position: tuple[int, int]
    arrived_ns: int
    packed: bytes = field(repr=False)

    def load(self) -> _Progress:
        return _Progress(pickle.loads(zlib.decompress(self.packed)), self.position, self.arrived_ns)


class RecordingIndex:
    """The progress and the moments of a recorded run; each call works for a fraction of a second."""

    def __init__(self, recording: Recording, settings: RunSettings) -> None:
        self._log = recording.log
        self._patterns = settings.patterns
        self._first_pass = _Progress(ProgressFold(patterns=settings.patterns))
        self._asked: _Progress | None = None
        self._copies: list[_Copy] = []
        self._blocks_between = len(self._log.blocks.items) // COPIES + 1
        self._errors = 0
        self._newest_error_ns = -SAME_ERROR_NS
        self.found: list[Moment] = []
        """Errors, then findings, as they are found."""
        self._work = self._all_moments(Timeline(recording, settings))
        self.is_complete = False

    def work(self) -> None:
        """Continue to search for moments and to keep copies until ``is_complete``."""
        self.is_complete = next(self._work, True) is True

    def progress_at(self, until_ns: int) -> ProgressSnapshot | None:
        """Return what the lines that arrived until then say; None if it needs another call to get there."""
        if self._first_pass.arrived_ns <= until_ns:
            return None if self._advance(until_ns) else self._first_pass.fold.snapshot()
        progress = self._asked = self._nearest(until_ns)
        return None if progress.advance(self._log, until_ns) else progress.fold.snapshot()

    def _nearest(self, until_ns: int) -> _Progress:
        copy = next((item for item in reversed(self._copies) if item.arrived_ns <= until_ns), None)
        current = self._asked
        is_usable = current is not None and current.arrived_ns <= until_ns
        if current is not None and is_usable and (copy is None or current.position >= copy.position):
            return current
        return _Progress(ProgressFold(patterns=self._patterns)) if copy is None else copy.load()

    def _advance(self, until_ns: int) -> bool:
        """Fold some more lines of the first pass; return False if there are no more until then."""
        lines = self._first_pass.advance(self._log, until_ns)
        for line in lines:
            self._note_error(line)
        copied = self._copies[-1].position[0] if self._copies else 0
        if self._first_pass.position[0] >= copied + self._blocks_between:
            self._copy()
        return bool(lines)

    def _copy(self) -> None:
        first = self._first_pass
        packed = zlib.compress(pickle.dumps(first.fold, pickle.HIGHEST_PROTOCOL), 1)
        self._copies.append(_Copy(first.position, first.arrived_ns, packed))

    def _note_error(self, each: RecordedLine) -> None:
        line = each.entry
        text = None if isinstance(line, LogGap) else error_text(line.message, line.level)
        is_new = each.arrived_ns - self._newest_error_ns >= SAME_ERROR_NS
        if text is not None and is_new and self._errors < MAX_ERRORS:
            self._newest_error_ns, self._errors = each.arrived_ns, self._errors + 1
            self.found.append(Moment(moment_at(each.arrived_ns) + ROUND_UP, "error", text))

    def _all_moments(self, timeline: Timeline) -> Iterator[None]:
        while self._advance(FOREVER_NS):
            yield
        count = 0
        while not timeline.is_done:
            timeline.look()
            periods = timeline.findings
            self.found += [
                Moment(period.first_seen, "finding", period.finding.short) for period in periods[count:]
            ]
            count = len(periods)
            yield
