"""Find the lines that a log view shows: by node, level, time and pattern, searched block by block.

A block is first searched as a whole, at memory speed; most blocks have no match.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import re2

from api_client.models.logs import LogGap
from tui.analysis.logs.levels import RANKS
from tui.analysis.logs.pattern import LogPattern
from tui.widgets.log_view.block import SEPARATOR, Block
from tui.widgets.log_view.options import LogOptions
from tui.widgets.log_view.store import LogStore
from tui.widgets.log_view.stored_block import RawText, StoredBlock, Texts

_SAMPLE_BYTES = 1 << 16
_CANDIDATE_COST = 40
"""Cost of a comparison here, relative to an RE2 step from one occurrence of a byte to the next."""
_MAX_FALSE_CANDIDATES = 64
"""After this many false candidates in one text, fall back to ``find``."""


class SubstringSearcher:
    """Finds one text, byte for byte.

    RE2 searches for the first byte of an expression with wide CPU instructions. It is therefore given the
    end of the text starting at its rarest byte, as sampled from the first log searched. The bytes before
    that are compared at each candidate.
    """

    def __init__(self, needle: bytes) -> None:
        self._needle = needle
        self._skipped = 0
        self._search: Any = None

    def _learn(self, data: Texts, begin: int, stop: int) -> None:
        needle, sample = self._needle, data[begin : min(stop, begin + _SAMPLE_BYTES)]
        costs = []
        for skipped in range(min(len(needle), 64)):
            stops = sample.count(needle[skipped : skipped + 1])
            asks = sample.count(needle[skipped:]) if skipped and stops else 0
            costs.append((stops + _CANDIDATE_COST * asks, skipped))
        self._skipped = min(costs)[1]
        options = re2.Options()
        options.log_errors = False
        options.encoding = re2.Options.Encoding.LATIN1  # match bytes regardless of their meaning
        self._search = re2.compile(re2.escape(needle[self._skipped :]), options).search

    def find(self, data: Texts, begin: int, stop: int) -> int:
        """Return the offset of the first occurrence in ``data[begin:stop]``, or -1."""
        if self._search is None:
            self._learn(data, begin, stop)
        skipped, needle, at = self._skipped, self._needle, begin + self._skipped
        search = self._search
        for _ in range(_MAX_FALSE_CANDIDATES):
            match = search(data, at, stop)
            if match is None:
                return -1
            at = int(match.start())
            if not skipped or data[at - skipped : at] == needle[:skipped]:
                return at - skipped
            at += 1
        return data.find(needle, at - skipped, stop)


_CHANGES_LENGTH = "\u0130".encode()
"""The lowercase form of İ is two characters, one of them ASCII. RE2 does not match it to i."""
_HALF_CHARACTER = b"\xed"
"""First byte of a lone surrogate, which RE2 rejects, and of some Korean characters, which it accepts."""
_ESCAPE = b"\x1b"
_MANY = 32
"""After this many matches close together, searching the rest line by line is faster."""
_WHOLE_TEXT = ("\\A", "\\z", "(?")
"""Constructs that may mean something different in a block than in a single message."""


class Scanner:
    """Finds the lines that match a pattern.

    A block is first searched as a whole. If it has no match, which is the common case, its lines are
    never loaded from the file, and the search costs a fraction of checking each line.
    """

    def __init__(self, pattern: LogPattern) -> None:
        self._matches = pattern.matcher()
        self._minds_case = pattern.minds_case
        self._whole = _whole_block(pattern)
        self._needle = b""
        self._substring_searcher: SubstringSearcher | None = None
        if not pattern.regex and (self._minds_case or pattern.text.isascii()):
            text = pattern.text if self._minds_case else pattern.text.lower()
            self._needle = text.encode("utf-8", "surrogatepass")
            if self._minds_case and SEPARATOR not in text:
                self._substring_searcher = SubstringSearcher(self._needle)

    def rules_out(self, raw: RawText) -> bool:
        """Return True if no line of a block matches; False if its lines must be checked."""
        data, begin, stop = raw.data, raw.begin, raw.stop
        if raw.has_escapes:
            # Escape sequences may split a match, so lines must be checked one by one.
            return False
        if self._substring_searcher is not None:
            return self._substring_searcher.find(data, begin, stop) < 0
        return (
            self._whole is not None and self._is_plain(raw) and self._whole.search(data, begin, stop) is None
        )

    def _is_plain(self, raw: RawText) -> bool:
        """Return True if RE2 and Python interpret the block's text the same way."""
        if raw.is_ascii:
            return True
        data, begin, stop = raw.data, raw.begin, raw.stop
        return data.find(_HALF_CHARACTER, begin, stop) < 0 and data.find(_CHANGES_LENGTH, begin, stop) < 0

    def hits(self, block: Block, low: int, high: int) -> list[int]:
        """Return the indices, ascending, of the lines ``low <= index < high`` that match."""
        if low >= high:
            return []
        if block.is_sealed:
            data, begin, stop = block.data, block.begin_of(low), block.begin_of(high)
            raw = RawText(data, begin, stop, block.is_ascii, block.has_escapes)
            if self._substring_searcher is not None:
                if block.has_escapes:
                    return self._among_escapes(block, low, high)
                return self._plain(block, data, begin, stop)
            if self._whole is not None and not block.has_escapes and self._is_plain(raw):
                first = self._whole.search(data, begin, stop)
                if first is None:
                    return []
                if self._needle and block.is_ascii:
                    return self._plain(block, data.lower(), begin, stop)
                return self._verified(block, first, stop)
        return self._line_by_line(block.texts(), low, high)

    def _line_by_line(self, texts: list[str], low: int, high: int) -> list[int]:
        matches = self._matches
        if low or high < len(texts):
            texts = texts[low:high]
        return [index for index, text in enumerate(texts, low) if matches(text)]

    def _plain(self, block: Block, data: bytes, begin: int, stop: int) -> list[int]:
        """Return the lines that contain the needle; ``data`` must be lowercase if case is ignored."""
        found: list[int] = []
        position = self._next(data, begin, stop)
        while position >= 0:
            index = block.index_at(position)
            found.append(index)
            if len(found) == _MANY and index - found[0] < 2 * _MANY:
                high = block.index_at(stop - 1) + 1
                return found + self._dense(block, index + 1, high)
            position = self._next(data, block.begin_of(index + 1), stop)
        return found

    def _next(self, data: bytes, begin: int, stop: int) -> int:
        if self._substring_searcher is not None:
            return self._substring_searcher.find(data, begin, stop)
        return data.find(self._needle, begin, stop)

    def _dense(self, block: Block, low: int, high: int) -> list[int]:
        texts, needle = block.texts(), self._needle.decode("utf-8", "surrogatepass")
        if low or high < len(texts):
            texts = texts[low:high]
        if self._minds_case:
            return [index for index, text in enumerate(texts, low) if needle in text]
        return [index for index, text in enumerate(texts, low) if needle in text.lower()]

    def _among_escapes(self, block: Block, low: int, high: int) -> list[int]:
        """Check lines with escape sequences one by one, and search the others at once."""
        data, stop = block.data, block.begin_of(high)
        asked = set(self._plain(block, data, block.begin_of(low), stop))
        position = data.find(_ESCAPE, block.begin_of(low), stop)
        while position >= 0:
            index = block.index_at(position)
            asked.add(index)
            if len(asked) > (high - low) // 2:
                return self._line_by_line(block.texts(), low, high)
            position = data.find(_ESCAPE, block.begin_of(index + 1), stop)
        return [index for index in sorted(asked) if self._matches(block.text(index))]

    def _verified(self, block: Block, first: Any, stop: int) -> list[int]:
        """Check each candidate line on its own, because a match in the block may span lines."""
        whole, found, match = self._whole, [], first
        while match is not None and match.start() < stop:
            index = block.index_at(match.start())
            if self._matches(block.text(index)):
                found.append(index)
            match = whole.search(block.data, block.begin_of(index + 1), stop)
        return found


def _whole_block(pattern: LogPattern) -> Any:
    """Compile the pattern with RE2 for whole blocks; return None if lines must be checked one by one."""
    if SEPARATOR in pattern.text or pattern.problem:
        return None
    if pattern.regex and any(part in pattern.text for part in _WHOLE_TEXT):
        return None

    options = re2.Options()
    options.case_sensitive = pattern.minds_case
    options.log_errors = False
    try:
        text = pattern.text if pattern.regex else re2.escape(pattern.text)
        return re2.compile(f"(?m:{text})".encode(), options)
    except (re2.error, UnicodeError):
        return None


_CONTEXT_BLOCKS = 4
"""Number of blocks searched for context in each direction; for a quiet node, context ends there."""


class LineSelector:
    """Selects the lines of a store that pass a filter."""

    def __init__(self, store: LogStore, wanted: LogOptions) -> None:
        self._store = store
        self._filter = wanted
        self._scanner = Scanner(wanted.pattern) if wanted.pattern else None
        self._known: dict[int, bool] = {}
        if self.context_lines:
            bare = replace(wanted, pattern=None)
            self._bare = LineSelector(store, bare)

    @property
    def context_lines(self) -> int:
        """Number of context lines around a match; 0 without a pattern."""
        return self._filter.context_lines if self._scanner is not None else 0

    def select(self, low: int, high: int) -> list[int]:
        """Return the numbers of the lines ``low <= seq < high`` that pass, ascending."""
        if not self.context_lines:
            return [seq for part in self._parts(low, high) for seq in part[1]]
        return self._with_context(low, high)

    def _parts(self, low: int, high: int) -> Iterator[tuple[list[int], list[int]]]:
        """Yield, per block, the lines checked against the pattern and the lines that pass.

        The first list is empty unless the filter has context lines.
        """
        for start, stored_block in self._store.block_list.stored_blocks(low, high):
            first, last = max(0, low - start), min(len(stored_block), high - start)
            wanted = {code for code in stored_block.codes if self._passes(code)}
            since_ns = self._filter.since_ns
            if not wanted or (since_ns is not None and stored_block.last_ns < since_ns):
                continue
            if self._rules_out(stored_block, wanted):
                continue
            block = self._store.block_list.load(stored_block)
            if since_ns is not None:
                first = max(first, bisect_left(block.stamps, since_ns))
            indices = range(first, last)
            candidates = (
                list(indices)
                if wanted >= stored_block.codes
                else [at for at in indices if block.codes[at] in wanted]
            )
            passing = candidates
            if self._scanner is not None and candidates:
                gaps = self._store.attribute_table.gap_codes
                found = set(self._scanner.hits(block, first, last))
                if wanted.isdisjoint(gaps):
                    passing = [at for at in candidates if (at in found) is not self._filter.invert]
                else:
                    passing = [
                        at
                        for at in candidates
                        if (at in found) is not self._filter.invert or block.codes[at] in gaps
                    ]
            asked = [start + at for at in candidates] if self.context_lines else []
            yield asked, [start + at for at in passing]

    def _rules_out(self, stored_block: StoredBlock, wanted: set[int]) -> bool:
        """Return True if the raw messages of a block show that no line passes."""
        if self._scanner is None or self._filter.invert or self.context_lines:
            return False
        if not wanted.isdisjoint(self._store.attribute_table.gap_codes):
            return False
        raw = self._store.block_list.raw(stored_block)
        return raw is not None and self._scanner.rules_out(raw)

    def _with_context(self, low: int, high: int) -> list[int]:
        before, after = self.edge(low), self.context_end(high)
        candidates: list[int] = []
        matches: list[int] = []
        for asked, passing in self._parts(before, after):
            candidates += asked
            matches += passing
        lines = self.context_lines
        wanted: set[int] = set()
        done = 0
        for match in matches:
            if self._is_gap(match):
                wanted.add(match)  # shown, but without context
                continue
            at = bisect_left(candidates, match)
            wanted.update(candidates[max(done, at - lines) : at + lines + 1])
            done = max(done, at)
        return sorted(seq for seq in wanted if low <= seq < high)

    def _is_gap(self, seq: int) -> bool:
        return bool(self._store.attribute_table.gap_codes) and isinstance(self._store.word(seq), LogGap)

    def edge(self, seq: int) -> int:
        """Return the number of the first line that is context of a match at `seq`."""
        store, lines = self._store, self.context_lines
        low = max(store.first, seq)
        for _ in range(_CONTEXT_BLOCKS):
            stored_blocks = list(store.block_list.stored_blocks(low - 1, low)) if low > store.first else []
            if not stored_blocks:
                break
            low = stored_blocks[-1][0]
            candidates = self._bare.select(low, seq)
            if len(candidates) >= lines:
                return candidates[-lines]
        return low

    def context_end(self, seq: int) -> int:
        """Return one past the number of the last line that is context of a match before `seq`."""
        store, lines = self._store, self.context_lines
        high = seq
        for _ in range(_CONTEXT_BLOCKS):
            stored_blocks = list(store.block_list.stored_blocks(high, high + 1)) if high < store.end else []
            if not stored_blocks:
                break
            high = stored_blocks[0][0] + len(stored_blocks[0][1])
            candidates = self._bare.select(seq, high)
            if len(candidates) >= lines:
                return candidates[lines - 1] + 1
        return high

    def _passes(self, code: int) -> bool:
        known = self._known.get(code)
        if known is None:
            known = self._known[code] = self._judge(code)
        return known

    def _judge(self, code: int) -> bool:
        word, wanted = self._store.attribute_table.words[code], self._filter
        if isinstance(word, LogGap):
            return True
        if wanted.nodes is not None and word.replica not in wanted.nodes:
            return False
        if word.replica in wanted.hidden:
            return False
        return wanted.min_level is None or word.rank >= RANKS[wanted.min_level]
