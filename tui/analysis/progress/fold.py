"""Fold a job's log lines, in any order, into its progress: step, loss, speed, checkpoints, restarts and ETA.

Each node, or rank if lines name ranks, is a stream of its own; one of them is chosen to be shown. A fold
stores what lines report, by time; everything else is derived when a snapshot is taken.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from api_client.models.logs import NS_PER_S, LogEntry, LogGap
from tui.analysis.bounded import Bounded
from tui.analysis.logs.errors import ErrorLines
from tui.analysis.logs.excerpt import excerpt
from tui.analysis.logs.levels import RANKS, level_rank
from tui.analysis.progress.announcements import MovingCounts, announced
from tui.analysis.progress.lines.custom import ProgressPattern
from tui.analysis.progress.lines.reader import Reader
from tui.analysis.progress.lines.reading import LineReading
from tui.analysis.progress.metrics import headline_metrics
from tui.analysis.progress.points import MAX_POINTS, ThinnedPoints, TimeRanges
from tui.analysis.progress.snapshot import (
    MAX_SKIPPED,
    ProgressSnapshot,
    ReplicaLog,
    RunPhase,
    RunPhaseKind,
    StreamView,
    over_steps,
)
from tui.analysis.progress.steps import (
    RECENT_S,
    eta_s,
    numbered,
    rates,
    restarts,
    slope,
    speed,
    usual_interval,
)
from tui.analysis.progress.stream import CURVES, Stream
from tui.analysis.series import EMPTY, Series
from tui.text.names import natural_key

MAX_KEPT = 200
"""Maximum restarts and saves; the newest are kept."""

MAX_METRICS = 200
"""Maximum metric names with a curve: the first ones that the run prints."""

MAX_CURVES = 1_000
"""Maximum metric curves over all streams: it bounds the memory if many nodes print the same metrics."""

_HARMLESS_LEVELS = (None, "", "INFO", "DEBUG", "WARNING")
_PHASES: tuple[RunPhaseKind, ...] = ("evaluation", "checkpoint", "other")

StreamKey = tuple[str, int]
"""A replica and the rank within it; -1 if lines name no rank."""

_Streams = dict[StreamKey, Stream]


class LoggedCheckpoints:
    """Saves in time order, from lines in any order."""

    __slots__ = ("_saves",)

    def __init__(self) -> None:
        self._saves: list[tuple[int, str]] = []

    def add(self, name: str, stamp_ns: int) -> None:
        """Record a line about a checkpoint; ``name`` is empty if the line has none."""
        saves = self._saves
        index = bisect_right(saves, (stamp_ns, "\uffff"))
        for other in range(max(0, index - 8), min(len(saves), index + 8)):
            at_ns, other_name = saves[other]
            is_same = other_name == name
            # A line without a name belongs to a save mentioned within a minute before or after it.
            within_s = 900 if is_same and name else 60
            if (is_same or not (name and other_name)) and abs(at_ns - stamp_ns) < within_s * NS_PER_S:
                saves[other] = (min(at_ns, stamp_ns), other_name or name)
                saves.sort()
                return
        saves.insert(index, (stamp_ns, name))
        del saves[:-MAX_KEPT]

    def named(self, steps: Series) -> tuple[tuple[str, int], ...]:
        """Return names and times (epoch ns), oldest first; a save without a name is named by its step."""
        saves: list[tuple[str, int]] = []
        for at_ns, name in self._saves:
            position = bisect_right(steps.times, at_ns / NS_PER_S) - 1
            step_name = "checkpoint" if position < 0 else f"step-{steps.values[position]:.0f}"
            saves.append((name or step_name, at_ns))
        return tuple(saves)


class ProgressFold:
    """Folds log lines, in any order, into a snapshot.

    Several ranks often print the same. The stream with the most losses is shown, or the first by name on
    a tie, unless ``choose`` selected another. The work is proportional to the number of new lines, and
    memory is bounded. ``patterns`` are the user's own and take precedence over the built-in formats.
    """

    def __init__(self, *, max_points: int = MAX_POINTS, patterns: Sequence[ProgressPattern] = ()) -> None:
        self._max_points = max_points
        self._has_patterns = bool(patterns)
        self._reader = Reader(patterns)
        self._chosen: str | None = None
        self.lines_read = 0
        """Number of lines that report progress."""
        self._streams: _Streams = {}
        self._metric_names: dict[str, int] = {}
        """Metric names and their order of arrival: only the first ``MAX_METRICS`` have a curve."""
        self._metric_count = 0
        self._saves = LoggedCheckpoints()
        self._moving_target = False
        self._replicas: Bounded[str, list[int]] = Bounded(1024, _empty_line_range)
        """First and last timestamp (ns) and number of lines, by replica."""
        self._active = TimeRanges()
        self._gaps: set[tuple[int, int]] = set()
        self._errors = ErrorLines()
        self._events: dict[str, ThinnedPoints] = {}
        """Announcements and saves over time, by kind."""
        self._counts = MovingCounts()
        self._snapshot: ProgressSnapshot | None = ProgressSnapshot()

    def forget(self, gap: LogGap) -> None:
        """Remove a gap whose lines have been read; the caller adds these lines next."""
        self._gaps.discard((gap.start_ns, gap.end_ns))
        self._snapshot = None

    def add(self, entries: Iterable[LogEntry]) -> None:
        """Add lines and gaps in any order. The caller must not add the same line twice."""
        for entry in entries:
            self._snapshot = None
            if isinstance(entry, LogGap):
                self._gaps.add((entry.start_ns, entry.end_ns))
                continue
            stamp, message, replica = entry.timestamp_ns, entry.message, entry.replica or ""
            time = stamp / NS_PER_S
            self._count_line(replica, stamp)
            self._active.add(time)
            shape = self._reader.shape(message)
            if shape.can_fail or entry.level not in _HARMLESS_LEVELS:
                self._errors.take(stamp, message, entry.level, entry.replica)
            readings = self._reader.read(message, replica, stamp, shape)
            own_readings = [each.reading for each in readings if each.at_ns == stamp] if readings else ()
            if own_readings and not own_readings[-1].is_epoch:
                shape.has_reported = True
            else:
                if time < shape.first_other_at and not shape.can_fail:
                    # A warning does not announce new work.
                    text = excerpt(message)
                    rank = max(level_rank(text), level_rank(text, entry.level))
                    shape.first_other_at = time if rank < RANKS["WARNING"] else -math.inf
                self._counts.read(time, replica, message)
                if shape.can_announce and (announcement := announced(excerpt(message))) is not None:
                    self._event(announcement.kind, time, announcement.value)
            for line_reading in readings:
                self._add_reading(line_reading)
                self._moving_target |= shape.has_moving_target and line_reading.reading.loss is not None
        if self._snapshot is None:
            self._share_space()

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

    def _count_line(self, replica: str, stamp_ns: int) -> None:
        lines = self._replicas[replica]
        if stamp_ns > lines[1]:
            lines[1] = stamp_ns
        if stamp_ns < lines[0]:
            lines[0] = stamp_ns
        lines[2] += 1

    def _event(self, kind: str, time: float, value: float = 0.0) -> None:
        self._events.setdefault(kind, ThinnedPoints(kind, self._max_points)).add(time, value)

    def _add_reading(self, line_reading: LineReading) -> None:
        at_ns, replica, reading = line_reading
        time = at_ns / NS_PER_S
        self.lines_read += 1
        if reading.checkpoint is not None:
            self._saves.add(reading.checkpoint, at_ns)
            self._event("checkpoint", time)
            if reading.is_save:
                return  # its step is not progress: the save may be reported some steps later
        if reading.from_bar and reading.loss is None:
            done, total = reading.step or reading.epoch_step, reading.total_steps or reading.epoch_steps
            if done is not None and total is not None:
                self._counts.add(time, replica, "", done, total)
        key = (replica, -1 if reading.rank is None else reading.rank)
        stream = self._streams.get(key)
        if stream is None:
            if len(self._streams) >= 256:
                return
            stream = self._streams[key] = Stream(self._max_points)
        stream.add(time, reading)
        for name, value in reading.metrics:
            points = stream.metrics.get(name)
            if points is not None or (points := self._begin_metric(stream, name)) is not None:
                points.add(time, value)

    def _begin_metric(self, stream: Stream, name: str) -> ThinnedPoints | None:
        """Create the curve of a metric; None if there are too many."""
        names = self._metric_names
        if len(names) < MAX_METRICS + MAX_CURVES:
            names.setdefault(name, len(names))
        if names.get(name, MAX_METRICS) >= MAX_METRICS or self._metric_count >= MAX_CURVES:
            return None
        self._metric_count += 1
        points = stream.metrics[name] = ThinnedPoints(name)
        self._share_space()
        return points

    def _share_space(self) -> None:
        """Limit the points of each curve: all metrics together have as many as ten full curves."""
        shown = self._shown_key(self._streams)
        of_metrics = min(self._max_points, 10 * self._max_points // max(1, self._metric_count))
        for key, stream in self._streams.items():
            stream.limit_points(self._max_points if key == shown else self._max_points // 16, of_metrics)

    def _shown_key(self, streams: _Streams) -> StreamKey | None:
        """Return the key of the chosen stream, else of the one with the most losses."""
        if len(streams) < 2:
            return next(iter(streams), None)
        for key in streams:
            if _stream_key(key) == self._chosen:
                return key
        most = max((stream.losses.added, stream.step_readings) for stream in streams.values())
        keys = [key for key, stream in streams.items() if (stream.losses.added, stream.step_readings) == most]
        return min(keys, key=lambda key: (natural_key(key[0]), key[1]))

    def _build(self) -> ProgressSnapshot:
        announced_restarts = self._times("restart")[-MAX_KEPT:]
        named_replicas = sorted(filter(None, self._replicas), key=natural_key)
        intervals = self._events.get("save interval")
        lengths = self._events.get("input length")
        logged = ProgressSnapshot(
            first_line_at_ns=min((first for first, *_ in self._replicas.values()), default=None),
            last_line_at_ns=max((last for _, last, _ in self._replicas.values()), default=None),
            gaps=tuple((start_ns / NS_PER_S, end_ns / NS_PER_S) for start_ns, end_ns in sorted(self._gaps)),
            errors=self._errors.tally(),
            restarts=restarts(EMPTY, announced_restarts),
            announced_restarts=announced_restarts,
            resizes=self._times("resize")[-MAX_KEPT:],
            line_pause_s=self._active.longest_pause(-math.inf),
            replicas=tuple(ReplicaLog(name, *self._replicas[name]) for name in named_replicas),
            moving_target=self._moving_target,
            save_every=int(intervals.values[0]) if intervals else None,
            skipped_steps=self._times("skipped step")[-MAX_SKIPPED:],
            input_length_series=lengths.series() if lengths else EMPTY,
            loading_at=next(reversed(self._times("loading")), None),
            moved_at=self._counts.moved_at,
            advanced_at=self._counts.advanced_at,
            new_words=self._reader.new_words,
        )
        is_trusted = self._has_patterns
        streams = {key: each for key, each in self._streams.items() if is_trusted or each.is_ordered()}
        key = self._shown_key(streams)
        if key is None:
            return replace(logged, saves=() if self._streams else self._saves.named(EMPTY))
        stream = streams[key]
        source = max(streams.values(), key=lambda each: (each.has_steps, each is stream, each.step_readings))
        steps, printed_speed = source.steps, source.printed_speed()
        marks, losses = steps.series if steps else EMPTY, stream.losses.series()
        losses_over_steps = over_steps(losses, ProgressSnapshot(step_series=marks))
        first_step_at = next(iter((marks if steps else losses).times), -math.inf)
        interval_s = usual_interval(marks if steps else numbered(losses))
        last_step_at = steps.newest_at if steps else next(reversed(losses.times), None)
        left_s, low_s, high_s = eta_s(steps, printed_speed) if steps else (None, None, None)
        measured = _values_and_curves(stream, streams)
        return replace(
            logged,
            **measured,
            moving_target=self._moving_target or bool(headline_metrics(measured["metrics"])),
            step=steps.newest if steps else None,
            total_steps=steps.total if steps else None,
            rate_steps_per_s=(speed(marks, RECENT_S) or printed_speed) if steps else None,
            rate_overall=slope(marks, 0, len(marks) - 1) if steps else None,
            eta_s=left_s,
            eta_low_s=low_s,
            eta_high_s=high_s,
            step_interval_s=interval_s,
            step_pause_s=source.active.longest_pause(first_step_at),
            line_pause_s=self._active.longest_pause(first_step_at),
            last_step_at_ns=None if last_step_at is None else round(last_step_at * NS_PER_S),
            run_phase=self._current_phase(first_step_at, last_step_at, interval_s),
            loss_by_step=tuple(zip(map(int, losses_over_steps.times), losses_over_steps.values, strict=True)),
            has_relative_steps=stream.steps is None or bool(stream.steps.offsets),
            count_starts=tuple(sorted({0.0, *steps.offsets})) if steps else (0.0,),
            rate_series=rates(marks),
            step_series=marks,
            restarts=restarts(marks, announced_restarts),
            saves=self._saves.named(marks),
            streams=_views(streams),
            stream=_stream_key(key),
            replica=key[0] or None,
            refused_metrics=max(0, len(self._metric_names) - MAX_METRICS),
        )

    def _times(self, kind: str) -> tuple[float, ...]:
        """Return the times (epoch s) of the events of a kind."""
        return tuple(self._events[kind].times) if kind in self._events else ()

    def _current_phase(
        self, first_step_at: float, step_at: float | None, interval_s: float | None
    ) -> RunPhase | None:
        """Return the activity since the last step: announced, or inferred from a count that moves."""
        if step_at is None:
            return None
        moved_at = self._counts.moved_at or 0.0
        phases: list[RunPhase] = []
        for kind in _PHASES:
            times = self._times(kind)
            # The announcing line may precede the line of its step.
            index = bisect_left(times, step_at - 30.0)
            if index < len(times):
                is_first = index <= bisect_left(times, first_step_at)
                phases.append(RunPhase(kind, times[index], max(times[-1], moved_at), is_first))
        if phases:
            return max(phases, key=lambda phase: self._times(phase.kind)[-1])
        if moved_at <= step_at + max(60.0, 2 * (interval_s or 0.0)):
            return None
        return RunPhase("other", moved_at, moved_at, first=False)


def _empty_line_range() -> list[int]:
    return [sys.maxsize, 0, 0]


def _values_and_curves(shown: Stream, streams: _Streams) -> dict[str, Any]:
    """Return newest values and curves: of the shown stream, and what it lacks of other ranks' streams."""
    fields: dict[str, ThinnedPoints] = {}
    metrics: dict[str, ThinnedPoints] = {}
    others = sorted(streams, key=lambda key: (-streams[key].step_readings, key))
    for stream in (shown, *(streams[key] for key in others)):
        losses = stream.losses
        means = {
            name: points
            for name, points in stream.losses_by_name.items()
            if points is not losses and name != "loss"
        }
        fields = ({"loss": losses} if losses else {}) | stream.fields | fields
        metrics = means | stream.metrics | metrics
    newest = {
        name: fields[name].values[-1] for name in (*CURVES, "epoch", "total_epochs") if fields.get(name)
    }
    curves = {f"{name}_series": fields[name].series() for name in (*CURVES, "epoch") if name in fields}
    return {**newest, **curves, "metrics": {name: metrics[name].series() for name in sorted(metrics)}}


def _views(streams: _Streams) -> tuple[StreamView, ...]:
    views = [
        StreamView(
            key=_stream_key(key),
            replica=key[0] or None,
            rank=None if key[1] < 0 else key[1],
            readings=stream.losses.added + stream.step_readings,
            step=stream.steps.newest if stream.steps else None,
            step_times_s=stream.step_times_s(),
        )
        for key, stream in streams.items()
    ]
    return tuple(sorted(views, key=lambda view: natural_key(view.key)))


def _stream_key(key: StreamKey) -> str:
    replica, rank = key
    return replica if rank < 0 else f"{replica}[{rank}]"
