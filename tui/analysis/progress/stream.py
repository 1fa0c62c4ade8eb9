"""The values that one stream of log lines reports: a replica, or one of its ranks if lines name ranks.

Everything is stored by time, because older lines may arrive after newer ones.
"""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter

from tui.analysis.progress.lines.reading import ParsedMetrics, counted_from_zero
from tui.analysis.progress.points import ThinnedPoints, TimeRanges
from tui.analysis.progress.steps import Source, Steps, is_ordered, steps_of

CURVES = {
    "loss": "loss",
    "learning_rate": "learning rate",
    "grad_norm": "grad norm",
    "eval_loss": "eval loss",
    "tokens_per_s": "tokens/s",
    "samples_per_s": "samples/s",
}
"""Fields of ``ParsedMetrics`` that are shown as curves, and the title of each."""

_FIELDS = (*list(CURVES)[1:], "epoch", "total_epochs", "step_time_s", "epoch_steps", "total_steps")
_VALUES = attrgetter(*_FIELDS)
_OF_BARS = {"step_time_s": "bar_step_time_s", "total_steps": "bar_total_steps"}


class Stream:
    """The points of a stream: ``counts`` by source, ``fields`` of readings, and other ``metrics`` by name."""

    def __init__(self, limit: int) -> None:
        self.counts: dict[Source | str, ThinnedPoints] = {}
        self.losses_by_name: dict[str, ThinnedPoints] = {}
        self.fields: dict[str, ThinnedPoints] = {}
        """Values of all fields except the loss."""
        self._limit = limit
        self.metrics: dict[str, ThinnedPoints] = {}
        self.active = TimeRanges()
        self._steps: Steps | None = None
        self._is_derived = False
        self.counts_from_zero = False
        """True once a line counts within epoch 0; until then, epochs are assumed to be counted from 1."""

    @property
    def losses(self) -> ThinnedPoints:
        """The run's loss: of several names, the one with most of the newest values.

        A mean over the run or the epoch often has a name of its own (``train_loss`` next to ``loss``).
        """
        named = self.losses_by_name
        if len(named) < 2:
            return next(iter(named.values()), ThinnedPoints("loss", self._limit))
        newest = sorted(time for points in named.values() for time in points.times[-20:])[-20:]
        return max(
            named.values(),
            key=lambda points: (len(points.times) - bisect_left(points.times, newest[0]), points.added),
        )

    @property
    def step_readings(self) -> int:
        return sum(points.added for points in self.counts.values())

    @property
    def has_steps(self) -> bool:
        """True if the stream counts the steps of the run."""
        return self.steps is not None and not self.steps.starts_over

    def limit_points(self, limit: int, of_metrics: int) -> None:
        if limit != self._limit:
            self._limit = limit
            for points in (*self.counts.values(), *self.fields.values(), *self.losses_by_name.values()):
                points.limit = limit
        for points in self.metrics.values():
            points.limit = of_metrics

    def add(self, time: float, reading: ParsedMetrics) -> None:
        """Add a line's count, loss and fields at a time (epoch s); the caller adds its metrics."""
        self._is_derived = False
        if reading.is_epoch_0 and not self.counts_from_zero:
            self._count_from_zero()
        if self.counts_from_zero:
            reading = counted_from_zero(reading)
        step = self._add_count(time, reading)
        if step is not None or reading.loss is not None:
            self.active.add(time)
        if reading.loss is not None:
            self._losses_named(reading.loss_name).add(time, reading.loss)
        for name, value in zip(_FIELDS, _VALUES(reading), strict=True):
            if value is not None:
                field = self._field(_OF_BARS.get(name, name) if reading.from_bar else name)
                field.add(time, value, reading.whole_epochs)

    def newest(self, field: str) -> float | None:
        return self.fields[field].values[-1] if field in self.fields else None

    @property
    def steps(self) -> Steps | None:
        """The steps of the run; None if the stream has none."""
        if not self._is_derived:
            self._steps = steps_of(self.counts, self.losses, self.fields)
            self._is_derived = True
        return self._steps

    def counts_other_work(self, time: float, reading: ParsedMetrics) -> bool:
        """Return True if a bar counts other work during the run, such as an evaluation."""
        steps = self.steps
        if steps is None or steps.total is None or time < steps.series.times[0]:
            return False
        is_bare = reading.from_bar and reading.loss is None and reading.epoch is None
        return is_bare and reading.total_steps not in (None, steps.total)

    def is_ordered(self) -> bool:
        """Return False if the counts have no order, so that no trainer printed them."""
        marks = self.steps.series if self.steps else self.fields.get("epoch without step")
        return marks is None or is_ordered(marks)

    def printed_speed(self) -> float | None:
        """Return the speed (steps/s) from the newest step time in a line or a bar."""
        times = [points for name in ("step_time_s", "bar_step_time_s") if (points := self.fields.get(name))]
        newest = max(times, key=lambda points: points.times[-1], default=None)
        return None if newest is None or not 0 < newest.values[-1] < float("inf") else 1 / newest.values[-1]

    def step_times_s(self) -> tuple[float, float] | None:
        """Return the mean of the newest step times (up to 20, not of bars), and of as many before."""
        points = self.fields.get("step_time_s")
        times = [] if points is None else points.values[-40:]
        half = len(times) // 2
        return (sum(times[-half:]) / half, sum(times[-2 * half : -half]) / half) if half else None

    def _add_count(self, time: float, reading: ParsedMetrics) -> int | None:
        """Add a line's count. Return the step, counted within the epoch if that is all the line has."""
        step, epoch = reading.step, None if reading.epoch is None else int(reading.epoch)
        epoch_length = reading.epoch_steps if reading.epoch_step is not None else None
        source: Source | str = reading.step_name
        if reading.from_bar:
            source = reading.total_steps or -(epoch_length or 0) or source
        elif step is None and epoch_length:
            step, epoch, source = reading.epoch_step, None, -epoch_length
        if step is not None:
            if source not in self.counts and len(self.counts) >= 16:
                del self.counts[min(self.counts, key=lambda other: len(self.counts[other]))]
            points = self.counts.setdefault(source, ThinnedPoints("steps", self._limit))
            points.add(time, float(step), epoch)
        elif reading.epoch is not None:
            self._field("epoch without step").add(time, reading.epoch)
        if reading.whole_epochs is not None and reading.epoch_step is None:
            self._field("whole epochs").add(time, reading.whole_epochs, reading.whole_epochs)
        return step

    def _count_from_zero(self) -> None:
        """Correct the points added before a line of epoch 0: older lines of a log may be read last."""
        self.counts_from_zero = True
        for points in self.counts.values():
            points.shift(self.newest("epoch_steps") or 0.0)
        for name in {"epoch", "whole epochs"} & self.fields.keys():
            self.fields[name].shift(1.0)

    def _losses_named(self, name: str) -> ThinnedPoints:
        named = self.losses_by_name
        return self._points(named, name if name in named or len(named) < 16 else "loss", "loss")

    def _field(self, name: str) -> ThinnedPoints:
        return self._points(self.fields, name, CURVES.get(name, name))

    def _points(self, curves: dict[str, ThinnedPoints], name: str, title: str) -> ThinnedPoints:
        if name not in curves:
            curves[name] = ThinnedPoints(title, self._limit)
        return curves[name]
