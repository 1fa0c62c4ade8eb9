"""Lines that are shown as one: a traceback, the states of a progress bar, a banner of many ranks.

Folding hides lines from sight alone: filters, searches and saved files see every one of them, and a
fold opens where a match lies in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from tui.insight.log_text.ordinary import LinesAsOne
from tui.insight.log_text.progress_bars import progress_bar
from tui.insight.log_text.repeats import banner_key
from tui.insight.log_text.tracebacks import TracebackPart, TracebackReader
from tui.widgets.log_view.fold_book import Fold, FoldBook

Key = TypeVar("Key")
Value = TypeVar("Value")

REPEAT_WINDOW_NS = 10_000_000_000
"""Identical lines of many ranks come within this time of each other."""

_REMEMBERED = 512
_LONGEST_BANNER = 2048
_ANEW_SHARE = 0.5
"""A bar that falls below this share of what it had done was begun anew; ranks may differ by less."""


class FoldKinds(NamedTuple):
    """Which lines are folded."""

    tracebacks: bool = True
    progress: bool = True
    repeats: bool = True


class ReadLines(NamedTuple):
    """Lines to be read: their numbers, times in epoch nanoseconds, nodes and messages."""

    seqs: Sequence[int]
    times_ns: Sequence[int]
    replicas: Sequence[str | None]
    texts: Sequence[str]


class Outcome(NamedTuple):
    """What became of lines that were read.

    Attributes:
        rows: the numbers of those that are shown.
        gone: anchors of before that stand no longer for their fold, as it has moved to the newest state.
        changed: anchors whose row looks different now.
    """

    rows: list[int]
    gone: list[int]
    changed: list[int]


class FoldReader:
    """Reads lines in their order and folds those that belong together; remembers what is unfinished."""

    def __init__(self, kinds: FoldKinds, folds: FoldBook) -> None:
        self._kinds = kinds
        self._folds = folds
        self._tracebacks: dict[str | None, TracebackReader] = {}
        self._open: dict[tuple[str | None, str], Fold | int] = {}
        self._bars: dict[tuple[str | None, str], tuple[int, float]] = {}
        self._banners: dict[str, tuple[int, int]] = {}
        self._rows: list[int] = []
        self._gone: list[int] = []
        self._changed: list[int] = []

    def read(self, lines: ReadLines, *, may_move: bool) -> Outcome:
        """Fold the next lines. With ``may_move``, a progress bar stands where its newest state is."""
        self._rows, self._gone, self._changed = [], [], []
        kinds = self._wanted(lines)
        if not any(kinds):
            self._rows = list(lines.seqs)
            return Outcome(self._rows, [], [])
        for seq, time_ns, replica, text in zip(*lines, strict=True):
            if kinds.tracebacks and self._in_traceback(seq, replica, text):
                continue
            if kinds.progress:
                bar = progress_bar(text)
                if bar is not None:
                    self._in_bar(seq, (replica, bar.key), bar.done, may_move)
                    continue
            if kinds.repeats and len(text) <= _LONGEST_BANNER and self._is_repeat(seq, time_ns, text):
                continue
            self._rows.append(seq)
        return Outcome(self._rows, self._gone, self._changed)

    def _wanted(self, lines: ReadLines) -> FoldKinds:
        """What has to be looked for line by line, after one look at all of them: mostly nothing."""
        kinds, whole = self._kinds, LinesAsOne(lines.texts)
        return FoldKinds(
            kinds.tracebacks
            and (any(reader.is_open for reader in self._tracebacks.values()) or whole.may_begin_tracebacks),
            kinds.progress and whole.may_hold_bars,
            kinds.repeats and not self._are_new(lines, whole),
        )

    def _are_new(self, lines: ReadLines, whole: LinesAsOne) -> bool:
        """Whether no line was said before, nor twice among them; they are remembered then."""
        if whole.may_name_speakers:
            return False
        different = set(lines.texts)
        if len(different) < len(lines.texts) or not different.isdisjoint(self._banners):
            return False
        newest = slice(-_REMEMBERED, None)
        told = zip(lines.seqs[newest], lines.times_ns[newest], strict=True)
        room = max(0, _REMEMBERED - len(lines.texts))
        if len(self._banners) > room:
            self._banners = dict(list(self._banners.items())[len(self._banners) - room :])
        for text, known in zip(lines.texts[newest], told, strict=True):
            if len(text) <= _LONGEST_BANNER:
                self._banners[text] = known
        return True

    def renumber(self, number: Callable[[int], int]) -> None:
        """Lines have other numbers now; the folds themselves were renumbered already."""
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
        if found is None:
            return False
        key = (replica, found.lane)
        known = self._open.get(key)
        if found.part is TracebackPart.BEGIN or known is None:
            _limit(self._open)
            # A lone line is no fold yet.
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
        if known is None or done < known[1] * _ANEW_SHARE:
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

    def _is_repeat(self, seq: int, time_ns: int, text: str) -> bool:
        key = banner_key(text)
        if not key:
            return False
        banners = self._banners
        known = banners.get(key)
        if known is None or time_ns - known[1] > REPEAT_WINDOW_NS:
            _limit(banners)
            banners.pop(key, None)  # the newest stands last
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
    """Forget what was remembered first when there is too much: whatever comes, memory stays bounded."""
    if len(remembered) >= _REMEMBERED:
        del remembered[next(iter(remembered))]
