"""A text found by its rarest byte: the machine runs over what does not hold it at the speed of memory."""

from __future__ import annotations

from typing import Any

from tui.widgets.log_view.spill import Texts

_SAMPLE_BYTES = 1 << 16
_DEAR = 40
"""What asking here costs, against a step of RE2 from one occurrence of a byte to the next."""
_MOST_ASKED = 64
"""As many places that were not it in one text: it is found another way."""


class Rarest:
    """Finds one text, byte for byte.

    RE2 looks for an expression's first byte with the processor's widest instructions. So it is given
    the end of the text from its rarest byte on, as seen in the first log it meets, and what comes
    before that byte is compared where it stops.
    """

    def __init__(self, needle: bytes) -> None:
        self._needle = needle
        self._skipped = 0
        self._search: Any = None

    def _learn(self, data: Texts, begin: int, stop: int) -> None:
        import re2  # type: ignore[import-untyped]  # only when something is looked for

        needle, sample = self._needle, data[begin : min(stop, begin + _SAMPLE_BYTES)]
        costs = []
        for skipped in range(min(len(needle), 64)):
            stops = sample.count(needle[skipped : skipped + 1])
            asks = sample.count(needle[skipped:]) if skipped and stops else 0
            costs.append((stops + _DEAR * asks, skipped))
        self._skipped = min(costs)[1]
        options = re2.Options()
        options.log_errors = False
        options.encoding = re2.Options.Encoding.LATIN1  # bytes, whatever they mean
        self._search = re2.compile(re2.escape(needle[self._skipped :]), options).search

    def find(self, data: Texts, begin: int, stop: int) -> int:
        """Where the text begins first, in ``data[begin:stop]``; -1 where it does not."""
        if self._search is None:
            self._learn(data, begin, stop)
        skipped, needle, at = self._skipped, self._needle, begin + self._skipped
        search = self._search
        for _ in range(_MOST_ASKED):
            match = search(data, at, stop)
            if match is None:
                return -1
            at = int(match.start())
            if not skipped or data[at - skipped : at] == needle[:skipped]:
                return at - skipped
            at += 1
        return data.find(needle, at - skipped, stop)
