"""A block of lines and what is known of it without reading it, wherever it is: in memory or in the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tui.widgets.log_view.block import Block
from tui.widgets.log_view.spill import Record, SpillFile, Texts


class RawText(NamedTuple):
    """The messages of a block as UTF-8 in one piece, a ``SEPARATOR`` after each: ``data[begin:stop]``.

    Attributes:
        data: memory, or a map of the file.
        begin: where they begin in it.
        stop: where they end.
        is_ascii: whether all are ASCII.
        has_escapes: whether one may hold an escape sequence.
    """

    data: Texts
    begin: int
    stop: int
    is_ascii: bool
    has_escapes: bool


class Chapter:
    """One block of a store.

    Attributes:
        codes: which codes its lines have; a superset once lines were taken out.
    """

    __slots__ = ("_block", "_count", "_first_ns", "_has_escapes", "_is_ascii", "_last_ns", "_record", "codes")

    def __init__(self, block: Block) -> None:
        self._block: Block | None = block
        self._record: Record | None = None
        self._count = self._first_ns = self._last_ns = 0
        self._is_ascii, self._has_escapes = False, True
        self.codes: set[int] = set(block.codes)
        self._note(block)

    def __len__(self) -> int:
        return self._count

    @property
    def first_ns(self) -> int:
        """When its first line was logged."""
        return self._first_ns

    @property
    def last_ns(self) -> int:
        """When its last line was logged."""
        return self._last_ns

    @property
    def in_memory(self) -> bool:
        """Whether the lines are in memory."""
        return self._block is not None

    @property
    def is_sealed(self) -> bool:
        """Whether no line comes at its end any more."""
        return self._block is None or self._block.is_sealed

    def load(self, spill: SpillFile) -> Block:
        """The lines, to read."""
        if self._block is not None:
            return self._block
        assert self._record is not None
        return spill.read(self._record)

    def raw(self, spill: SpillFile) -> RawText | None:
        """The messages, to look for something in all of them without reading them; None while it is open."""
        block = self._block
        if block is not None:
            if not block.is_sealed:
                return None
            return RawText(block.data, 0, len(block.data), block.is_ascii, block.has_escapes)
        assert self._record is not None
        data, begin, stop = spill.texts(self._record)
        return RawText(data, begin, stop, self._is_ascii, self._has_escapes)

    def extend(
        self,
        stamps: Sequence[int],
        codes: Sequence[int],
        texts: Sequence[str],
        request_ids: Sequence[str | None] | None,
    ) -> None:
        """Add lines at the end; it must be in memory."""
        assert self._block is not None
        self._block.extend(stamps, codes, texts, request_ids)
        self.codes.update(codes)
        self._note(self._block)

    def put_before(
        self,
        spill: SpillFile,
        stamps: Sequence[int],
        codes: Sequence[int],
        texts: Sequence[str],
        request_ids: Sequence[str | None] | None,
    ) -> None:
        """Add lines before all others."""
        after, block = self._own(spill), Block()
        sealed = after.is_sealed
        ids = [after.request_ids.get(index) for index in range(len(after))] if after.request_ids else None
        block.extend(stamps, codes, texts, request_ids)
        block.extend(after.stamps, after.codes, after.texts(), ids)
        if sealed:
            block.seal()
        self._block = block
        self.codes.update(codes)
        self._note(block)

    def insert(
        self, spill: SpillFile, index: int, stamp: int, code: int, text: str, request_id: str | None
    ) -> None:
        """Put a line before another; the block is open then."""
        block = self._own(spill)
        block.insert(index, stamp, code, text, request_id)
        self.codes.add(code)
        self._note(block)

    def remove(self, spill: SpillFile, index: int) -> None:
        """Take a line out; the block is open then."""
        block = self._own(spill)
        block.remove(index)
        self._note(block)

    def parts(self, lines: int) -> list[Chapter]:
        """The block cut into blocks of so many lines, all sealed but a last one that is not full."""
        assert self._block is not None
        blocks = [self._block]
        while len(blocks[-1]) > lines:
            blocks.append(blocks[-1].split(lines))
        for block in blocks[:-1]:
            block.seal()
        if len(blocks[-1]) >= lines:
            blocks[-1].seal()
        return [Chapter(block) for block in blocks]

    def seal(self) -> None:
        """Keep the texts in one piece from now on."""
        if self._block is not None:
            self._block.seal()

    def spill(self, spill: SpillFile) -> None:
        """Write the lines to the file and let go of them. Raises OSError."""
        assert self._block is not None
        self._block.seal()
        self._record = spill.write(self._block)
        self._is_ascii, self._has_escapes = self._block.is_ascii, self._block.has_escapes
        self._block = None

    def discard(self, spill: SpillFile) -> None:
        """Give its place in the file back: nobody asks for its lines any more."""
        if self._record is not None:
            spill.free(self._record)

    def _own(self, spill: SpillFile) -> Block:
        """The lines, to change: what is in the file does not count any more."""
        if self._block is None:
            assert self._record is not None
            self._block = spill.take(self._record)
            self._record = None
        return self._block

    def _note(self, block: Block) -> None:
        self._count = len(block)
        if self._count:
            self._first_ns, self._last_ns = block.stamps[0], block.stamps[-1]
