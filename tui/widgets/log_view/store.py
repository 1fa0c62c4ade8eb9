"""Storage for log lines shared by log views: all lines in time order, cheap to extend anywhere.

A line has a number (``seq``) that increases with time. Prepended lines get smaller numbers, possibly
negative. Only a late line inserted between others renumbers the lines after it, and listeners are
notified.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from weakref import WeakSet

from api_client.models.logs import LogEntry, LogGap, LogLine, stamp_ns
from tui.widgets.log_view.block import AttributeTable, Block, Word, stamps_of
from tui.widgets.log_view.block_list import BlockList
from tui.widgets.log_view.line_numbers import LogStoreObserver, shifted
from tui.widgets.log_view.options import DEFAULT_MAX_LINES


def _in_order(entries: Sequence[LogEntry]) -> Sequence[LogEntry]:
    stamps = stamps_of(entries)
    return entries if stamps == sorted(stamps) else sorted(entries, key=stamp_ns)


class LogStore:
    """Log entries in blocks of columns; beyond ``max_lines`` in memory, older blocks go to a file.

    Several views may share a store. Entries are rebuilt on access.

    Attributes:
        attribute_table: Meaning of the codes of the lines.
        dropped: Number of entries dropped because the file could not be written.
        bookmarks: Numbers of the bookmarked lines, ascending.
    """

    def __init__(self, max_lines: int = DEFAULT_MAX_LINES) -> None:
        if max_lines < 1:
            raise ValueError("a log store needs room for one line at least")
        self.attribute_table = AttributeTable()
        self.dropped = 0
        self.bookmarks: list[int] = []
        self._block_list = BlockList(max_lines)
        self._first_error: int | None = None
        self._listeners: WeakSet[LogStoreObserver] = WeakSet()

    def subscribe(self, listener: LogStoreObserver) -> None:
        """Notify `listener` of changes for as long as it exists; the store holds only a weak reference."""
        self._listeners.add(listener)

    # --- queries ------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._block_list)

    @property
    def max_lines(self) -> int:
        return self._block_list.max_lines

    @property
    def first(self) -> int:
        return self._block_list.first

    @property
    def end(self) -> int:
        """The number of the newest line plus one."""
        return self._block_list.end

    @property
    def spilled_lines(self) -> int:
        return len(self._block_list) - self._block_list.in_memory

    @property
    def spilled_bytes(self) -> int:
        return self._block_list.spilled_bytes

    @property
    def first_error(self) -> int | None:
        return self._first_error

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """The timestamps of the first and last line; None if there are no lines."""
        return self._block_list.span_ns

    @property
    def block_list(self) -> BlockList:
        """The blocks, for scanning all lines. Read-only."""
        return self._block_list

    def locate(self, seq: int) -> tuple[Block, int]:
        """Return the block of a line and its index there. Raises IndexError."""
        block, start = self._block_list.block(seq)
        return block, seq - start

    def entry(self, seq: int) -> LogEntry:
        return self._entry(*self.locate(seq))

    def _entry(self, block: Block, index: int) -> LogEntry:
        word = self.attribute_table.words[block.codes[index]]
        if isinstance(word, LogGap):
            return word
        return LogLine(
            block.stamps[index],
            block.text(index),
            word.replica,
            word.level,
            block.request_ids.get(index),
            word.late,
        )

    def word(self, seq: int) -> Word:
        """Return the attributes a line shares with others, or the marker itself for a gap."""
        block, index = self.locate(seq)
        return self.attribute_table.words[block.codes[index]]

    def stamp(self, seq: int) -> int:
        """Return the time of a line in epoch nanoseconds."""
        block, index = self.locate(seq)
        return block.stamps[index]

    def entries(self, seqs: Iterable[int]) -> Iterator[LogEntry]:
        block, start, stop = Block(), 0, 0
        for seq in seqs:
            if not start <= seq < stop:
                block, start = self._block_list.block(seq)
                stop = start + len(block)
            yield self._entry(block, seq - start)

    def seq_at(self, time_ns: int) -> int:
        """Return the number of the first line at or after a time, or ``end`` if there is none."""
        return self._block_list.seq_at(time_ns)

    def error_after(self, seq: int) -> int | None:
        """Return the first error line at or after `seq`."""
        return self._block_list.first_with(self.attribute_table.error_codes, seq)

    def error_before(self, seq: int) -> int | None:
        """Return the last error line before `seq`."""
        return self._block_list.last_with(self.attribute_table.error_codes, seq)

    # --- changes ------------------------------------------------------------------------------

    def append(self, batch: Sequence[LogEntry]) -> None:
        """Append newer entries. Entries older than the newest existing one are inserted by time."""
        batch = _in_order(batch)
        late: Sequence[LogEntry] = ()
        span_ns = self._block_list.span_ns
        if batch and span_ns is not None and stamp_ns(batch[0]) < span_ns[1]:
            cut = bisect_left(batch, span_ns[1], key=stamp_ns)
            late, batch = batch[:cut], batch[cut:]
        if late:
            self._insert(late)
        if batch:
            low = self.end
            self._block_list.extend(self.attribute_table.columns(batch))
            if self._first_error is None:
                self._first_error = self.error_after(low)
            self._notify_observers(lambda listener: listener.lines_appended(low, self.end))
        self._make_room()

    def prepend(self, older: Sequence[LogEntry]) -> int:
        """Prepend older entries; return their count.

        Entries newer than the oldest existing one are inserted by time.
        """
        older = _in_order(older)
        count = len(older)
        span_ns = self._block_list.span_ns
        if span_ns is not None:
            cut = bisect_right(older, span_ns[0], key=stamp_ns)
            older, between = older[:cut], older[cut:]
            if between:
                self._insert(between)
        if older:
            high = self.first
            columns = self.attribute_table.columns(older)
            self._block_list.prepend_all(columns)
            if not self.attribute_table.error_codes.isdisjoint(columns[1]):
                self._first_error = self.error_after(self.first)
            low = self.first
            self._notify_observers(lambda listener: listener.lines_prepended(low, high))
        self._make_room()
        return count

    def insert(self, entries: Sequence[LogEntry]) -> None:
        """Insert entries by time, after existing entries of the same time."""
        ordered = sorted(entries, key=stamp_ns)
        if not ordered:
            return
        if len(self):
            self._insert(ordered)
            self._make_room()
        else:
            self.append(ordered)

    def _insert(self, entries: Sequence[LogEntry]) -> None:
        columns = self.attribute_table.columns(entries)
        places = self._block_list.insert(columns)
        self.bookmarks = [shifted(seq, places) for seq in self.bookmarks]
        if self._first_error is not None:
            self._first_error = shifted(self._first_error, places)
        if not self.attribute_table.error_codes.isdisjoint(columns[1]):
            self._first_error = self.error_after(self.first)
        self._notify_observers(lambda listener: listener.lines_inserted(places))

    def replace_gap(self, gap: LogGap, entries: Sequence[LogEntry]) -> bool:
        """Replace a gap marker with entries; return True if the marker was found."""
        code = self.attribute_table.gap_code(gap)
        for seq in range(self.seq_at(gap.start_ns), self.end):
            block, index = self.locate(seq)
            if block.stamps[index] != gap.start_ns:
                break
            if block.codes[index] == code:
                self._remove(seq)
                self.insert(entries)
                return True
        return False

    def _remove(self, seq: int) -> None:
        self._block_list.remove(seq)
        self.bookmarks = [one - (one > seq) for one in self.bookmarks if one != seq]
        if self._first_error is not None and self._first_error > seq:
            self._first_error -= 1
        self._notify_observers(lambda listener: listener.line_removed(seq))

    def _make_room(self) -> None:
        """Enforce the memory limit. If there is no space in the file either, drop the oldest lines."""
        dropped = self._block_list.make_room()
        if not dropped:
            return
        self.dropped += dropped
        low = self.first
        self.bookmarks = [seq for seq in self.bookmarks if seq >= low]
        if self._first_error is not None and self._first_error < low:
            self._first_error = self.error_after(low)
        self._notify_observers(lambda listener: listener.lines_dropped(low))

    def clear(self) -> None:
        self._block_list.clear()
        self.attribute_table = AttributeTable()
        self.bookmarks.clear()
        self.dropped = 0
        self._first_error = None
        self._notify_observers(lambda listener: listener.store_cleared())

    def toggle_bookmark(self, seq: int) -> bool:
        """Toggle a bookmark; return True if it is now set."""
        at = bisect_left(self.bookmarks, seq)
        if at < len(self.bookmarks) and self.bookmarks[at] == seq:
            del self.bookmarks[at]
            return False
        insort(self.bookmarks, seq)
        return True

    def _notify_observers(self, what: Callable[[LogStoreObserver], None]) -> None:
        for listener in list(self._listeners):
            what(listener)
