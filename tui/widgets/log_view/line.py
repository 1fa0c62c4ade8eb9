"""How lines are stored: their keys, a table of the attributes that many lines share, and blocks of lines."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, islice
from typing import NamedTuple

from api_client.models.logs import LogEntry, LogGap, LogLine, stamp_ns
from tui.analysis.logs.levels import RANKS, level_of


class LineKey(NamedTuple):
    """Identifies a line while it is stored. Keys sort in the order of the lines; a line's key never changes.

    Attributes:
        serial: Number of the line in order of arrival; lines prepended from history have negative numbers.
    """

    time_ns: int
    serial: int


class LineAttributes(NamedTuple):
    """Attributes that many lines share, so that they are stored once.

    Attributes:
        level: Level as sent by the server.
        is_late: True if newer lines arrived before.
        display_level: The server's level, normalized, else the level detected in the message; may be empty.
    """

    replica: str | None
    level: str | None
    is_late: bool
    display_level: str

    @property
    def level_rank(self) -> int:
        return RANKS[self.display_level]


Attributes = LineAttributes | LogGap


class AttributeTable:
    """Assigns a code to each combination of attributes, and to each gap marker.

    Attributes:
        attributes: The attributes or gap marker of each code.
        error_codes: Codes of attributes whose level is ERROR or higher.
        gap_codes: Codes of gap markers.
    """

    def __init__(self) -> None:
        self.attributes: list[Attributes] = []
        self.error_codes: set[int] = set()
        self.gap_codes: set[int] = set()
        self._codes: dict[object, int] = {}

    def codes(self, entries: Iterable[LogEntry]) -> list[int]:
        return [
            self.code(
                (entry.replica, entry.level, entry.late, level_of(entry.message, entry.level))
                if isinstance(entry, LogLine)
                else entry
            )
            for entry in entries
        ]

    def code(self, key: tuple[str | None, str | None, bool, str] | LogGap) -> int:
        """Return the code of these attributes, given as a plain tuple: faster to create than an object."""
        code = self._codes.get(key)
        if code is None:
            attributes = key if isinstance(key, LogGap) else LineAttributes(*key)
            code = self._codes[attributes] = len(self.attributes)
            self.attributes.append(attributes)
            if isinstance(attributes, LogGap):
                self.gap_codes.add(code)
            elif attributes.level_rank >= RANKS["ERROR"]:
                self.error_codes.add(code)
        return code


BLOCK_LINES = 2048
"""Number of lines of a full block: few enough to search or modify the block within a millisecond."""

SEPARATOR = "\n"
"""Ends each message in a block's text. A message may contain it too, so the offsets are stored as well."""


class Block:
    """A part of the log: lines in the order of their keys, stored in columns.

    The messages are one UTF-8 string: it takes half the memory of separate strings, is fast to search, and is
    a single object for the garbage collector. Lone surrogates are preserved.

    Attributes:
        times_ns: Times of the lines in epoch nanoseconds, ascending.
        serials: Serials of the lines; a line's time and serial are its key.
        codes: Codes of the lines' attributes in an ``AttributeTable``.
        code_set: The codes that occur in ``codes``; after lines were removed, it may have more.
        data: All messages, each followed by ``SEPARATOR``.
        version: Increases when lines are inserted or removed, but not when lines are appended.
        has_escapes: True if a message contains an escape character.
    """

    __slots__ = (
        *("_offsets", "code_set", "codes", "data", "request_ids", "serials", "times_ns", "version"),
        *("has_escapes", "is_ascii"),
    )

    def __init__(self) -> None:
        self.code_set: set[int] = set()
        self.request_ids: dict[int, str] = {}
        """Request IDs by serial, for the few lines that have a request ID."""
        self.version = 0
        self._clear()

    def _clear(self) -> None:
        self.times_ns: array[int] = array("q")
        self.serials: array[int] = array("i")
        self.codes: array[int] = array("I")
        self.data = b""
        self._offsets: array[int] = array("Q", [0])
        self.has_escapes, self.is_ascii = False, True

    # Queries

    def __len__(self) -> int:
        return len(self.times_ns)

    @property
    def last_key(self) -> LineKey:
        return self.key(-1)

    def key(self, index: int) -> LineKey:
        return LineKey(self.times_ns[index], self.serials[index])

    def index(self, key: LineKey) -> int:
        """Return the index of the first line whose key is not less than ``key``."""
        low = bisect_left(self.times_ns, key.time_ns)
        high = bisect_right(self.times_ns, key.time_ns, low)
        return bisect_left(self.serials, key.serial, low, high)

    def text(self, index: int) -> str:
        begin, end = self._offsets[index], self._offsets[index + 1] - 1
        return self.data[begin:end].decode("utf-8", "surrogatepass")

    def texts(self, low: int, high: int) -> list[str]:
        """Return the messages of the lines from ``low`` up to but not including ``high``."""
        data = self.data[self._offsets[low] : self._offsets[high]]
        texts = data.decode("utf-8", "surrogatepass").split(SEPARATOR)[:-1]
        # If there are too many texts, a message contains the separator: use the offsets.
        return texts if len(texts) == high - low else list(map(self.text, range(low, high)))

    def line_at_offset(self, offset: int) -> int:
        """Return the index of the line whose message contains an offset in ``data``."""
        return bisect_right(self._offsets, offset) - 1

    def offset_of(self, index: int) -> int:
        """Return where a line's message begins in ``data``; for ``len(self)``, the length of ``data``."""
        return self._offsets[index]

    # Changes

    def extend(self, entries: Sequence[LogEntry], codes: Sequence[int], first_serial: int) -> None:
        """Append entries that sort after all others; their serials count up from ``first_serial``."""
        serials = range(first_serial, first_serial + len(entries))
        self.code_set.update(codes)
        self.request_ids |= {
            serial: entry.request_id
            for serial, entry in zip(serials, entries, strict=True)
            if isinstance(entry, LogLine) and entry.request_id is not None
        }
        texts = [entry.message if isinstance(entry, LogLine) else "" for entry in entries]
        self._append(map(stamp_ns, entries), serials, codes, texts)

    def _append(
        self, times_ns: Iterable[int], serials: Iterable[int], codes: Iterable[int], texts: Iterable[str]
    ) -> None:
        self.times_ns.extend(times_ns)
        self.serials.extend(serials)
        self.codes.extend(codes)
        messages = [f"{text}{SEPARATOR}".encode("utf-8", "surrogatepass") for text in texts]
        new_data = b"".join(messages)
        self._offsets.extend(islice(accumulate(map(len, messages), initial=len(self.data)), 1, None))
        self.data += new_data
        self.has_escapes = self.has_escapes or b"\x1b" in new_data
        self.is_ascii = self.is_ascii and new_data.isascii()

    def merge(self, other: Block) -> None:
        """Insert the lines of another block."""
        self.code_set |= other.code_set
        self.request_ids |= other.request_ids
        self._set_lines(sorted([*self._lines(0, len(self)), *other._lines(0, len(other))]))

    def remove(self, index: int) -> None:
        lines = self._lines(0, len(self))
        del lines[index]
        self._set_lines(lines)

    def copy_range(self, low: int, high: int) -> Block:
        """Return a new block with the lines from ``low`` up to but not including ``high``."""
        block = Block()
        block.code_set, block.request_ids = set(self.code_set), self.request_ids
        block._set_lines(self._lines(low, min(high, len(self))))
        return block

    def _lines(self, low: int, high: int) -> list[tuple[int, int, int, str]]:
        columns = self.times_ns[low:high], self.serials[low:high], self.codes[low:high]
        return list(zip(*columns, self.texts(low, high), strict=True))

    def _set_lines(self, lines: Sequence[tuple[int, int, int, str]]) -> None:
        self._clear()
        self.version += 1
        if lines:
            self._append(*zip(*lines, strict=True))
