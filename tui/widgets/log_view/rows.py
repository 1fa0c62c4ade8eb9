"""The rows of a log view: the lines of each block that pass the filter and are not hidden by a fold.

Each block has its own rows, stored as indices of lines in the block. When a block changes, only the rows of
that block are computed again, and no line is ever renumbered.
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

_LINES_PER_STEP = 256
"""Lines folded between two checks of the time budget: 2 ms for lines of the slowest kinds."""


class BlockRows:
    """The rows of one block.

    Attributes:
        passing: Indices of the lines that pass the filter, folded or not.
        rows: Indices of the lines that have a row.
        folds: The folds; their lines are in this block.
        hits: Indices of the lines that match the search; None until the block is searched.
    """

    __slots__ = (
        *("block", "folds", "hits", "passing", "rows"),
        *("_detector", "_fold_by_anchor", "_scan_steps"),
        *("_scanned_count", "_scanned_serials", "_scanned_version"),
    )

    def __init__(self, block: Block) -> None:
        self.block = block
        self.passing: Sequence[int] = ()
        self.rows: Sequence[int] = ()
        self.folds: list[Fold] = []
        self.hits: array[int] | None = None
        self._fold_by_anchor: dict[int, Fold] = {}
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
        """True if the block has not changed since its last scan began; the scan may be unfinished."""
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
        """Scan the block; yield after every ``_LINES_PER_STEP`` folded lines."""
        block, store = self.block, view.store
        has_only_grown = self._scanned_version == block.version
        self._scanned_version, self._scanned_count = block.version, len(block)
        passing = view.line_filter.passing(block)
        self.passing = passing if isinstance(passing, range) else array("H", passing)
        self.hits = None
        low, high = self._scanned_serials or (0, 0)
        if any(view.options.folds):
            new_indices = [index for index in self.passing if not low <= block.serials[index] < high]
            detector = self._detector
            if detector is None or not has_only_grown:
                detector = FoldDetector(view.options, self.folds)
            if has_only_grown or self._scanned_serials is None:
                # Lines are only appended to the last block, until it is full; a full block needs no detector.
                # Retaining one per block would stall the screen for 60 ms of garbage collection at a million
                # lines.
                may_grow = len(block) < store.block_lines and block is store.blocks[-1]
                self._detector = detector if may_grow else None
            for begin in range(0, len(new_indices), _LINES_PER_STEP):
                if begin:
                    yield
                lines = self._fold_lines(view, new_indices[begin : begin + _LINES_PER_STEP])
                detector.read(lines, may_move=may_move or not has_only_grown)
        self._scanned_serials = store.first_serial, store.next_serial
        self.update_rows()

    def _fold_lines(self, view: LogRows, indices: Sequence[int]) -> list[FoldLine]:
        """Return the lines at these indices (ascending) as the fold detector reads them."""
        block, attributes = self.block, view.store.attribute_table.attributes
        nodes = {code: getattr(attributes[code], "replica", None) for code in block.code_set}
        first = indices[0]
        texts = block.texts(first, indices[-1] + 1)
        return [
            (block.serials[index], block.times_ns[index], nodes[block.codes[index]], texts[index - first])
            for index in indices
        ]

    def update_rows(self) -> None:
        """Compute the rows again after folds were created, extended, opened or closed."""
        hidden_serials: set[int] = set()
        for fold in self.folds:
            if not fold.is_open:
                hidden_serials.update(fold.serials)
                hidden_serials.discard(fold.anchor)
        self._fold_by_anchor = {fold.anchor: fold for fold in self.folds}
        self.rows = self.passing
        if hidden_serials:
            serials = self.block.serials
            self.rows = array("H", [index for index in self.passing if serials[index] not in hidden_serials])

    def fold_at(self, index: int) -> Fold | None:
        """Return the fold whose row is at the position of a line; None if there is none."""
        return self._fold_by_anchor.get(self.block.serials[index]) if self._fold_by_anchor else None

    def fold_of(self, index: int) -> Fold | None:
        """Return the fold that contains a line; None if there is none."""
        serial = self.block.serials[index]
        return next((fold for fold in self.folds if serial in fold.serials), None)

    def key(self, serial: int) -> LineKey:
        return self.block.key(self.block.serials.index(serial))

    def position_of(self, index: int) -> int:
        """Return the position in ``rows`` of a line; without a row, of its fold, else of the next row."""
        position = bisect_left(self.rows, index)
        has_row = position < len(self.rows) and self.rows[position] == index
        if self.folds and index < len(self.block) and not has_row:
            fold = self.fold_of(index)
            if fold is not None:
                return bisect_left(self.rows, self.block.serials.index(fold.anchor))
        return position


class LogRows:
    """The rows of a log view, from the rows of all blocks of its store.

    After a change of the filter, ``build`` processes the newest block first and continues toward the oldest,
    in slices of time: the end of the log appears at once, and a large store does not block the event loop.
    """

    def __init__(self, store: LogStore, options: LogOptions) -> None:
        self.store = store
        self.all_block_rows: list[BlockRows] = []
        self.is_complete = False
        """True if all blocks are scanned."""
        self._first_rows: list[int] | None = None
        self.set_options(options)

    def set_options(self, options: LogOptions) -> None:
        """Change filters and folds; afterwards, call ``build`` until it returns True."""
        self.options = options
        self.line_filter = LogFilter(self.store.attribute_table, options)
        self.all_block_rows = []
        self.sync(may_move=True)

    # Following the store

    def sync(self, *, may_move: bool) -> None:
        """Update the rows of changed blocks; new blocks need ``build``.

        ``may_move`` is passed to ``FoldDetector.read``.
        """
        usable_rows = {rows.block: rows for rows in self.all_block_rows if rows.is_scanned or rows.is_current}
        self.all_block_rows = [usable_rows.get(block) or BlockRows(block) for block in self.store.blocks]
        for block_rows in self.all_block_rows:
            if block_rows.is_scanned and not block_rows.is_current:
                block_rows.scan(self, may_move=may_move)
        self._update_completeness()

    def build(self, should_continue: Callable[[], bool]) -> bool:
        """Scan blocks, newest first, while ``should_continue`` returns True; return True if all are scanned.

        The newest block is always completed, so that the screen is not empty.
        """
        unscanned_blocks = [block_rows for block_rows in self.all_block_rows if not block_rows.is_scanned]
        while unscanned_blocks:
            if unscanned_blocks[-1].scan_step(self):
                unscanned_blocks.pop()
            if self.all_block_rows[-1].is_scanned and not should_continue():
                break
        self._update_completeness()
        return self.is_complete

    def _update_completeness(self) -> None:
        self._first_rows = None
        self.is_complete = all(block_rows.is_scanned for block_rows in self.all_block_rows)

    # Queries

    @property
    def first_rows(self) -> list[int]:
        """For each block, the index of its first row; the last item is the number of all rows."""
        if self._first_rows is None:
            row_counts = (len(block_rows.rows) for block_rows in self.all_block_rows)
            self._first_rows = list(accumulate(row_counts, initial=0))
        return self._first_rows

    def __len__(self) -> int:
        return self.first_rows[-1]

    def locate(self, row: int) -> tuple[BlockRows, int]:
        """Return the block of a row, and the index of the row's line in the block. Raises IndexError."""
        if not 0 <= row < len(self):
            raise IndexError(row)
        block_number = bisect_right(self.first_rows, row) - 1
        block_rows = self.all_block_rows[block_number]
        return block_rows, block_rows.rows[row - self.first_rows[block_number]]

    def key(self, row: int) -> LineKey:
        block_rows, index = self.locate(row)
        return block_rows.block.key(index)

    def row_of(self, key: LineKey) -> int:
        """Return the row of a line, or of the fold that contains it; if neither has a row, the next row."""
        block_number, index = self.store.position(key)
        if block_number == len(self.all_block_rows):
            return len(self)
        return self.first_rows[block_number] + self.all_block_rows[block_number].position_of(index)

    def count_before(self, key: LineKey) -> int:
        """Return the number of rows before a line."""
        block_number, index = self.store.position(key)
        if block_number == len(self.all_block_rows):
            return len(self)
        return self.first_rows[block_number] + bisect_left(self.all_block_rows[block_number].rows, index)

    def first_row_at(self, time_ns: int) -> int:
        """Return the first row at or after a time; the number of rows if there is none."""
        return self.count_before(LineKey(time_ns, self.store.first_serial))

    def find(self, key: LineKey) -> tuple[BlockRows, int] | None:
        """Return the block of a line and the index in it; None if the line does not pass the filter."""
        block_number, index = self.store.position(key)
        if block_number == len(self.all_block_rows):
            return None
        block_rows = self.all_block_rows[block_number]
        position = bisect_left(block_rows.passing, index)
        passes = position < len(block_rows.passing) and block_rows.passing[position] == index
        return (block_rows, index) if passes and block_rows.block.key(index) == key else None

    def set_open(self, block_rows: BlockRows, fold: Fold, is_open: bool) -> None:
        fold.is_open = is_open
        block_rows.update_rows()
        self._first_rows = None
