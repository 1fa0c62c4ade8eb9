"""The lines that log views show: all of them, in time order, cheap to add to anywhere.

A line has a number (``seq``) that grows with its time. Older lines that are put before all others get
smaller numbers, negative ones too; only a late line that is put between others moves the numbers of
those after it, and whoever remembers numbers is told.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Protocol
from weakref import WeakSet

from api_client.streams.records import LogEntry, LogGap, LogLine, stamp_ns
from tui.widgets.log_view.block import BLOCK_LINES, Block
from tui.widgets.log_view.chapter import Chapter
from tui.widgets.log_view.spill import SpillFile
from tui.widgets.log_view.vocabulary import Vocabulary, Word, stamps_of

DEFAULT_MAX_LINES = 200_000
_BLOCKS_IN_MEMORY = 16  # a small store has small blocks, so that it can hold to its limit
_LEAST_BLOCK_LINES = 16


def _in_order(entries: Sequence[LogEntry]) -> Sequence[LogEntry]:
    """Entries in time order; almost always they are."""
    stamps = stamps_of(entries)
    return entries if stamps == sorted(stamps) else sorted(entries, key=stamp_ns)


class StoreListener(Protocol):
    """Who remembers numbers of lines and learns what becomes of them."""

    def lines_appended(self, low: int, high: int) -> None:
        """Lines ``low <= seq < high`` came at the end."""

    def lines_prepended(self, low: int, high: int) -> None:
        """Lines ``low <= seq < high`` came before all others."""

    def lines_inserted(self, places: Sequence[int]) -> None:
        """Lines came before those that had these numbers (ascending; one more than the last: at the end)."""

    def line_removed(self, seq: int) -> None:
        """A line is gone; those after it move up."""

    def lines_dropped(self, low: int) -> None:
        """All lines before ``low`` are gone."""

    def store_cleared(self) -> None:
        """All lines are gone."""


def shifted(seq: int, places: Sequence[int]) -> int:
    """The number that a line has after lines were inserted at ``places``."""
    return seq + bisect_right(places, seq)


class LogStore:
    """Log entries in blocks of columns; beyond ``max_lines`` in memory, older blocks go to a file.

    Several views may share a store. Entries are rebuilt when they are asked for.

    Attributes:
        vocabulary: what the codes of the lines mean.
        dropped: entries that had to go because the file could not be written.
        bookmarks: numbers of marked lines, ascending.
    """

    def __init__(self, max_lines: int = DEFAULT_MAX_LINES) -> None:
        if max_lines < 1:
            raise ValueError("a log store needs room for one line at least")
        self.max_lines = max_lines
        self.vocabulary = Vocabulary()
        self.dropped = 0
        self.bookmarks: list[int] = []
        self._block_lines = max(_LEAST_BLOCK_LINES, min(BLOCK_LINES, max_lines // _BLOCKS_IN_MEMORY))
        self._spill = SpillFile()
        self._chapters: list[Chapter] = []
        self._starts: list[int] = []
        self._end = 0
        self._in_memory = 0
        self._first_error: int | None = None
        self._listeners: WeakSet[StoreListener] = WeakSet()

    def subscribe(self, listener: StoreListener) -> None:
        """Tell somebody of changes from now on, for as long as it lives."""
        self._listeners.add(listener)

    # --- asking -------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._end - self.first

    @property
    def first(self) -> int:
        """The number of the oldest line."""
        return self._starts[0] if self._starts else self._end

    @property
    def end(self) -> int:
        """One more than the number of the newest line."""
        return self._end

    @property
    def spilled_lines(self) -> int:
        """How many lines are in the file."""
        return len(self) - self._in_memory

    @property
    def spilled_bytes(self) -> int:
        """How large the file is."""
        return self._spill.size_bytes

    @property
    def first_error(self) -> int | None:
        """The number of the oldest line that tells an error."""
        return self._first_error

    def locate(self, seq: int) -> tuple[Block, int]:
        """The block of a line, and its index there. Raises IndexError."""
        if not self.first <= seq < self._end:
            raise IndexError(seq)
        at = bisect_right(self._starts, seq) - 1
        return self._chapters[at].load(self._spill), seq - self._starts[at]

    def entry(self, seq: int) -> LogEntry:
        """A line or gap marker."""
        return self._entry(*self.locate(seq))

    def _entry(self, block: Block, index: int) -> LogEntry:
        word = self.vocabulary.words[block.codes[index]]
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
        """What a line shares with others; the marker itself for a gap."""
        block, index = self.locate(seq)
        return self.vocabulary.words[block.codes[index]]

    def stamp(self, seq: int) -> int:
        """When a line was logged, in epoch nanoseconds."""
        block, index = self.locate(seq)
        return block.stamps[index]

    def chapters(self, low: int, high: int) -> Iterator[tuple[int, Chapter]]:
        """The first number of each block that holds lines ``low <= seq < high``, and what is known of it."""
        at = max(0, bisect_right(self._starts, low) - 1)
        while low < high and at < len(self._starts) and self._starts[at] < high:
            yield self._starts[at], self._chapters[at]
            at += 1

    def load(self, chapter: Chapter) -> Block:
        """The lines of a block."""
        return chapter.load(self._spill)

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """The stamps of the first and the last line held; None without any."""
        if not self._chapters:
            return None
        return self._chapters[0].first_ns, self._chapters[-1].last_ns

    def entries(self, seqs: Iterable[int]) -> Iterator[LogEntry]:
        """The entries of ascending numbers, each block looked up once."""
        block, start, stop = Block(), 0, 0
        for seq in seqs:
            if not start <= seq < stop:
                at = bisect_right(self._starts, seq) - 1
                block, start = self._chapters[at].load(self._spill), self._starts[at]
                stop = start + len(block)
            yield self._entry(block, seq - start)

    def seq_at(self, time_ns: int) -> int:
        """The number of the first line at or after a time; ``end`` when there is none."""
        at = bisect_left(self._chapters, time_ns, key=lambda chapter: chapter.last_ns)
        if at == len(self._chapters):
            return self._end
        return self._starts[at] + bisect_left(self._chapters[at].load(self._spill).stamps, time_ns)

    def error_after(self, seq: int) -> int | None:
        """The next line that tells an error, the line itself included."""
        return self._first_with(self.vocabulary.error_codes, seq)

    def error_before(self, seq: int) -> int | None:
        """The nearest line that tells an error, before a line."""
        wanted = self.vocabulary.error_codes
        for start, chapter in reversed(list(self.chapters(self.first, seq))):
            if chapter.codes.isdisjoint(wanted):
                continue
            codes = chapter.load(self._spill).codes
            for index in range(min(len(codes), seq - start) - 1, -1, -1):
                if codes[index] in wanted:
                    return start + index
        return None

    def _first_with(self, wanted: set[int], seq: int) -> int | None:
        for start, chapter in self.chapters(seq, self._end):
            if chapter.codes.isdisjoint(wanted):
                continue
            codes = chapter.load(self._spill).codes
            for index in range(max(0, seq - start), len(codes)):
                if codes[index] in wanted:
                    return start + index
        return None

    # --- changing -----------------------------------------------------------------------------

    def append(self, batch: Sequence[LogEntry]) -> None:
        """Take newer entries. Those older than the newest one held go where their time belongs."""
        batch = _in_order(batch)
        late: Sequence[LogEntry] = ()
        if batch and self._chapters and stamp_ns(batch[0]) < self._chapters[-1].last_ns:
            cut = bisect_left(batch, self._chapters[-1].last_ns, key=stamp_ns)
            late, batch = batch[:cut], batch[cut:]
        if late:
            self._insert(late)
        if batch:
            low = self._end
            for begin in self._pieces(len(batch)):
                self._grow(batch[begin[0] : begin[1]])
            if self._first_error is None:
                self._first_error = self._first_with(self.vocabulary.error_codes, low)
            self._tell(lambda listener: listener.lines_appended(low, self._end))
        self._make_room()

    def _pieces(self, count: int) -> Iterator[tuple[int, int]]:
        """How so many lines are dealt out: first what the last block has room for."""
        room = 0
        if self._chapters and not self._chapters[-1].is_sealed:
            room = self._block_lines - len(self._chapters[-1])
        done = 0
        while done < count:
            size = min(room or self._block_lines, count - done)
            yield done, done + size
            done, room = done + size, 0

    def _grow(self, entries: Sequence[LogEntry]) -> None:
        if not self._chapters or self._chapters[-1].is_sealed:
            self._chapters.append(Chapter(Block()))
            self._starts.append(self._end)
        last = self._chapters[-1]
        last.extend(*self.vocabulary.columns(entries))
        self._end += len(entries)
        self._in_memory += len(entries)
        if len(last) >= self._block_lines:
            last.seal()

    def prepend(self, older: Sequence[LogEntry]) -> int:
        """Take older entries; returns how many. Those not older than all held go where they belong."""
        older = _in_order(older)
        count = len(older)
        if self._chapters:
            cut = bisect_right(older, self._chapters[0].first_ns, key=stamp_ns)
            older, between = older[:cut], older[cut:]
            if between:
                self._insert(between)
        if older:
            high = self.first
            if self._chapters and len(self._chapters[0]) + len(older) <= self._block_lines:
                # Small pages of history share a block.
                self._chapters[0].put_before(self._spill, *self.vocabulary.columns(older))
                self._starts[0] -= len(older)
                self._recount()
            else:
                for begin in range(len(older), 0, -self._block_lines):
                    part = older[max(0, begin - self._block_lines) : begin]
                    chapter = Chapter(Block())
                    chapter.extend(*self.vocabulary.columns(part))
                    chapter.seal()
                    self._chapters.insert(0, chapter)
                    self._starts.insert(0, (self._starts[0] if self._starts else high) - len(part))
                    self._in_memory += len(part)
            error = self._first_with(self.vocabulary.error_codes, self.first)
            if error is not None:
                self._first_error = error
            low = self.first
            self._tell(lambda listener: listener.lines_prepended(low, high))
        self._make_room()
        return count

    def insert(self, entries: Sequence[LogEntry]) -> None:
        """Put entries where their time belongs, after entries of the same time."""
        ordered = sorted(entries, key=stamp_ns)
        if not ordered:
            return
        if self._chapters:
            self._insert(ordered)
            self._make_room()
        else:
            self.append(ordered)

    def _insert(self, entries: Sequence[LogEntry]) -> None:
        stamps, codes, texts, ids = self.vocabulary.columns(entries)
        places: list[int] = []
        lowest = len(self._chapters)
        targets = [
            max(0, bisect_right(self._chapters, stamp, key=lambda chapter: chapter.first_ns) - 1)
            for stamp in stamps
        ]
        for number, (at, stamp) in enumerate(zip(targets, stamps, strict=True)):
            lowest = min(lowest, at)
            chapter = self._chapters[at]
            already = number - targets.index(at)  # put into this block before this one, all of them earlier
            index = bisect_right(chapter.load(self._spill).stamps, stamp)
            places.append(self._starts[at] + index - already)
            chapter.insert(
                self._spill, index, stamp, codes[number], texts[number], ids[number] if ids else None
            )
        for at in sorted(set(targets), reverse=True):
            if len(self._chapters[at]) > 2 * self._block_lines:
                parts = self._chapters[at].parts(self._block_lines)
                self._chapters[at : at + 1] = parts
            elif at < len(self._chapters) - 1 or len(self._chapters[at]) >= self._block_lines:
                self._chapters[at].seal()
        self._recount(lowest)
        self.bookmarks = [shifted(seq, places) for seq in self.bookmarks]
        if self._first_error is not None:
            self._first_error = shifted(self._first_error, places)
        if not self.vocabulary.error_codes.isdisjoint(codes):
            self._first_error = self._first_with(self.vocabulary.error_codes, self.first)
        self._tell(lambda listener: listener.lines_inserted(places))

    def _recount(self, at: int = 0) -> None:
        """Number the blocks anew from one on."""
        if self._chapters:
            lengths = [len(chapter) for chapter in self._chapters[at:]]
            self._starts[at:] = list(accumulate(lengths[:-1], initial=self._starts[at]))
            self._end = self._starts[-1] + lengths[-1]
        self._in_memory = sum(len(chapter) for chapter in self._chapters if chapter.in_memory)

    def replace_gap(self, gap: LogGap, entries: Sequence[LogEntry]) -> bool:
        """Put entries in place of a gap marker; returns whether it was there."""
        code = self.vocabulary.gap_code(gap)
        seq = self.seq_at(gap.start_ns)
        while seq < self._end and self.stamp(seq) == gap.start_ns:
            at = bisect_right(self._starts, seq) - 1
            chapter = self._chapters[at]
            if chapter.load(self._spill).codes[seq - self._starts[at]] == code:
                self._remove(at, seq)
                self.insert(entries)
                return True
            seq += 1
        return False

    def _remove(self, at: int, seq: int) -> None:
        chapter = self._chapters[at]
        chapter.remove(self._spill, seq - self._starts[at])
        if len(chapter):
            if at < len(self._chapters) - 1:
                chapter.seal()
            self._recount(at)
        else:
            start = self._starts[at]
            del self._chapters[at], self._starts[at]
            if at < len(self._starts):
                self._starts[at] = start
                self._recount(at)
            else:
                self._end -= 1
                self._recount(max(0, at - 1))
        self.bookmarks = [one - (one > seq) for one in self.bookmarks if one != seq]
        if self._first_error is not None and self._first_error > seq:
            self._first_error -= 1
        self._tell(lambda listener: listener.line_removed(seq))

    def _make_room(self) -> None:
        """Write the oldest blocks in memory to the file, as far as there are too many lines."""
        if self._in_memory <= self.max_lines:
            return
        for at, chapter in enumerate(self._chapters[:-1]):
            if self._in_memory <= self.max_lines:
                break
            if not chapter.in_memory:
                continue
            try:
                chapter.spill(self._spill)
            except OSError:
                self._drop(at + 1)
                break
            self._in_memory -= len(chapter)

    def _drop(self, chapters: int) -> None:
        """Forget the oldest blocks: there is no room for them anywhere."""
        before = self.first
        del self._chapters[:chapters], self._starts[:chapters]
        low = self.first
        self.dropped += low - before
        self._recount()
        self.bookmarks = [seq for seq in self.bookmarks if seq >= low]
        if self._first_error is not None and self._first_error < low:
            self._first_error = self._first_with(self.vocabulary.error_codes, low)
        self._tell(lambda listener: listener.lines_dropped(low))

    def clear(self) -> None:
        """Forget everything."""
        self._chapters.clear()
        self._starts.clear()
        self._spill.clear()
        self.vocabulary = Vocabulary()
        self.bookmarks.clear()
        self._end = self._in_memory = self.dropped = 0
        self._first_error = None
        self._tell(lambda listener: listener.store_cleared())

    def toggle_bookmark(self, seq: int) -> bool:
        """Mark a line, or take its mark away; returns whether it is marked now."""
        at = bisect_left(self.bookmarks, seq)
        if at < len(self.bookmarks) and self.bookmarks[at] == seq:
            del self.bookmarks[at]
            return False
        insort(self.bookmarks, seq)
        return True

    def _tell(self, what: Callable[[StoreListener], None]) -> None:
        for listener in list(self._listeners):
            what(listener)
