"""The lines of a store shown by a view, updated as lines are added, removed, filtered and folded."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

from tui.widgets.log_view.folds import Fold, FoldChanges, FoldDetector, FoldIndex, FoldInput
from tui.widgets.log_view.line_filter import LineSelector
from tui.widgets.log_view.line_numbers import SortedIds, shifted
from tui.widgets.log_view.options import LogOptions
from tui.widgets.log_view.store import LogStore

_SLICE_LINES = 1024


class LogRows:
    """Numbers of the lines that pass the filter, and of those not hidden by a fold.

    The newest lines are processed first: a new filter goes backwards through the store in slices
    (``build``), so that the end appears at once and a large store blocks nothing. Without a filter and
    folds no numbers are stored: the rows are the lines.
    """

    def __init__(self, store: LogStore, options: LogOptions | None = None) -> None:
        self._store = store
        self._options = options or LogOptions()
        self._folds = FoldIndex()
        self._passing: SortedIds | None = None
        self._rows: SortedIds | None = None
        self._low = 0
        self._selector: LineSelector | None = None
        self._reader: FoldDetector | None = None
        self._begin()

    def _begin(self) -> None:
        """Reset all results; the next ``build`` starts at the end."""
        store, self._folds = self._store, FoldIndex()
        self._passing = SortedIds() if self._options.has_filter else None
        self._selector = LineSelector(store, self._options) if self._options.has_filter else None
        self._reader = FoldDetector(self._options, self._folds) if any(self._options.folds) else None
        self._rows = SortedIds() if self._reader is not None else self._passing
        self._low = store.end

    # --- queries ------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._store) if self._rows is None else len(self._rows)

    @property
    def is_complete(self) -> bool:
        return self._rows is None or self._low <= self._store.first

    def seq(self, row: int) -> int:
        """Return the number of the line shown in a row. Raises IndexError."""
        if self._rows is not None:
            return self._rows[row]
        if not 0 <= row < len(self._store):
            raise IndexError(row)
        return self._store.first + row

    def row_of(self, seq: int) -> int:
        """Return the row of a line or of the fold that contains it; else the row after it."""
        if self._rows is None:
            return min(max(0, seq - self._store.first), len(self._store))
        row = self._rows.index_of(seq)
        if self._folds and (row == len(self._rows) or self._rows[row] != seq):
            fold = self.fold_around(seq)
            if fold is not None:
                return self._rows.index_of(fold.anchor)
        return row

    def passes(self, seq: int) -> bool:
        """Return True if a line passes the filter, folded or not."""
        return self._passing is None or seq in self._passing

    def passing(self, seqs: list[int]) -> list[int]:
        """Return those of the ascending numbers that pass the filter."""
        if self._passing is None or not seqs:
            return seqs
        wanted = set(self._passing.between(seqs[0], seqs[-1] + 1))
        return [seq for seq in seqs if seq in wanted]

    def all_passing(self) -> Iterator[int]:
        """Return the numbers of all lines that pass the filter, folded or not."""
        return iter(range(self._store.first, self._store.end) if self._passing is None else self._passing)

    def fold(self, seq: int) -> Fold | None:
        return self._folds.at(seq)

    def fold_around(self, seq: int) -> Fold | None:
        return self._folds.around(seq)

    def index_at(self, time_ns: int) -> int:
        """Return the first row at or after a time."""
        seq = self._store.seq_at(time_ns)
        return self.row_of(seq) if self._rows is None else self._rows.index_of(seq)

    # --- view settings ------------------------------------------------------------------------

    def set_options(self, options: LogOptions) -> None:
        """Change filter and folds; call ``build`` until it returns True."""
        self._options = options
        self._begin()

    def build(self, should_continue: Callable[[], bool]) -> bool:
        """Process older lines in slices while ``should_continue`` allows it; return True if all are done."""
        while not self.is_complete:
            high = self._low
            stored_blocks = list(self._store.block_list.stored_blocks(max(self._store.first, high - 1), high))
            # End slices at block boundaries so that folds are cut in few places, always the same ones.
            low = max(stored_blocks[-1][0], high - _SLICE_LINES) if stored_blocks else self._store.first
            self._compute_rows(low, high)
            self._low = low
            if not should_continue():
                break
        return self.is_complete

    def _compute_rows(self, low: int, high: int) -> None:
        """Filter and fold the lines ``low <= seq < high``, just before those already processed."""
        newest = high == self._store.end
        seqs: Sequence[int] = range(low, high)
        if self._passing is not None and self._selector is not None:
            seqs = self._selector.select(low, high)
            self._passing.prepend_all(seqs)
        if self._reader is not None and self._rows is not None:
            reader = self._reader if newest else FoldDetector(self._options, self._folds)
            outcome = reader.read(self._lines(seqs), may_move=True)
            gone = set(outcome.gone)
            self._rows.prepend_all([seq for seq in outcome.rows if seq not in gone] if gone else outcome.rows)

    def _lines(self, seqs: Sequence[int]) -> FoldInput:
        times_ns: list[int] = []
        replicas: list[str | None] = []
        texts: list[str] = []
        lines = FoldInput(seqs, times_ns, replicas, texts)
        if not seqs:
            return lines
        words = self._store.attribute_table.words
        done = 0
        for start, stored_block in self._store.block_list.stored_blocks(seqs[0], seqs[-1] + 1):
            block = self._store.block_list.load(stored_block)
            stop = bisect_left(seqs, start + len(block), done)
            if stop == done:
                continue
            first, last = seqs[done] - start, seqs[stop - 1] - start
            nodes = {code: getattr(words[code], "replica", None) for code in stored_block.codes}
            if last - first + 1 == stop - done:
                texts += block.texts()[first : last + 1]
                times_ns += block.stamps[first : last + 1]
                replicas += [nodes[code] for code in block.codes[first : last + 1]]
            else:
                part = [seq - start for seq in seqs[done:stop]]
                every = block.texts()
                texts += [every[index] for index in part]
                times_ns += [block.stamps[index] for index in part]
                replicas += [nodes[block.codes[index]] for index in part]
            done = stop
        return lines

    # --- store changes ------------------------------------------------------------------------

    def appended(self, low: int, high: int, *, may_move: bool) -> tuple[int, FoldChanges | None]:
        """Process lines added at the end; return the number of new rows and the result of folding."""
        if self._rows is None:
            self._low = min(self._low, low)
            return high - low, None
        seqs: Sequence[int] = range(low, high)
        if self._passing is not None and self._selector is not None:
            if self._selector.context_lines:
                # Context of the new lines may be before a gap marker, which always passes.
                begin = max(self._low, self._selector.edge(low))
                seqs = [seq for seq in self._selector.select(begin, high) if seq not in self._passing]
            else:
                seqs = self._selector.select(low, high)
            self._passing.merge(seqs)
        if self._reader is None:
            return len(seqs), None
        before = len(self._rows)
        outcome = self._reader.read(self._lines(seqs), may_move=may_move)
        self._rows.merge(outcome.rows)
        for anchor in outcome.gone:
            self._rows.remove_id(anchor)
        return max(0, len(self._rows) - before), outcome

    def prepended(self, high: int) -> None:
        """Process lines added at the beginning: possible context of theirs is filtered again."""
        if self._rows is None or self._selector is None or not self._selector.context_lines:
            return
        far = self._selector.context_end(high)
        if far <= self._low or self._passing is None:
            return
        if far >= self._store.end:
            self._begin()  # everything is read again, so what was read before must not count as repeated
            return
        self._passing.drop_before(far)
        if self._rows is not self._passing:
            self._rows.drop_before(far)
            gone = [fold for fold in self._folds if fold.anchor < far]
            self._folds.forget(gone)
            for fold in gone:
                self._rows.merge(fold.hidden[bisect_left(fold.hidden, far) :])
        self._low = far

    def inserted(self, places: Sequence[int]) -> None:
        """Renumber after lines were inserted, and filter and fold the new ones separately."""
        self._low = shifted(self._low, places)
        if self._rows is None:
            return
        if self._selector is not None and self._selector.context_lines:
            self._begin()
            return
        self._renumber(lambda seq: shifted(seq, places), places[0])
        if self._passing is not None:
            self._passing.open_gaps(places)
        if self._rows is not self._passing:
            self._rows.open_gaps(places)
        new = [place + index for index, place in enumerate(places)]
        new = [seq for seq in new if seq >= self._low]
        if self._selector is not None and self._passing is not None:
            new = [seq for one in new for seq in self._selector.select(one, one + 1)]
            self._passing.merge(new)
        if self._reader is not None:
            outcome = FoldDetector(self._options, self._folds).read(self._lines(new), may_move=True)
            gone = set(outcome.gone)
            self._rows.merge([seq for seq in outcome.rows if seq not in gone])

    def removed(self, seq: int) -> None:
        """Renumber after a line was removed (always a gap marker, which is never in a fold)."""
        self._low -= self._low > seq
        if self._rows is None:
            return
        if self._selector is not None and self._selector.context_lines:
            self._begin()
            return
        self._renumber(lambda one: one - (one > seq), seq)
        if self._passing is not None:
            self._passing.close_gap(seq)
        if self._rows is not self._passing:
            self._rows.close_gap(seq)

    def dropped(self, low: int) -> None:
        self._low = max(self._low, low)
        for numbers in (self._passing, self._rows):
            if numbers is not None:
                numbers.drop_before(low)
        self._folds.drop_before(low)

    def cleared(self) -> None:
        self._begin()

    def _renumber(self, number: Callable[[int], int], low: int) -> None:
        self._folds.renumber(number, low)
        if self._reader is not None:
            self._reader.renumber(number)

    # --- opening folds ------------------------------------------------------------------------

    def set_open(self, fold: Fold, is_open: bool) -> None:
        if fold.is_open == is_open or self._rows is None:
            return
        fold.is_open = is_open
        if is_open:
            self._rows.merge(fold.hidden)
        else:
            self._rows.remove_ids(fold.hidden)
