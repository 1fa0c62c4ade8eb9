"""Search all lines that pass the filter: find the nearest match at once, then count the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

from tui.analysis.logs.pattern import LogPattern
from tui.widgets.log_view.line_filter import Scanner
from tui.widgets.log_view.line_numbers import SortedIds, shifted
from tui.widgets.log_view.rows import LogRows
from tui.widgets.log_view.store import LogStore
from tui.widgets.log_view.stored_block import StoredBlock


class SearchState(Enum):
    """State of the search for the nearest match."""

    IDLE = "idle"
    RUNNING = "running"
    FOUND = "found"
    NOTHING = "nothing"


class SearchResults:
    """Matches of a pattern among the lines that pass the filter, folded or not.

    Attributes:
        pattern: The search pattern.
        search_state: State of the search for the nearest match.
        found: Number of the matching line, or None.
        wrapped: True if the search wrapped around an end.
    """

    def __init__(self, store: LogStore, visible: LogRows, pattern: LogPattern) -> None:
        self.pattern = pattern
        self.search_state = SearchState.IDLE
        self.found: int | None = None
        self.wrapped = False
        self._store = store
        self._visible = visible
        self._scanner = Scanner(pattern)
        self._counted = SortedIds()
        self._low = store.end
        self._start = self._at = 0
        self._backwards = False

    # --- nearest match ------------------------------------------------------------------------

    def begin(self, start: int, *, backwards: bool) -> None:
        """Start searching for the nearest match from `start` on; call ``find_next`` until it returns True."""
        first, end = self._store.first, self._store.end
        self.search_state, self.found = SearchState.RUNNING, None
        # Starting beyond an end means the search has already wrapped.
        self.wrapped = start < first if backwards else start >= end
        self._backwards = backwards
        if backwards:
            self._start = first - 1 if self.wrapped else min(start, end - 1)
            self._at = end if self.wrapped else self._start + 1
        else:
            self._start = end if self.wrapped else max(start, first)
            self._at = first if self.wrapped else self._start

    def find_next(self, should_continue: Callable[[], bool]) -> bool:
        """Search block by block while ``should_continue`` allows it; return True at the end."""
        while self.search_state is SearchState.RUNNING:
            if self._backwards:
                self._search_backward()
            else:
                self._search_forward()
            if not should_continue():
                break
        return self.search_state is not SearchState.RUNNING

    def _search_forward(self) -> None:
        stop = self._start if self.wrapped else self._store.end
        stored_blocks = list(self._store.block_list.stored_blocks(self._at, min(self._at + 1, stop)))
        if stored_blocks:
            high = min(stop, stored_blocks[0][0] + len(stored_blocks[0][1]))
            self._take(self.scan(self._at, high), 0)
            self._at = high
        elif self.wrapped:
            self.search_state = SearchState.NOTHING
        else:
            self._at, self.wrapped = self._store.first, True

    def _search_backward(self) -> None:
        stop = self._start + 1 if self.wrapped else self._store.first
        stored_blocks = (
            list(self._store.block_list.stored_blocks(self._at - 1, self._at)) if self._at > stop else []
        )
        if stored_blocks:
            low = max(stop, stored_blocks[0][0])
            self._take(self.scan(low, self._at), -1)
            self._at = low
        elif self.wrapped:
            self.search_state = SearchState.NOTHING
        else:
            self._at, self.wrapped = self._store.end, True

    def _take(self, seqs: list[int], which: int) -> None:
        if seqs:
            self.search_state, self.found = SearchState.FOUND, seqs[which]

    def scan(self, low: int, high: int) -> list[int]:
        """Return the numbers of the lines ``low <= seq < high`` that match and pass the filter."""
        found: list[int] = []
        for start, stored_block in self._store.block_list.stored_blocks(low, high):
            found += self._scan(start, stored_block, low, high)
        return self._visible.passing(found)

    def _scan(self, start: int, stored_block: StoredBlock, low: int, high: int) -> list[int]:
        block_list = self._store.block_list
        raw = block_list.raw(stored_block)
        if raw is not None and self._scanner.rules_out(raw):
            return []
        block = block_list.load(stored_block)
        hits = self._scanner.hits(block, max(0, low - start), min(len(block), high - start))
        gaps = self._store.attribute_table.gap_codes
        if hits and not stored_block.codes.isdisjoint(gaps):
            hits = [index for index in hits if block.codes[index] not in gaps]
        return [start + index for index in hits]

    # --- counting matches ---------------------------------------------------------------------

    @property
    def total(self) -> int:
        """Number of matches counted so far."""
        return len(self._counted)

    @property
    def is_final(self) -> bool:
        return self._low <= self._store.first

    def position(self, seq: int) -> int:
        """Return the position of a match, counted from 1; 0 if unknown or not a match."""
        at = self._counted.index_of(seq)
        known = self.is_final and at < len(self._counted) and self._counted[at] == seq
        return at + 1 if known else 0

    def count(self, should_continue: Callable[[], bool]) -> bool:
        """Count block by block while ``should_continue`` allows it; return True at the end."""
        block_list = self._store.block_list
        for start, stored_block in block_list.stored_blocks_reversed(self._store.first, self._low):
            found = self._scan(start, stored_block, start, self._low)
            if found:
                self._counted.prepend_all(self._visible.passing(found))
            self._low = start
            if not should_continue():
                break
        return self.is_final

    # --- store changes ------------------------------------------------------------------------

    def recount(self) -> None:
        """Restart counting after the filter or its result changed."""
        self._counted = SortedIds()
        self._low = self._store.end

    def appended(self, low: int, high: int) -> None:
        self._low = min(self._low, low)
        self._counted.extend(self.scan(low, high))

    def inserted(self, places: Sequence[int]) -> None:
        self._counted.open_gaps(places)
        self._low = shifted(self._low, places)
        self._start, self._at = shifted(self._start, places), shifted(self._at, places)
        if self.found is not None:
            self.found = shifted(self.found, places)
        new = [place + index for index, place in enumerate(places)]
        self._counted.merge([hit for seq in new if seq >= self._low for hit in self.scan(seq, seq + 1)])

    def removed(self, seq: int) -> None:
        self._counted.close_gap(seq)
        self._low -= self._low > seq
        self._start -= self._start > seq
        self._at -= self._at > seq
        if self.found is not None:
            self.found -= self.found > seq

    def dropped(self, low: int) -> None:
        self._counted.drop_before(low)
        self._low, self._start, self._at = max(self._low, low), max(self._start, low), max(self._at, low)
