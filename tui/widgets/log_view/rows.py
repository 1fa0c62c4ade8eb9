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

_STEP_LINES = 256
"""Lines folded between two checks of the time budget: 2 ms for lines of the slowest kinds."""


class BlockRows:
    """The rows of one block.

    Attributes:
        passing: Indices of the lines that pass the filter, folded or not.
        rows: Indices of the lines that have a row.
        folds: The folds; their lines are in this block.
        hits: Indices of the lines that match a search; None until the block is searched.
    """

    __slots__ = (
        *("_anchors", "_scanned_count", "_detector", "_scan_steps", "_scanned_serials", "_scanned_version"),
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
        self._scanned_version = -1
        self._scanned_count = 0
        self._scanned_serials: tuple[int, int] | None = None
        self._scan_steps: Iterator[None] | None = None

    @property
    def is_scanned(self) -> bool:
        return self._scanned_serials is not None

    @property
    def is_current(self) -> bool:
        """True if the block has not changed since the scan began; the scan may be unfinished."""
        return self._scanned_version == self.block.version and self._scanned_count == len(self.block)

    def scan(self, view: LogRows, *, may_move: bool) -> None:
        """Filter the block, and fold the lines that arrived since the last scan."""
        for _ in self._scan(view, may_move=may_move):
            pass

    def scan_step(self, view: LogRows) -> bool:
        """Do one step of the first scan of the block; return True if the scan is complete."""
        if self._scan_steps is None:
            self._scan_steps = self._scan(view, may_move=True)
        next(self._scan_steps, None)
        if self.is_scanned:
            self._scan_steps = None
        return self.is_scanned

    def _scan(self, view: LogRows, *, may_move: bool) -> Iterator[None]:
        block, store = self.block, view.store
        appended = self._scanned_version == block.version
        self._scanned_version, self._scanned_count = block.version, len(block)
        passing = view.line_filter.passing(block)
        self.passing = passing if isinstance(passing, range) else array("H", passing)
        self.hits = None
        low, high = self._scanned_serials or (0, 0)
        if any(view.options.folds):
            new = [at for at in self.passing if not low <= block.serials[at] < high]
            detector = self._detector
            if detector is None or not appended:
                detector = FoldDetector(view.options, self.folds)
            if appended or self._scanned_serials is None:
                # Lines are only appended to the last block, until it is full. Detectors of all blocks would
                # make the garbage collector stall the screen for 60 ms at a million lines.
                is_open = len(block) < store.block_lines and block is store.blocks[-1]
                self._detector = detector if is_open else None
            for begin in range(0, len(new), _STEP_LINES):
                if begin:
                    yield
                lines = self._lines(view, new[begin : begin + _STEP_LINES])
                detector.read(lines, may_move=may_move or not appended)
        self._scanned_serials = store.first_serial, store.next_serial
        self.update_rows()

    def _lines(self, view: LogRows, indices: Sequence[int]) -> list[FoldLine]:
        block, attributes = self.block, view.store.attribute_table.attributes
        nodes = {code: getattr(attributes[code], "replica", None) for code in block.code_set}
        first = indices[0]
        texts = block.texts(first, indices[-1] + 1)
        return [
            (block.serials[at], block.stamps[at], nodes[block.codes[at]], texts[at - first]) for at in indices
        ]

    def update_rows(self) -> None:
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
        """Return the fold whose row is at the position of a line; None if there is none."""
        return self._anchors.get(self.block.serials[index]) if self._anchors else None

    def fold_around(self, index: int) -> Fold | None:
        serial = self.block.serials[index]
        return next((fold for fold in self.folds if serial in fold.lines), None)

    def key(self, serial: int) -> LineKey:
        return self.block.key(self.block.serials.index(serial))

    def position_of(self, index: int) -> int:
        """Return the position in ``rows`` of a line or of its fold, else of the next row."""
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
        self._first_rows: list[int] | None = None
        self.set_options(options)

    def set_options(self, options: LogOptions) -> None:
        """Change filter and folds; call ``build`` until it returns True."""
        self.options = options
        self.line_filter = LogFilter(self.store.attribute_table, options)
        self.parts = []
        self.sync(may_move=True)

    # Following the store

    def sync(self, *, may_move: bool) -> None:
        """Update changed blocks; new ones need ``build``. ``may_move``: see ``FoldDetector.read``."""
        part_of = {part.block: part for part in self.parts if part.is_scanned or part.is_current}
        self.parts = [part_of.get(block) or BlockRows(block) for block in self.store.blocks]
        for part in self.parts:
            if part.is_scanned and not part.is_current:
                part.scan(self, may_move=may_move)
        self._update_completeness()

    def build(self, should_continue: Callable[[], bool]) -> bool:
        """Process blocks, newest first, while ``should_continue`` allows it; return True if all are done.

        The newest block is always completed, so that the screen is not empty.
        """
        waiting = [part for part in self.parts if not part.is_scanned]
        while waiting:
            if waiting[-1].scan_step(self):
                waiting.pop()
            if self.parts[-1].is_scanned and not should_continue():
                break
        self._update_completeness()
        return self.is_complete

    def _update_completeness(self) -> None:
        self._first_rows = None
        self.is_complete = all(part.is_scanned for part in self.parts)

    # Queries

    @property
    def first_rows(self) -> list[int]:
        """The number of the first row of each block, and at the end the number of all rows."""
        if self._first_rows is None:
            self._first_rows = list(accumulate((len(part.rows) for part in self.parts), initial=0))
        return self._first_rows

    def __len__(self) -> int:
        return self.first_rows[-1]

    def part(self, row: int) -> tuple[BlockRows, int]:
        """Return the block of a row, and the index of its line there. Raises IndexError."""
        if not 0 <= row < len(self):
            raise IndexError(row)
        at = bisect_right(self.first_rows, row) - 1
        return self.parts[at], self.parts[at].rows[row - self.first_rows[at]]

    def key(self, row: int) -> LineKey:
        part, index = self.part(row)
        return part.block.key(index)

    def row_of(self, key: LineKey) -> int:
        """Return the row of a line or of the fold that contains it; else the row after it."""
        at, index = self.store.position(key)
        return len(self) if at == len(self.parts) else self.first_rows[at] + self.parts[at].position_of(index)

    def count_before(self, key: LineKey) -> int:
        at, index = self.store.position(key)
        return (
            len(self)
            if at == len(self.parts)
            else self.first_rows[at] + bisect_left(self.parts[at].rows, index)
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
        part.update_rows()
        self._first_rows = None
