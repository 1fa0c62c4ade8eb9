"""Select the lines of a block that a log view shows: by node, level, time and pattern."""

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

_CONTEXT_DEPENDENT = ("\\A", "\\z", "(?")
"""Regex constructs that may match differently in the joined text of a block than in a single message."""
_DENSE_MATCHES = 32
"""After this many matches in at most twice as many lines, checking the other lines one by one is faster."""


class PatternScanner:
    """Finds the lines of a block that match a pattern.

    RE2 searches a block as one text, at a fraction of the cost of checking each line. A line that contains
    a match is then checked alone, because a match in the text of a block may span several lines.
    """

    def __init__(self, pattern: LogPattern) -> None:
        self._matches = pattern.matcher()
        self._find_in_block = _block_finder(pattern)
        self._is_literal = not pattern.regex and pattern.matches_case

    def hits(self, block: Block) -> list[int]:
        """Return the indices of the lines that match, ascending."""
        # In the text of a block, escape sequences may split a match, and RE2 may treat non-ASCII text
        # differently than Python does.
        if self._find_in_block is None or block.has_escapes or not (block.is_ascii or self._is_literal):
            return self._line_by_line(block, 0)
        data, hits, find = block.data, [], self._find_in_block
        offset = find(data, 0)
        while 0 <= offset < len(data):
            index = block.line_at_offset(offset)
            begin, end = block.offset_of(index), block.offset_of(index + 1)
            if self._is_literal or self._matches(data[begin : end - 1].decode("utf-8", "surrogatepass")):
                hits.append(index)
                if len(hits) == _DENSE_MATCHES and index - hits[0] < 2 * _DENSE_MATCHES:
                    return hits + self._line_by_line(block, index + 1)
            offset = find(data, end)
        return hits

    def _line_by_line(self, block: Block, first: int) -> list[int]:
        matches = self._matches
        return [index for index, text in enumerate(block.texts(first, len(block)), first) if matches(text)]


def _block_finder(pattern: LogPattern) -> Callable[[bytes, int], int] | None:
    """Return a function that finds the next match in the text of a block, from an offset on; -1 for none.

    Return None for a pattern whose lines must be checked one by one.
    """
    if SEPARATOR in pattern.text or pattern.problem:
        return None
    if pattern.regex and any(construct in pattern.text for construct in _CONTEXT_DEPENDENT):
        return None
    if pattern.matches_case and not pattern.regex and not pattern.text[:1].isalnum():
        # RE2 would stop wherever the literal's first character occurs, such as at each quote and space.
        literal = pattern.text.encode("utf-8", "surrogatepass")
        return lambda data, start: data.find(literal, start)
    options = re2.Options()
    options.case_sensitive = pattern.matches_case
    options.log_errors = False
    try:
        regex = pattern.text if pattern.regex else re2.escape(pattern.text)
        search = re2.compile(f"(?m:{regex})".encode(), options).search
    except (re2.error, UnicodeError):
        return None
    return partial(_match_position, search)


def _match_position(search: Callable[[bytes, int], re.Match[bytes] | None], data: bytes, start: int) -> int:
    match = search(data, start)
    return -1 if match is None else match.start()


class LogFilter:
    """Selects the lines of a block by the filters of a ``LogOptions``."""

    def __init__(self, table: AttributeTable, options: LogOptions) -> None:
        self._table = table
        self._options = options
        self._scanner = PatternScanner(options.pattern) if options.pattern else None

    def passing(self, block: Block) -> Sequence[int]:
        """Return the indices of the lines that pass; a gap marker passes every filter but the time range."""
        candidates = self._candidates(block)
        if self._scanner is None or not candidates:
            return candidates
        hits, invert = set(self._scanner.hits(block)), self._options.invert
        codes, gap_codes = block.codes, self._table.gap_codes
        if not hits and not invert and block.code_set.isdisjoint(gap_codes):
            return ()
        return [index for index in candidates if (index in hits) is not invert or codes[index] in gap_codes]

    def _candidates(self, block: Block) -> Sequence[int]:
        """Return the indices of the lines that pass every filter but the pattern."""
        since_ns, until_ns = self._options.since_ns, self._options.until_ns
        low = 0 if since_ns is None else bisect_left(block.times_ns, since_ns)
        high = len(block) if until_ns is None else bisect_left(block.times_ns, until_ns)
        passing_codes = {code for code in block.code_set if self._passes(code)}
        if passing_codes >= block.code_set:
            return range(low, high)
        if not passing_codes:
            return ()
        codes = block.codes
        return [index for index in range(low, high) if codes[index] in passing_codes]

    def _passes(self, code: int) -> bool:
        """True if lines with these attributes pass the filters by node and level."""
        attributes, options = self._table.attributes[code], self._options
        if isinstance(attributes, LogGap):
            return True
        if options.nodes is not None and attributes.replica not in options.nodes:
            return False
        if attributes.replica in options.hidden:
            return False
        return options.min_level is None or attributes.level_rank >= RANKS[options.min_level]
