"""Extract the numbers of lines that differ from an earlier one only in digits, without splitting them again.

Deleting all digits takes a fraction of a microsecond, so shapes are cached by the text of a line
without its digits. Digits that could change the split or the names of a line must be the same.
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
"""Maximum layouts per shape: lines with digits in a name (``layer3``) need one layout for each name."""

_DIGIT_RUN = re.compile("[0-9]+")
_DECIMAL = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?(?: ?[kKMGB])?"
_ANY_LENGTH = re.compile(rf"[-+]?{_DECIMAL}|{_DECIMAL} ?(?:/|of) *{_DECIMAL}")
"""Numbers that may have any number of digits in a layout's pattern; dates and times may not."""

_JOINED = re.compile(r"\d[-/.,_:]|[-/.,_:]\d")
"""Characters next to a number that may make it part of a date, or of another number."""
_TIME = re.compile(r"[T ]\d\d:")
"""A time after a number, which may then be the end of a date."""


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
        pattern = [_DIGIT_RUN.sub(_same_length, re.escape(line[: self.head]))]
        end = 0
        for match in numbers(text):
            first, last = match.span()
            is_joined = _JOINED.fullmatch(text[first - 2 : first]) or _JOINED.fullmatch(text[last : last + 2])
            is_free = _ANY_LENGTH.fullmatch(match[0]) and not is_joined and not _TIME.match(text, last)
            number = _DIGIT_RUN.sub("[0-9]+" if is_free else _same_length, re.escape(match[0]))
            pattern += (re.escape(line[self.head + end : self.head + first]), f"({number})")
            end = last
        self._pattern = re.compile("".join((*pattern, re.escape(line[self.head + end :]))))


def _same_length(digits: re.Match[str]) -> str:
    return f"[0-9]{{{len(digits[0])}}}"


@dataclass(slots=True)
class Shape:
    """All lines with the same text apart from their digits."""

    separators: int
    can_report: bool
    can_announce: bool
    can_fail: bool
    has_moving_target: bool
    may_be_pair: bool
    """True if the line ends with a name and a number, which is a metric within a block of values."""
    is_conversational: bool
    """True if a person or a model wrote it: programs do not write "I" or ask questions."""
    layouts: list[Layout] = field(default_factory=list)
    was_seen: bool = False
    """True after the first line. Layouts are learned from the second: most shapes occur only once."""
    has_reported: bool = False
    """True once a line of this shape has reported progress."""
    first_other_at: float = math.inf
    """Time (epoch s) of its first line without progress or an error; -inf if that was a warning."""
