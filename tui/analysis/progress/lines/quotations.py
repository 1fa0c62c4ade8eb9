"""Tell a training from a log of one that somebody quotes.

A program prints the same lines again and again; a person or a model says something, shows a few lines, and
says something else. So a quotation is short, stands next to what is said, and ends, while a training goes on.
Until it has, lines that something is said around count for nothing: what was believed of them is withdrawn.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from api_client.models.logs import NS_PER_S
from tui.analysis.bounded import Bounded
from tui.analysis.progress.lines.reading import ParsedMetrics, Told

QUOTED_LINES = 16
"""Length of a quotation, and distance in lines from what is said around it."""

QUOTED_NS = 120 * NS_PER_S
"""The same in time: a training prints more lines in that time, or takes longer for a step."""


@dataclass(slots=True)
class Voice:
    """What a replica has said and reported."""

    lines: int = 0
    now_ns: int = 0
    said: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=2))
    """Line and time (epoch ns) of the newest two sentences: a single one may be a warning."""
    blocks: list[list[Told]] = field(default_factory=lambda: [[]])
    """Readings between what is said, those of the newest block at the end."""
    begun: int = 0
    ended: int = 0
    """The first and the last line of the newest block."""
    is_withheld: bool = False
    """Something is said before the newest block, or a block has been quoted."""
    is_talk: bool = False
    """A block has been quoted, or a line is surely said in a conversation."""
    counted: dict[bool, tuple[float, float]] = field(default_factory=dict)
    """The newest step of a training, and by how much it moved; True has that of lines without a step."""
    is_own: bool = True
    """The newest line with a count is the training's."""

    @property
    def is_beside(self) -> bool:
        """True if the newest line is next to two sentences."""
        return len(self.said) == 2 and self.is_near(*self.said[0])

    def count(self, reading: ParsedMetrics) -> None:
        """Note what a line of the training counts."""
        count = reading.counted
        if count is not None:
            unit = reading.step is None
            last, move = self.counted.get(unit, (0.0, count))
            self.counted[unit] = (count, count - last if count > last else move)

    def is_next(self, reading: ParsedMetrics) -> bool:
        """Return True if a line counts what the training has reached, or will next."""
        last, move = self.counted.get(reading.step is None, (math.inf, 0.0))
        return 0 <= (reading.counted or 0.0) - last <= 2 * move

    def is_near(self, line: int, at_ns: int) -> bool:
        """Return True if a line is within the length of a quotation before the newest one."""
        return self.lines - line <= QUOTED_LINES and abs(at_ns - self.now_ns) <= QUOTED_NS


class Quotations:
    """Withholds readings that may be quoted, until a training has gone on."""

    def __init__(self) -> None:
        self.is_training = False
        self._voices: Bounded[str, Voice] = Bounded(256, Voice)
        self._kinds: set[tuple[str, ...]] = set()
        """The kinds of lines that the training has printed without a word beside them."""

    def hear(self, replica: str, at_ns: int, speech: int) -> list[Told] | None:
        """Note a line before it is taken; if it shows that something believed is quoted, return the rest."""
        voice = self._voices[replica]
        voice.lines += 1
        voice.now_ns = at_ns
        if not speech:
            return None
        voice.said.extend([(voice.lines, at_ns)] * speech)
        voice.is_talk |= speech > 1
        if self.is_training:
            return None
        block = voice.blocks[-1]
        if not block or len(voice.said) < 2 or voice.said[0][0] < voice.begun - QUOTED_LINES:
            return None
        is_quoted = voice.is_near(voice.ended, block[-1].at_ns)
        voice.blocks = [*voice.blocks[-64:], []]
        if voice.is_withheld or not is_quoted:
            return None
        voice.is_withheld = voice.is_talk = True
        self._kinds.clear()
        voice.counted.clear()
        others = (voice for voice in self._voices.values() if not voice.is_withheld)
        return [told for voice in others for block in voice.blocks for told in block]

    def take(self, replica: str, kind: tuple[str, ...], readings: Sequence[Told]) -> list[Told]:
        """Return which of the readings, and of those before, are believed now."""
        if not readings:
            return []
        voice = self._voices[replica]
        if self.is_training:
            return [told for told in readings if self._is_own(voice, kind, told.reading)]
        block = voice.blocks[-1]
        if not block:
            voice.begun = voice.lines
            voice.is_withheld |= voice.is_beside
        voice.ended = voice.lines
        block += readings
        self.is_training = not voice.is_near(voice.begun, block[0].at_ns) or counts_evenly(voice.blocks)
        if not voice.is_withheld:
            believed = list(readings)
        elif self.is_training:
            believed = [told for each in voice.blocks for told in each]
        elif not voice.is_talk and counts_evenly([[told] for told in block]):
            # Nothing is said after it yet: a script has told what it does, then trains.
            voice.is_withheld = False
            believed = list(block)
        else:
            return []
        self._kinds.add(kind)
        for told in believed:
            voice.count(told.reading)
        return believed

    def _is_own(self, voice: Voice, kind: tuple[str, ...], reading: ParsedMetrics) -> bool:
        """Return True if a line is the training's own: a model that is trained may print the like."""
        is_beside = voice.is_beside
        if reading.counted is None:
            return voice.is_own or not is_beside
        voice.is_own = not is_beside or kind in self._kinds or voice.is_next(reading)
        if voice.is_own:
            voice.count(reading)
            if not is_beside and len(self._kinds) < 1024:
                self._kinds.add(kind)
        return voice.is_own


def counts_evenly(blocks: Sequence[Sequence[Told]]) -> bool:
    """Return True if lines of one kind count up evenly across blocks of text.

    A training does so that prints samples in between; the lines that a text quotes do not. Three lines that
    name a total suffice in two blocks; without a total there must be three blocks.
    """
    counts: dict[tuple[object, ...], list[tuple[int, float]]] = {}
    for number, block in enumerate(blocks):
        for told in block:
            reading = told.reading
            if reading.counted is not None:
                # Lines of one kind have the same total, and report the same values.
                kind = (reading.total_steps, reading.loss_name, *(value is None for value in reading[:10]))
                counts.setdefault(kind, []).append((number, reading.counted))
    for (total, *_), counted in counts.items():
        moves = [after - before for (_, before), (_, after) in pairwise(counted)]
        in_blocks = len({number for number, _ in counted})
        if in_blocks > (1 if total else 2) and len(moves) > 1 and 0 < max(moves) == min(moves):
            return True
    return False
