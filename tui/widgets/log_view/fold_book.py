"""The folds of a view, found by the line they stand at and by any line in them."""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

FoldKind = Literal["traceback", "progress", "repeat"]

_BUCKET_BITS = 8  # lines that are near each other are looked up together: few folds are there


@dataclass(slots=True, eq=False)
class Fold:
    """Lines that are shown as one.

    Attributes:
        kind: why.
        anchor: the number of the line in whose place it is shown.
        shown: the number of the line whose text stands for all: a bar's last state, the exception.
        hidden: the numbers of all lines but the anchor, ascending.
        is_open: whether all its lines are shown.
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


class FoldBook:
    """Folds by their anchors, and by stretches of lines: a long log has a hundred thousand of them."""

    def __init__(self) -> None:
        self._by_anchor: dict[int, Fold] = {}
        self._buckets: dict[int, list[Fold]] = {}

    def __len__(self) -> int:
        return len(self._by_anchor)

    def __iter__(self) -> Iterator[Fold]:
        return iter(list(self._by_anchor.values()))

    def at(self, anchor: int) -> Fold | None:
        """The fold that stands at a line."""
        return self._by_anchor.get(anchor)

    def around(self, seq: int) -> Fold | None:
        """The fold that a line is in."""
        known = self._by_anchor.get(seq)
        if known is not None:
            return known
        return next((fold for fold in self._buckets.get(seq >> _BUCKET_BITS, ()) if seq in fold), None)

    def begin(self, kind: FoldKind, anchor: int) -> Fold:
        """A new fold, of one line for now."""
        fold = self._by_anchor[anchor] = Fold(kind, anchor, anchor)
        self._note(fold, anchor)
        return fold

    def _note(self, fold: Fold, seq: int) -> None:
        bucket = self._buckets.setdefault(seq >> _BUCKET_BITS, [])
        if fold not in bucket[-4:] and fold not in bucket:
            bucket.append(fold)

    def hide(self, fold: Fold, seq: int) -> None:
        """One more line, younger than all in the fold."""
        fold.hidden.append(seq)
        self._note(fold, seq)

    def move(self, fold: Fold, seq: int) -> None:
        """One more line, and the fold stands there from now on."""
        del self._by_anchor[fold.anchor]
        insort(fold.hidden, fold.anchor)
        fold.anchor = seq
        self._by_anchor[seq] = fold
        self._note(fold, seq)

    def forget(self, folds: Iterable[Fold]) -> None:
        """These are none any more."""
        for fold in folds:
            del self._by_anchor[fold.anchor]
            for key in {seq >> _BUCKET_BITS for seq in (fold.anchor, *fold.hidden)}:
                self._buckets[key].remove(fold)

    def drop_before(self, low: int) -> None:
        """All lines before a number are gone, and the folds that stood there."""
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
        """Lines from a number on have others now; only what lies there is touched."""
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
