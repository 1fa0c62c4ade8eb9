"""Extract the numbers of lines that differ from an earlier one only in digits, without splitting them again.

Deleting all digits takes a fraction of a microsecond, so what is known of a line is stored by its text
without them. Digits that could change how a line splits, or what its numbers are called, must be the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise, zip_longest

from tui.analysis.progress.lines.saves import mentions_save
from tui.analysis.progress.lines.tables import cells, table_below
from tui.analysis.progress.lines.template import Template

MAX_LAYOUTS = 16
"""Layouts of a shape: lines with digits in a name (``layer3``) have one for each name."""

_RUN = re.compile("[0-9]+")
_DECIMAL = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?[kKMGB]?"
_ANY_LENGTH = re.compile(rf"[-+]?{_DECIMAL}|{_DECIMAL} ?(?:/|of) *{_DECIMAL}")
"""Numbers that are split from their texts alike, however many digits they have; dates and times are not."""

_JOINTS = frozenset("-/.,_:")


def without_digits(line: str) -> bytes:
    return line.encode("utf-8", "surrogatepass").translate(None, b"0123456789")


class Layout:
    """The positions of a line's numbers, which other lines with the same text share."""

    __slots__ = ("_indexes", "_pattern", "_values", "can_save", "head", "rank", "table", "template", "width")

    def __init__(
        self,
        template: Template,
        line: str,
        rank: re.Match[str] | None,
        text: str,
        texts: Sequence[str],
        values: Sequence[str],
    ) -> None:
        self.template = template
        self.head = 0 if rank is None else rank.end()
        """Where the text begins, after a rank."""
        self.rank = None if rank is None else rank.span(rank.lastindex or 1)
        self.width = len(cells(text))
        self.table = None if values else table_below(text)
        self.can_save = mentions_save(line)
        self._values = ["" if _RUN.search(value) else value for value in values]
        self._indexes: list[int] = []
        self._pattern: re.Pattern[str] | None = None

    def values_of(self, line: str) -> list[str] | None:
        """Return the numbers of a line that differs only in them; None for another line."""
        match = None if self._pattern is None else self._pattern.fullmatch(line)
        if match is None:
            return None
        values = self._values.copy()
        for index, value in zip(self._indexes, match.groups(), strict=True):
            values[index] = value
        return values

    def learn(self, line: str, texts: Sequence[str], values: Sequence[str]) -> None:
        """Prepare to match lines with the same texts, with a group for each number that is read."""
        pieces = list(chain(*zip_longest(texts, values, fillvalue="")))
        if [run for piece in pieces for run in _RUN.findall(piece)] != _RUN.findall(line[self.head :]):
            return  # some digits are in what is not read
        used = self.template.used()
        parts = [_RUN.sub(_same_length, re.escape(line[: self.head]))]
        end = self.head
        for index, (first, last, is_joined) in enumerate(_spans(line, self.head, pieces)):
            if first == last:
                continue
            if line[first:last] != values[index]:
                return
            is_free = _ANY_LENGTH.fullmatch(values[index]) is not None and not is_joined
            number = _RUN.sub("[0-9]+" if is_free else _same_length, re.escape(values[index]))
            parts += (re.escape(line[end:first]), f"({number})" if index in used else number)
            end = last
            if index in used:
                self._indexes.append(index)
        self._pattern = re.compile("".join((*parts, re.escape(line[end:]))))


def _same_length(run: re.Match[str]) -> str:
    return f"[0-9]{{{len(run[0])}}}"


def _spans(line: str, head: int, pieces: Sequence[str]) -> Iterator[tuple[int, int, bool]]:
    """Yield where each number begins and ends, and True if only a sign is between it and other digits."""
    runs = list(_RUN.finditer(line))
    joined = [line[before.end() : after.start()] in _JOINTS for before, after in pairwise(runs)]
    joined = [False, *joined, False]
    index = len(_RUN.findall(line[:head]))
    for position, piece in enumerate(pieces):
        inside = list(_RUN.finditer(piece))
        following = index + len(inside)
        if position % 2 and inside:
            first = runs[index].start() - inside[0].start()
            last = runs[following - 1].end() + len(piece) - inside[-1].end()
            yield first, last, joined[index] or joined[following]
        elif position % 2:
            yield 0, 0, False
        index = following


@dataclass(slots=True)
class Shape:
    """All lines with the same text apart from their digits."""

    separators: int
    can_report: bool
    can_announce: bool
    can_fail: bool
    has_moving_target: bool
    is_speech: bool
    layouts: list[Layout] = field(default_factory=list)
    is_known: bool = False
    """True from the second line on: an expression for a text that appears once would be wasted."""
