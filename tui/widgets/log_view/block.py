"""What lines share, kept once: node, level, lateness. Gap markers are words of their own."""

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
from tui.analysis.logs.repeats import LinesAsOne

ERROR_RANK = RANKS["ERROR"]


@dataclass(frozen=True, slots=True)
class LineFacts:
    """What many lines have in common.

    Attributes:
        replica: the node's name.
        level: the level as the server gave it.
        late: whether the lines came after younger ones.
        shown_level: the server's level in our words, else the detected one; empty for none.
    """

    replica: str | None
    level: str | None
    late: bool
    shown_level: str

    @property
    def rank(self) -> int:
        """How grave, see ``log_levels.RANKS``."""
        return RANKS[self.shown_level]


def stamps_of(entries: Sequence[LogEntry]) -> list[int]:
    """When entries were logged, in epoch nanoseconds."""
    try:
        return [entry.timestamp_ns for entry in entries]  # type: ignore[union-attr]  # gaps are rare
    except AttributeError:
        return [stamp_ns(entry) for entry in entries]


Word = LineFacts | LogGap
Columns = tuple[list[int], list[int], list[str], list[str | None] | None]
"""Stamps, codes, messages and request ids (None when no line has one)."""


class Vocabulary:
    """Numbers for facts and gaps, and back."""

    def __init__(self) -> None:
        self.words: list[Word] = []
        self.error_codes: set[int] = set()
        """Codes of lines that tell an error."""
        self.gap_codes: set[int] = set()
        """Codes of gap markers."""
        self._codes: dict[tuple[str | None, str | None, bool, str] | LogGap, int] = {}

    def columns(self, entries: Sequence[LogEntry]) -> Columns:
        """Entries as columns."""
        lines = [entry for entry in entries if isinstance(entry, LogLine)]
        texts = [line.message for line in lines]
        told = LinesAsOne(texts).that_may_tell_levels()
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
                self._learn(LineFacts(*key), key)
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
        """The number of a gap marker."""
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
"""Lines of a full block: small enough to search or to change one in a millisecond."""

SEPARATOR = "\n"
"""Stands between the messages of a sealed block; a message may hold it too, so positions count."""

_HEADER = Struct("<II??")
_ESCAPE = b"\x1b"


class Block:
    """Lines in time order: stamps, codes of what they share, and texts.

    An open block keeps a list of texts and grows; a sealed one keeps them as UTF-8 in one piece, which
    takes half the memory, is searched at the speed of the memory, and is nothing for the collector of
    garbage to visit. Lone surrogates survive.

    Attributes:
        stamps: epoch nanoseconds, ascending.
        codes: what the lines share, as numbers of a ``Vocabulary``.
        request_ids: those of the few lines that have one, by index.
        has_escapes: whether a message may hold an escape sequence; an open block does not know.
        is_ascii: whether all messages are known to be ASCII.
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
        """Whether the texts are in one piece."""
        return self._texts is None

    @property
    def data(self) -> bytes:
        """All messages of a sealed block, a ``SEPARATOR`` after each."""
        return self._data

    def extend(
        self,
        stamps: Sequence[int],
        codes: Sequence[int],
        texts: Sequence[str],
        request_ids: Sequence[str | None] | None = None,
    ) -> None:
        """Add lines at the end of an open block."""
        first = len(self)
        self.stamps.extend(stamps)
        self.codes.extend(codes)
        self._open().extend(texts)
        if request_ids is not None:
            self.request_ids |= {
                first + index: value for index, value in enumerate(request_ids) if value is not None
            }

    def insert(self, index: int, stamp: int, code: int, text: str, request_id: str | None) -> None:
        """Put a line before another, or at the end."""
        self._open().insert(index, text)
        self.stamps.insert(index, stamp)
        self.codes.insert(index, code)
        if self.request_ids:
            self.request_ids = {at + (at >= index): value for at, value in self.request_ids.items()}
        if request_id is not None:
            self.request_ids[index] = request_id

    def remove(self, index: int) -> None:
        """Take a line out."""
        del self._open()[index]
        del self.stamps[index]
        del self.codes[index]
        if self.request_ids:
            self.request_ids = {
                at - (at > index): value for at, value in self.request_ids.items() if at != index
            }

    def split(self, index: int) -> Block:
        """Cut the lines from an index on off, as a block of their own."""
        rest = Block()
        texts = self._open()
        rest.extend(self.stamps[index:], self.codes[index:], texts[index:])
        rest.request_ids = {at - index: value for at, value in self.request_ids.items() if at >= index}
        self.request_ids = {at: value for at, value in self.request_ids.items() if at < index}
        del texts[index:], self.stamps[index:], self.codes[index:]
        return rest

    def text(self, index: int) -> str:
        """A line's message."""
        if self._texts is not None:
            return self._texts[index]
        begin = self._offsets[index]
        return self._data[begin : self._offsets[index + 1] - 1].decode("utf-8", "surrogatepass")

    def texts(self) -> list[str]:
        """All messages."""
        if self._texts is not None:
            return self._texts
        data, offsets = self._data, self._offsets
        texts = data.decode("utf-8", "surrogatepass").split(SEPARATOR)
        if len(texts) == len(self) + 1:  # no message holds one itself
            texts.pop()
            return texts
        return [
            data[offsets[at] : offsets[at + 1] - 1].decode("utf-8", "surrogatepass")
            for at in range(len(self))
        ]

    def seal(self) -> None:
        """Put the texts in one piece; more lines can still be put between, at the price of undoing it."""
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
        # A block of a gigabyte of text and more does not fit its offsets: it stays a list.
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
        """The line that a position in ``data`` belongs to."""
        return bisect_right(self._offsets, position) - 1

    def begin_of(self, index: int) -> int:
        """Where a line begins in ``data``; one beyond the last is its end."""
        return self._offsets[index]

    def to_pieces(self) -> tuple[bytes, bytes]:
        """A sealed block for a file of this machine: everything but the messages, and those."""
        ids = json.dumps(self.request_ids).encode("ascii") if self.request_ids else b""
        header = _HEADER.pack(len(self), len(self._offsets), self.has_escapes, self.is_ascii)
        columns = (header, self.stamps.tobytes(), self.codes.tobytes(), self._offsets.tobytes(), ids)
        return b"".join(columns), self._data

    @classmethod
    def from_pieces(cls, columns: bytes, data: bytes) -> Block:
        """What ``to_pieces`` gave."""
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
