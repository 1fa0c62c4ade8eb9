"""Stored lines: their keys, the attributes that many of them share, and blocks of them as columns."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, islice
from typing import NamedTuple

from api_client.models.logs import LogEntry, LogGap, LogLine, stamp_ns
from tui.analysis.logs.levels import RANKS, level_of


class LineKey(NamedTuple):
    """Identifies a line for as long as it is stored. Keys sort as the lines do; none ever changes.

    Attributes:
        serial: Order of arrival among all lines; lines prepended from history count down.
    """

    time_ns: int
    serial: int


class LineAttributes(NamedTuple):
    """Attributes shared by many lines.

    Attributes:
        level: Level as sent by the server.
        shown_level: The server's level normalized, else the detected one; empty for none.
    """

    replica: str | None
    level: str | None
    late: bool
    shown_level: str

    @property
    def rank(self) -> int:
        return RANKS[self.shown_level]


Attributes = LineAttributes | LogGap


class AttributeTable:
    """Two-way mapping between codes and shared attributes or gap markers."""

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
        """Return the code of these attributes; it takes a plain tuple, which is faster to create per line."""
        code = self._codes.get(key)
        if code is None:
            attributes = key if isinstance(key, LogGap) else LineAttributes(*key)
            code = self._codes[attributes] = len(self.attributes)
            self.attributes.append(attributes)
            if isinstance(attributes, LogGap):
                self.gap_codes.add(code)
            elif attributes.rank >= RANKS["ERROR"]:
                self.error_codes.add(code)
        return code


BLOCK_LINES = 2048
"""Lines of a full block: few enough to search or modify one in a millisecond."""

SEPARATOR = "\n"
"""Ends each message of a block. Messages may contain it too, so offsets are stored."""


class Block:
    """Lines in the order of their keys: times, serials, codes of shared attributes, and texts.

    Texts are one UTF-8 string, which takes half the memory of many, is searched at memory speed, and leaves
    the garbage collector nothing to visit. Lone surrogates survive.

    Attributes:
        stamps: Epoch nanoseconds, ascending.
        serials: Order of arrival; stamps and serials are the lines' keys.
        codes: Shared attributes of the lines, as codes of an ``AttributeTable``.
        code_set: All codes; may include extra ones after lines were removed.
        data: All messages, each followed by ``SEPARATOR``.
        version: Increases when lines are inserted or removed, but not when lines are appended.
    """

    __slots__ = (
        *("_offsets", "code_set", "codes", "data", "request_ids", "serials", "stamps", "version"),
        *("has_escapes", "is_ascii"),
    )

    def __init__(self) -> None:
        self.code_set: set[int] = set()
        self.request_ids: dict[int, str] = {}
        """By serial, for the few lines that have one."""
        self.version = 0
        self._clear()

    def _clear(self) -> None:
        self.stamps: array[int] = array("q")
        self.serials: array[int] = array("i")
        self.codes: array[int] = array("I")
        self.data = b""
        self._offsets: array[int] = array("Q", [0])
        self.has_escapes, self.is_ascii = False, True

    # Queries

    def __len__(self) -> int:
        return len(self.stamps)

    @property
    def last(self) -> LineKey:
        return self.key(-1)

    def key(self, index: int) -> LineKey:
        return LineKey(self.stamps[index], self.serials[index])

    def index(self, key: LineKey) -> int:
        """Return the index of the first line with this key or a greater one."""
        low = bisect_left(self.stamps, key.time_ns)
        high = bisect_right(self.stamps, key.time_ns, low)
        return bisect_left(self.serials, key.serial, low, high)

    def text(self, index: int) -> str:
        begin, end = self._offsets[index], self._offsets[index + 1] - 1
        return self.data[begin:end].decode("utf-8", "surrogatepass")

    def texts(self, low: int, high: int) -> list[str]:
        """Return the messages from `low` up to `high`, exclusive."""
        data = self.data[self._offsets[low] : self._offsets[high]]
        texts = data.decode("utf-8", "surrogatepass").split(SEPARATOR)[:-1]
        # Some message may contain the separator.
        return texts if len(texts) == high - low else list(map(self.text, range(low, high)))

    def index_at(self, position: int) -> int:
        """Return the index of the line that contains an offset into ``data``."""
        return bisect_right(self._offsets, position) - 1

    def begin_of(self, index: int) -> int:
        """Return the offset of a line in ``data``; one past the last line gives the end."""
        return self._offsets[index]

    # Changes

    def extend(self, entries: Sequence[LogEntry], codes: Sequence[int], first_serial: int) -> None:
        """Append entries that sort after all others, with their codes and serials from `first_serial` on."""
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
        self, stamps: Iterable[int], serials: Iterable[int], codes: Iterable[int], texts: Iterable[str]
    ) -> None:
        self.stamps.extend(stamps)
        self.serials.extend(serials)
        self.codes.extend(codes)
        pieces = [f"{text}{SEPARATOR}".encode("utf-8", "surrogatepass") for text in texts]
        added = b"".join(pieces)
        self._offsets.extend(islice(accumulate(map(len, pieces), initial=len(self.data)), 1, None))
        self.data += added
        self.has_escapes = self.has_escapes or b"\x1b" in added
        self.is_ascii = self.is_ascii and added.isascii()

    def merge(self, other: Block) -> None:
        """Insert the lines of another block."""
        self.code_set |= other.code_set
        self.request_ids |= other.request_ids
        self._replace_lines(sorted([*self._lines(0, len(self)), *other._lines(0, len(other))]))

    def remove(self, index: int) -> None:
        lines = self._lines(0, len(self))
        del lines[index]
        self._replace_lines(lines)

    def part(self, low: int, high: int) -> Block:
        """Return a new block of the lines from `low` up to `high`, exclusive, or up to the end."""
        block = Block()
        block.code_set, block.request_ids = set(self.code_set), self.request_ids
        block._replace_lines(self._lines(low, min(high, len(self))))
        return block

    def _lines(self, low: int, high: int) -> list[tuple[int, int, int, str]]:
        columns = self.stamps[low:high], self.serials[low:high], self.codes[low:high]
        return list(zip(*columns, self.texts(low, high), strict=True))

    def _replace_lines(self, lines: Sequence[tuple[int, int, int, str]]) -> None:
        self._clear()
        self.version += 1
        if lines:
            self._append(*zip(*lines, strict=True))
