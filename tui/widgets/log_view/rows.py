"""The rows of a view: the lines of each block that pass the filter, and those not hidden by a fold.

Rows are kept by block, as indices in the block. When a block changes, only its rows are computed again, so
no line ever has to be renumbered.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from tui.widgets.log_view.filter import LogFilter
from tui.widgets.log_view.folds import Fold, FoldDetector, FoldLine
from tui.widgets.log_view.line import Block, LineKey
from tui.widgets.log_view.options import LogOptions
from tui.widgets.log_view.store import LogStore

_PIECE_LINES = 256
"""Lines folded at once when a filter changed: two milliseconds for lines of the slowest kinds."""


class BlockRows:
    """The rows of one block.

    Attributes:
        passing: Indices of the lines that pass the filter, folded or not.
        rows: Indices of the lines that have a row.
        folds: The folds; their lines are in this block.
        hits: Indices of the lines that match a search; None if the search has not come here.
    """

    __slots__ = (
        *("_anchors", "_count", "_detector", "_pieces", "_serials", "_version"),
        *("block", "folds", "hits", "passing", "rows"),
    )

    def __init__(self, block: Block) -> None:
        self.block = block
        self.passing: Sequence[int] = ()
        self.rows: Sequence[int] = ()
        self.folds: list[Fold] = []
        self.hits: array[int] | None = None
        self._anchors: dict[int, Fold] = {}
        self._detector: FoldDetector | None = None
        self._version = -1
        self._count = 0
        self._serials: tuple[int, int] | None = None
        self._pieces: Iterator[None] | None = None

    @property
    def is_scanned(self) -> bool:
        return self._serials is not None

    @property
    def is_current(self) -> bool:
        """True if the block has not changed since the scan, which may not have ended."""
        return self._version == self.block.version and self._count == len(self.block)

    def scan(self, view: LogRows, *, may_move: bool) -> None:
        """Set the lines that pass the filter, and fold those that have arrived since the last time."""
        for _ in self._scan(view, may_move=may_move):
            pass

    def scan_piece(self, view: LogRows) -> bool:
        """Scan a part of a block for the first time; return True if all is scanned, and there are rows."""
        if self._pieces is None:
            self._pieces = self._scan(view, may_move=True)
        next(self._pieces, None)
        if self.is_scanned:
            self._pieces = None
        return self.is_scanned

    def _scan(self, view: LogRows, *, may_move: bool) -> Iterator[None]:
        block, store = self.block, view.store
        appended = self._version == block.version
        self._version, self._count = block.version, len(block)
        passing = view.line_filter.passing(block)
        self.passing = passing if isinstance(passing, range) else array("H", passing)
        self.hits = None
        low, high = self._serials or (0, 0)
        if any(view.options.folds):
            new = [at for at in self.passing if not low <= block.serials[at] < high]
            detector = self._detector
            if detector is None or not appended:
                detector = FoldDetector(view.options, self.folds)
            if appended or self._serials is None:
                # Nothing is appended to a full block, or to one before the last. Kept for all blocks, what
                # detectors remember made the garbage collector stall the screen for 60 ms at a million lines.
                is_open = len(block) < store.block_lines and block is store.blocks[-1]
                self._detector = detector if is_open else None
            for begin in range(0, len(new), _PIECE_LINES):
                if begin:
                    yield
                lines = self._lines(view, new[begin : begin + _PIECE_LINES])
                detector.read(lines, may_move=may_move or not appended)
        self._serials = store.first_serial, store.next_serial
        self.derive()

    def _lines(self, view: LogRows, indices: Sequence[int]) -> list[FoldLine]:
        block, attributes = self.block, view.store.attribute_table.attributes
        nodes = {code: getattr(attributes[code], "replica", None) for code in block.code_set}
        first = indices[0]
        texts = block.texts(first, indices[-1] + 1)
        return [
            (block.serials[at], block.stamps[at], nodes[block.codes[at]], texts[at - first]) for at in indices
        ]

    def derive(self) -> None:
        hidden: set[int] = set()
        for fold in self.folds:
            if not fold.is_open:
                hidden.update(fold.lines)
                hidden.discard(fold.anchor)
        self._anchors = {fold.anchor: fold for fold in self.folds}
        serials = self.block.serials
        self.rows = (
            array("H", [at for at in self.passing if serials[at] not in hidden]) if hidden else self.passing
        )

    def fold_at(self, index: int) -> Fold | None:
        """Return the fold whose row is this line's."""
        return self._anchors.get(self.block.serials[index]) if self._anchors else None

    def fold_around(self, index: int) -> Fold | None:
        serial = self.block.serials[index]
        return next((fold for fold in self.folds if serial in fold.lines), None)

    def key(self, serial: int) -> LineKey:
        return self.block.key(self.block.serials.index(serial))

    def place(self, index: int) -> int:
        """Return the place among the rows of a line or of its fold, else of the next row."""
        at = bisect_left(self.rows, index)
        if self.folds and index < len(self.block) and (at == len(self.rows) or self.rows[at] != index):
            fold = self.fold_around(index)
            if fold is not None:
                return bisect_left(self.rows, self.block.serials.index(fold.anchor))
        return at


class LogRows:
    """The rows of a view of a store, of all blocks.

    The newest blocks are processed first: a new filter goes backwards through the store in slices
    (``build``), so that the end appears at once and a large store blocks nothing.
    """

    def __init__(self, store: LogStore, options: LogOptions) -> None:
        self.store = store
        self.parts: list[BlockRows] = []
        self.is_complete = False
        self._starts: list[int] | None = None
        self.set_options(options)

    def set_options(self, options: LogOptions) -> None:
        """Change filter and folds; call ``build`` until it returns True."""
        self.options = options
        self.line_filter = LogFilter(self.store.attribute_table, options)
        self.parts = []
        self.sync(may_move=True)

    # Following the store

    def sync(self, *, may_move: bool) -> None:
        """Update changed blocks; new ones need ``build``. With ``may_move``, progress bars move on."""
        part_of = {part.block: part for part in self.parts if part.is_scanned or part.is_current}
        self.parts = [part_of.get(block) or BlockRows(block) for block in self.store.blocks]
        for part in self.parts:
            if part.is_scanned and not part.is_current:
                part.scan(self, may_move=may_move)
        self._settle()

    def build(self, should_continue: Callable[[], bool]) -> bool:
        """Process blocks, newest first, while ``should_continue`` allows it; return True if all are done.

        The newest is processed in any case, so that the screen is not empty meanwhile.
        """
        waiting = [part for part in self.parts if not part.is_scanned]
        while waiting:
            if waiting[-1].scan_piece(self):
                waiting.pop()
            if self.parts[-1].is_scanned and not should_continue():
                break
        self._settle()
        return self.is_complete

    def _settle(self) -> None:
        self._starts = None
        self.is_complete = all(part.is_scanned for part in self.parts)

    # Queries

    @property
    def starts(self) -> list[int]:
        """The first row of each block, and the number of all rows."""
        if self._starts is None:
            self._starts = list(accumulate((len(part.rows) for part in self.parts), initial=0))
        return self._starts

    def __len__(self) -> int:
        return self.starts[-1]

    def part(self, row: int) -> tuple[BlockRows, int]:
        """Return the block of a row, and the index of its line there. Raises IndexError."""
        if not 0 <= row < len(self):
            raise IndexError(row)
        at = bisect_right(self.starts, row) - 1
        return self.parts[at], self.parts[at].rows[row - self.starts[at]]

    def key(self, row: int) -> LineKey:
        part, index = self.part(row)
        return part.block.key(index)

    def row_of(self, key: LineKey) -> int:
        """Return the row of a line or of the fold that contains it; else the row after it."""
        at, index = self.store.position(key)
        return len(self) if at == len(self.parts) else self.starts[at] + self.parts[at].place(index)

    def count_before(self, key: LineKey) -> int:
        at, index = self.store.position(key)
        return (
            len(self) if at == len(self.parts) else self.starts[at] + bisect_left(self.parts[at].rows, index)
        )

    def index_at(self, time_ns: int) -> int:
        return self.count_before(LineKey(time_ns, self.store.first_serial))

    def find(self, key: LineKey) -> tuple[BlockRows, int] | None:
        """Return the block of a line that passes the filter, folded or not, and the index there."""
        number, index = self.store.position(key)
        if number < len(self.parts):
            part = self.parts[number]
            position = bisect_left(part.passing, index)
            if (
                position < len(part.passing)
                and part.passing[position] == index
                and part.block.key(index) == key
            ):
                return part, index
        return None

    def set_open(self, part: BlockRows, fold: Fold, is_open: bool) -> None:
        fold.is_open = is_open
        part.derive()
        self._starts = None
