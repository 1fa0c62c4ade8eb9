"""What a single line of a training reports."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from tui.analysis.progress.lines.decide import decide
from tui.analysis.progress.lines.line import clean, split
from tui.analysis.progress.lines.reader import Reader
from tui.analysis.progress.lines.reading import LineReading, ParsedMetrics, merged

CLEAR = "step 1/9000 | loss: 1.0"
"""A line whose form shows a training."""


def read_line(line: str) -> ParsedMetrics | None:
    """Return what a line reports; of one that must be repeated to be believed, what it would."""
    reader = Reader()
    reader.read("{'loss': 1.0, 'lr': 0.1, 'step': 1}")  # of no total, which would tell bars apart
    if readings := [line_reading.reading for line_reading in reader.read(line)]:
        return reduce(merged, readings)
    texts, values = split(clean(line))
    return decide(texts, values).read(values)


def believed(lines: Iterable[str]) -> list[LineReading]:
    """Return what is believed of lines in the end."""
    reader = Reader()
    return [
        line_reading for index, line in enumerate(lines) for line_reading in reader.read(line, at_ns=index)
    ]
