"""Extract the numbers of lines that differ from an earlier one only in digits, without splitting them again.

Deleting all digits takes a fraction of a microsecond, so what is known of a line is stored by its text
without them. Digits that could change how a line splits, or what its numbers are called, must be the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tui.analysis.progress.lines.line import numbers
from tui.analysis.progress.lines.saves import mentions_save
from tui.analysis.progress.lines.tables import cells, table_below
from tui.analysis.progress.lines.template import Template

MAX_LAYOUTS = 16
"""Layouts of a shape: lines with digits in a name (``layer3``) have one for each name."""

_RUN = re.compile("[0-9]+")
_DECIMAL = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?(?: ?[kKMGB])?"
_ANY_LENGTH = re.compile(rf"[-+]?{_DECIMAL}|{_DECIMAL} ?(?:/|of) *{_DECIMAL}")
"""Numbers that are split from their texts alike, however many digits they have; dates and times are not."""

_JOINED = re.compile(r"\d[-/.,_:]|[-/.,_:]\d")
"""Before or after a number: it may be a part of a date or of a number with other digits."""
_TIME = re.compile(r"[T ]\d\d:")
"""After a number: with other digits, it may be a date."""


class Layout:
    """The positions of a line's numbers, which other lines with the same text share."""

    __slots__ = ("_pattern", "can_save", "head", "rank", "table", "template", "width")

    def __init__(
        self, template: Template, line: str, rank: re.Match[str] | None, text: str, values: Sequence[str]
    ) -> None:
        self.template = template
        self.head = 0 if rank is None else rank.end()
        """Where the text begins, after a rank."""
        self.rank = None if rank is None else rank.span(rank.lastindex or 1)
        self.width = len(cells(text))
        self.table = None if values else table_below(text)
        self.can_save = mentions_save(line)
        self._pattern: re.Pattern[str] | None = None

    def values_of(self, line: str) -> Sequence[str] | None:
        """Return the numbers of a line that differs only in them; None for another line."""
        match = None if self._pattern is None else self._pattern.fullmatch(line)
        return None if match is None else match.groups()

    def learn(self, line: str, text: str) -> None:
        """Prepare to match lines with the same text between their numbers."""
        pattern = [_RUN.sub(_same_length, re.escape(line[: self.head]))]
        end = 0
        for match in numbers(text):
            first, last = match.span()
            is_joined = _JOINED.fullmatch(text[first - 2 : first]) or _JOINED.fullmatch(text[last : last + 2])
            is_free = _ANY_LENGTH.fullmatch(match[0]) and not is_joined and not _TIME.match(text, last)
            number = _RUN.sub("[0-9]+" if is_free else _same_length, re.escape(match[0]))
            pattern += (re.escape(line[self.head + end : self.head + first]), f"({number})")
            end = last
        self._pattern = re.compile("".join((*pattern, re.escape(line[self.head + end :]))))


def _same_length(run: re.Match[str]) -> str:
    return f"[0-9]{{{len(run[0])}}}"


@dataclass(slots=True)
class Shape:
    """All lines with the same text apart from their digits."""

    separators: int
    can_report: bool
    can_announce: bool
    can_fail: bool
    has_moving_target: bool
    may_be_pair: bool
    """It ends with a name and a number, which counts in a block of values."""
    is_said: bool
    """It is said in a conversation: no program says "I", or asks."""
    layouts: list[Layout] = field(default_factory=list)
    is_known: bool = False
    """True from the second line on: an expression for a text that appears once would be wasted."""
    reports: bool = False
    """True once a line of it has reported progress."""
    aside_since: float = math.inf
    """Time (epoch s) of its first line that reported neither progress nor an error."""
