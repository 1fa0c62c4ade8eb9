"""Blocks of lines in a file without a name, for what does not fit into memory."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from typing import IO

from tui.widgets.log_view.block import Block

_CACHED_BLOCKS = 8


@dataclass(frozen=True, slots=True)
class Record:
    """Where a block lies in the file."""

    offset: int
    columns_bytes: int
    text_bytes: int


class SpillFile:
    """A temporary file, readable by its owner alone.

    It has no name from the moment it is made (on systems that can), so that it is gone when the
    process is, however that ends.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._end = 0
        self._cache: OrderedDict[Record, Block] = OrderedDict()

    @property
    def size_bytes(self) -> int:
        """Bytes written."""
        return self._end

    def write(self, block: Block) -> Record:
        """Put a sealed block at the end. Raises OSError, such as for a full disk."""
        if self._file is None:
            # Owned for as long as the view lives; closed by the finalizer.
            self._file = tempfile.TemporaryFile(prefix="bt-tui-log-", buffering=0)  # noqa: SIM115
            weakref.finalize(self, self._file.close)
        columns, text = block.to_pieces()
        offset = self._end
        for piece in (columns, text):
            rest = memoryview(piece)
            while rest:
                done = os.pwrite(self._file.fileno(), rest, offset)
                rest, offset = rest[done:], offset + done
        record = Record(self._end, len(columns), len(text))
        self._end = offset
        return record

    def read(self, record: Record) -> Block:
        """A block that was written; those read lately are at hand. Raises OSError."""
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

    def take(self, record: Record) -> Block:
        """A block that was written, to be changed. Raises OSError."""
        block = self.read(record)
        del self._cache[record]
        return block

    def clear(self) -> None:
        """Forget everything."""
        self._cache.clear()
        self._end = 0
        if self._file is not None:
            self._file.truncate(0)
