"""Collapse related lines into one row (tracebacks, progress bars, repeats), and index these folds."""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeVar

from tui.analysis.logs.errors import TracebackPart, TracebackReader
from tui.analysis.logs.repeats import BatchPrefilter, banner_keys, progress_bar
from tui.widgets.log_view.options import LogOptions

FoldKind = Literal["traceback", "progress", "repeat"]

_BUCKET_BITS = 8  # lines are looked up in buckets of nearby lines, which contain few folds


@dataclass(slots=True, eq=False)
class Fold:
    """Lines shown as one row.

    Attributes:
        kind: Reason for the fold.
        anchor: Number of the line at whose position it is shown.
        shown: Number of the line whose text is shown: a progress bar's last state, the exception.
        hidden: Numbers of all lines but the anchor, ascending.
        is_open: True if all its lines are shown.
    """

    kind: FoldKind
    anchor: int
    shown: int
    hidden: array[int] = field(default_factory=lambda: array("q"))
    is_open: bool = False

    def __len__(self) -> int:
        return len(self.hidden) + 1

    def __contains__(self, seq: int) -> bool:
        at = bisect_left(self.hidden, seq)
        return seq == self.anchor or (at < len(self.hidden) and self.hidden[at] == seq)


class FoldIndex:
    """Folds indexed by anchor and by buckets of lines; a long log has a hundred thousand folds."""

    def __init__(self) -> None:
        self._by_anchor: dict[int, Fold] = {}
        self._buckets: dict[int, list[Fold]] = {}

    def __len__(self) -> int:
        return len(self._by_anchor)

    def __iter__(self) -> Iterator[Fold]:
        return iter(list(self._by_anchor.values()))

    def at(self, anchor: int) -> Fold | None:
        """Return the fold anchored at a line, if any."""
        return self._by_anchor.get(anchor)

    def around(self, seq: int) -> Fold | None:
        """Return the fold that contains a line, if any."""
        known = self._by_anchor.get(seq)
        if known is not None:
            return known
        return next((fold for fold in self._buckets.get(seq >> _BUCKET_BITS, ()) if seq in fold), None)

    def begin(self, kind: FoldKind, anchor: int) -> Fold:
        """Add and return a fold that contains only its anchor."""
        fold = self._by_anchor[anchor] = Fold(kind, anchor, anchor)
        self._note(fold, anchor)
        return fold

    def _note(self, fold: Fold, seq: int) -> None:
        bucket = self._buckets.setdefault(seq >> _BUCKET_BITS, [])
        if fold not in bucket[-4:] and fold not in bucket:
            bucket.append(fold)

    def hide(self, fold: Fold, seq: int) -> None:
        """Add a line to the fold; it must be newer than all others in it."""
        fold.hidden.append(seq)
        self._note(fold, seq)

    def move(self, fold: Fold, seq: int) -> None:
        """Add a line to the fold and make it the anchor."""
        del self._by_anchor[fold.anchor]
        insort(fold.hidden, fold.anchor)
        fold.anchor = seq
        self._by_anchor[seq] = fold
        self._note(fold, seq)

    def forget(self, folds: Iterable[Fold]) -> None:
        for fold in folds:
            del self._by_anchor[fold.anchor]
            for key in {seq >> _BUCKET_BITS for seq in (fold.anchor, *fold.hidden)}:
                self._buckets[key].remove(fold)

    def drop_before(self, low: int) -> None:
        """Remove lines before `low`, and the folds anchored there."""
        keys = [key for key in self._buckets if key <= low >> _BUCKET_BITS]
        for fold in self._of(keys):
            if fold.anchor < low:
                self.forget((fold,))
            else:
                del fold.hidden[: bisect_left(fold.hidden, low)]
        for key in keys:
            if key < low >> _BUCKET_BITS:
                del self._buckets[key]

    def _of(self, keys: Iterable[int]) -> list[Fold]:
        return list(dict.fromkeys(fold for key in keys for fold in self._buckets[key]))

    def renumber(self, number: Callable[[int], int], low: int) -> None:
        """Renumber lines from `low` on; earlier ones are not visited."""
        keys = [key for key in self._buckets if key >= low >> _BUCKET_BITS]
        folds = self._of(keys)
        for key in keys:
            del self._buckets[key]
        for fold in folds:
            del self._by_anchor[fold.anchor]
        for fold in folds:
            begin = bisect_left(fold.hidden, low)
            fold.anchor, fold.shown = number(fold.anchor), number(fold.shown)
            fold.hidden[begin:] = array("q", map(number, fold.hidden[begin:]))
            self._by_anchor[fold.anchor] = fold
            near = bisect_left(fold.hidden, low >> _BUCKET_BITS << _BUCKET_BITS)
            for seq in (fold.anchor, *fold.hidden[near:]):
                self._note(fold, seq)


Key = TypeVar("Key")
Value = TypeVar("Value")

REPEAT_WINDOW_NS = 10_000_000_000
"""Identical lines from several ranks within this time are folded."""

_REMEMBERED = 512
_BAR_RESTART_SHARE = 0.5
"""A progress bar that falls below this fraction of its last state has restarted. Ranks may differ by less."""


class FoldInput(NamedTuple):
    """Lines to fold: their numbers, times in epoch nanoseconds, nodes and messages."""

    seqs: Sequence[int]
    times_ns: Sequence[int]
    replicas: Sequence[str | None]
    texts: Sequence[str]


class FoldChanges(NamedTuple):
    """Result of folding a batch of lines.

    Attributes:
        rows: Numbers of the lines that are shown.
        gone: Anchors that no longer show their fold, because it moved to a newer state.
        changed: Anchors whose row must be redrawn.
    """

    rows: list[int]
    gone: list[int]
    changed: list[int]


class FoldDetector:
    """Folds related lines as they are read in order; keeps the state of unfinished folds."""

    def __init__(self, options: LogOptions, folds: FoldIndex) -> None:
        self._tracebacks_wanted, self._progress, self._repeats = options.folds
        self._folds = folds
        self._tracebacks: dict[str | None, TracebackReader] = {}
        self._in_tracebacks: set[str | None] = set()  # nodes whose next line may belong to a traceback
        self._open: dict[tuple[str | None, str], Fold | int] = {}
        self._bars: dict[tuple[str | None, str], tuple[int, float]] = {}
        self._banners: dict[str, tuple[int, int]] = {}
        self._rows: list[int] = []
        self._gone: list[int] = []
        self._changed: list[int] = []

    def read(self, lines: FoldInput, *, may_move: bool) -> FoldChanges:
        """Fold the next lines; with ``may_move``, progress bars move to their newest state."""
        self._rows, self._gone, self._changed = [], [], []
        whole = BatchPrefilter(lines.texts)
        # This check of the whole batch makes individual checks unnecessary for most lines.
        begins = whole.traceback_candidates() if self._tracebacks_wanted else ()
        bars = whole.progress_bar_candidates() if self._progress else ()
        interrupted = self._in_tracebacks
        has_node_names = self._repeats and whole.may_contain_node_names
        keys: Sequence[str] = banner_keys(lines.texts) if has_node_names else lines.texts
        if not begins and not bars and not interrupted and (not self._repeats or self._are_new(lines, keys)):
            self._rows = list(lines.seqs)
            return FoldChanges(self._rows, [], [])
        if self._repeats and not has_node_names:
            keys = banner_keys(lines.texts)
        for place, (seq, time_ns, replica, text, key) in enumerate(zip(*lines, keys, strict=True)):
            if (place in begins or replica in interrupted) and self._in_traceback(seq, replica, text):
                continue
            if place in bars:
                bar = progress_bar(text)
                if bar is not None:
                    self._in_bar(seq, (replica, bar.key), bar.done, may_move)
                    continue
            if self._repeats and key and self._is_repeat(seq, time_ns, key):
                continue
            self._rows.append(seq)
        return FoldChanges(self._rows, self._gone, self._changed)

    def _are_new(self, lines: FoldInput, keys: Sequence[str]) -> bool:
        """Return True and remember the lines if none repeats another or a remembered one."""
        different = set(keys)
        if len(different) < len(keys) or not different.isdisjoint(self._banners):
            return False
        newest = slice(-_REMEMBERED, None)
        places = zip(lines.seqs[newest], lines.times_ns[newest], strict=True)
        told = dict(zip(keys[newest], places, strict=True))
        told.pop("", None)
        room = _REMEMBERED - len(told)
        if len(self._banners) > room:
            self._banners = dict(list(self._banners.items())[len(self._banners) - room :])
        self._banners |= told
        return True

    def renumber(self, number: Callable[[int], int]) -> None:
        """Update remembered line numbers. The folds themselves must already be renumbered."""
        self._open = {
            key: known if isinstance(known, Fold) else number(known) for key, known in self._open.items()
        }
        self._bars = {key: (number(seq), done) for key, (seq, done) in self._bars.items()}
        self._banners = {key: (number(seq), time_ns) for key, (seq, time_ns) in self._banners.items()}

    def _in_traceback(self, seq: int, replica: str | None, text: str) -> bool:
        reader = self._tracebacks.get(replica)
        if reader is None:
            reader = self._tracebacks[replica] = TracebackReader()
        found = reader.read(text)
        if reader.is_open:
            self._in_tracebacks.add(replica)
        else:
            self._in_tracebacks.discard(replica)
        if found is None:
            return False
        key = (replica, found.lane)
        known = self._open.get(key)
        if found.part is TracebackPart.BEGIN or known is None:
            _limit(self._open)
            # A single line is not a fold yet.
            self._open[key] = seq
            self._rows.append(seq)
            return True
        if isinstance(known, int):
            known = self._open[key] = self._folds.begin("traceback", known)
        if found.part is TracebackPart.END:
            known.shown = seq
        self._hide(known, seq)
        return True

    def _in_bar(self, seq: int, key: tuple[str | None, str], done: float, may_move: bool) -> None:
        known = self._bars.get(key)
        if known is None or done < known[1] * _BAR_RESTART_SHARE:
            _limit(self._bars)
            self._bars[key] = (seq, done)
            self._rows.append(seq)
            return
        anchor = known[0]
        fold = self._folds.at(anchor) or self._folds.begin("progress", anchor)
        fold.shown = seq
        if may_move and not fold.is_open:
            self._folds.move(fold, seq)
            self._gone.append(anchor)
            self._rows.append(seq)
        else:
            self._hide(fold, seq)
        self._bars[key] = (fold.anchor, done)

    def _is_repeat(self, seq: int, time_ns: int, key: str) -> bool:
        banners = self._banners
        known = banners.get(key)
        if known is None or time_ns - known[1] > REPEAT_WINDOW_NS:
            if known is not None:
                del banners[key]  # reinsert as the newest entry
            elif len(banners) >= _REMEMBERED:
                del banners[next(iter(banners))]
            banners[key] = (seq, time_ns)
            return False
        anchor = known[0]
        fold = self._folds.at(anchor) or self._folds.begin("repeat", anchor)
        self._hide(fold, seq)
        return True

    def _hide(self, fold: Fold, seq: int) -> None:
        self._folds.hide(fold, seq)
        self._changed.append(fold.anchor)
        if fold.is_open:
            self._rows.append(seq)


def _limit(remembered: dict[Key, Value]) -> None:
    """Evict the oldest entry when full, so that memory stays bounded."""
    if len(remembered) >= _REMEMBERED:
        del remembered[next(iter(remembered))]
