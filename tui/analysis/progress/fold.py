"""Fold a job's log lines into its progress: step, loss, speed, checkpoints, restarts and ETA.

Each node, or rank if lines name ranks, is a stream of its own; one of them is chosen to be shown.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from api_client.models.logs import NS_PER_S, LogEntry, LogGap
from tui.analysis.logs.errors import ErrorLines
from tui.analysis.logs.excerpt import excerpt
from tui.analysis.progress.announcements import Announcement, announced
from tui.analysis.progress.lines.belief import Told
from tui.analysis.progress.lines.custom import ProgressPattern
from tui.analysis.progress.lines.reader import Reader
from tui.analysis.progress.metrics import MetricCurves
from tui.analysis.progress.phases import MovingCounts, RunPhase, RunPhases, TimeRanges
from tui.analysis.progress.snapshot import (
    MAX_SKIPPED,
    ProgressSnapshot,
    ReplicaLog,
    StreamView,
    ThinnedPoints,
)
from tui.analysis.progress.step_marks import eta_range_s, numbered, rates, restart_times, usual_interval
from tui.analysis.progress.stream import CURVES, StepRate, StreamProgress
from tui.analysis.series import EMPTY
from tui.text.names import natural_key

MAX_KEPT = 200
"""Number of newest restarts and saves to keep."""


class LoggedCheckpoints:
    """Saves in time order, from lines in any order."""

    __slots__ = ("_saves",)

    def __init__(self) -> None:
        self._saves: list[tuple[int, str]] = []

    def keep(self, name: str, stamp_ns: int) -> None:
        """Record a line about a checkpoint; ``name`` is empty if the line has none."""
        saves = self._saves
        index = bisect_right(saves, (stamp_ns, "\uffff"))
        for other in range(max(0, index - 8), min(len(saves), index + 8)):
            at_ns, other_name = saves[other]
            is_same = other_name == name
            # A line without a name is about a checkpoint mentioned within a minute before or after it.
            within_s = 900 if is_same and name else 60
            if (is_same or not (name and other_name)) and abs(at_ns - stamp_ns) < within_s * NS_PER_S:
                saves[other] = (min(at_ns, stamp_ns), other_name or name)
                saves.sort()
                return
        saves.insert(index, (stamp_ns, name))
        del saves[:-MAX_KEPT]

    def named(self) -> tuple[tuple[str, int], ...]:
        """Return names and times (epoch ns), oldest first."""
        return tuple((name or "checkpoint", at_ns) for at_ns, name in self._saves)

    def last(self, step: int | None) -> tuple[str, int] | None:
        """Return the newest save, or None; a save without a name is named after the current step."""
        if not self._saves:
            return None
        at_ns, name = self._saves[-1]
        return (name or ("checkpoint" if step is None else f"step-{step}"), at_ns)


def compare_recent(values: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """Return the mean of the newest losses, the mean of as many before, and the difference's standard error.

    Losses that are not finite are left out. The noise is estimated from differences between neighbors,
    since a spread around the mean would count a steep trend as noise.
    """
    size = max(3, min(200, len(values) // 4))  # the newest quarter and the one before
    finite = [value for value in values[-2 * size :] if math.isfinite(value)]
    half = len(finite) // 2
    if half < 2:
        return (finite[-1] if finite else None), None, None
    before, recent = finite[-2 * half : -half], finite[-half:]
    # Use plain sums and products: they overflow to infinity, where fsum and ** would raise.
    mean_before, mean_recent = sum(before) / half, sum(recent) / half
    steps = [later - earlier for earlier, later in pairwise(finite)]
    variance = sum(step * step for step in steps) / len(steps) / 2
    return mean_recent, mean_before, math.sqrt(2 * variance / half)


MAX_POINTS = 20_000
"""Maximum number of points per curve of the displayed stream."""

MIN_RESTART_GAP_S = 600.0
"""An announced restart and a step that goes back within this time after it are the same restart."""

_ORDINARY = (None, "", "INFO", "DEBUG", "WARNING")


_Streams = dict[tuple[str, int], StreamProgress]


class ProgressFold:
    """Accumulates log lines, in any order, into a snapshot.

    Several ranks often print the same. The replica with the most losses is shown, or the first by name on
    a tie, unless another stream was chosen. The work is proportional to the number of new lines, and
    memory is bounded. ``patterns`` are the user's own and take precedence over the built-in formats.
    """

    def __init__(self, *, max_points: int = MAX_POINTS, patterns: Sequence[ProgressPattern] = ()) -> None:
        self._max_points = max_points
        self._streams: _Streams = {}
        self._chosen: str | None = None
        self._first_line_at_ns: int | None = None
        self._last_line_at_ns: int | None = None
        self._gaps: set[tuple[int, int]] = set()
        self._replicas: dict[str, list[int]] = {}  # first and last timestamp, and the number of lines
        self._pauses = TimeRanges()
        self._errors = ErrorLines()
        self._has_patterns = bool(patterns)
        self._reader = Reader(patterns)
        self.lines_read = 0
        """Number of lines that report progress."""
        self._saves = LoggedCheckpoints()
        self._run_phases = RunPhases()
        self._counts = MovingCounts()
        self._announced_restarts: list[float] = []
        self._skipped_steps: list[float] = []
        self._input_lengths = ThinnedPoints("input length", max_points)
        self._metrics = MetricCurves(max_points)
        self._moving_target = False
        self._save_every: int | None = None
        self._snapshot: ProgressSnapshot | None = ProgressSnapshot()

    def forget(self, gap: LogGap) -> None:
        """Remove a gap that was read again; what was read in it is added next."""
        self._gaps.discard((gap.start_ns, gap.end_ns))
        self._snapshot = None

    def add(self, entries: Iterable[LogEntry]) -> None:
        """Add lines and gaps, in any order; each only once."""
        told = False
        for line in entries:
            if isinstance(line, LogGap):
                self._gaps.add((line.start_ns, line.end_ns))
                self._snapshot = None
                continue
            stamp = line.timestamp_ns
            if self._last_line_at_ns is None or stamp > self._last_line_at_ns:
                self._last_line_at_ns = stamp
                self._snapshot = None
            if self._first_line_at_ns is None or stamp < self._first_line_at_ns:
                self._first_line_at_ns = stamp
            if line.replica and self._record_replica_line(line.replica, stamp):
                self._snapshot = None
            if self._pauses.add(stamp / NS_PER_S):
                self._snapshot = None
            shape = self._reader.shape(line.message)
            if (shape.can_fail or line.level not in _ORDINARY) and self._errors.take(
                stamp, line.message, line.level, line.replica
            ):
                self._snapshot = None
            readings = self._reader.read(line.message, line.replica or "", stamp, shape)
            reading = next((each.reading for each in reversed(readings) if each.at_ns == stamp), None)
            if reading is None or reading.is_epoch:
                time = stamp / NS_PER_S
                told |= self._counts.read(time, line.replica or "", line.message)
                announcement = announced(excerpt(line.message)) if shape.can_announce else None
                if announcement is not None:
                    told = True
                    self._take_announcement(time, announcement)
            if not readings:
                continue
            told = True
            if shape.has_moving_target and any(each.reading.loss is not None for each in readings):
                self._moving_target = True
            for each in readings:
                self._take(each)
        if told:
            self._snapshot = None
            self._share_space()

    def _take(self, told: Told) -> None:
        at_ns, replica, reading = told
        self.lines_read += 1
        if reading.checkpoint is not None:
            self._saves.keep(reading.checkpoint, at_ns)
            self._run_phases.add("checkpoint", at_ns / NS_PER_S)
            if reading.is_save:
                return  # it may be reported some steps later
        if reading.from_bar and reading.loss is None:
            done, total = reading.step or reading.epoch_step, reading.total_steps or reading.epoch_steps
            if done is not None and total is not None:
                self._counts.add(at_ns / NS_PER_S, replica, "", done, total)
        self._stream(replica, reading.rank).add(at_ns / NS_PER_S, reading)
        if reading.metrics:
            key = (replica, -1 if reading.rank is None else reading.rank)
            self._metrics.add(key, at_ns / NS_PER_S, reading.metrics)

    def _take_announcement(self, time: float, announcement: Announcement) -> None:
        kind, value = announcement
        if kind == "restart":
            insort(self._announced_restarts, time)
            del self._announced_restarts[:-MAX_KEPT]
        elif kind == "skipped step":
            insort(self._skipped_steps, time)
            del self._skipped_steps[:-MAX_SKIPPED]
        elif kind == "input length":
            self._input_lengths.add(time, value)
        elif kind == "save interval":
            self._save_every = self._save_every or value
        else:
            self._run_phases.add(kind, time)

    def choose(self, stream: str | None) -> None:
        """Show the stream with that key (see ``ProgressSnapshot.streams``); None for the default choice."""
        if stream != self._chosen:
            self._chosen = stream
            self._snapshot = None
            self._share_space()

    def snapshot(self) -> ProgressSnapshot:
        """Return the current progress; the same object until a line changes something."""
        if self._snapshot is None:
            self._snapshot = self._build()
        return self._snapshot

    def _record_replica_line(self, replica: str, stamp_ns: int) -> bool:
        known = self._replicas.get(replica)
        if known is None:
            if len(self._replicas) >= 1024:
                return False
            known = self._replicas[replica] = [stamp_ns, stamp_ns, 0]
        known[2] += 1
        if known[0] < stamp_ns < known[1]:
            return False
        known[0], known[1] = min(known[0], stamp_ns), max(known[1], stamp_ns)
        return True

    def _stream(self, replica: str, rank: int | None) -> StreamProgress:
        key = (replica, -1 if rank is None else rank)
        stream = self._streams.get(key)
        if stream is None:
            if len(self._streams) >= 256:
                return StreamProgress(1)  # Beyond any reasonable number of streams: parse and discard.
            stream = self._streams[key] = StreamProgress(self._max_points)
        return stream

    def _shown(self, streams: _Streams) -> tuple[tuple[str, int], StreamProgress] | None:
        if not streams:
            return None
        if self._chosen is not None:
            for key, stream in streams.items():
                if _stream_key(key) == self._chosen:
                    return key, stream
        key = min(
            streams,
            key=lambda key: (
                -streams[key].loss_readings,
                -streams[key].step_readings,
                natural_key(key[0]),
                key[1],
            ),
        )
        return key, streams[key]

    def _share_space(self) -> None:
        shown = self._shown(self._streams)
        if shown is None or len(self._streams) == 1:
            return
        for stream in self._streams.values():
            stream.limit_points(self._max_points if stream is shown[1] else self._max_points // 16)

    def _build(self) -> ProgressSnapshot:
        logged = ProgressSnapshot(
            last_checkpoint=self._saves.last(None),
            first_line_at_ns=self._first_line_at_ns,
            last_line_at_ns=self._last_line_at_ns,
            unread_until_ns=max((end_ns for _, end_ns in self._gaps), default=0),
            gaps=tuple((start_ns / NS_PER_S, end_ns / NS_PER_S) for start_ns, end_ns in sorted(self._gaps)),
            saves=self._saves.named(),
            errors=self._errors.tally(),
            restarts=_drop_close_times(self._announced_restarts),
            announced_restarts=tuple(self._announced_restarts),
            line_pause_s=self._pauses.longest_pause(-math.inf),
            replicas=self._replica_logs(),
            moving_target=self._moving_target,
            save_every=self._save_every,
            skipped_steps=tuple(self._skipped_steps),
            input_length_series=self._input_lengths.series(),
            announced_at=self._run_phases.newest(),
            loading_at=self._run_phases.newest("loading"),
            moved_at=self._counts.moved_at,
            finished_at=self._counts.finished_at,
        )
        streams = {
            key: stream for key, stream in self._streams.items() if self._has_patterns or stream.is_ordered()
        }
        shown = self._shown(streams)
        if shown is None:
            return replace(logged, last_checkpoint=None, saves=()) if self._streams else logged
        key, stream = shown
        step_source = _step_source(stream, streams)
        marks, pace = step_source.run_marks(), step_source.pace()
        losses = stream.losses.series()
        started = next(iter((marks or losses).times), -math.inf)
        interval_s = pace.interval_s if pace else usual_interval(numbered(losses))
        last_step_at = pace.step_at if pace else next(reversed(losses.times), None)
        recent, before, error = compare_recent(losses.values)
        eta_s, eta_low_s, eta_high_s = _eta(pace)
        return replace(
            logged,
            **_measured(stream, streams),
            step=pace.step if pace else None,
            total_steps=pace.total_steps if pace else None,
            epoch=stream.newest("epoch"),
            total_epochs=stream.newest("total_epochs"),
            loss_recent=recent,
            loss_before=before,
            loss_error=error,
            rate_steps_per_s=pace.recent if pace else None,
            rate_overall=pace.overall if pace else None,
            eta_s=eta_s,
            eta_low_s=eta_low_s,
            eta_high_s=eta_high_s,
            step_interval_s=interval_s,
            step_pause_s=step_source.pauses.longest_pause(started),
            line_pause_s=self._pauses.longest_pause(started),
            last_step_at_ns=None if last_step_at is None else round(last_step_at * NS_PER_S),
            run_phase=self._current_phase(started, last_step_at, interval_s),
            last_checkpoint=self._saves.last(pace.step if pace else None),
            loss_by_step=stream.loss_by_step(),
            counts_steps=stream.counts_steps,
            rate_series=rates(marks) if marks else EMPTY,
            step_series=marks.series() if marks else EMPTY,
            restarts=self._restarts(marks),
            announced_restarts=tuple(self._announced_restarts),
            streams=_views(streams),
            stream=_stream_key(key),
            replica=key[0] or None,
            metrics=self._metrics.shown(key),
            refused_metrics=self._metrics.refused_count,
        )

    def _restarts(self, marks: ThinnedPoints | None) -> tuple[float, ...]:
        """Return the announced restarts, and those that only the steps show."""
        announced = self._announced_restarts
        if marks is None:
            return _drop_close_times(announced)
        shown = [
            time
            for time in restart_times(marks)
            # Loading may take long: a restart ends with the first step after it was announced.
            if bisect_left(announced, marks.times[bisect_left(marks.times, time) - 1])
            == bisect_left(announced, time)
        ]
        return _drop_close_times([*announced, *shown])

    def _replica_logs(self) -> tuple[ReplicaLog, ...]:
        names = sorted(self._replicas, key=natural_key)
        return tuple(ReplicaLog(name, *self._replicas[name]) for name in names)

    def _current_phase(
        self, first_step_at: float, step_at: float | None, interval_s: float | None
    ) -> RunPhase | None:
        """Return the current activity other than steps: announced, or shown by a count that moves."""
        if step_at is None:
            return None
        moved_at = self._counts.moved_at or 0.0
        announced = self._run_phases.since(first_step_at, step_at)
        if announced is not None:
            return replace(announced, newest=max(announced.newest, moved_at))
        if moved_at <= step_at + max(60.0, 2 * (interval_s or 0.0)):
            return None
        return RunPhase("other", moved_at, moved_at, first=False)


def _measured(stream: StreamProgress, streams: _Streams) -> dict[str, Any]:
    """Return newest values and curves; another stream may have those that this one lacks."""
    measured: dict[str, Any] = {}
    for name in CURVES:
        points = stream.curves[name]
        if not points and name != "loss":
            points = max((other.curves[name] for other in streams.values()), key=len)
        measured[name] = points.values[-1] if points else None
        measured[f"{name}_series"] = points.series()
    evaluations = [one for other in streams.values() if (one := other.curves["eval_loss"])]
    if not stream.curves["eval_loss"] and evaluations:
        measured["eval_loss"] = max((one.times[-1], one.values[-1]) for one in evaluations)[1]
    return measured


def _views(streams: _Streams) -> tuple[StreamView, ...]:
    views = [
        StreamView(
            key=_stream_key(key),
            replica=key[0] or None,
            rank=None if key[1] < 0 else key[1],
            readings=stream.loss_readings + stream.step_readings,
            step=int(marks.values[-1]) if (marks := stream.run_marks()) else None,
            step_times_s=stream.step_times_s(),
        )
        for key, stream in streams.items()
    ]
    return tuple(sorted(views, key=lambda view: natural_key(view.key)))


def _step_source(stream: StreamProgress, streams: _Streams) -> StreamProgress:
    """Return the stream, or one with the run's steps if it has only losses or counts within rounds."""
    if stream.pace() is None:
        return max(streams.values(), key=lambda other: other.step_readings)
    if len(streams) == 1 or not stream.restarts_repeatedly():
        return stream
    others = [one for one in streams.values() if one.pace() is not None and not one.restarts_repeatedly()]
    return max(others, key=lambda other: other.step_readings, default=stream)


def _stream_key(key: tuple[str, int]) -> str:
    replica, rank = key
    return replica if rank < 0 else f"{replica}[{rank}]"


def _drop_close_times(times: Sequence[float]) -> tuple[float, ...]:
    kept: list[float] = []
    for time in sorted(times):
        if not kept or time - kept[-1] > MIN_RESTART_GAP_S:
            kept.append(time)
    return tuple(kept)


def _eta(pace: StepRate | None) -> tuple[float | None, float | None, float | None]:
    """Return the seconds from the newest step to the last one, and their range."""
    if pace is None or pace.total_steps is None or pace.lasting is None:
        return None, None, None
    left = max(0, pace.total_steps - pace.step)
    low, high = eta_range_s(left, (pace.recent, pace.lasting, pace.overall), pace.times, pace.steps) or (
        None,
        None,
    )
    return left / pace.lasting, low, high
