"""Which lines of a block match a pattern: over the whole block at once where that can be done."""

from __future__ import annotations

from tui.insight.log_pattern import LogPattern
from tui.widgets.log_view.block import SEPARATOR, Block

_FOLD_TO_ASCII = ("\u212a".encode(), "\u0130".encode())
"""The letters beyond ASCII whose lower case has ASCII letters: the Kelvin sign and the dotted capital I."""


class Scanner:
    """Finds the lines that match one pattern."""

    def __init__(self, pattern: LogPattern) -> None:
        self._matches = pattern.matcher()
        self._minds_case = pattern.minds_case
        self._needle = b""
        can_fold = self._minds_case or pattern.text.isascii()
        if not pattern.regex and SEPARATOR not in pattern.text and can_fold:
            text = pattern.text if self._minds_case else pattern.text.lower()
            self._needle = text.encode("utf-8", "surrogatepass")

    def hits(self, block: Block, low: int, high: int) -> list[int]:
        """The indices, ascending, of the lines ``low <= index < high`` that match."""
        if self._needle and not block.has_escapes:
            data = block.data
            if self._minds_case:
                return self._find(block, data, low, high)
            if data.isascii() or not any(letter in data for letter in _FOLD_TO_ASCII):
                return self._find(block, data.lower(), low, high)
        matches = self._matches
        texts = block.texts()
        if low or high < len(texts):
            texts = texts[low:high]
        return [index for index, text in enumerate(texts, low) if matches(text)]

    def _find(self, block: Block, data: bytes, low: int, high: int) -> list[int]:
        needle, found = self._needle, []
        stop = block.begin_of(high)
        position = data.find(needle, block.begin_of(low), stop)
        while position >= 0:
            index = block.index_at(position)
            found.append(index)
            position = data.find(needle, block.begin_of(index + 1), stop)
        return found

    def matches(self, message: str) -> bool:
        """Whether one message matches."""
        return self._matches(message)
