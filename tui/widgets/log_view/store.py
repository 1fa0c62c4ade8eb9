"""Storage for log lines shared by log views: all lines in time order, cheap to extend anywhere.

Lines are stored in blocks, and identified by keys that never change. Views only learn that something has
changed; each block has a version, from which they see what to filter and fold again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from typing import Protocol
from weakref import WeakSet

from api_client.models.logs import LogEntry, LogGap, LogLine, stamp_ns
from tui.widgets.log_view.block import BLOCK_LINES, Block, SpillFile
from tui.widgets.log_view.line import Attributes, AttributeTable, LineKey
from tui.widgets.log_view.options import DEFAULT_MAX_LINES

_BLOCKS_IN_MEMORY = 16  # a small limit gets small blocks, so that it can be met
_MIN_BLOCK_LINES = 16


class LogStoreObserver(Protocol):
    """A view of a store."""

    def lines_changed(self) -> None:
        """Lines were added, inserted, removed or dropped."""


class LogStore:
    """Log entries in blocks; beyond ``max_lines`` in memory, the texts of older blocks go to a file.

    Several views may share a store. Entries are rebuilt on access.

    Attributes:
        attribute_table: Meaning of the codes of the lines.
        blocks: The blocks in time order, none of them empty. Read-only.
        generation: Increases when ``blocks`` has other members.
        dropped: Number of entries dropped because the file could not be written.
        bookmarks: Keys of the bookmarked lines, ascending.
    """

    def __init__(self, max_lines: int = DEFAULT_MAX_LINES) -> None:
        if max_lines < 1:
            raise ValueError("a log store needs room for one line at least")
        self.max_lines = max_lines
        self.attribute_table = AttributeTable()
        self.blocks: list[Block] = []
        self.generation = 0
        self.dropped = 0
        self.bookmarks: list[LineKey] = []
        self._block_lines = max(_MIN_BLOCK_LINES, min(BLOCK_LINES, max_lines // _BLOCKS_IN_MEMORY))
        self._file = SpillFile()
        self._count = 0
        self._next_serial = self._first_serial = 0
        self._observers: WeakSet[LogStoreObserver] = WeakSet()

    def subscribe(self, observer: LogStoreObserver) -> None:
        """Notify `observer` of changes for as long as it exists; the store holds only a weak reference."""
        self._observers.add(observer)

    # Queries

    def __len__(self) -> int:
        return self._count

    @property
    def spilled_lines(self) -> int:
        return sum(len(block) for block in self.blocks if not block.in_memory)

    @property
    def spilled_bytes(self) -> int:
        return self._file.size_bytes

    @property
    def serials(self) -> tuple[int, int]:
        """The lowest serial so far, and one past the highest: lines beyond are new."""
        return self._first_serial, self._next_serial

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """The timestamps of the first and last line; None if there are no lines."""
        return (self.blocks[0].stamps[0], self.blocks[-1].stamps[-1]) if self.blocks else None

    def position(self, key: LineKey) -> tuple[int, int]:
        """Return the block and index of the first line at or after a key; past the blocks if none."""
        at = bisect_left(self.blocks, key, key=lambda block: block.last)
        return at, self.blocks[at].index(key) if at < len(self.blocks) else 0

    def locate(self, key: LineKey) -> tuple[Block, int]:
        """Return the block of a line and its index there. Raises KeyError."""
        at, index = self.position(key)
        if at == len(self.blocks) or self.blocks[at].key(index) != key:
            raise KeyError(key)
        return self.blocks[at], index

    def entry(self, key: LineKey) -> LogEntry:
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
        texts = block.texts()
        for index in indices:
            yield self._entry(block, index, texts[index])

    def entries_after(self, key: LineKey) -> Iterator[LogEntry]:
        at, index = self.position(LineKey(key.time_ns, key.serial + 1))
        for block in self.blocks[at:]:
            yield from self.entries(block, range(index, len(block)))
            index = 0

    @property
    def first_error(self) -> LineKey | None:
        return self.error_after(None)

    def error_after(self, key: LineKey | None, *, backwards: bool = False) -> LineKey | None:
        """Return the first error line after a line, or the last one before it; of all lines if None."""
        errors, blocks = self.attribute_table.error_codes, self.blocks
        at = (len(blocks) if backwards else 0) if key is None else self.position(key)[0]
        for block in blocks[at::-1] if backwards else blocks[at:]:
            if not block.code_set.isdisjoint(errors):
                places = range(len(block))
                for place in reversed(places) if backwards else places:
                    if block.codes[place] in errors:
                        found = block.key(place)
                        if key is None or (found < key if backwards else found > key):
                            return found
        return None

    # Changes

    def append(self, batch: Sequence[LogEntry]) -> None:
        """Append newer entries. Entries older than the newest existing one are inserted by time."""
        batch = sorted(batch, key=stamp_ns)
        cut = bisect_left(batch, self.blocks[-1].stamps[-1], key=stamp_ns) if self.blocks else 0
        self._insert(batch[:cut])
        self._extend(batch[cut:])
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
        """Replace a gap marker with entries; return True if the marker was found."""
        code = self.attribute_table.gap_code(gap)
        at, index = self.position(LineKey(gap.start_ns, self._first_serial))
        for number in range(at, len(self.blocks)):
            block = self.blocks[number]
            while index < len(block) and block.stamps[index] == gap.start_ns:
                if block.codes[index] == code:
                    self._remove(number, index)
                    self.append(entries)
                    return True
                index += 1
            if index < len(block):
                break
            index = 0
        return False

    def clear(self) -> None:
        self.blocks.clear()
        self._file.clear()
        self.bookmarks.clear()
        self.dropped = self._count = 0
        self.generation += 1
        self._notify()

    def toggle_bookmark(self, key: LineKey) -> bool:
        """Toggle a bookmark; return True if it is now set."""
        if key in self.bookmarks:
            self.bookmarks.remove(key)
            return False
        insort(self.bookmarks, key)
        return True

    def _extend(self, entries: Sequence[LogEntry]) -> None:
        lines, done, count = self.attribute_table.columns(entries), 0, len(entries)
        while done < count:
            if not self.blocks or self.blocks[-1].is_sealed:
                self.blocks.append(Block())
                self.generation += 1
            block = self.blocks[-1]
            stop = min(count, done + self._block_lines - len(block))
            block.extend(lines.part(done, stop), self._next_serial)
            self._next_serial += stop - done
            done = stop
            if len(block) >= self._block_lines:
                block.seal()
        self._count += count

    def _new_block(self, entries: Sequence[LogEntry], first_serial: int) -> Block:
        block = Block()
        block.extend(self.attribute_table.columns(entries), first_serial)
        self._count += len(block)
        return block

    def _prepend(self, entries: Sequence[LogEntry]) -> None:
        for high in range(len(entries), 0, -self._block_lines):
            part = entries[max(0, high - self._block_lines) : high]
            self._first_serial -= len(part)
            block = self._new_block(part, self._first_serial)
            if self.blocks and len(self.blocks[0]) + len(block) <= self._block_lines:
                self.blocks[0].merge(block)  # small pages of history become one block
                if len(self.blocks[0]) == self._block_lines:
                    self.blocks[0].seal()
            else:
                if self.blocks:
                    block.seal()
                self.blocks.insert(0, block)
                self.generation += 1

    def _insert(self, entries: Sequence[LogEntry]) -> None:
        """Insert entries by time, after existing entries of the same time. The store is not empty."""
        groups: dict[int, list[LogEntry]] = {}
        for entry in entries:
            at = bisect_right(self.blocks, stamp_ns(entry), key=lambda block: block.stamps[0]) - 1
            groups.setdefault(max(0, at), []).append(entry)
        for at in sorted(groups, reverse=True):
            block = self.blocks[at]
            block.merge(self._new_block(groups[at], self._next_serial))
            self._next_serial += len(groups[at])
            if len(block) >= self._block_lines:
                block.seal()
            if len(block) > 2 * self._block_lines:
                self.blocks[at + 1 : at + 1] = block.split(self._block_lines)
                self.generation += 1

    def _remove(self, number: int, index: int) -> None:
        block = self.blocks[number]
        if block.key(index) in self.bookmarks:
            self.bookmarks.remove(block.key(index))
        block.remove(index)
        self._count -= 1
        if not len(block):
            del self.blocks[number]
            self.generation += 1

    def _make_room(self) -> None:
        """Move old texts to the file until memory is within the limit.

        If the file cannot grow, its oldest blocks are dropped to make space; without a file, the oldest
        blocks in memory are dropped.
        """
        excess = self._count - self.spilled_lines - self.max_lines
        for block in self.blocks[:-1]:
            if excess <= 0:
                break
            if block.in_memory:
                excess -= len(block)
                self._spill_or_drop(block)

    def _spill_or_drop(self, block: Block) -> None:
        while block in self.blocks:
            try:
                block.spill(self._file)
            except OSError:
                self._drop_oldest()
            else:
                return

    def _drop_oldest(self) -> None:
        oldest = self.blocks.pop(0)
        oldest.discard()
        self.generation += 1
        self.dropped += len(oldest)
        self._count -= len(oldest)
        low = self.blocks[0].first
        self.bookmarks = [key for key in self.bookmarks if key >= low]

    def _notify(self) -> None:
        if self._count > self.max_lines:
            self._make_room()
        for observer in list(self._observers):
            observer.lines_changed()
