"""Training progress out of log lines: step, speed, loss and what is left, whatever the trainer."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from api_client.streams.records import LogLine
from tui.insight.natural import natural_key
from tui.insight.progress_patterns import Reading, parse
from tui.insight.series import EMPTY, Series
from tui.insight.stream_progress import Pace, StreamProgress

__all__ = ["ProgressFold", "ProgressSnapshot", "Reading", "loss_trend", "parse"]

NANOSECONDS = 1_000_000_000

MAX_POINTS = 20_000
"""Points kept of each curve of the stream that is shown."""

_SECONDARY_SHARE = 16  # other streams keep a sixteenth: they matter only if they become the shown one
_MAX_STREAMS = 256
_TREND_SHARE = 4  # the newest quarter of the losses is compared with the quarter before …
_TREND_READINGS = 200  # … or so many of them
_LEAST_READINGS = 3  # fewer than so many on either side tell nothing
_TREND_ERRORS = 3.0  # a change of fewer standard errors than that is noise

Trend = Literal["↓", "↑", "→", ""]


@dataclass(frozen=True, slots=True)
class ProgressSnapshot:
    """How far the training is. ``None`` is what the log does not tell.

    Rates are steps a second, times of events epoch nanoseconds, ``eta_s`` counts from ``last_step_at_ns``.
    ``loss_recent`` is the mean of the newest losses, ``loss_before`` of those just before them, and
    ``loss_error`` the standard error of their difference.
    ``step_interval_s`` is how often a new step is usually reported. ``replica`` is whose lines were read.
    """

    step: int | None = None
    total_steps: int | None = None
    epoch: float | None = None
    total_epochs: float | None = None
    loss: float | None = None
    loss_recent: float | None = None
    loss_before: float | None = None
    loss_error: float | None = None
    eval_loss: float | None = None
    learning_rate: float | None = None
    grad_norm: float | None = None
    tokens_per_s: float | None = None
    samples_per_s: float | None = None
    rate_steps_per_s: float | None = None
    rate_overall: float | None = None
    eta_s: float | None = None
    step_interval_s: float | None = None
    last_step_at_ns: int | None = None
    last_checkpoint: tuple[str, int] | None = None
    last_line_at_ns: int | None = None
    loss_series: Series = EMPTY
    loss_by_step: tuple[tuple[int, float], ...] = ()
    learning_rate_series: Series = EMPTY
    grad_norm_series: Series = EMPTY
    replica: str | None = None

    @property
    def fraction(self) -> float | None:
        """How much of the run is done, 0 to 1."""
        if self.step is None or not self.total_steps:
            return None
        return min(1.0, self.step / self.total_steps)


def loss_trend(snapshot: ProgressSnapshot) -> Trend:
    """Whether the loss falls ``↓``, rises ``↑`` or stays ``→`` (within its noise); empty while unknown."""
    recent, before = snapshot.loss_recent, snapshot.loss_before
    if recent is None or before is None:
        return ""
    change = recent - before
    if abs(change) <= _TREND_ERRORS * (snapshot.loss_error or 0.0):
        return "→"
    return "↓" if change < 0 else "↑"


class ProgressFold:
    """Folds log lines into a snapshot, in whatever order they come.

    Several ranks often print the same: the replica with the most losses is shown, of equals the one
    that comes first by name. Work is proportional to the lines that are new; space is bounded.
    """

    def __init__(self, *, max_points: int = MAX_POINTS) -> None:
        self._max_points = max_points
        self._streams: dict[tuple[str, int], StreamProgress] = {}
        self._last_line_at_ns: int | None = None
        self._last_checkpoint: tuple[str, int] | None = None
        self._snapshot: ProgressSnapshot | None = ProgressSnapshot()

    def add(self, lines: Iterable[LogLine]) -> None:
        """Take lines: newer, older or in between; each line once."""
        told = False
        for line in lines:
            stamp = line.timestamp_ns
            if self._last_line_at_ns is None or stamp > self._last_line_at_ns:
                self._last_line_at_ns = stamp
                self._snapshot = None
            reading = parse(line.message)
            if reading is None:
                continue
            told = True
            if reading.checkpoint is not None:
                self._keep_checkpoint(reading.checkpoint, stamp)
            else:
                self._stream(line.replica or "", reading.rank).add(stamp / NANOSECONDS, reading)
        if told:
            self._snapshot = None
            self._share_space()

    def snapshot(self) -> ProgressSnapshot:
        """Where the run stands; the same object until a line changes something."""
        if self._snapshot is None:
            self._snapshot = self._build()
        return self._snapshot

    def _stream(self, replica: str, rank: int | None) -> StreamProgress:
        key = (replica, -1 if rank is None else rank)
        stream = self._streams.get(key)
        if stream is None:
            if len(self._streams) >= _MAX_STREAMS:
                return StreamProgress(1)  # beyond all reason: read, and forgotten
            stream = self._streams[key] = StreamProgress(self._max_points)
        return stream

    def _keep_checkpoint(self, name: str, stamp: int) -> None:
        held = self._last_checkpoint
        if held is None or stamp >= held[1]:
            # "Saving model checkpoint to …" is followed by lines that say the same without a name.
            if not name and held is not None and stamp - held[1] < NANOSECONDS:
                return
            self._last_checkpoint = (name, stamp)

    def _shown(self) -> tuple[str, StreamProgress] | None:
        if not self._streams:
            return None
        key = min(
            self._streams,
            key=lambda key: (
                -self._streams[key].loss_readings,
                -self._streams[key].step_readings,
                natural_key(key[0]),
                key[1],
            ),
        )
        return key[0], self._streams[key]

    def _share_space(self) -> None:
        shown = self._shown()
        if shown is None or len(self._streams) == 1:
            return
        for stream in self._streams.values():
            stream.limit_points(
                self._max_points if stream is shown[1] else self._max_points // _SECONDARY_SHARE
            )

    def _build(self) -> ProgressSnapshot:
        shown = self._shown()
        if shown is None:
            return ProgressSnapshot(
                last_checkpoint=self._named_checkpoint(None), last_line_at_ns=self._last_line_at_ns
            )
        replica, stream = shown
        pace = stream.pace() or self._pace_of_another()
        recent, before, error = _compare_recent(stream.losses.values)
        return ProgressSnapshot(
            step=pace.step if pace else None,
            total_steps=pace.total_steps if pace else None,
            epoch=stream.newest("epoch"),
            total_epochs=stream.newest("total_epochs"),
            loss=_last(stream.losses.values),
            loss_recent=recent,
            loss_before=before,
            loss_error=error,
            eval_loss=self._newest_anywhere("eval_loss", stream),
            learning_rate=_last(stream.learning_rates.values),
            grad_norm=_last(stream.grad_norms.values),
            tokens_per_s=stream.newest("tokens_per_s"),
            samples_per_s=stream.newest("samples_per_s"),
            rate_steps_per_s=pace.recent if pace else None,
            rate_overall=pace.overall if pace else None,
            eta_s=_eta_s(pace),
            step_interval_s=pace.interval_s if pace else None,
            last_step_at_ns=self._last_step_at_ns(pace, stream),
            last_checkpoint=self._named_checkpoint(pace),
            last_line_at_ns=self._last_line_at_ns,
            loss_series=stream.losses.series(),
            loss_by_step=stream.loss_by_step(),
            learning_rate_series=stream.learning_rates.series(),
            grad_norm_series=stream.grad_norms.series(),
            replica=replica or None,
        )

    def _pace_of_another(self) -> Pace | None:
        """The pace of the stream that tells the most steps, for one that tells losses alone."""
        telling = max(self._streams.values(), key=lambda stream: stream.step_readings)
        return telling.pace()

    def _newest_anywhere(self, name: str, stream: StreamProgress) -> float | None:
        """A value that another rank may be the one to print, such as the loss of an evaluation."""
        own = stream.newest(name)
        if own is not None:
            return own
        told = [
            (time, value)
            for other in self._streams.values()
            if (time := other.newest_time(name)) is not None and (value := other.newest(name)) is not None
        ]
        return max(told)[1] if told else None

    def _last_step_at_ns(self, pace: Pace | None, stream: StreamProgress) -> int | None:
        """When the newest step was first told; without steps, when the newest loss was."""
        if pace is not None:
            return round(pace.step_at * NANOSECONDS)
        return round(stream.losses.times[-1] * NANOSECONDS) if stream.losses.times else None

    def _named_checkpoint(self, pace: Pace | None) -> tuple[str, int] | None:
        held = self._last_checkpoint
        if held is None or held[0]:
            return held
        return (f"step-{pace.step}" if pace else "checkpoint", held[1])


def _last(values: list[float]) -> float | None:
    return values[-1] if values else None


def _compare_recent(values: list[float]) -> tuple[float | None, float | None, float | None]:
    """The mean of the newest losses, of as many before them, and their difference's standard error.

    Losses that are no numbers are left out. The noise is told by how far neighbours differ, since a
    spread around the mean would take a steep trend itself for noise.
    """
    size = min(_TREND_READINGS, len(values) // _TREND_SHARE)
    finite = [value for value in values[-2 * max(_LEAST_READINGS, size) :] if math.isfinite(value)]
    half = len(finite) // 2
    if half < 2:
        return (finite[-1] if finite else None), None, None
    before, recent = finite[-2 * half : -half], finite[-half:]
    # Plain sums and products: they overflow to infinity, where fsum and ** would raise.
    mean_before, mean_recent = sum(before) / half, sum(recent) / half
    steps = [later - earlier for earlier, later in pairwise(finite)]
    variance = sum(step * step for step in steps) / len(steps) / 2
    return mean_recent, mean_before, math.sqrt(2 * variance / half)


def _eta_s(pace: Pace | None) -> float | None:
    if pace is None or pace.total_steps is None or pace.lasting is None:
        return None
    return max(0, pace.total_steps - pace.step) / pace.lasting
