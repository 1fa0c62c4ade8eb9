"""Find the lines of a block that a log view shows: by node, level, time and pattern."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial

import re2

from api_client.models.logs import LogGap
from tui.analysis.logs.levels import RANKS
from tui.analysis.logs.pattern import LogPattern
from tui.widgets.log_view.line import SEPARATOR, AttributeTable, Block
from tui.widgets.log_view.options import LogOptions

_BLOCK_SENSITIVE = ("\\A", "\\z", "(?")
"""Constructs that may match something else in the text of a block than in a single message."""
_DENSE_MATCHES = 32
"""After this many matches in close lines, it is faster to check the other lines one by one."""


class PatternScanner:
    """Finds the lines of a block that match a pattern.

    A block is searched as one text by RE2, at a fraction of the cost of checking each line; lines
    with a match are then checked on their own, because a match in the block may span lines.
    """

    def __init__(self, pattern: LogPattern) -> None:
        self._matches = pattern.matcher()
        self._find_in_block = _block_finder(pattern)
        self._is_literal = not pattern.regex and pattern.matches_case

    def hits(self, block: Block) -> list[int]:
        """Return the indices, ascending, of the lines that match."""
        # Escape sequences may split a match; RE2 and Python may interpret non-ASCII text differently.
        if self._find_in_block is None or block.has_escapes or not (block.is_ascii or self._is_literal):
            return self._line_by_line(block, 0)
        data, indexes, find = block.data, [], self._find_in_block
        position = find(data, 0)
        while 0 <= position < len(data):
            index = block.index_at(position)
            begin, end = block.begin_of(index), block.begin_of(index + 1)
            if self._is_literal or self._matches(data[begin : end - 1].decode("utf-8", "surrogatepass")):
                indexes.append(index)
                if len(indexes) == _DENSE_MATCHES and index - indexes[0] < 2 * _DENSE_MATCHES:
                    return indexes + self._line_by_line(block, index + 1)
            position = find(data, end)
        return indexes

    def _line_by_line(self, block: Block, low: int) -> list[int]:
        matches = self._matches
        return [index for index, text in enumerate(block.texts(low, len(block)), low) if matches(text)]


def _block_finder(pattern: LogPattern) -> Callable[[bytes, int], int] | None:
    """Return a function that finds the next match in a block; None if lines must be checked one by one."""
    if SEPARATOR in pattern.text or pattern.problem:
        return None
    if pattern.regex and any(part in pattern.text for part in _BLOCK_SENSITIVE):
        return None
    if pattern.matches_case and not pattern.regex and not pattern.text[:1].isalnum():
        # RE2 stops at each first character of the literal, and lines have many quotes and spaces.
        literal = pattern.text.encode("utf-8", "surrogatepass")
        return lambda data, start: data.find(literal, start)
    options = re2.Options()
    options.case_sensitive = pattern.matches_case
    options.log_errors = False
    try:
        text = pattern.text if pattern.regex else re2.escape(pattern.text)
        search = re2.compile(f"(?m:{text})".encode(), options).search
    except (re2.error, UnicodeError):
        return None
    return partial(_match_position, search)


def _match_position(search: Callable[[bytes, int], re.Match[bytes] | None], data: bytes, start: int) -> int:
    match = search(data, start)
    return -1 if match is None else match.start()


class LogFilter:
    """Selects lines by the filters of `options`."""

    def __init__(self, table: AttributeTable, options: LogOptions) -> None:
        self._table = table
        self._options = options
        self._scanner = PatternScanner(options.pattern) if options.pattern else None

    def passing(self, block: Block) -> Sequence[int]:
        """Return the indices of the lines that pass; a gap marker passes all rules but the time range."""
        candidates = self._candidates(block)
        if self._scanner is None or not candidates:
            return candidates
        hits, invert = set(self._scanner.hits(block)), self._options.invert
        codes, gap_codes = block.codes, self._table.gap_codes
        if not hits and not invert and block.code_set.isdisjoint(gap_codes):
            return ()
        return [at for at in candidates if (at in hits) is not invert or codes[at] in gap_codes]

    def _candidates(self, block: Block) -> Sequence[int]:
        """Return the indices of the lines that pass all rules but the pattern."""
        since_ns, until_ns = self._options.since_ns, self._options.until_ns
        low = 0 if since_ns is None else bisect_left(block.stamps, since_ns)
        high = len(block) if until_ns is None else bisect_left(block.stamps, until_ns)
        passing = {code for code in block.code_set if self._passes(code)}
        if passing >= block.code_set:
            return range(low, high)
        if not passing:
            return ()
        codes = block.codes
        return [index for index in range(low, high) if codes[index] in passing]

    def _passes(self, code: int) -> bool:
        attributes, options = self._table.attributes[code], self._options
        if isinstance(attributes, LogGap):
            return True
        if options.nodes is not None and attributes.replica not in options.nodes:
            return False
        if attributes.replica in options.hidden:
            return False
        return options.min_level is None or attributes.rank >= RANKS[options.min_level]
