"""Blocks of stored lines as columns."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

from tui.widgets.log_view.line import Columns, LineKey

BLOCK_LINES = 2048
"""Lines of a full block: few enough to search or modify one in a millisecond."""

SEPARATOR = "\n"
"""Ends each message of a sealed block. Messages may contain it too, so offsets are stored."""


class Block:
    """Lines in the order of their keys: times, serials, codes of shared attributes, and texts.

    An open block keeps a list of texts and can grow. A sealed one keeps them as one UTF-8 string, which
    takes half the memory, is searched at memory speed, and leaves the garbage collector nothing to visit.
    Lone surrogates survive.

    Attributes:
        stamps: Epoch nanoseconds, ascending.
        serials: Order of arrival; stamps and serials are the lines' keys.
        codes: Shared attributes of the lines, as codes of an ``AttributeTable``.
        code_set: All codes; may include extra ones after lines were removed.
        data: All messages of a sealed block, each followed by ``SEPARATOR``; empty for an open one.
        version: Increases when lines are inserted or removed, but not when lines are appended.
        has_escapes: True if a message may contain an escape sequence; only reliable for a sealed block.
        is_ascii: True if all messages are known to be ASCII.
    """

    __slots__ = (
        *("_offsets", "_texts", "code_set", "codes", "data", "has_escapes", "is_ascii"),
        *("request_ids", "serials", "stamps", "version"),
    )

    def __init__(self) -> None:
        self.stamps: array[int] = array("q")
        self.serials: array[int] = array("i")
        self.codes: array[int] = array("I")
        self.code_set: set[int] = set()
        self.request_ids: dict[int, str] = {}
        """By serial, for the few lines that have one."""
        self.version = 0
        self.has_escapes, self.is_ascii = True, False
        self._texts: list[str] | None = []
        self.data = b""
        self._offsets: array[int] = array("I")

    # Queries

    def __len__(self) -> int:
        return len(self.stamps)

    @property
    def first(self) -> LineKey:
        return self.key(0)

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

    @property
    def is_sealed(self) -> bool:
        return self._texts is None

    @property
    def text_bytes(self) -> int:
        """The size of all messages; for an open block, their number of characters."""
        return len(self.data) if self._texts is None else sum(map(len, self._texts))

    def text(self, index: int) -> str:
        if self._texts is not None:
            return self._texts[index]
        begin, end = self._offsets[index], self._offsets[index + 1] - 1
        return self.data[begin:end].decode("utf-8", "surrogatepass")

    def texts(self) -> list[str]:
        if self._texts is not None:
            return self._texts
        data, offsets = self.data, self._offsets
        texts = data.decode("utf-8", "surrogatepass").split(SEPARATOR)
        if len(texts) == len(self) + 1:  # no message contains the separator
            texts.pop()
            return texts
        return [
            data[offsets[at] : offsets[at + 1] - 1].decode("utf-8", "surrogatepass")
            for at in range(len(self))
        ]

    def index_at(self, position: int) -> int:
        """Return the index of the line that contains an offset into ``data``."""
        return bisect_right(self._offsets, position) - 1

    def begin_of(self, index: int) -> int:
        """Return the offset of a line in ``data``; one past the last line gives the end."""
        return self._offsets[index]

    # Changes

    def extend(self, lines: Columns, first_serial: int) -> None:
        """Append lines, numbered from `first_serial` on, that sort after all others. The block is open."""
        assert self._texts is not None
        serials = range(first_serial, first_serial + len(lines.stamps))
        self.stamps.extend(lines.stamps)
        self.serials.extend(serials)
        self.codes.extend(lines.codes)
        self.code_set.update(lines.codes)
        self.request_ids |= {serials[at]: value for at, value in lines.request_ids.items()}
        self._texts.extend(lines.texts)

    def merge(self, other: Block) -> None:
        """Insert the lines of another block. A sealed block stays sealed."""
        self.code_set |= other.code_set
        self.request_ids |= other.request_ids
        self._set(sorted([*self._lines(), *other._lines()]), is_sealed=self.is_sealed)

    def remove(self, low: int, high: int) -> None:
        """Remove the lines from `low` up to `high`, exclusive."""
        lines = self._lines()
        del lines[low:high]
        self._set(lines, is_sealed=self.is_sealed)

    def split(self, count: int) -> list[Block]:
        """Keep the first `count` lines; return the others in blocks of as many lines."""
        was_sealed, lines = self.is_sealed, self._lines()
        blocks: list[Block] = []
        for low in range(0, len(lines), count):
            block, high = Block() if low else self, low + count
            block.code_set, block.request_ids = set(self.code_set), self.request_ids
            block._set(lines[low:high], is_sealed=was_sealed or high < len(lines))
            blocks.append(block)
        return blocks[1:]

    def _lines(self) -> list[tuple[int, int, int, str]]:
        return list(zip(self.stamps, self.serials, self.codes, self.texts(), strict=True))

    def _set(self, lines: Sequence[tuple[int, int, int, str]], *, is_sealed: bool) -> None:
        self.data, self._offsets = b"", array("I")
        self.has_escapes, self.is_ascii = True, False
        self.stamps = array("q", [line[0] for line in lines])
        self.serials = array("i", [line[1] for line in lines])
        self.codes = array("I", [line[2] for line in lines])
        self._texts = [line[3] for line in lines]
        self.version += 1
        if is_sealed:
            self.seal()

    def seal(self) -> None:
        if self._texts is None:
            return
        pieces = [text.encode("utf-8", "surrogatepass") for text in self._texts]
        data = SEPARATOR.encode().join([*pieces, b""])
        # A gigabyte of text or more does not fit the offsets: keep the list.
        if len(data) < 1 << 32:
            self._offsets = array("I", accumulate((len(piece) + 1 for piece in pieces), initial=0))
            self._texts, self.data = None, data
            self.has_escapes, self.is_ascii = b"\x1b" in data, data.isascii()
