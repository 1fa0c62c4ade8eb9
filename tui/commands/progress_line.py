"""One line on a terminal's stderr that tells how far something is."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import TextIO

from tui.insight.text import cell_width, clip, inert
from tui.insight.units import bytes_iec, percent

REDRAW_S = 0.1
BAR_CELLS = 24
SHORTEST_BAR_CELLS = 4
FULL, EMPTY = "█", "░"
TO_LINE_START, CLEAR_LINE = "\r", "\x1b[K"


class ProgressLine:
    """Draws over itself, ten times a second at most; draws nothing where there is no terminal."""

    def __init__(self, stream: TextIO | None = None, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._monotonic = monotonic
        self.is_terminal = self._stream.isatty()
        self._label = ""
        self._drawn_at_s = float("-inf")
        self._is_drawn = False

    def show(self, label: str, done_bytes: int, total_bytes: int, note: str = "") -> None:
        """Draw, unless the same was drawn a moment ago."""
        now_s = self._monotonic()
        is_news = label != self._label or note or done_bytes >= total_bytes
        if not self.is_terminal or (not is_news and now_s - self._drawn_at_s < REDRAW_S):
            return
        self._label, self._drawn_at_s, self._is_drawn = label, now_s, True
        columns = shutil.get_terminal_size().columns
        text = inert(progress_text(label, done_bytes, total_bytes, note))
        # The bar gives way before the words do.
        surplus = max(0, cell_width(text) - (columns - 1))
        if surplus:
            cells = max(SHORTEST_BAR_CELLS, BAR_CELLS - surplus)
            text = clip(
                inert(progress_text(label, done_bytes, total_bytes, note, bar_cells=cells)), columns - 1
            )
        self._stream.write(f"{TO_LINE_START}{CLEAR_LINE}{text}")
        self._stream.flush()

    def clear(self) -> None:
        """Leave no trace of it."""
        if self._is_drawn:
            self._stream.write(f"{TO_LINE_START}{CLEAR_LINE}")
            self._stream.flush()
            self._is_drawn = False


def progress_text(
    label: str, done_bytes: int, total_bytes: int, note: str = "", *, bar_cells: int = BAR_CELLS
) -> str:
    """``uploading  ██████░░░░░░  50 %  1.00 MiB of 2.00 MiB``; the label alone where there is no total."""
    if not total_bytes:
        return f"{label} …" + (f"  {note}" if note else "")
    fraction = min(1.0, done_bytes / total_bytes)
    full = int(fraction * bar_cells)
    bar = FULL * full + EMPTY * (bar_cells - full)
    amount = f"{bytes_iec(done_bytes)} of {bytes_iec(total_bytes)}"
    return f"{label}  {bar}  {percent(fraction)}  {amount}" + (f"  {note}" if note else "")
