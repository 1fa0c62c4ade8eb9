"""Which lines of a block match a pattern: over the whole block at once, where that can be done."""

from __future__ import annotations

from typing import Any

from tui.insight.log_pattern import LogPattern
from tui.widgets.log_view.block import SEPARATOR, Block

_CHANGES_LENGTH = "\u0130".encode()
"""A capital whose lower case is two characters, one of them ASCII: RE2 does not know it for an i."""
_HALF_CHARACTER = b"\xed"
"""Begins a lone surrogate, which is no character for RE2, and some Korean ones, which are."""
_MANY = 32
"""As many matches close together: the rest of the block is asked line by line, which is quicker then."""
_WHOLE_TEXT = ("\\A", "\\z", "(?")
"""What may mean something else in a block than in one message."""


class Scanner:
    """Finds the lines that match one pattern.

    A block is first asked as a whole, by RE2, whether it holds a match at all; a block without one,
    which is the common case, costs a fraction of asking each of its lines.
    """

    def __init__(self, pattern: LogPattern) -> None:
        self._matches = pattern.matcher()
        self._minds_case = pattern.minds_case
        self._whole = _whole_block(pattern)
        self._needle = b""
        if not pattern.regex and (self._minds_case or pattern.text.isascii()):
            text = pattern.text if self._minds_case else pattern.text.lower()
            self._needle = text.encode("utf-8", "surrogatepass")

    def hits(self, block: Block, low: int, high: int) -> list[int]:
        """The indices, ascending, of the lines ``low <= index < high`` that match."""
        if low >= high:
            return []
        if self._whole is not None and not block.has_escapes:
            data = block.data
            if block.is_ascii or not (_HALF_CHARACTER in data or _CHANGES_LENGTH in data):
                begin, stop = block.begin_of(low), block.begin_of(high)
                first = self._whole.search(data, begin, stop)
                if first is None:
                    return []
                if self._needle and (self._minds_case or block.is_ascii):
                    return self._plain(block, data if self._minds_case else data.lower(), begin, stop)
                return self._verified(block, first, stop)
        matches = self._matches
        texts = block.texts()
        if low or high < len(texts):
            texts = texts[low:high]
        return [index for index, text in enumerate(texts, low) if matches(text)]

    def _plain(self, block: Block, data: bytes, begin: int, stop: int) -> list[int]:
        needle, found = self._needle, []
        position = data.find(needle, begin, stop)
        while position >= 0:
            index = block.index_at(position)
            found.append(index)
            if len(found) == _MANY and index - found[0] < 2 * _MANY:
                high = block.index_at(stop - 1) + 1
                texts, matches = block.texts(), self._matches
                return found + [at for at in range(index + 1, high) if matches(texts[at])]
            position = data.find(needle, block.begin_of(index + 1), stop)
        return found

    def _verified(self, block: Block, first: Any, stop: int) -> list[int]:
        """Each line that a match begins in is asked once more, by itself: a match may lie across lines."""
        whole, found, match = self._whole, [], first
        while match is not None and match.start() < stop:
            index = block.index_at(match.start())
            if self._matches(block.text(index)):
                found.append(index)
            match = whole.search(block.data, block.begin_of(index + 1), stop)
        return found


def _whole_block(pattern: LogPattern) -> Any:
    """The pattern for whole blocks, compiled by RE2; None when lines must be asked one by one."""
    if SEPARATOR in pattern.text or pattern.problem:
        return None
    if pattern.regex and any(part in pattern.text for part in _WHOLE_TEXT):
        return None
    import re2  # type: ignore[import-untyped]  # only when something is looked for

    options = re2.Options()
    options.case_sensitive = pattern.minds_case
    options.log_errors = False
    text = pattern.text if pattern.regex else re2.escape(pattern.text)
    try:
        return re2.compile(f"(?m:{text})".encode(), options)
    except (re2.error, UnicodeError):
        return None
