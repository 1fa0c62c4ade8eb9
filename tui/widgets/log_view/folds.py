"""Collapse related lines of a block into one row: a traceback, a progress bar, a repeated line."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tui.analysis.logs.errors import TracebackPart, TracebackReader
from tui.analysis.logs.repeats import banner_keys, progress_bar
from tui.widgets.log_view.options import LogOptions

FoldKind = Literal["traceback", "progress", "repeat"]


@dataclass(slots=True, eq=False)
class Fold:
    """Lines of one block that are shown as one row. Lines are identified by their serials.

    Attributes:
        anchor: The line at whose position the row is shown.
        text_serial: The line whose text is shown, such as the last state of a progress bar or the exception.
        serials: All lines of the fold.
        is_open: True if every line is shown in a row of its own.
    """

    kind: FoldKind
    anchor: int
    text_serial: int
    serials: array[int]
    is_open: bool = False

    def __len__(self) -> int:
        return len(self.serials)


REPEAT_WINDOW_NS = 10_000_000_000
"""Identical lines that arrive within this time, usually from several ranks, are folded."""


FoldLine = tuple[int, int, str | None, str]
"""A line as the fold detector reads it: serial, time in epoch nanoseconds, node and message."""


FoldKey = tuple[FoldKind, str | None, str]
"""Identifies an unfinished fold: its kind, its node, and a text.

The text distinguishes folds of the same kind and node: the lane of a traceback, or the text that the lines
of another fold have in common.
"""


class FoldDetector:
    """Adds related lines to folds as it reads them in order; remembers the folds that may still grow."""

    def __init__(self, options: LogOptions, folds: list[Fold]) -> None:
        self._folds_tracebacks, self._folds_progress, self._folds_repeats = options.folds
        self._folds = folds
        self._tracebacks: dict[str | None, TracebackReader] = {}
        self._unfinished: defaultdict[FoldKind, dict[FoldKey, tuple[Fold | int, float]]] = defaultdict(dict)
        """By kind and key: a fold that may still grow, or the serial of a line that may begin a fold.

        The number is compared with the next line: the progress of a bar, or the time of the first repeat.
        The number of entries is limited for each kind, because nearly every long line may begin a repeat, and
        would otherwise evict the progress bars.
        """

    def read(self, lines: Sequence[FoldLine], *, may_move: bool) -> None:
        """Fold the next lines; with ``may_move``, a progress bar moves to the position of its newest line."""
        texts = [text for _, _, _, text in lines]
        keys = banner_keys(texts) if self._folds_repeats else texts
        for (serial, time_ns, replica, text), key in zip(lines, keys, strict=True):
            if self._folds_tracebacks and self._fold_traceback_line(serial, replica, text):
                continue
            bar = progress_bar(text) if self._folds_progress else None
            if bar is not None:
                self._fold_progress_line(serial, ("progress", replica, bar.key), bar.done, may_move)
            elif self._folds_repeats and key:
                self._fold_repeated_line(serial, time_ns, ("repeat", None, key))

    def _fold_traceback_line(self, serial: int, replica: str | None, text: str) -> bool:
        reader = self._tracebacks.get(replica)
        if reader is None:
            reader = self._tracebacks[replica] = TracebackReader()
        traceback_line = reader.read(text)
        if traceback_line is None:
            return False
        key: FoldKey = ("traceback", replica, traceback_line.lane)
        if traceback_line.part is TracebackPart.BEGIN or key not in self._unfinished["traceback"]:
            self._begin_fold(key, serial, 0)
            return True
        fold = self._extend_fold(key, serial, 0)
        if traceback_line.part is TracebackPart.END:
            fold.text_serial = serial
        return True

    def _fold_progress_line(self, serial: int, key: FoldKey, done: float, may_move: bool) -> None:
        bar = self._unfinished["progress"].get(key)
        # A bar that falls below half of its last state has restarted: the bars of two ranks differ by less.
        if bar is None or done < 0.5 * bar[1]:
            self._begin_fold(key, serial, done)
            return
        fold = self._extend_fold(key, serial, done)
        fold.text_serial = serial
        if may_move and not fold.is_open:
            fold.anchor = serial

    def _fold_repeated_line(self, serial: int, time_ns: int, key: FoldKey) -> None:
        repeat = self._unfinished["repeat"].get(key)
        if repeat is None or time_ns - repeat[1] > REPEAT_WINDOW_NS:
            self._begin_fold(key, serial, time_ns)
        else:
            self._extend_fold(key, serial, repeat[1])

    def _begin_fold(self, key: FoldKey, serial: int, number: float) -> None:
        unfinished = self._unfinished[key[0]]
        unfinished.pop(key, None)  # so that the key is inserted as the newest entry
        if len(unfinished) >= 512:
            del unfinished[next(iter(unfinished))]  # the oldest entry, so that memory stays bounded
        unfinished[key] = serial, number

    def _extend_fold(self, key: FoldKey, serial: int, number: float) -> Fold:
        """Add a line to the unfinished fold of a key; the second line of a key creates the fold."""
        unfinished = self._unfinished[key[0]]
        fold, _ = unfinished[key]
        if isinstance(fold, int):
            fold = Fold(key[0], fold, fold, array("i", [fold]))
            self._folds.append(fold)
        fold.serials.append(serial)
        unfinished[key] = fold, number
        return fold
