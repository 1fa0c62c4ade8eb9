"""Sealed blocks of lines in an unnamed temporary file, for logs that exceed memory."""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, NamedTuple

from tui.widgets.log_view.block import Block

_CACHED_BLOCKS = 8

Texts = bytes | mmap.mmap
"""Buffer that holds messages: bytes in memory, or a map of the file."""


@dataclass(frozen=True, slots=True)
class SpillExtent:
    """Location of a block in the file."""

    offset: int
    columns_bytes: int
    text_bytes: int

    @property
    def size_bytes(self) -> int:
        return self.columns_bytes + self.text_bytes


class SpillFile:
    """A temporary file that only its owner can read.

    It has no name from the start (on systems that allow it), so it disappears with the process, however
    that ends.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._end = 0
        self._free: list[tuple[int, int]] = []  # offset and size of free ranges, in order
        self._cache: OrderedDict[SpillExtent, Block] = OrderedDict()
        self._map: mmap.mmap | None = None

    @property
    def size_bytes(self) -> int:
        return self._end

    def write(self, block: Block) -> SpillExtent:
        """Write a sealed block into free space, or at the end.

        Raises OSError, for example if the disk is full.
        """
        if self._file is None:
            # Open for as long as the view exists; closed by the finalizer.
            self._file = tempfile.TemporaryFile(prefix="bt-tui-log-", buffering=0)  # noqa: SIM115
            weakref.finalize(self, self._file.close)
        columns, text = block.to_pieces()
        size_bytes = len(columns) + len(text)
        at = next((at for at, (_, room) in enumerate(self._free) if room >= size_bytes), None)
        offset = self._end if at is None else self._free[at][0]
        record = SpillExtent(offset, len(columns), len(text))
        try:
            for piece in (columns, text):
                rest = memoryview(piece)
                while rest:
                    done = os.pwrite(self._file.fileno(), rest, offset)
                    rest, offset = rest[done:], offset + done
        except OSError:
            if at is None:
                with suppress(OSError):  # discard the partial write to free its space
                    self._file.truncate(self._end)
            raise
        if at is None:
            self._end = offset
        else:
            room = self._free[at][1] - size_bytes
            self._free[at : at + 1] = [(offset, room)] if room else []
        return record

    def free(self, record: SpillExtent) -> None:
        self._cache.pop(record, None)
        self._free.append((record.offset, record.size_bytes))
        self._free.sort()
        joined: list[tuple[int, int]] = []
        for offset, room in self._free:
            if joined and sum(joined[-1]) == offset:
                begin, before = joined.pop()
                joined.append((begin, before + room))
            else:
                joined.append((offset, room))
        self._free = joined

    def read(self, record: SpillExtent) -> Block:
        """Read a block; recent ones are cached. Raises OSError."""
        block = self._cache.get(record)
        if block is not None:
            self._cache.move_to_end(record)
            return block
        columns = self._read(record.offset, record.columns_bytes)
        text = self._read(record.offset + record.columns_bytes, record.text_bytes)
        block = self._cache[record] = Block.from_pieces(columns, text)
        if len(self._cache) > _CACHED_BLOCKS:
            self._cache.popitem(last=False)
        return block

    def texts(self, record: SpillExtent) -> tuple[Texts, int, int]:
        """Return the buffer with a block's messages, and their start and end offsets. Raises OSError.

        The file is memory-mapped, so that searching copies nothing.
        """
        begin = record.offset + record.columns_bytes
        stop = begin + record.text_bytes
        if (self._map is None or len(self._map) < stop) and self._file is not None:
            try:
                self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
            except (OSError, ValueError):  # the file system does not support mmap
                self._map = None
        if self._map is None or len(self._map) < stop:
            return self._read(begin, record.text_bytes), 0, record.text_bytes
        return self._map, begin, stop

    def _read(self, offset: int, size_bytes: int) -> bytes:
        if self._file is None:
            raise OSError("there is no file of older lines")
        data = os.pread(self._file.fileno(), size_bytes, offset)
        while len(data) < size_bytes:
            more = os.pread(self._file.fileno(), size_bytes - len(data), offset + len(data))
            if not more:
                raise OSError("the file of older lines ends too early")
            data += more
        return data

    def take(self, record: SpillExtent) -> Block:
        """Read a block and free its space, in order to modify it. Raises OSError."""
        block = self.read(record)
        self.free(record)
        return block

    def clear(self) -> None:
        self._cache.clear()
        self._free.clear()
        self._end = 0
        self._map = None  # before truncating: nothing may read beyond the end
        if self._file is not None:
            self._file.truncate(0)


class RawText(NamedTuple):
    """Messages of a block as UTF-8, each followed by ``SEPARATOR``: ``data[begin:stop]``.

    Attributes:
        data: Bytes in memory, or a map of the file.
        begin: Start offset.
        stop: End offset.
        is_ascii: True if all messages are ASCII.
        has_escapes: True if a message may contain an escape sequence.
    """

    data: Texts
    begin: int
    stop: int
    is_ascii: bool
    has_escapes: bool


class StoredBlock:
    """A block of a store.

    Attributes:
        codes: Codes of its lines; may include extra codes after lines were removed.
    """

    __slots__ = ("_block", "_count", "_first_ns", "_has_escapes", "_is_ascii", "_last_ns", "_record", "codes")

    def __init__(self, block: Block) -> None:
        self._block: Block | None = block
        self._record: SpillExtent | None = None
        self._count = self._first_ns = self._last_ns = 0
        self._is_ascii, self._has_escapes = False, True
        self.codes: set[int] = set(block.codes)
        self._note(block)

    def __len__(self) -> int:
        return self._count

    @property
    def first_ns(self) -> int:
        """Time of the first line, epoch nanoseconds."""
        return self._first_ns

    @property
    def last_ns(self) -> int:
        """Time of the last line, epoch nanoseconds."""
        return self._last_ns

    @property
    def in_memory(self) -> bool:
        return self._block is not None

    @property
    def is_sealed(self) -> bool:
        return self._block is None or self._block.is_sealed

    def load(self, spill: SpillFile) -> Block:
        if self._block is not None:
            return self._block
        assert self._record is not None
        return spill.read(self._record)

    def raw(self, spill: SpillFile) -> RawText | None:
        """Return the raw messages for searching without loading the block; None while it is open."""
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
        """Append lines. The block must be in memory."""
        assert self._block is not None
        self._block.extend(stamps, codes, texts, request_ids)
        self.codes.update(codes)
        self._note(self._block)

    def prepend_all(
        self,
        spill: SpillFile,
        stamps: Sequence[int],
        codes: Sequence[int],
        texts: Sequence[str],
        request_ids: Sequence[str | None] | None,
    ) -> None:
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
        """Insert a line before `index`. This reopens the block."""
        block = self._own(spill)
        block.insert(index, stamp, code, text, request_id)
        self.codes.add(code)
        self._note(block)

    def remove(self, spill: SpillFile, index: int) -> None:
        """Remove a line. This reopens the block."""
        block = self._own(spill)
        block.remove(index)
        self._note(block)

    def parts(self, lines: int) -> list[StoredBlock]:
        """Split into blocks of at most `lines` lines; all are sealed except a last one that is not full."""
        assert self._block is not None
        blocks = [self._block]
        while len(blocks[-1]) > lines:
            blocks.append(blocks[-1].split(lines))
        for block in blocks[:-1]:
            block.seal()
        if len(blocks[-1]) >= lines:
            blocks[-1].seal()
        return [StoredBlock(block) for block in blocks]

    def seal(self) -> None:
        if self._block is not None:
            self._block.seal()

    def spill(self, spill: SpillFile) -> None:
        """Write the lines to the file and release the memory. Raises OSError."""
        assert self._block is not None
        self._block.seal()
        self._record = spill.write(self._block)
        self._is_ascii, self._has_escapes = self._block.is_ascii, self._block.has_escapes
        self._block = None

    def discard(self, spill: SpillFile) -> None:
        """Free the block's space in the file. Its lines can no longer be read."""
        if self._record is not None:
            spill.free(self._record)

    def _own(self, spill: SpillFile) -> Block:
        if self._block is None:
            assert self._record is not None
            self._block = spill.take(self._record)
            self._record = None
        return self._block

    def _note(self, block: Block) -> None:
        self._count = len(block)
        if self._count:
            self._first_ns, self._last_ns = block.stamps[0], block.stamps[-1]
