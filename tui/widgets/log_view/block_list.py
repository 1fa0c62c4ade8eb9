"""The blocks of a log in order: lookup by line number and time, storage in memory or in a file."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate

from tui.widgets.log_view.block import BLOCK_LINES, Block, Columns
from tui.widgets.log_view.stored_block import RawText, SpillFile, StoredBlock

_BLOCKS_IN_MEMORY = 16  # a small limit gets small blocks, so that it can be met
_MIN_BLOCK_LINES = 16


class BlockList:
    """Lines as columns in blocks, with at most about ``max_lines`` lines in memory.

    Attributes:
        max_lines: Maximum number of lines in memory; older blocks go to a file.
    """

    def __init__(self, max_lines: int) -> None:
        self.max_lines = max_lines
        self._block_lines = max(_MIN_BLOCK_LINES, min(BLOCK_LINES, max_lines // _BLOCKS_IN_MEMORY))
        self._spill = SpillFile()
        self._stored_blocks: list[StoredBlock] = []
        self._starts: list[int] = []
        self._end = 0
        self._in_memory = 0

    # --- queries ------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._end - self.first

    @property
    def first(self) -> int:
        return self._starts[0] if self._starts else self._end

    @property
    def end(self) -> int:
        """The number of the newest line plus one."""
        return self._end

    @property
    def in_memory(self) -> int:
        return self._in_memory

    @property
    def spilled_bytes(self) -> int:
        return self._spill.size_bytes

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """The timestamps of the first and last line; None if there are no lines."""
        if not self._stored_blocks:
            return None
        return self._stored_blocks[0].first_ns, self._stored_blocks[-1].last_ns

    def _at(self, seq: int) -> int:
        return bisect_right(self._starts, seq) - 1

    def block(self, seq: int) -> tuple[Block, int]:
        """Return the block that contains a line, and the number of its first line. Raises IndexError."""
        if not self.first <= seq < self._end:
            raise IndexError(seq)
        at = self._at(seq)
        return self._stored_blocks[at].load(self._spill), self._starts[at]

    def stored_blocks(self, low: int, high: int) -> Iterator[tuple[int, StoredBlock]]:
        """Yield (number of first line, block) for each block with lines in ``low <= seq < high``."""
        at = max(0, self._at(low))
        while low < high and at < len(self._starts) and self._starts[at] < high:
            yield self._starts[at], self._stored_blocks[at]
            at += 1

    def stored_blocks_reversed(self, low: int, high: int) -> Iterator[tuple[int, StoredBlock]]:
        """Yield the same blocks, newest first."""
        at = self._at(high - 1)
        while low < high and at >= 0 and self._starts[at] + len(self._stored_blocks[at]) > low:
            yield self._starts[at], self._stored_blocks[at]
            at -= 1

    def load(self, stored_block: StoredBlock) -> Block:
        return stored_block.load(self._spill)

    def raw(self, stored_block: StoredBlock) -> RawText | None:
        """Return the raw messages of a block; None while it is open."""
        return stored_block.raw(self._spill)

    def seq_at(self, time_ns: int) -> int:
        """Return the number of the first line at or after a time, or ``end`` if there is none."""
        at = bisect_left(self._stored_blocks, time_ns, key=lambda stored_block: stored_block.last_ns)
        if at == len(self._stored_blocks):
            return self._end
        return self._starts[at] + bisect_left(self._stored_blocks[at].load(self._spill).stamps, time_ns)

    def first_with(self, wanted: set[int], seq: int) -> int | None:
        """Return the first line at or after `seq` that has one of these codes."""
        for start, stored_block in self.stored_blocks(seq, self._end):
            if stored_block.codes.isdisjoint(wanted):
                continue
            codes = stored_block.load(self._spill).codes
            for index in range(max(0, seq - start), len(codes)):
                if codes[index] in wanted:
                    return start + index
        return None

    def last_with(self, wanted: set[int], seq: int) -> int | None:
        """Return the last line before `seq` that has one of these codes."""
        for start, stored_block in self.stored_blocks_reversed(self.first, seq):
            if stored_block.codes.isdisjoint(wanted):
                continue
            codes = stored_block.load(self._spill).codes
            for index in range(min(len(codes), seq - start) - 1, -1, -1):
                if codes[index] in wanted:
                    return start + index
        return None

    # --- changes ------------------------------------------------------------------------------

    def extend(self, columns: Columns) -> None:
        """Append lines that are not older than the existing ones."""
        count = len(columns[0])
        room = 0
        if self._stored_blocks and not self._stored_blocks[-1].is_sealed:
            room = self._block_lines - len(self._stored_blocks[-1])
        done = 0
        while done < count:
            size = min(room or self._block_lines, count - done)
            self._grow(_part(columns, done, done + size))
            done, room = done + size, 0

    def _grow(self, columns: Columns) -> None:
        if not self._stored_blocks or self._stored_blocks[-1].is_sealed:
            self._stored_blocks.append(StoredBlock(Block()))
            self._starts.append(self._end)
        last = self._stored_blocks[-1]
        last.extend(*columns)
        self._end += len(columns[0])
        self._in_memory += len(columns[0])
        if len(last) >= self._block_lines:
            last.seal()

    def prepend_all(self, columns: Columns) -> None:
        """Prepend lines that are not newer than the existing ones."""
        count = len(columns[0])
        if self._stored_blocks and len(self._stored_blocks[0]) + count <= self._block_lines:
            # Merge small pages of history into one block.
            self._stored_blocks[0].prepend_all(self._spill, *columns)
            self._starts[0] -= count
            self._recount()
            return
        for high in range(count, 0, -self._block_lines):
            part = _part(columns, max(0, high - self._block_lines), high)
            stored_block = StoredBlock(Block())
            stored_block.extend(*part)
            stored_block.seal()
            self._starts.insert(0, self.first - len(part[0]))
            self._stored_blocks.insert(0, stored_block)
            self._in_memory += len(part[0])

    def insert(self, columns: Columns) -> list[int]:
        """Insert lines (in time order) by time, after existing lines of the same time.

        Return the old numbers of the lines that each was inserted before. The log must not be empty.
        """
        stamps, codes, texts, ids = columns
        places: list[int] = []
        lowest = len(self._stored_blocks)
        targets = [
            max(
                0,
                bisect_right(self._stored_blocks, stamp, key=lambda stored_block: stored_block.first_ns) - 1,
            )
            for stamp in stamps
        ]
        for number, (at, stamp) in enumerate(zip(targets, stamps, strict=True)):
            lowest = min(lowest, at)
            stored_block = self._stored_blocks[at]
            # lines already inserted into this block, all of them earlier
            already = number - targets.index(at)
            index = bisect_right(stored_block.load(self._spill).stamps, stamp)
            places.append(self._starts[at] + index - already)
            stored_block.insert(
                self._spill, index, stamp, codes[number], texts[number], ids[number] if ids else None
            )
        for at in sorted(set(targets), reverse=True):
            if len(self._stored_blocks[at]) > 2 * self._block_lines:
                self._stored_blocks[at : at + 1] = self._stored_blocks[at].parts(self._block_lines)
            elif at < len(self._stored_blocks) - 1 or len(self._stored_blocks[at]) >= self._block_lines:
                self._stored_blocks[at].seal()
        self._recount(lowest)
        return places

    def remove(self, seq: int) -> None:
        """Remove a line; the numbers after it decrease by one."""
        at = self._at(seq)
        stored_block = self._stored_blocks[at]
        stored_block.remove(self._spill, seq - self._starts[at])
        if len(stored_block):
            if at < len(self._stored_blocks) - 1:
                stored_block.seal()
            self._recount(at)
            return
        start = self._starts[at]
        del self._stored_blocks[at], self._starts[at]
        if at < len(self._starts):
            self._starts[at] = start
            self._recount(at)
        else:
            self._end -= 1
            self._recount(max(0, at - 1))

    def _recount(self, at: int = 0) -> None:
        if self._stored_blocks:
            lengths = [len(stored_block) for stored_block in self._stored_blocks[at:]]
            self._starts[at:] = list(accumulate(lengths[:-1], initial=self._starts[at]))
            self._end = self._starts[-1] + lengths[-1]
        self._in_memory = sum(
            len(stored_block) for stored_block in self._stored_blocks if stored_block.in_memory
        )

    def make_room(self) -> int:
        """Write the oldest blocks in memory to the file until memory is within the limit.

        If the file cannot grow, its oldest blocks are dropped to make space; without a file, the oldest
        blocks in memory are dropped. Return the number of dropped lines.
        """
        before = self.first
        if self._in_memory <= self.max_lines:
            return 0
        for stored_block in self._stored_blocks[:-1]:
            if self._in_memory <= self.max_lines:
                break
            if stored_block.in_memory:
                self._spill_or_drop(stored_block)
        return self.first - before

    def _spill_or_drop(self, stored_block: StoredBlock) -> None:
        while True:
            try:
                stored_block.spill(self._spill)
            except OSError:
                oldest = self._stored_blocks.pop(0)
                del self._starts[0]
                if oldest.in_memory:
                    self._in_memory -= len(oldest)
                oldest.discard(self._spill)
                if oldest is stored_block:
                    return
            else:
                self._in_memory -= len(stored_block)
                return

    def clear(self) -> None:
        self._stored_blocks.clear()
        self._starts.clear()
        self._spill.clear()
        self._end = self._in_memory = 0


def _part(columns: Columns, low: int, high: int) -> Columns:
    stamps, codes, texts, ids = columns
    if low == 0 and high == len(stamps):
        return columns
    return stamps[low:high], codes[low:high], texts[low:high], ids[low:high] if ids is not None else None
