"""Storage of log lines, which log views share: all lines in time order; lines can be inserted anywhere.

Lines are stored in blocks and identified by keys that never change. A view is only notified that the store
has changed; it compares the version of each block to find the blocks to filter and fold again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Protocol
from weakref import WeakSet

from api_client.models.logs import LogEntry, LogGap, LogLine, stamp_ns
from tui.analysis.logs.not_kept import NotKept, millisecond_of
from tui.widgets.log_view.line import BLOCK_LINES, Attributes, AttributeTable, Block, LineKey
from tui.widgets.log_view.options import DEFAULT_MAX_LINES

MAX_BYTES_PER_LINE = 256
"""With the maximum number of lines, limits the stored text: to 256 MB by default, however long lines are."""
_LIMIT_DIVISOR = 16  # a block holds at most 1/16 of the maximum; when it is exceeded, 1/16 is dropped


class LogStoreObserver(Protocol):
    """A view of a ``LogStore``, as the store uses it."""

    @property
    def following(self) -> bool:
        """True if the view stays at the end of the log."""

    def lines_changed(self) -> None:
        """Called after lines were added, inserted, removed or dropped."""


class LogStore:
    """Log entries in blocks; beyond ``max_lines``, a ``NotKept`` marker replaces the oldest.

    While a view does not follow the end of the log, the maximum is twice as large, so that the lines that the
    user is reading are not dropped. Several views may share a store. Entries are rebuilt on access.

    Attributes:
        attribute_table: The attributes of lines, and the codes that blocks store for them.
        blocks: The blocks in time order, none of them empty. Read-only.
        dropped: Number of lines that were dropped.
        not_kept: The ``NotKept`` markers, in time order.
        bookmarks: Keys of the bookmarked lines, ascending.
        first_serial: The lowest serial of any line so far; prepended lines get lower serials.
        next_serial: The serial of the next line to arrive.
    """

    def __init__(self, max_lines: int = DEFAULT_MAX_LINES) -> None:
        if max_lines < 1:
            raise ValueError("max_lines must be at least 1")
        self.max_lines = max_lines
        self.attribute_table = AttributeTable()
        self.blocks: list[Block] = []
        self.dropped = 0
        self.not_kept: list[NotKept] = []
        self.bookmarks: list[LineKey] = []
        self.block_lines = max(16, min(BLOCK_LINES, max_lines // _LIMIT_DIVISOR))
        self._dropped_error: tuple[LineKey, LogEntry] | None = None
        """The first error of the log, if its line was dropped."""
        self.next_serial = self.first_serial = 0
        self._observers: WeakSet[LogStoreObserver] = WeakSet()

    def subscribe(self, observer: LogStoreObserver) -> None:
        """Notify ``observer`` of changes; the store has only a weak reference to it."""
        self._observers.add(observer)

    # Queries

    def __len__(self) -> int:
        return sum(map(len, self.blocks))

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """The times of the first and the last line; None without lines."""
        return (self.blocks[0].times_ns[0], self.blocks[-1].times_ns[-1]) if self.blocks else None

    def position(self, key: LineKey) -> tuple[int, int]:
        """Return the number of the block, and the index in it, of the first line at or after a key.

        If there is no such line, the number is ``len(blocks)``.
        """
        block_number = bisect_left(self.blocks, key, key=lambda block: block.last_key)
        return block_number, self.blocks[block_number].index(key) if block_number < len(self.blocks) else 0

    def locate(self, key: LineKey) -> tuple[Block, int]:
        """Return the block of a line and the index in it. Raises KeyError if the line is not stored."""
        block_number, index = self.position(key)
        if block_number == len(self.blocks) or self.blocks[block_number].key(index) != key:
            raise KeyError(key)
        return self.blocks[block_number], index

    def entry(self, key: LineKey) -> LogEntry:
        if self._dropped_error is not None and key == self._dropped_error[0]:
            return self._dropped_error[1]
        block, index = self.locate(key)
        return self._entry(block, index, block.text(index))

    def attributes(self, key: LineKey) -> Attributes:
        """Return the attributes of a line; for a gap marker, the marker itself."""
        block, index = self.locate(key)
        return self.attribute_table.attributes[block.codes[index]]

    def _entry(self, block: Block, index: int, text: str) -> LogEntry:
        attributes = self.attribute_table.attributes[block.codes[index]]
        if isinstance(attributes, LogGap):
            return attributes
        request_id = block.request_ids.get(block.serials[index])
        return LogLine(
            block.times_ns[index], text, attributes.replica, attributes.level, request_id, attributes.is_late
        )

    def entries(self, block: Block, indices: Sequence[int]) -> Iterator[LogEntry]:
        texts = block.texts(0, len(block))
        for index in indices:
            yield self._entry(block, index, texts[index])

    def entries_after(self, key: LineKey) -> Iterator[LogEntry]:
        block_number, index = self.position(LineKey(key.time_ns, key.serial + 1))
        for block in self.blocks[block_number:]:
            yield from self.entries(block, range(index, len(block)))
            index = 0

    def not_kept_at(self, time_ns: int) -> NotKept | None:
        """Return the ``NotKept`` marker whose time range contains a time; None if there is none."""
        markers = self.not_kept
        return next((marker for marker in markers if marker.start_ns <= time_ns < marker.end_ns), None)

    @property
    def first_error(self) -> LineKey | None:
        """The first error line of the log, even if it was dropped."""
        stored_error = self.error_after(None)
        if self._dropped_error is None:
            return stored_error
        dropped_error = self._dropped_error[0]
        is_stored_first = stored_error is not None and stored_error.time_ns <= dropped_error.time_ns
        return stored_error if is_stored_first else dropped_error

    def error_after(self, key: LineKey | None, *, backwards: bool = False) -> LineKey | None:
        """Return the first error line after a line; if ``backwards``, the last error line before it.

        With None for the line, return the first (or last) error line of all.
        """
        error_codes, blocks = self.attribute_table.error_codes, self.blocks
        block_number = (len(blocks) if backwards else 0) if key is None else self.position(key)[0]
        for block in blocks[block_number::-1] if backwards else blocks[block_number:]:
            if not block.code_set.isdisjoint(error_codes):
                indices = range(len(block))
                for index in reversed(indices) if backwards else indices:
                    if block.codes[index] in error_codes:
                        error = block.key(index)
                        if key is None or (error < key if backwards else error > key):
                            return error
        return None

    # Changes

    def append(self, batch: Sequence[LogEntry]) -> None:
        """Append newer entries; an entry that is older than the newest stored line is inserted by time."""
        batch = sorted(batch, key=stamp_ns)
        stored_count = bisect_left(batch, self.blocks[-1].times_ns[-1], key=stamp_ns) if self.blocks else 0
        self._insert(batch[:stored_count])
        while stored_count < len(batch):
            if not self.blocks or len(self.blocks[-1]) >= self.block_lines:
                self.blocks.append(Block())
            block = self.blocks[-1]
            chunk = batch[stored_count : stored_count + self.block_lines - len(block)]
            block.extend(chunk, self.attribute_table.codes(chunk), self.next_serial)
            self.next_serial += len(chunk)
            stored_count += len(chunk)
        self._notify()

    def prepend(self, older: Sequence[LogEntry]) -> int:
        """Prepend older entries; an entry that is newer than the oldest stored line is inserted by time.

        Return the number of entries.
        """
        older = sorted(older, key=stamp_ns)
        older_count = (
            bisect_right(older, self.blocks[0].times_ns[0], key=stamp_ns) if self.blocks else len(older)
        )
        self._insert(older[older_count:])
        self._prepend(older[:older_count])
        self._notify()
        return len(older)

    def replace_gap(self, gap: LogGap, entries: Sequence[LogEntry]) -> bool:
        """Replace a gap marker by entries; return False if the marker is not in the store.

        For a ``NotKept`` marker, entries that are stored already (they arrived late) are not added again.
        """
        code = self.attribute_table.code(gap)
        for block_number, block in enumerate(self.blocks):
            if code in block.code_set and code in block.codes:
                self._remove(block_number, block.codes.index(code))
                if isinstance(gap, NotKept):
                    entries = self._account_for_restored(gap, entries)
                self.append(entries)
                return True
        return False

    def clear(self) -> None:
        self.blocks.clear()
        self.bookmarks.clear()
        self.not_kept.clear()
        self._dropped_error = None
        self.dropped = 0
        self._notify()

    def toggle_bookmark(self, key: LineKey) -> bool:
        """Toggle a bookmark; return True if it is now set."""
        if key in self.bookmarks:
            self.bookmarks.remove(key)
            return False
        insort(self.bookmarks, key)
        return True

    def _new_block(self, entries: Sequence[LogEntry], first_serial: int) -> Block:
        block = Block()
        block.extend(entries, self.attribute_table.codes(entries), first_serial)
        return block

    def _prepend(self, entries: Sequence[LogEntry]) -> None:
        for high in range(len(entries), 0, -self.block_lines):
            chunk = entries[max(0, high - self.block_lines) : high]
            self.first_serial -= len(chunk)
            block = self._new_block(chunk, self.first_serial)
            if self.blocks and len(self.blocks[0]) + len(block) <= self.block_lines:
                self.blocks[0].merge(block)  # small pages of history become one block
            else:
                self.blocks.insert(0, block)

    def _insert(self, entries: Sequence[LogEntry]) -> None:
        """Insert entries by time, after existing entries of the same time. The store is not empty."""
        entries_by_block: dict[int, list[LogEntry]] = {}
        for entry in entries:
            block_number = bisect_right(self.blocks, stamp_ns(entry), key=lambda block: block.times_ns[0]) - 1
            entries_by_block.setdefault(max(0, block_number), []).append(entry)
        # From the last block on, because splitting a block changes the numbers of the blocks after it.
        for block_number in sorted(entries_by_block, reverse=True):
            block, new = self.blocks[block_number], entries_by_block[block_number]
            block.merge(self._new_block(new, self.next_serial))
            self.next_serial += len(new)
            if len(block) > 2 * self.block_lines:
                size = self.block_lines
                split = [block.copy_range(low, low + size) for low in range(0, len(block), size)]
                self.blocks[block_number : block_number + 1] = split

    def _remove(self, block_number: int, index: int) -> None:
        block = self.blocks[block_number]
        if block.key(index) in self.bookmarks:
            self.bookmarks.remove(block.key(index))
        block.remove(index)
        if not len(block):
            del self.blocks[block_number]

    def _account_for_restored(self, marker: NotKept, entries: Sequence[LogEntry]) -> Sequence[LogEntry]:
        """Update ``dropped`` and ``not_kept`` for a marker whose lines were read again.

        Return the entries that are not stored yet.
        """
        in_range = takewhile(
            lambda entry: stamp_ns(entry) < marker.end_ns,
            self.entries_after(LineKey(marker.start_ns, self.first_serial - 1)),
        )
        stored_lines = Counter(entry._replace(late=False) for entry in in_range if isinstance(entry, LogLine))
        new_entries = (
            list((Counter(entries) - Counter[LogEntry](stored_lines)).elements()) if stored_lines else entries
        )
        markers = [other for other in self.not_kept if other != marker]
        markers += [entry for entry in new_entries if isinstance(entry, NotKept)]
        self.not_kept = sorted(markers, key=stamp_ns)
        self.dropped -= sum(isinstance(entry, LogLine) for entry in new_entries)
        return new_entries

    def _make_room(self) -> None:
        """Drop the oldest lines if there are too many, and late lines that are older than dropped lines."""
        follows = all(observer.following for observer in self._observers)
        limit = self.max_lines if follows else 2 * self.max_lines
        lines, size_bytes = len(self), sum(len(block.data) for block in self.blocks)
        block_number, target_lines = 0, limit - limit // _LIMIT_DIVISOR
        if lines > limit or size_bytes > limit * MAX_BYTES_PER_LINE:
            while block_number < len(self.blocks) - 1 and (
                lines > target_lines or size_bytes > target_lines * MAX_BYTES_PER_LINE
            ):
                block = self.blocks[block_number]
                lines, size_bytes = lines - len(block), size_bytes - len(block.data)
                block_number += 1
        begin_ns = millisecond_of(self.blocks[block_number].times_ns[0]) if block_number else 0
        dropped_until_ns = [
            marker.end_ns for marker in self.not_kept if follows or marker.start_ns < begin_ns
        ]
        self._drop_before(max([begin_ns, *dropped_until_ns]))

    def _drop_before(self, time_ns: int) -> None:
        """Replace the lines before a time by a ``NotKept`` marker; keep gap markers that end after it."""
        block_number, index = self.position(LineKey(time_ns, self.first_serial))
        codes = [code for block in self.blocks[:block_number] for code in block.codes]
        for block in self.blocks[block_number : block_number + 1]:
            codes += block.codes[:index]
        gaps = [
            gap for gap in map(self.attribute_table.attributes.__getitem__, codes) if isinstance(gap, LogGap)
        ]
        if len(gaps) == len(codes):
            return
        error = self.first_error
        if error is not None and error.time_ns < time_ns:
            self._dropped_error = error, self.entry(error)
        start_ns = millisecond_of(self.blocks[0].times_ns[0])
        at_once = min(20_000, self.max_lines // 2)  # reading so many takes about 20 requests, or two seconds
        marker = NotKept(start_ns, time_ns, "not kept in memory", at_once=at_once)
        self.dropped += len(codes) - len(gaps)
        if index:
            block = self.blocks[block_number]
            self.blocks[block_number] = block.copy_range(index, len(block))
        self.first_serial -= 1
        self.blocks[:block_number] = [self._new_block([marker], self.first_serial)]
        self._insert([gap for gap in gaps if gap.end_ns > time_ns])
        first_key = LineKey(time_ns, self.first_serial)
        self.bookmarks = [key for key in self.bookmarks if key >= first_key]
        self.not_kept = [marker, *(other for other in self.not_kept if other.start_ns >= time_ns)]

    def _notify(self) -> None:
        self._make_room()
        for observer in list(self._observers):
            observer.lines_changed()
