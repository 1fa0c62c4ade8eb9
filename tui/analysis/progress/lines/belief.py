"""Decide whether a training printed what a template reads.

A line whose form says so begins a training, and so does a count that rises in two lines. From then on, every
line with a measure counts, also those before: they were held. Nothing depends on the order in which lines
arrive, except which lines are below a heading, below something that is said, or before a total.
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
from tui.analysis.progress.lines.reading import ParsedMetrics, Told
from tui.analysis.progress.lines.template import MEASURES, Form
from tui.analysis.progress.lines.vocabulary import ENVIRONMENT_STEPS, meaning


class _Held(NamedTuple):
    said: int
    """How often something was said before the line."""
    form: Form
    told: Told


class Quotations:
    """Tells a training from a log of one that somebody quotes, by what is printed around it.

    A training prints one kind of line again and again, for as long as it runs. Who quotes it says something
    first, shows a few lines at one moment, and says something else. So a kind of line that first appears
    after something was said waits until it takes its time, is long, or counts on across what is said, in
    parts of the same length, as a training that prints samples every so many steps.
    """

    def __init__(self) -> None:
        self.said: Bounded[str, int] = Bounded(1024, int)
        """How often something was said, by replica."""
        self._own: Bounded[tuple[str, ...], bool] = Bounded(256)
        """Kinds of lines that are no quotations."""
        self._held: Bounded[tuple[str, ...], list[_Held]] = Bounded(64, list)
        self._newest: deque[ParsedMetrics] = deque(maxlen=8)
        """Readings of the training."""

    def take(self, form: Form, told: Told) -> list[_Held]:
        """Return what is not quoted: this line, with those of its kind that were held before; or none."""
        line = _Held(self.said[told.replica], form, told)
        if not line.said or form.key in self._own:
            self._own[form.key] = True
            self._newest.append(told.reading)
            return [line]
        beside = [each for each in self._newest if (each.step is None) == (told.reading.step is None)]
        if beside and _follows(beside, told.reading):
            return [line]  # as an evaluation at the step that the training has reached
        held = self._held[told.replica, *form.key]
        if not _follows([each.told.reading for each in held], told.reading) or _is_again(held, line):
            held.clear()
        held.append(line)
        if not _goes_on(held):
            return []
        self._own[form.key] = True
        self._newest.append(told.reading)
        return self._held.pop((told.replica, *form.key))


def _follows(readings: Iterable[ParsedMetrics], reading: ParsedMetrics) -> bool:
    """Return True if a count is where others have come to, or as far from there as they have moved."""
    counts = [each.counted or 0.0 for each in (*readings, reading)]
    *moves, move = (0.0, *(after - before for before, after in pairwise(counts)))
    return 0 <= move <= 2 * (max(moves, default=0.0) or math.inf)


def _is_again(held: list[_Held], line: _Held) -> bool:
    """Return True if a count is quoted again below something else that is said."""
    before = next(reversed(held), line)
    return before.said < line.said and before.told.reading.counted == line.told.reading.counted


def _goes_on(held: list[_Held]) -> bool:
    """Return True if lines are too many or too slow for a quotation, or go on in parts of the same length."""
    begun_ns = next(each.told.at_ns for each in held if each.said == held[-1].said)
    is_slow = held[-1].told.at_ns - begun_ns > 10 * NS_PER_S
    *complete, _ = Counter(each.said for each in held).values()
    return len(held) > 16 or is_slow or (len(complete) > 1 and len({*complete}) == 1)


MAX_KINDS = 1024
"""Kinds of readings that are held or believed, and replicas that are told apart."""

BLOCK_LINES = 40
"""Lines below a heading, or the newest value of its block, in which another value belongs to it."""


MIN_LONE_BAR_S = 60.0
"""Bars without a title or a loss that take less time load or sample something."""


def measures_of(reading: ParsedMetrics) -> int:
    return sum(getattr(reading, name) is not None for name in MEASURES)


def _duration_s(bar: ParsedMetrics) -> float:
    return (bar.total_steps or math.inf) * (bar.step_time_s or math.inf)


def has_risen(readings: Iterable[Told], form: Form) -> bool:
    """Return True if a count rises as a trainer's does: seldom back, and evenly, or often and never back.

    Numbers in a conversation rise by chance, but hardly from 500 to 1000, or by 10 and by 20, or six times
    in a row, as the steps of a trainer that prints by the clock.
    """
    counts: dict[tuple[str, int | None, int | None], list[float]] = {}
    for told in sorted(readings, key=attrgetter("at_ns")):
        count = told.reading.counted
        if count is not None:
            counts.setdefault((told.replica, told.reading.rank, told.reading.total_steps), []).append(count)
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
class Replica:
    """What a replica has printed: a block of values below a line that counts them."""

    lines_left: int = 0
    """Lines below the heading in which values without a count of their own belong to it."""
    is_confirmed: bool = False
    """A heading has had a total, or has risen."""
    held: list[Told] = field(default_factory=list)
    newest_step: int | None = None
    """The step of the newest line that was believed."""
    counts_steps: bool = False
    """A heading has counted what the trainer does, rather than the steps of environments."""

    def counts_otherwise(self, step_name: str) -> bool:
        """Return True for a count of the environments' steps where blocks count the trainer's, too."""
        is_of_environments = meaning(step_name) == ENVIRONMENT_STEPS
        self.counts_steps |= not is_of_environments
        return is_of_environments and self.counts_steps


class Belief:
    """The evidence for a training that a log has shown so far."""

    def __init__(self) -> None:
        self.quotations = Quotations()
        self._trains = False
        self._repeated: Bounded[tuple[str, ...], bool] = Bounded(MAX_KINDS)
        self._headings = _by_kind()
        self._plain = _by_kind()
        """Readings of plain lines, by kind, until there is a training that they belong to."""
        self._bare = _by_kind()
        """Readings of other lines, which count only if they rise themselves."""
        self._saves: list[Told] = []
        self._bars: Bounded[int | None, bool] = Bounded(64)
        """Totals of short bars that were seen on their way."""
        self._total: int | None = None
        """The newest total beside a loss: bars of other totals count something else."""
        self._replicas: Bounded[str, Replica] = Bounded(MAX_KINDS, Replica)

    def take(self, form: Form, told: Told) -> list[Told]:
        """Return the readings that are believed now: this one, others that were held before, or none."""
        block = self._replicas[told.replica]
        reading = told.reading
        if form.is_heading and reading.step is not None and block.counts_otherwise(reading.step_name):
            metrics = (*reading.metrics, (reading.step_name, float(reading.step)))
            value = told._replace(reading=reading._replace(step=None, metrics=metrics))
            return self._take_values(form, value, block)
        if form.is_heading or (block.lines_left and not form.has_count):
            return self._take(form, told, block)
        own = self.quotations.take(form, told)
        return [each for held in own for each in self._take(held.form, held.told, block)]

    def _take(self, form: Form, told: Told, block: Replica) -> list[Told]:
        total = told.reading.total_steps
        if form.is_lone_bar and self._total not in (None, total):
            return []
        if form.is_lone_bar and _duration_s(told.reading) < MIN_LONE_BAR_S:
            if told.reading.step == total and total not in self._bars:
                return []
            self._bars[total] = True
            if not self._trains:
                _hold(self._plain[form.key], told)
                return []
        if form.is_heading:
            return self._take_heading(form, told, block)
        if form.is_clear:
            return self._believe(told, block)
        if not form.has_count:
            return self._take_values(form, told, block)
        key = form.key
        step = told.reading.step
        is_reached = form.has_results and step is not None and step == block.newest_step
        if key in self._repeated or ((self._trains or self._saves) and not form.is_bare) or is_reached:
            return self._believe(told, block)
        waiting = (self._bare if form.is_bare else self._plain)[key]
        if form.has_values and has_risen((*waiting, told), form):
            self._repeated[key] = True
            return [*self._bare.pop(key, ()), *self._believe(told, block)]
        _hold(waiting, told)
        return []

    def take_save(self, told: Told) -> list[Told]:
        """Return a save beside a training's lines, or beside another: databases write checkpoints, too."""
        if self._trains:
            return [told]
        is_repeated = any(each.reading.checkpoint != told.reading.checkpoint for each in self._saves)
        is_own = is_repeated and not self.quotations.said[told.replica]
        if self._plain or (told.reading.checkpoint and is_own):
            return self._believe(told, self._replicas[told.replica])
        if told.reading.checkpoint:
            _hold(self._saves, told)
        return []

    def is_in_block(self, replica: str) -> bool:
        """Return True below a heading, where anything with a name and a number may be a value."""
        return self._replicas[replica].lines_left > 0

    def _believe(self, told: Told, block: Replica) -> list[Told]:
        """Return a reading, and those that were held until a training shows itself."""
        self._trains = True
        block.lines_left = 0
        block.newest_step = told.reading.step
        if told.reading.loss is not None:
            self._total = told.reading.total_steps or self._total
        if not (self._saves or self._plain or block.held):
            return [told]
        plain = (before for kind in self._plain.values() for before in kind)
        believed = [*self._saves, *plain, *block.held, told]
        for held in (self._saves, self._plain, block.held):
            held.clear()
        return believed

    def _take_heading(self, form: Form, told: Told, block: Replica) -> list[Told]:
        reading = told.reading
        earlier = self._headings[form.key]
        has_total = reading.total_steps is not None or reading.total_epochs is not None
        block.is_confirmed |= has_total or has_risen((*earlier, told), form)
        _hold(earlier, told)
        if reading.total_epochs is not None and reading.epoch is not None and reading.step is None:
            whole = max(0, int(reading.epoch) - 1)
            is_first = int(reading.epoch) == 0
            begun = reading._replace(epoch=float(whole), whole_epochs=whole, is_epoch_0=is_first)
            told = told._replace(reading=begun)
        values = [held.reading for held in block.held]
        has_values = any(map(measures_of, values)) or sum(len(each.metrics) for each in values) > 2
        believed: list[Told] = []
        if block.is_confirmed and (self._trains or self._saves or has_values):
            believed = self._believe(told, block)
        else:
            _hold(block.held, told)
        block.lines_left = BLOCK_LINES
        return believed

    def _take_values(self, form: Form, told: Told, block: Replica) -> list[Told]:
        reading = told.reading
        measures = measures_of(reading)
        is_total = not measures and not reading.metrics  # announced before the training
        if block.lines_left:
            block.lines_left -= 1
            if is_total:
                return []
            if not block.is_confirmed or not (measures or self._trains):
                _hold(block.held, told)
                return []
            believed = self._believe(told, block)
            block.lines_left = BLOCK_LINES
            return believed
        is_rate = not form.is_bare and (reading.tokens_per_s is not None or reading.samples_per_s is not None)
        has_more = self._trains and reading.loss is not None and len(reading.metrics) > 1
        is_single = measures == 1 and reading.eval_loss is None and not (is_rate or has_more)
        if is_single or not (measures or is_total):
            return []
        if measures and self._trains:
            return [told]
        _hold(self._plain[form.key], told)
        return []


def _by_kind() -> Bounded[tuple[str, ...], list[Told]]:
    return Bounded(MAX_KINDS, list)


def _hold(held: list[Told], told: Told) -> None:
    if len(held) < 64:
        held.append(told)
