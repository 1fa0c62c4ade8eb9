"""A block of stored log lines as columns: times, codes of attributes, and texts.

Lines have few different attributes (node, level, lateness), so each combination is stored once and lines hold
its code. Gap markers have their own codes.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from struct import Struct

from api_client.models.logs import LogEntry, LogGap, LogLine, stamp_ns
from tui.analysis.logs.levels import RANKS, level_of
from tui.analysis.logs.repeats import BatchPrefilter

ERROR_RANK = RANKS["ERROR"]


@dataclass(frozen=True, slots=True)
class LineAttributes:
    """Attributes shared by many lines.

    Attributes:
        replica: Node name.
        level: Level as sent by the server.
        late: True for late lines, which arrived after newer ones.
        shown_level: The server's level normalized, else the detected one; empty for none.
    """

    replica: str | None
    level: str | None
    late: bool
    shown_level: str

    @property
    def rank(self) -> int:
        return RANKS[self.shown_level]


def stamps_of(entries: Sequence[LogEntry]) -> list[int]:
    """Return the times of entries in epoch nanoseconds."""
    try:
        return [entry.timestamp_ns for entry in entries]  # type: ignore[union-attr]  # gaps are rare
    except AttributeError:
        return [stamp_ns(entry) for entry in entries]


Word = LineAttributes | LogGap
Columns = tuple[list[int], list[int], list[str], list[str | None] | None]
"""Timestamps, codes, messages and request IDs (None if no line has one)."""


class AttributeTable:
    """Two-way mapping between codes and shared attributes or gap markers."""

    def __init__(self) -> None:
        self.words: list[Word] = []
        self.error_codes: set[int] = set()
        """Codes of error lines."""
        self.gap_codes: set[int] = set()
        self._codes: dict[tuple[str | None, str | None, bool, str] | LogGap, int] = {}

    def columns(self, entries: Sequence[LogEntry]) -> Columns:
        lines = [entry for entry in entries if isinstance(entry, LogLine)]
        texts = [line.message for line in lines]
        told = BatchPrefilter(texts).level_candidates()
        levels = [
            level_of(line.message, line.level) if line.level is not None or place in told else ""
            for place, line in enumerate(lines)
        ]
        keys = [
            (line.replica, line.level, line.late, shown) for line, shown in zip(lines, levels, strict=True)
        ]
        known = self._codes
        for key in set(keys):
            if key not in known:
                self._learn(LineAttributes(*key), key)
        codes = [known[key] for key in keys]
        ids: list[str | None] | None = None
        if any(line.request_id is not None for line in lines):
            ids = [line.request_id for line in lines]
        if len(lines) < len(entries):
            for index, entry in enumerate(entries):
                if isinstance(entry, LogGap):
                    codes.insert(index, self.gap_code(entry))
                    texts.insert(index, "")
                    if ids is not None:
                        ids.insert(index, None)
        return stamps_of(entries), codes, texts, ids

    def gap_code(self, gap: LogGap) -> int:
        code = self._codes.get(gap)
        return self._learn(gap, gap) if code is None else code

    def _learn(self, word: Word, key: tuple[str | None, str | None, bool, str] | LogGap) -> int:
        code = self._codes[key] = len(self.words)
        self.words.append(word)
        if isinstance(word, LogGap):
            self.gap_codes.add(code)
        elif word.rank >= ERROR_RANK:
            self.error_codes.add(code)
        return code


BLOCK_LINES = 2048
"""Lines of a full block: few enough to search or modify one in a millisecond."""

SEPARATOR = "\n"
"""Ends each message of a sealed block. Messages may contain it too, so offsets are stored."""

_HEADER = Struct("<II??")
_ESCAPE = b"\x1b"


class Block:
    """Lines in time order: timestamps, codes of shared attributes, and texts.

    An open block keeps a list of texts and can grow. A sealed one keeps them as one UTF-8 string, which
    takes half the memory, is searched at memory speed, and leaves the garbage collector nothing to visit.
    Lone surrogates survive.

    Attributes:
        stamps: Epoch nanoseconds, ascending.
        codes: Shared attributes of the lines, as codes of an ``AttributeTable``.
        request_ids: Request IDs by line index, for the few lines that have one.
        has_escapes: True if a message may contain an escape sequence; only reliable for a sealed block.
        is_ascii: True if all messages are known to be ASCII.
    """

    __slots__ = (
        *("_data", "_offsets", "_texts", "codes", "has_escapes", "is_ascii", "request_ids"),
        "stamps",
    )

    def __init__(self) -> None:
        self.stamps: array[int] = array("q")
        self.codes: array[int] = array("I")
        self.request_ids: dict[int, str] = {}
        self._texts: list[str] | None = []
        self._data = b""
        self._offsets: array[int] = array("I")
        self.has_escapes, self.is_ascii = True, False

    def __len__(self) -> int:
        return len(self.stamps)

    @property
    def is_sealed(self) -> bool:
        """True if the texts are stored in one piece."""
        return self._texts is None

    @property
    def data(self) -> bytes:
        """All messages of a sealed block, each followed by ``SEPARATOR``."""
        return self._data

    def extend(
        self,
        stamps: Sequence[int],
        codes: Sequence[int],
        texts: Sequence[str],
        request_ids: Sequence[str | None] | None = None,
    ) -> None:
        first = len(self)
        self.stamps.extend(stamps)
        self.codes.extend(codes)
        self._open().extend(texts)
        if request_ids is not None:
            self.request_ids |= {
                first + index: value for index, value in enumerate(request_ids) if value is not None
            }

    def insert(self, index: int, stamp: int, code: int, text: str, request_id: str | None) -> None:
        self._open().insert(index, text)
        self.stamps.insert(index, stamp)
        self.codes.insert(index, code)
        if self.request_ids:
            self.request_ids = {at + (at >= index): value for at, value in self.request_ids.items()}
        if request_id is not None:
            self.request_ids[index] = request_id

    def remove(self, index: int) -> None:
        del self._open()[index]
        del self.stamps[index]
        del self.codes[index]
        if self.request_ids:
            self.request_ids = {
                at - (at > index): value for at, value in self.request_ids.items() if at != index
            }

    def split(self, index: int) -> Block:
        rest = Block()
        texts = self._open()
        rest.extend(self.stamps[index:], self.codes[index:], texts[index:])
        rest.request_ids = {at - index: value for at, value in self.request_ids.items() if at >= index}
        self.request_ids = {at: value for at, value in self.request_ids.items() if at < index}
        del texts[index:], self.stamps[index:], self.codes[index:]
        return rest

    def text(self, index: int) -> str:
        if self._texts is not None:
            return self._texts[index]
        begin = self._offsets[index]
        return self._data[begin : self._offsets[index + 1] - 1].decode("utf-8", "surrogatepass")

    def texts(self) -> list[str]:
        if self._texts is not None:
            return self._texts
        data, offsets = self._data, self._offsets
        texts = data.decode("utf-8", "surrogatepass").split(SEPARATOR)
        if len(texts) == len(self) + 1:  # no message contains the separator
            texts.pop()
            return texts
        return [
            data[offsets[at] : offsets[at + 1] - 1].decode("utf-8", "surrogatepass")
            for at in range(len(self))
        ]

    def seal(self) -> None:
        """Store the texts in one piece. Inserting lines later is possible but reopens the block."""
        if self._texts is None:
            return
        joined = SEPARATOR.join(self._texts) + SEPARATOR
        lengths: Iterable[int]
        if joined.isascii():
            self._data = joined.encode("ascii")
            lengths = map(len, self._texts)
        else:
            pieces = [text.encode("utf-8", "surrogatepass") for text in self._texts]
            self._data = SEPARATOR.encode().join([*pieces, b""])
            lengths = map(len, pieces)
        # A gigabyte of text or more does not fit the offsets: keep the list.
        if len(self._data) < 1 << 32:
            self._offsets = array("I", accumulate((length + 1 for length in lengths), initial=0))
            self._texts = None
            self.has_escapes, self.is_ascii = _ESCAPE in self._data, self._data.isascii()

    def _open(self) -> list[str]:
        if self._texts is None:
            self._texts = self.texts()
            self._data, self._offsets = b"", array("I")
            self.has_escapes, self.is_ascii = True, False
        return self._texts

    def index_at(self, position: int) -> int:
        """Return the index of the line that contains an offset into ``data``."""
        return bisect_right(self._offsets, position) - 1

    def begin_of(self, index: int) -> int:
        """Return the offset of a line in ``data``; one past the last line gives the end."""
        return self._offsets[index]

    def to_pieces(self) -> tuple[bytes, bytes]:
        """Serialize a sealed block for a local file: everything but the messages, and the messages."""
        ids = json.dumps(self.request_ids).encode("ascii") if self.request_ids else b""
        header = _HEADER.pack(len(self), len(self._offsets), self.has_escapes, self.is_ascii)
        columns = (header, self.stamps.tobytes(), self.codes.tobytes(), self._offsets.tobytes(), ids)
        return b"".join(columns), self._data

    @classmethod
    def from_pieces(cls, columns: bytes, data: bytes) -> Block:
        """Restore a block from the result of ``to_pieces``."""
        count, offset_count, has_escapes, is_ascii = _HEADER.unpack_from(columns)
        block = cls()
        at, rest = _HEADER.size, memoryview(columns)
        for column, length in ((block.stamps, count), (block.codes, count), (block._offsets, offset_count)):
            size_bytes = length * column.itemsize
            column.frombytes(rest[at : at + size_bytes])
            at += size_bytes
        block._data, block._texts = data, None
        block.has_escapes, block.is_ascii = has_escapes, is_ascii
        if at < len(columns):
            block.request_ids = {int(index): value for index, value in json.loads(columns[at:]).items()}
        return block
