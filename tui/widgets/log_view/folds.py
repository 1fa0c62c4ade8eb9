"""Collapse related lines of a block into one row: tracebacks, progress bars, repeats."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

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

_REMEMBERED = 512
_BAR_RESTART_SHARE = 0.5
"""A progress bar that falls below this fraction of its last state has restarted. Ranks may differ by less."""


FoldLine = tuple[int, int, str | None, str]
"""Serial, time in epoch nanoseconds, node and message of a line."""


class FoldDetector:
    """Folds related lines as they are read in order; keeps the state of unfinished folds."""

    def __init__(self, options: LogOptions, folds: list[Fold]) -> None:
        self._fold_tracebacks, self._fold_progress, self._fold_repeats = options.folds
        self._folds = folds
        self._tracebacks: dict[str | None, TracebackReader] = {}
        # A single line, known by its serial, is not a fold yet.
        self._open: dict[tuple[str | None, str], Fold | int] = {}
        self._bars: dict[tuple[str | None, str], tuple[Fold | int, float]] = {}
        self._banners: dict[str, tuple[Fold | int, int]] = {}

    def read(self, lines: Sequence[FoldLine], *, may_move: bool) -> None:
        """Fold the next lines; with ``may_move``, progress bars move to their newest state."""
        texts = [text for _, _, _, text in lines]
        keys = banner_keys(texts) if self._fold_repeats else texts
        for (serial, time_ns, replica, text), key in zip(lines, keys, strict=True):
            if self._fold_tracebacks and self._in_traceback(serial, replica, text):
                continue
            bar = progress_bar(text) if self._fold_progress else None
            if bar is not None:
                self._in_bar(serial, (replica, bar.key), bar.done, may_move)
            elif self._fold_repeats and key:
                self._note_repeat(serial, time_ns, key)

    def _in_traceback(self, serial: int, replica: str | None, text: str) -> bool:
        reader = self._tracebacks.get(replica)
        if reader is None:
            reader = self._tracebacks[replica] = TracebackReader()
        piece = reader.read(text)
        if piece is None:
            return False
        key = (replica, piece.lane)
        traceback = self._open.get(key)
        if piece.part is TracebackPart.BEGIN or traceback is None:
            _limit(self._open)
            self._open[key] = serial
            return True
        fold = self._open[key] = self._grown("traceback", traceback, serial)
        if piece.part is TracebackPart.END:
            fold.shown = serial
        return True

    def _in_bar(self, serial: int, key: tuple[str | None, str], done: float, may_move: bool) -> None:
        bar = self._bars.get(key)
        if bar is None or done < bar[1] * _BAR_RESTART_SHARE:
            _limit(self._bars)
            self._bars[key] = (serial, done)
            return
        fold = self._grown("progress", bar[0], serial)
        fold.shown = serial
        if may_move and not fold.is_open:
            fold.anchor = serial
        self._bars[key] = (fold, done)

    def _note_repeat(self, serial: int, time_ns: int, key: str) -> None:
        banners = self._banners
        banner = banners.get(key)
        if banner is not None and time_ns - banner[1] <= REPEAT_WINDOW_NS:
            banners[key] = (self._grown("repeat", banner[0], serial), banner[1])
            return
        if banner is not None:
            del banners[key]  # reinsert as the newest entry
        _limit(banners)
        banners[key] = (serial, time_ns)

    def _grown(self, kind: FoldKind, known: Fold | int, serial: int) -> Fold:
        """Add a line to a fold, or make one of two single lines."""
        if isinstance(known, int):
            known = Fold(kind, known, known, array("i", [known]))
            self._folds.append(known)
        known.lines.append(serial)
        return known


def _limit(remembered: dict[Any, Any]) -> None:
    """Evict the oldest entry when full, so that memory stays bounded."""
    if len(remembered) >= _REMEMBERED:
        del remembered[next(iter(remembered))]
