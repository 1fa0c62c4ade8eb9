"""Extract the numbers of lines that differ from an earlier one only in digits, without splitting them again.

Deleting all digits takes a fraction of a microsecond, so what is known of a line is stored by its text
without them. Digits that could change how a line splits, or what its numbers are called, are compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from operator import itemgetter

from tui.analysis.progress.lines.saves import mentions_save
from tui.analysis.progress.lines.tables import cells, table_below
from tui.analysis.progress.lines.template import Template

MAX_LAYOUTS = 16
"""Layouts of a shape: lines with digits in a name (``layer3``) have one for each name."""

_DIGITS = b"0123456789"
_BLANKS = bytes(byte if byte in _DIGITS else 32 for byte in range(256))
_RUNS = re.compile("([0-9]+)")
_DECIMAL = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?[kKMGB]?"
_ANY_LENGTH = re.compile(rf"[-+]?{_DECIMAL}|{_DECIMAL} ?(?:/|of) *{_DECIMAL}")
"""Numbers that are split from their texts alike, however many digits they have; dates and times are not."""

_JOINTS = frozenset("-/.,_:")


def runs_of_digits(line: str) -> list[str]:
    return line.encode("utf-8", "surrogatepass").translate(_BLANKS).decode().split()


def without_digits(line: str) -> bytes:
    return line.encode("utf-8", "surrogatepass").translate(None, _DIGITS)


class Layout:
    """The positions of a line's numbers, which other lines with the same text share."""

    __slots__ = (
        "_lengths",
        "_numbers",
        "_parts",
        "_sized_of",
        "_texts",
        "_texts_of",
        "_values",
        "can_save",
        "head",
        "is_complete",
        "rank",
        "table",
        "template",
        "width",
    )

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
        self.rank = None if rank is None else 2 * _count_runs(line[: rank.start(rank.lastindex or 1)]) + 1
        self.width = len(cells(text))
        self.table = None if values else table_below(text)
        self.can_save = mentions_save(line)
        self._parts = _RUNS.split(line)
        self._values = ["" if _RUNS.search(value) else value for value in values]
        self._locate(texts, values, _count_runs(line[: self.head]))

    def _locate(self, texts: Sequence[str], values: Sequence[str], index: int) -> None:
        """Find the runs of digits of each number, from the run at ``index`` on."""
        used = self.template.used()
        lengths = set(range(index))
        digits: list[int] = []
        numbers: list[tuple[int, str, int, int, str]] = []
        gap = ""
        self.is_complete = True
        """False if digits of the line are not part of its text, so that it is split each time."""
        for position, piece in enumerate(chain(*zip_longest(texts, values, fillvalue=""))):
            before, *runs = _RUNS.split(piece)
            gap += before
            if not runs:
                continue
            after = runs.pop()
            end = index + len(runs) // 2 + 1
            self.is_complete &= self._parts[2 * index + 1 : 2 * end : 2] == runs[::2]
            if gap in _JOINTS:
                lengths |= {index - 1, index}
            if position % 2 == 0:
                digits += range(index, end)
            elif _ANY_LENGTH.fullmatch(piece) is None:
                lengths.update(range(index, end))
            if position % 2 and position // 2 in used:
                numbers.append((position // 2, before, 2 * index + 1, 2 * end, after))
            index, gap = end, after
        self.is_complete &= len(self._parts) == 2 * index + 1
        if self.is_complete:
            self._numbers = numbers
            self._texts_of = _picker(digits)
            self._sized_of = _picker(lengths.difference(digits))
            self._texts = self._texts_of(self._parts)
            self._lengths = [*map(len, self._sized_of(self._parts))]

    def match(self, line: str, runs: Sequence[str]) -> list[str] | None:
        """Return the parts of a line that differs only in its numbers; None for another line."""
        if 2 * len(runs) + 1 != len(self._parts):
            return None
        parts = self._parts.copy()
        parts[1::2] = runs
        if "".join(parts) != line:
            return None
        is_alike = (
            self._texts_of(parts) == self._texts and [*map(len, self._sized_of(parts))] == self._lengths
        )
        return parts if is_alike else None

    def values_of(self, parts: Sequence[str]) -> list[str]:
        """Return the numbers of a line that matched, as printed; empty for those that mean nothing."""
        values = self._values.copy()
        for index, before, first, end, after in self._numbers:
            values[index] = f"{before}{''.join(parts[first:end])}{after}"
        return values


def _picker(runs: Iterable[int]) -> Callable[[Sequence[str]], tuple[str, ...]]:
    """Return a function that picks runs of digits from the parts of a line."""
    return itemgetter(0, 0, *(2 * run + 1 for run in runs))  # a tuple, also of no run


def _count_runs(text: str) -> int:
    return len(_RUNS.split(text)) // 2


@dataclass(slots=True)
class Shape:
    """All lines with the same text apart from their digits."""

    separators: int
    can_report: bool
    can_announce: bool
    can_fail: bool
    has_moving_target: bool
    layouts: list[Layout] = field(default_factory=list)
