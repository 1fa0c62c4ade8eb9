"""Storage for log lines shared by log views: all lines in time order, cheap to extend anywhere.

Lines are stored in blocks, and identified by keys that never change. Views are only notified that something
changed; from the version of each block they know which to filter and fold again.
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

LINE_BYTES = 256
"""Bytes of text stored per line of the limit, at most: 256 MB by default, whatever a job prints."""
_LIMIT_PARTS = 16  # blocks hold at most this part of the limit, and beyond the limit this part is dropped


class LogStoreObserver(Protocol):
    """A view of a store."""

    @property
    def following(self) -> bool:
        """True if the view stays at the newest lines."""

    def lines_changed(self) -> None:
        """Lines were added, inserted, removed or dropped."""


class LogStore:
    """Log entries in blocks; beyond ``max_lines``, a ``NotKept`` takes the place of the oldest.

    While a view does not follow, twice as many are kept, so that lines being read are not dropped.
    Several views may share a store. Entries are rebuilt on access.

    Attributes:
        attribute_table: Meaning of the codes of the lines.
        blocks: The blocks in time order, none of them empty. Read-only.
        dropped: Number of lines that were dropped.
        not_kept: The markers in place of dropped lines, in time order.
        bookmarks: Keys of the bookmarked lines, ascending.
        first_serial: The lowest serial so far; lines below it are new.
        next_serial: One past the highest serial so far.
    """

    def __init__(self, max_lines: int = DEFAULT_MAX_LINES) -> None:
        if max_lines < 1:
            raise ValueError("a log store needs room for one line at least")
        self.max_lines = max_lines
        self.attribute_table = AttributeTable()
        self.blocks: list[Block] = []
        self.dropped = 0
        self.not_kept: list[NotKept] = []
        self.bookmarks: list[LineKey] = []
        self.block_lines = max(16, min(BLOCK_LINES, max_lines // _LIMIT_PARTS))
        self._dropped_error: tuple[LineKey, LogEntry] | None = None
        self.next_serial = self.first_serial = 0
        self._observers: WeakSet[LogStoreObserver] = WeakSet()

    def subscribe(self, observer: LogStoreObserver) -> None:
        """Notify `observer` of changes for as long as it exists; the store holds only a weak reference."""
        self._observers.add(observer)

    # Queries

    def __len__(self) -> int:
        return sum(map(len, self.blocks))

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """The timestamps of the first and last line; None if there are no lines."""
        return (self.blocks[0].stamps[0], self.blocks[-1].stamps[-1]) if self.blocks else None

    def position(self, key: LineKey) -> tuple[int, int]:
        """Return the numbers of the block and line at or after a key; ``len(blocks)`` if there is none."""
        at = bisect_left(self.blocks, key, key=lambda block: block.last)
        return at, self.blocks[at].index(key) if at < len(self.blocks) else 0

    def locate(self, key: LineKey) -> tuple[Block, int]:
        """Return the block of a line and its index there. Raises KeyError."""
        at, index = self.position(key)
        if at == len(self.blocks) or self.blocks[at].key(index) != key:
            raise KeyError(key)
        return self.blocks[at], index

    def entry(self, key: LineKey) -> LogEntry:
        if self._dropped_error is not None and key == self._dropped_error[0]:
            return self._dropped_error[1]
        block, index = self.locate(key)
        return self._entry(block, index, block.text(index))

    def attributes(self, key: LineKey) -> Attributes:
        """Return the attributes a line shares with others, or the marker itself for a gap."""
        block, index = self.locate(key)
        return self.attribute_table.attributes[block.codes[index]]

    def _entry(self, block: Block, index: int, text: str) -> LogEntry:
        attributes = self.attribute_table.attributes[block.codes[index]]
        if isinstance(attributes, LogGap):
            return attributes
        request_id = block.request_ids.get(block.serials[index])
        return LogLine(
            block.stamps[index], text, attributes.replica, attributes.level, request_id, attributes.late
        )

    def entries(self, block: Block, indices: Sequence[int]) -> Iterator[LogEntry]:
        texts = block.texts(0, len(block))
        for index in indices:
            yield self._entry(block, index, texts[index])

    def entries_after(self, key: LineKey) -> Iterator[LogEntry]:
        at, index = self.position(LineKey(key.time_ns, key.serial + 1))
        for block in self.blocks[at:]:
            yield from self.entries(block, range(index, len(block)))
            index = 0

    def not_kept_at(self, time_ns: int) -> NotKept | None:
        return next((mark for mark in self.not_kept if mark.start_ns <= time_ns < mark.end_ns), None)

    @property
    def first_error(self) -> LineKey | None:
        """The first error line, even if it has been dropped."""
        stored, dropped_error = self.error_after(None), self._dropped_error
        return (
            stored
            if dropped_error is None or (stored is not None and stored.time_ns <= dropped_error[0].time_ns)
            else dropped_error[0]
        )

    def error_after(self, key: LineKey | None, *, backwards: bool = False) -> LineKey | None:
        """Return the first error line after a line, or the last one before it; without a line, of all."""
        errors, blocks = self.attribute_table.error_codes, self.blocks
        at = (len(blocks) if backwards else 0) if key is None else self.position(key)[0]
        for block in blocks[at::-1] if backwards else blocks[at:]:
            if not block.code_set.isdisjoint(errors):
                indexes = range(len(block))
                for index in reversed(indexes) if backwards else indexes:
                    if block.codes[index] in errors:
                        error = block.key(index)
                        if key is None or (error < key if backwards else error > key):
                            return error
        return None

    # Changes

    def append(self, batch: Sequence[LogEntry]) -> None:
        """Append newer entries. Entries older than the newest existing one are inserted by time."""
        batch = sorted(batch, key=stamp_ns)
        done = bisect_left(batch, self.blocks[-1].stamps[-1], key=stamp_ns) if self.blocks else 0
        self._insert(batch[:done])
        while done < len(batch):
            if not self.blocks or len(self.blocks[-1]) >= self.block_lines:
                self.blocks.append(Block())
            block = self.blocks[-1]
            part = batch[done : done + self.block_lines - len(block)]
            block.extend(part, self.attribute_table.codes(part), self.next_serial)
            self.next_serial += len(part)
            done += len(part)
        self._notify()

    def prepend(self, older: Sequence[LogEntry]) -> int:
        """Prepend older entries, inserting newer ones by time; return their count."""
        older = sorted(older, key=stamp_ns)
        cut = bisect_right(older, self.blocks[0].stamps[0], key=stamp_ns) if self.blocks else len(older)
        self._insert(older[cut:])
        self._prepend(older[:cut])
        self._notify()
        return len(older)

    def replace_gap(self, gap: LogGap, entries: Sequence[LogEntry]) -> bool:
        """Replace a gap marker with entries; return True if the marker was found.

        Lines of a ``NotKept`` that are stored already, because they arrived late, are not added twice.
        """
        code = self.attribute_table.code(gap)
        for number, block in enumerate(self.blocks):
            if code in block.code_set and code in block.codes:
                self._remove(number, block.codes.index(code))
                if isinstance(gap, NotKept):
                    entries = self._restored(gap, entries)
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
            part = entries[max(0, high - self.block_lines) : high]
            self.first_serial -= len(part)
            block = self._new_block(part, self.first_serial)
            if self.blocks and len(self.blocks[0]) + len(block) <= self.block_lines:
                self.blocks[0].merge(block)  # small pages of history become one block
            else:
                self.blocks.insert(0, block)

    def _insert(self, entries: Sequence[LogEntry]) -> None:
        """Insert entries by time, after existing entries of the same time. The store is not empty."""
        groups: dict[int, list[LogEntry]] = {}
        for entry in entries:
            at = bisect_right(self.blocks, stamp_ns(entry), key=lambda block: block.stamps[0]) - 1
            groups.setdefault(max(0, at), []).append(entry)
        for at in sorted(groups, reverse=True):
            block = self.blocks[at]
            block.merge(self._new_block(groups[at], self.next_serial))
            self.next_serial += len(groups[at])
            if len(block) > 2 * self.block_lines:
                count = self.block_lines
                self.blocks[at : at + 1] = [
                    block.part(low, low + count) for low in range(0, len(block), count)
                ]

    def _remove(self, number: int, index: int) -> None:
        block = self.blocks[number]
        if block.key(index) in self.bookmarks:
            self.bookmarks.remove(block.key(index))
        block.remove(index)
        if not len(block):
            del self.blocks[number]

    def _restored(self, mark: NotKept, entries: Sequence[LogEntry]) -> Sequence[LogEntry]:
        """Update ``dropped`` and ``not_kept`` for lines that were read again; return those that are new."""
        inside = takewhile(
            lambda entry: stamp_ns(entry) < mark.end_ns,
            self.entries_after(LineKey(mark.start_ns, self.first_serial - 1)),
        )
        stored = Counter(entry._replace(late=False) for entry in inside if isinstance(entry, LogLine))
        new = list((Counter(entries) - Counter[LogEntry](stored)).elements()) if stored else entries
        marks = [entry for entry in new if isinstance(entry, NotKept)]
        self.not_kept = sorted([*(other for other in self.not_kept if other != mark), *marks], key=stamp_ns)
        self.dropped -= sum(isinstance(entry, LogLine) for entry in new)
        return new

    def _make_room(self) -> None:
        """Drop the oldest lines if there are too many, and late lines older than those dropped before."""
        follows = all(observer.following for observer in self._observers)
        limit = self.max_lines if follows else 2 * self.max_lines
        lines, size = len(self), sum(len(block.data) for block in self.blocks)
        at, keep = 0, limit - limit // _LIMIT_PARTS
        if lines > limit or size > limit * LINE_BYTES:
            while at < len(self.blocks) - 1 and (lines > keep or size > keep * LINE_BYTES):
                lines, size = lines - len(self.blocks[at]), size - len(self.blocks[at].data)
                at += 1
        begin_ns = millisecond_of(self.blocks[at].stamps[0]) if at else 0
        marks = [mark.end_ns for mark in self.not_kept if follows or mark.start_ns < begin_ns]
        self._drop_before(max([begin_ns, *marks]))

    def _drop_before(self, time_ns: int) -> None:
        """Replace the lines before a time by a ``NotKept`` marker; gaps that end later stay."""
        at, index = self.position(LineKey(time_ns, self.first_serial))
        codes = [code for block in self.blocks[:at] for code in block.codes]
        codes += [code for block in self.blocks[at : at + 1] for code in block.codes[:index]]
        gaps = [
            gap for gap in map(self.attribute_table.attributes.__getitem__, codes) if isinstance(gap, LogGap)
        ]
        if len(gaps) == len(codes):
            return
        error = self.first_error
        if error is not None and error.time_ns < time_ns:
            self._dropped_error = error, self.entry(error)
        start_ns, at_once = (
            millisecond_of(self.blocks[0].stamps[0]),
            min(20_000, self.max_lines // 2),  # about twenty requests, or two seconds
        )
        mark = NotKept(start_ns, time_ns, "not kept in memory", at_once=at_once)
        self.dropped += len(codes) - len(gaps)
        if index:
            self.blocks[at] = self.blocks[at].part(index, len(self.blocks[at]))
        self.first_serial -= 1
        self.blocks[:at] = [self._new_block([mark], self.first_serial)]
        self._insert([gap for gap in gaps if gap.end_ns > time_ns])
        low = LineKey(time_ns, self.first_serial)
        self.bookmarks = [key for key in self.bookmarks if key >= low]
        self.not_kept = [mark, *(other for other in self.not_kept if other.start_ns >= time_ns)]

    def _notify(self) -> None:
        self._make_room()
        for observer in list(self._observers):
            observer.lines_changed()
