"""Collapse related lines of a block into one row: tracebacks, progress bars, repeats."""

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
    """Lines of one block that are shown as one row, identified by their serials.

    Attributes:
        anchor: The line at whose position it is shown.
        shown: The line whose text is shown: a progress bar's last state, the exception.
    """

    kind: FoldKind
    anchor: int
    shown: int
    lines: array[int]
    is_open: bool = False

    def __len__(self) -> int:
        return len(self.lines)


REPEAT_WINDOW_NS = 10_000_000_000
"""Identical lines from several ranks within this time are folded."""


FoldLine = tuple[int, int, str | None, str]
"""Serial, time in epoch nanoseconds, node and message of a line."""


FoldKey = tuple[FoldKind, str | None, str]
"""Kind, node and what tells a fold from others of its kind."""


class FoldDetector:
    """Folds related lines as they are read in order; keeps the state of unfinished folds."""

    def __init__(self, options: LogOptions, folds: list[Fold]) -> None:
        self._fold_tracebacks, self._fold_progress, self._fold_repeats = options.folds
        self._folds = folds
        self._tracebacks: dict[str | None, TracebackReader] = {}
        self._open: defaultdict[FoldKind, dict[FoldKey, tuple[Fold | int, float]]] = defaultdict(dict)
        """Each with a number to compare with; a single line, known by its serial, is not a fold yet.

        Each kind is remembered apart: any long line may begin a repeat, and many would evict a progress bar.
        """

    def read(self, lines: Sequence[FoldLine], *, may_move: bool) -> None:
        """Fold the next lines; with ``may_move``, progress bars move to their newest state."""
        texts = [text for _, _, _, text in lines]
        keys = banner_keys(texts) if self._fold_repeats else texts
        for (serial, time_ns, replica, text), key in zip(lines, keys, strict=True):
            if self._fold_tracebacks and self._in_traceback(serial, replica, text):
                continue
            bar = progress_bar(text) if self._fold_progress else None
            if bar is not None:
                self._in_bar(serial, ("progress", replica, bar.key), bar.done, may_move)
            elif self._fold_repeats and key:
                self._note_repeat(serial, time_ns, ("repeat", None, key))

    def _in_traceback(self, serial: int, replica: str | None, text: str) -> bool:
        reader = self._tracebacks.get(replica)
        if reader is None:
            reader = self._tracebacks[replica] = TracebackReader()
        piece = reader.read(text)
        if piece is None:
            return False
        key: FoldKey = ("traceback", replica, piece.lane)
        if piece.part is TracebackPart.BEGIN or key not in self._open["traceback"]:
            self._begin(key, serial, 0)
            return True
        fold = self._grow(key, serial, 0)
        if piece.part is TracebackPart.END:
            fold.shown = serial
        return True

    def _in_bar(self, serial: int, key: FoldKey, done: float, may_move: bool) -> None:
        bar = self._open["progress"].get(key)
        # A bar that falls below half of its last state has restarted; ranks may differ by less.
        if bar is None or done < 0.5 * bar[1]:
            self._begin(key, serial, done)
            return
        fold = self._grow(key, serial, done)
        fold.shown = serial
        if may_move and not fold.is_open:
            fold.anchor = serial

    def _note_repeat(self, serial: int, time_ns: int, key: FoldKey) -> None:
        banner = self._open["repeat"].get(key)
        if banner is None or time_ns - banner[1] > REPEAT_WINDOW_NS:
            self._begin(key, serial, time_ns)
        else:
            self._grow(key, serial, banner[1])

    def _begin(self, key: FoldKey, serial: int, number: float) -> None:
        remembered = self._open[key[0]]
        remembered.pop(key, None)  # reinsert as the newest entry
        if len(remembered) >= 512:
            del remembered[next(iter(remembered))]  # so that memory stays bounded
        remembered[key] = serial, number

    def _grow(self, key: FoldKey, serial: int, number: float) -> Fold:
        """Add a line to a fold, or make one of two single lines."""
        remembered = self._open[key[0]]
        known, _ = remembered[key]
        if isinstance(known, int):
            known = Fold(key[0], known, known, array("i", [known]))
            self._folds.append(known)
        known.lines.append(serial)
        remembered[key] = known, number
        return known
