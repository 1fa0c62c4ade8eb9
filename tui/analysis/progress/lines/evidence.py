"""Decide whether a training printed a line, so that its reading is accepted.

A single line of clear form is enough evidence of a training, and so is a count that rises from line to line.
From then on, each line with a measure is accepted, and so are earlier ones, which were pending. The order in
which lines arrive matters only for lines below a heading, below conversational text, or before a total.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from api_client.models.logs import NS_PER_S
from tui.analysis.bounded import Bounded
from tui.analysis.progress.lines.reading import LineReading, ParsedMetrics
from tui.analysis.progress.lines.template import MEASURES, Form
from tui.analysis.progress.lines.vocabulary import ENVIRONMENT_STEPS, TRAINING, meaning, words_of


class _PendingLine(NamedTuple):
    conversational_lines: int
    """Number of conversational lines before this line."""
    form: Form
    line_reading: LineReading


class Quotations:
    """Distinguishes a training's lines from quoted ones (a chat about a training) by the text around them.

    A training prints one kind of line for as long as it runs. A quotation follows conversational text, is
    short, and is printed at once. So a kind of line that first appears after conversational text is pending
    until it has taken more than 10 s, has more than 16 lines, or continues its count across such text in
    parts of equal length, like a training that prints samples at regular steps.
    """

    def __init__(self) -> None:
        self.conversational_lines: Bounded[str, int] = Bounded(1024, int)
        """Number of conversational lines so far, by replica."""
        self._unquoted_kinds: Bounded[tuple[str, ...], bool] = Bounded(256)
        """Kinds of lines that are known not to be quotations."""
        self._pending: Bounded[tuple[str, ...], list[_PendingLine]] = Bounded(64, list)
        self._newest_readings: deque[ParsedMetrics] = deque(maxlen=8)
        """The newest readings that are no quotations."""

    def add(self, form: Form, line_reading: LineReading) -> list[_PendingLine]:
        """Return lines that are not quoted: this one and pending ones of its kind; none while undecided."""
        line = _PendingLine(self.conversational_lines[line_reading.replica], form, line_reading)
        if not line.conversational_lines or form.key in self._unquoted_kinds:
            self._unquoted_kinds[form.key] = True
            self._newest_readings.append(line_reading.reading)
            return [line]
        comparable = [
            each
            for each in self._newest_readings
            if (each.step is None) == (line_reading.reading.step is None)
        ]
        if comparable and _continues_count(comparable, line_reading.reading):
            return [line]  # such as an evaluation at the training's current step
        pending = self._pending[line_reading.replica, *form.key]
        if not _continues_count(
            [each.line_reading.reading for each in pending], line_reading.reading
        ) or _is_quoted_again(pending, line):
            pending.clear()
        pending.append(line)
        if not _exceeds_quotation(pending):
            return []
        self._unquoted_kinds[form.key] = True
        self._newest_readings.append(line_reading.reading)
        return self._pending.pop((line_reading.replica, *form.key))


def _continues_count(readings: Iterable[ParsedMetrics], reading: ParsedMetrics) -> bool:
    """Return True if a count is not below the newest other, and exceeds it by at most two usual moves."""
    counts = [each.counted or 0.0 for each in (*readings, reading)]
    *moves, move = (0.0, *(after - before for before, after in pairwise(counts)))
    return 0 <= move <= 2 * (max(moves, default=0.0) or math.inf)


def _is_quoted_again(pending: list[_PendingLine], line: _PendingLine) -> bool:
    """Return True if the same count is repeated after more conversational text."""
    before = next(reversed(pending), line)
    return (
        before.conversational_lines < line.conversational_lines
        and before.line_reading.reading.counted == line.line_reading.reading.counted
    )


def _exceeds_quotation(pending: list[_PendingLine]) -> bool:
    """Return True if lines are too many or too slow for a quotation, or continue in parts of equal length."""
    begun_ns = next(
        each.line_reading.at_ns
        for each in pending
        if each.conversational_lines == pending[-1].conversational_lines
    )
    is_slow = pending[-1].line_reading.at_ns - begun_ns > 10 * NS_PER_S
    *complete, _ = Counter(each.conversational_lines for each in pending).values()
    return len(pending) > 16 or is_slow or (len(complete) > 1 and len({*complete}) == 1)


MAX_TRACKED = 1024
"""Maximum kinds of pending readings, replicas, and tables that are tracked at a time."""

BLOCK_LINES = 40
"""Maximum lines from a heading, or from the newest value of its block, to the next value."""


MIN_LONE_BAR_S = 60.0
"""Shorter bars without a title or a loss are no evidence of a training: many load or sample data."""


def measures_of(reading: ParsedMetrics) -> int:
    return sum(getattr(reading, name) is not None for name in MEASURES)


def _duration_s(bar: ParsedMetrics) -> float:
    return (bar.total_steps or math.inf) * (bar.step_time_s or math.inf)


def has_rising_count(readings: Iterable[LineReading], form: Form) -> bool:
    """Return True if a count rises like a trainer's: with few falls, and by even amounts or six times.

    Numbers in a conversation may rise by chance, but rarely from 500 to 1000, by multiples of one amount, or
    six times. Trainers that print at fixed times rise by uneven amounts.
    """
    counts: dict[tuple[str, int | None, int | None], list[float]] = {}
    for line_reading in sorted(readings, key=attrgetter("at_ns")):
        count = line_reading.reading.counted
        if count is not None:
            counts.setdefault(
                (line_reading.replica, line_reading.reading.rank, line_reading.reading.total_steps), []
            ).append(count)
    pairs = [pair for of_rank in counts.values() for pair in pairwise(of_rank)]
    rises = [after - before for before, after in pairs if before < after]
    falls = sum(before > after for before, after in pairs)
    if not rises or len(rises) < 2 * falls:
        return False
    usual = min(rises)
    if any(rise % usual for rise in rises) and not usual % 1:
        return len(rises) > 5
    is_round = not form.is_bare and any(after % 1 or (after + 1) % usual < 3 for _, after in pairs)
    return is_round or len(rises) >= form.min_rises


@dataclass(slots=True)
class ReplicaBlock:
    """The block of values that a replica prints: a heading with a count, and values below it."""

    lines_left: int = 0
    """Number of further lines whose values belong to the heading if they have no count of their own."""
    is_confirmed: bool = False
    """True once a heading has had a total, or the count of headings has risen."""
    pending: list[LineReading] = field(default_factory=list)
    newest_step: int | None = None
    """The step of the newest accepted line."""
    has_trainer_count: bool = False
    """True once a heading has counted something other than environment steps."""

    def register_count(self, step_name: str) -> bool:
        """Record what a heading counts. Return True if environment steps, and another has the trainer's."""
        is_of_environments = meaning(step_name) == ENVIRONMENT_STEPS
        self.has_trainer_count |= not is_of_environments
        return is_of_environments and self.has_trainer_count


class TrainingEvidence:
    """Accepts readings once a log has shown that a training printed them; until then they are pending."""

    def __init__(self) -> None:
        self.quotations = Quotations()
        self._has_training = False
        self._rising_kinds: Bounded[tuple[str, ...], bool] = Bounded(MAX_TRACKED)
        self._headings = _readings_by_kind()
        self._pending_plain = _readings_by_kind()
        """Readings of lines with measures, by kind, pending until there is evidence of a training."""
        self._pending_bare = _readings_by_kind()
        """Readings of bare forms, by kind, pending until their own count rises."""
        self._pending_saves: list[LineReading] = []
        self._short_bar_totals: Bounded[int | None, bool] = Bounded(64)
        """Totals of short bars that have shown a state before the last."""
        self._loss_total: int | None = None
        """The newest total in a line with a loss. Lone bars with other totals count something else."""
        self._replicas: Bounded[str, ReplicaBlock] = Bounded(MAX_TRACKED, ReplicaBlock)

    def add(self, form: Form, line_reading: LineReading) -> list[LineReading]:
        """Add a reading. Return the readings accepted now: this one, pending ones, or none."""
        block = self._replicas[line_reading.replica]
        reading = line_reading.reading
        if form.is_heading and reading.step is not None and block.register_count(reading.step_name):
            metrics = (*reading.metrics, (reading.step_name, float(reading.step)))
            value = line_reading._replace(reading=reading._replace(step=None, metrics=metrics))
            return self._add_values(form, value, block)
        if form.is_heading or (block.lines_left and not form.has_count):
            return self._add_unquoted(form, line_reading, block)
        unquoted = self.quotations.add(form, line_reading)
        return [
            each
            for pending in unquoted
            for each in self._add_unquoted(pending.form, pending.line_reading, block)
        ]

    def _add_unquoted(self, form: Form, line_reading: LineReading, block: ReplicaBlock) -> list[LineReading]:
        total = line_reading.reading.total_steps
        if form.is_lone_bar and self._loss_total not in (None, total):
            return []
        if form.is_lone_bar and _duration_s(line_reading.reading) < MIN_LONE_BAR_S:
            if line_reading.reading.step == total and total not in self._short_bar_totals:
                return []
            self._short_bar_totals[total] = True
            if not self._has_training:
                _append_bounded(self._pending_plain[form.key], line_reading)
                return []
        if form.is_heading:
            return self._add_heading(form, line_reading, block)
        if form.is_clear:
            return self._accept(line_reading, block)
        if not form.has_count:
            return self._add_values(form, line_reading, block)
        key = form.key
        step = line_reading.reading.step
        is_reached = form.has_results and step is not None and step == block.newest_step
        if (
            key in self._rising_kinds
            or ((self._has_training or self._pending_saves) and not form.is_bare)
            or is_reached
        ):
            return self._accept(line_reading, block)
        waiting = (self._pending_bare if form.is_bare else self._pending_plain)[key]
        if form.has_values and has_rising_count((*waiting, line_reading), form):
            self._rising_kinds[key] = True
            return [*self._pending_bare.pop(key, ()), *self._accept(line_reading, block)]
        _append_bounded(waiting, line_reading)
        return []

    def add_save(self, line_reading: LineReading) -> list[LineReading]:
        """Add a save; accept it with other evidence of a training, since databases write checkpoints, too."""
        if self._has_training:
            return [line_reading]
        is_repeated = any(
            each.reading.checkpoint != line_reading.reading.checkpoint for each in self._pending_saves
        )
        is_own = is_repeated and not self.quotations.conversational_lines[line_reading.replica]
        if self._pending_plain or (line_reading.reading.checkpoint and is_own):
            return self._accept(line_reading, self._replicas[line_reading.replica])
        if line_reading.reading.checkpoint:
            _append_bounded(self._pending_saves, line_reading)
        return []

    def is_in_block(self, replica: str) -> bool:
        """Return True below a heading, where any name with a number may be a value."""
        return self._replicas[replica].lines_left > 0

    def _accept(self, line_reading: LineReading, block: ReplicaBlock) -> list[LineReading]:
        """Record evidence of a training. Return its reading and all that were pending for such evidence."""
        self._has_training = True
        block.lines_left = 0
        block.newest_step = line_reading.reading.step
        if line_reading.reading.loss is not None:
            self._loss_total = line_reading.reading.total_steps or self._loss_total
        if not (self._pending_saves or self._pending_plain or block.pending):
            return [line_reading]  # of all lines of a training but the first: saves a tenth of the time
        plain = (before for kind in self._pending_plain.values() for before in kind)
        accepted = [*self._pending_saves, *plain, *block.pending, line_reading]
        for pending in (self._pending_saves, self._pending_plain, block.pending):
            pending.clear()
        return accepted

    def _add_heading(self, form: Form, line_reading: LineReading, block: ReplicaBlock) -> list[LineReading]:
        reading = line_reading.reading
        earlier = self._headings[form.key]
        has_total = reading.total_steps is not None or reading.total_epochs is not None
        block.is_confirmed |= has_total or has_rising_count((*earlier, line_reading), form)
        _append_bounded(earlier, line_reading)
        if reading.total_epochs is not None and reading.epoch is not None and reading.step is None:
            whole = max(0, int(reading.epoch) - 1)
            is_first = int(reading.epoch) == 0
            begun = reading._replace(epoch=float(whole), whole_epochs=whole, is_epoch_0=is_first)
            line_reading = line_reading._replace(reading=begun)
        values = [pending.reading for pending in block.pending]
        has_values = any(map(measures_of, values)) or sum(len(each.metrics) for each in values) > 2
        accepted: list[LineReading] = []
        if block.is_confirmed and (self._has_training or self._pending_saves or has_values):
            accepted = self._accept(line_reading, block)
        else:
            _append_bounded(block.pending, line_reading)
        block.lines_left = BLOCK_LINES
        return accepted

    def _add_values(self, form: Form, line_reading: LineReading, block: ReplicaBlock) -> list[LineReading]:
        reading = line_reading.reading
        measures = measures_of(reading)
        is_total = not measures and not reading.metrics  # printed before the training starts
        if block.lines_left:
            block.lines_left -= 1
            if is_total:
                return []
            if not block.is_confirmed or not (measures or self._has_training):
                _append_bounded(block.pending, line_reading)
                return []
            accepted = self._accept(line_reading, block)
            block.lines_left = BLOCK_LINES
            return accepted
        is_rate = not form.is_bare and (reading.tokens_per_s is not None or reading.samples_per_s is not None)
        has_more = self._has_training and reading.loss is not None and len(reading.metrics) > 1
        is_scoped = bool(reading.loss_name) and not TRAINING.isdisjoint(words_of(reading.loss_name))
        is_single = measures == 1 and reading.eval_loss is None and not (is_rate or has_more or is_scoped)
        if is_single or not (measures or is_total):
            return []
        if measures and self._has_training:
            return [line_reading]
        _append_bounded(self._pending_plain[form.key], line_reading)
        return []


def _readings_by_kind() -> Bounded[tuple[str, ...], list[LineReading]]:
    return Bounded(MAX_TRACKED, list)


def _append_bounded(pending: list[LineReading], line_reading: LineReading) -> None:
    if len(pending) < 64:
        pending.append(line_reading)
