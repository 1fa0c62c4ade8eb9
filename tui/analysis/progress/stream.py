"""The progress of one stream of log lines: one replica, or one of its ranks if lines name ranks.

Nothing here depends on the order in which lines arrive, because older history may come after newer lines:
everything is stored by time, and the newest values are found by time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from tui.analysis.progress.lines.reading import ParsedMetrics
from tui.analysis.progress.phases import TimeRanges
from tui.analysis.progress.snapshot import ThinnedPoints
from tui.analysis.progress.step_marks import (
    LONG_S,
    RECENT_S,
    ROUNDS,
    is_ordered,
    rounds,
    slope,
    speed,
    unroll_epochs,
    unroll_rounds,
    usual_interval,
    window_start,
)

_VOTING_LOSSES = 3
_LOSSES_ALONE = 8  # So many losses, and usual intervals of a bar, after its end: they are not its losses.
_OWN = 0  # the source of lines that contain a step, as opposed to bars, which are identified by their total


CURVES = {
    "loss": "loss",
    "learning_rate": "learning rate",
    "grad_norm": "grad norm",
    "eval_loss": "eval loss",
    "tokens_per_s": "tokens/s",
    "samples_per_s": "samples/s",
}
"""Fields of ``ParsedMetrics`` with a curve, and the title of each."""

_WITHOUT_CURVE = tuple(
    (attrgetter(name), name) for name in ("epoch", "total_epochs", "step_time_s", "epoch_steps")
)


@dataclass(frozen=True, slots=True)
class StepRate:
    """The speed of a run.

    ``step`` was first seen at ``step_at`` (epoch seconds); rates are steps per second.

    ``times`` and ``steps`` are the marks of the last ``LONG_S``, from which ``lasting`` is computed.
    """

    step: int
    step_at: float
    total_steps: int | None
    recent: float | None
    lasting: float | None
    overall: float | None
    interval_s: float | None
    times: Sequence[float] = ()
    steps: Sequence[float] = ()


class StreamProgress:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.curves = {name: ThinnedPoints(title, limit) for name, title in CURVES.items()}
        """The curves by field of ``ParsedMetrics``."""
        self.losses = self.curves["loss"]
        self._measures = [
            (attrgetter(name), points) for name, points in self.curves.items() if name != "loss"
        ]
        self.pauses = TimeRanges()
        self._step_times: deque[float] = deque(maxlen=40)
        self.loss_readings = 0
        self.step_readings = 0
        self._newest: dict[str, tuple[float, float]] = {}  # time and value
        self._marks: dict[int, ThinnedPoints] = {}
        self._rounds_of: dict[int, tuple[int, tuple[float, ...]]] = {}
        self._unwrapped_steps: tuple[int, int, ThinnedPoints] | None = None
        self._epoch_marks = ThinnedPoints("epochs", limit)
        self._epochs = ThinnedPoints("epochs", limit)  # of lines without a step
        self._counts_over_epochs = False

    def limit_points(self, limit: int) -> None:
        if limit != self._limit:
            self._limit = limit
            for points in (*self.curves.values(), self._epoch_marks, self._epochs, *self._marks.values()):
                points.limit = limit

    def newest(self, name: str) -> float | None:
        """Return the newest value of a field of ``ParsedMetrics`` that has no curve."""
        return self._newest[name][1] if name in self._newest else None

    def add(self, time: float, reading: ParsedMetrics) -> None:
        if reading.whole_epochs is not None and reading.epoch_step is None:
            self._mark_epoch(time, reading.whole_epochs)
        step = self._step_over_epochs(time, reading)
        if step is not None:
            self._mark_step(time, step, reading)
        elif reading.epoch is not None:
            self._epochs.add(time, reading.epoch)
        if reading.loss is not None:
            self.loss_readings += 1
            self.pauses.add(time)
            self.losses.add(time, reading.loss, step)
        for value_of, points in self._measures:
            if (value := value_of(reading)) is not None:
                points.add(time, value)
        if reading.step_time_s is not None and not reading.from_bar:
            self._step_times.append(reading.step_time_s)
        for value_of, name in _WITHOUT_CURVE:
            if (value := value_of(reading)) is not None:
                self._keep_newest(name, time, value)
        if reading.total_steps is not None and not reading.from_bar:
            self._keep_newest("total_steps", time, reading.total_steps)

    def is_ordered(self) -> bool:
        """Return False if what the lines count comes in no order, so that no trainer printed them."""
        return is_ordered(self._epochs) and is_ordered(self._marks.get(_OWN, self._epochs))

    def step_times_s(self) -> tuple[float, float] | None:
        """Return the mean of the newest printed step times, and of as many before."""
        times = list(self._step_times)
        half = len(times) // 2
        if not half:
            return None
        return sum(times[-half:]) / half, sum(times[-2 * half : -half]) / half

    def run_marks(self) -> ThinnedPoints | None:
        """Return the run's steps, counted over the whole run even if they restart with every epoch."""
        source = self._training_source()
        if source is None:
            return None
        held = self._unwrapped_steps
        if held is None or held[:2] != (source, self.step_readings):
            marks = self._marks[source]
            through = unroll_epochs(marks) if source == _OWN else marks
            if through is marks and self._restarts_repeatedly(source):
                through = unroll_rounds(marks, self._rounds(source))
            held = self._unwrapped_steps = (source, self.step_readings, through)
        return held[2]

    def pace(self) -> StepRate | None:
        """Return step, total and speed; ``None`` while no step is known."""
        source, marks = self._training_source(), self.run_marks()
        if source is None or marks is None:
            return None
        times, steps = marks.times, marks.values
        last = len(times) - 1
        window = window_start(marks, LONG_S)
        first_of_step = last
        while first_of_step and steps[first_of_step - 1] == steps[last]:
            first_of_step -= 1
        return StepRate(
            step=int(steps[last]),
            step_at=times[first_of_step],
            total_steps=self._total(source, int(steps[last])),
            recent=speed(marks, RECENT_S) or self._printed_speed(),
            lasting=speed(marks, LONG_S) or self._printed_speed(),
            overall=slope(marks, 0, last),
            interval_s=usual_interval(marks),
            times=times[window:],
            steps=steps[window:],
        )

    def loss_by_step(self) -> tuple[tuple[int, float], ...]:
        """Return the losses by step. A line without a step takes that of the last bar before it.

        If nothing reports a step, losses are numbered from one in time order.
        """
        losses, marks = self.losses, self.run_marks()
        is_unrolled = marks is not None and marks not in self._marks.values()
        pairs: list[tuple[int, float]] = []
        index = newest = 0
        for number, (time, step, value) in enumerate(
            zip(losses.times, losses.steps, losses.values, strict=True), start=1
        ):
            if marks is None:
                newest = number
            else:
                while index < len(marks) and marks.times[index] <= time:
                    newest = int(marks.values[index])
                    index += 1
            pairs.append((newest if step is None or is_unrolled else step, value))
        return tuple(pairs)

    @property
    def counts_steps(self) -> bool:
        """True if steps are counted from the first line: over rounds or epochs, or the losses themselves."""
        source = self._training_source()
        return source is None or self._counts_over_epochs or self.run_marks() is not self._marks[source]

    def _keep_newest(self, name: str, time: float, value: float) -> None:
        if time >= self._newest.get(name, (time, value))[0]:
            self._newest[name] = (time, value)

    def _mark_step(self, time: float, step: int, reading: ParsedMetrics) -> None:
        source = (reading.total_steps or reading.epoch_steps or _OWN) if reading.from_bar else _OWN
        marks = self._marks.get(source)
        if marks is None:
            if len(self._marks) >= 16:
                smallest = min(self._marks, key=lambda other: len(self._marks[other]))
                del self._marks[smallest]
            marks = self._marks[source] = ThinnedPoints("steps", self._limit)
        # Store the epoch with the step if the line has it: some trainers count steps within epochs.
        marks.add(time, float(step), None if reading.epoch is None else int(reading.epoch))
        self.step_readings += 1
        self.pauses.add(time)

    def _training_source(self) -> int | None:
        """Choose the source of the run's steps: lines that name them, else the bar printed next to losses.

        Lines that name a step only now and then (Lightning's checkpoints) leave the steps to the bar.
        An evaluation has a bar too, but no losses: a bar that stopped long before the newest losses is not
        theirs. While there are none, the first bar is the run's, and one that begins after it ended is a
        new stage.
        """
        own = self._marks.get(_OWN)
        if own is not None and len(own) * 20 >= len(self.losses):
            return _OWN
        votes: dict[int, int] = {}
        for time in self.losses.times[-_VOTING_LOSSES:]:
            beside = self._source_nearest(time)
            if beside is not None and not self._has_ended(beside):
                votes[beside] = votes.get(beside, 0) + 1
        if votes:
            voted = max(votes, key=lambda source: (votes[source], source))
            return self._around(voted) or voted
        if own is not None:
            return _OWN
        if len(self.losses) >= _VOTING_LOSSES:
            return None
        chosen: int | None = None
        for source, marks in sorted(self._marks.items(), key=lambda item: (item[1].times[0], -item[0])):
            if chosen is None or marks.times[0] > self._marks[chosen].times[-1]:
                chosen = source
        return chosen

    def _has_ended(self, source: int) -> bool:
        """Return True if a bar stopped and losses continued without it, as after an evaluation."""
        marks, times = self._marks[source], self.losses.times
        after = times[bisect_right(times, marks.times[-1]) :]
        usual_s = usual_interval(marks) or 0.0
        return len(after) > _LOSSES_ALONE and after[-1] - marks.times[-1] > _LOSSES_ALONE * usual_s

    def _rounds(self, source: int) -> tuple[float, ...]:
        held = self._rounds_of.get(source)
        if held is None or held[0] != self.step_readings:
            total = self.newest("total_steps") if source == _OWN else float(source)
            begun = () if not total else rounds(self._marks[source], total)
            held = self._rounds_of[source] = (self.step_readings, begun)
        return held[1]

    def _around(self, inner: int) -> int | None:
        """Return the bar around a repeating one that keeps counting meanwhile, as in OpenRLHF."""
        if not self._restarts_repeatedly(inner):
            return None
        begun = self._rounds(inner)
        outer = [
            source
            for source, marks in self._marks.items()
            if source != inner
            and marks.times[0] <= begun[0]
            and marks.times[-1] >= begun[-2]
            and min(marks.values[1:], default=0.0) >= marks.values[0]
            and not self._rounds(source)
        ]
        return max(outer, key=lambda source: len(self._marks[source]), default=None)

    def restarts_repeatedly(self) -> bool:
        """Return True if the steps restart repeatedly, so that they are not the run's."""
        source = self._training_source()
        return source is not None and self._restarts_repeatedly(source)

    def _restarts_repeatedly(self, source: int) -> bool:
        return len(self._rounds(source)) >= ROUNDS

    def _source_nearest(self, time: float) -> int | None:
        """Return the source of the last mark up to a time; on a tie, the one with the higher total."""
        nearest: tuple[float, int] | None = None
        for source, marks in self._marks.items():
            position = marks.before(time)
            if position is not None:
                candidate = (marks.times[position], source)
                nearest = candidate if nearest is None else max(nearest, candidate)
        return None if nearest is None else nearest[1]

    def _total(self, source: int, step: int) -> int | None:
        if self._restarts_repeatedly(source):
            return None
        if source != _OWN:
            # Bars that count within epochs are identified by their length, which is not the run's total.
            within_epochs = self.newest("epoch_steps") == source and not self.newest("total_epochs")
            return None if within_epochs else source
        named = self.newest("total_steps")
        if named is None and self.newest("epoch_steps") and self.newest("total_epochs"):
            named = (self.newest("epoch_steps") or 0) * (self.newest("total_epochs") or 0)
        if named is None or named < step:
            fitting = [
                total for total in self._marks if total >= max(1, step) and self._moves_along(total, step)
            ]
            named = max(fitting, default=None)
        return None if named is None or named < step else int(named)

    def _moves_along(self, bar: int, step: int) -> bool:
        """Return True if a bar counts the same steps as the lines: it is close to the newest of them."""
        return abs(self._marks[bar].values[-1] - step) <= max(10.0, step * 0.05)

    def _printed_speed(self) -> float | None:
        seconds = self.newest("step_time_s")
        return 1 / seconds if seconds and 0 < seconds < float("inf") else None

    def _step_over_epochs(self, time: float, reading: ParsedMetrics) -> int | None:
        """Return the step over the whole run; Keras prints the epoch on an earlier line."""
        if reading.step is not None or reading.epoch_step is None or not reading.epoch_steps:
            return reading.step
        mark = self._epoch_marks.before(time)
        self._counts_over_epochs = True
        whole = 0 if mark is None else int(self._epoch_marks.values[mark])
        return whole * reading.epoch_steps + reading.epoch_step

    def _mark_epoch(self, time: float, whole_epochs: int) -> None:
        """Record the start of an epoch, and correct its steps if they arrived before this line."""
        self._epoch_marks.add(time, float(whole_epochs))
        steps_in_epoch = int(self.newest("epoch_steps") or 0)
        marks = self._marks.get(_OWN)
        if not steps_in_epoch or marks is None or time > marks.times[-1]:
            return
        until = self._epoch_marks.after(time)

        def over_epochs(step: float) -> int:
            return whole_epochs * steps_in_epoch + (int(step) - 1) % steps_in_epoch + 1

        for position in marks.between(time, until):
            marks.values[position] = float(over_epochs(marks.values[position]))
        marks.corrected()
        self._unwrapped_steps = None
        for position in self.losses.between(time, until):
            step = self.losses.steps[position]
            self.losses.steps[position] = None if step is None else over_epochs(step)
