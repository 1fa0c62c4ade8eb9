"""The progress line on stderr."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Self, TextIO

from tui.text.sanitize import cell_width, clip, sanitize
from tui.text.units import bytes_iec, counted, percent, thin_bar

CLEAR_LINE = "\r\x1b[K"


class ProgressLine:
    """A line that is redrawn at most ten times a second and cleared at the end; only on a terminal."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self.is_terminal = self._stream.isatty()
        self._label = ""
        self._drawn_at_s = float("-inf")

    def show(self, label: str, done_bytes: int = 0, total_bytes: int = 0, note: str = "") -> None:
        """Draw the line; with the same label and no note, at most ten times a second."""
        now_s = time.monotonic()
        must_draw = label != self._label or note or done_bytes >= total_bytes
        if not self.is_terminal or (not must_draw and now_s - self._drawn_at_s < 0.1):
            return
        self._label, self._drawn_at_s = label, now_s
        cells = shutil.get_terminal_size().columns - 1
        text = progress_text(sanitize(label), done_bytes, total_bytes, sanitize(note), cells)
        self._write(f"{CLEAR_LINE}{clip(text, cells)}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def clear(self) -> None:
        if self._label:
            self._write(CLEAR_LINE)
            self._label = ""

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def progress_text(label: str, done_bytes: int, total_bytes: int, note: str, cells: int) -> str:
    """Return ``uploading  ██████······  50%  1.00 MiB of 2.00 MiB``, or the label without a total."""
    note = f"  {note}" if note else ""
    if not total_bytes:
        return f"{label} …{note}"
    fraction = min(1.0, done_bytes / total_bytes)
    amount = f"{percent(fraction)}  {bytes_iec(done_bytes)} of {bytes_iec(total_bytes)}{note}"
    bar_cells = cells - cell_width(f"{label}    {amount}")
    bar = "".join(thin_bar(fraction, max(4, min(24, bar_cells))))
    return f"{label}  {bar}  {amount}"


def lines_note(fraction: float | None, line_count: int) -> str:
    """Return ``40%, 1,200 lines`` for a log of which this fraction is read."""
    percentage = "" if fraction is None else f"{percent(fraction)}, "
    return f"{percentage}{counted(line_count, 'line')}"
