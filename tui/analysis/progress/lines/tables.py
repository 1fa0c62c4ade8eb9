"""Tables: a line of names, and rows of numbers below it, with one of several separators between the cells."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tui.analysis.progress.lines.reading import ParsedMetrics
from tui.analysis.progress.lines.template import COUNTS, MEASURES, Form, Slot, Template, over_epochs
from tui.analysis.progress.lines.vocabulary import meaning, words_of

_SEPARATOR = re.compile(r"\s*[|,;\t]\s*|\s{2,}")
_NUMBER = re.compile(r"[-+]?[\d.]+(?:[eE][-+]?\d+|/\d+)?(?=$|[ %sm(])|nan|inf", re.IGNORECASE)


def separators(line: bytes) -> int:
    """Return the number of separators, which the rows of a table share with its header."""
    return sum(map(line.count, (b"|", b",", b";", b"\t", "│".encode())))


def cells(text: str) -> list[str]:
    return _SEPARATOR.split(text.strip(" |\t"))


@dataclass(frozen=True, slots=True)
class Table:
    """A table: how to read the rows below its header."""

    template: Template
    width: int
    """Number of cells of a row."""
    separators: int

    def read(self, text: str, bar: ParsedMetrics | None = None) -> ParsedMetrics | None:
        """Parse a row; None for any other line. A bar in the same line counts within the row's epoch."""
        numbers = [match[0] if (match := _NUMBER.match(cell)) else "" for cell in cells(text)]
        counts = next(slot for slot in self.template.slots if slot.field in COUNTS)
        # A text before the count names what the row is about: a list of models, not the steps of a run.
        is_row = len(numbers) >= self.width and all(numbers[: counts.index + 1])
        row = self.template.read(numbers) if is_row else None
        if row is None or bar is None or row.epoch is None or not (bar.step and bar.total_steps):
            return row
        over = over_epochs(bar.step, bar.total_steps, row.epoch, row.total_epochs)
        return row._replace(**over, step_time_s=bar.step_time_s, from_bar=bar.from_bar)


def table_below(text: str) -> Table | None:
    """Return the table whose header is this line; None for any other line."""
    names = cells(text)
    slots: dict[str, Slot] = {}
    metrics: dict[str, int] = {}
    for index, name in enumerate(names):
        name_meaning = meaning("step" if name == "#" else name)
        if name_meaning is not None and name_meaning.field not in slots:
            slots[name_meaning.field] = Slot(index, name_meaning.field, name, name_meaning.scale)
        elif name and name_meaning is None:
            metrics.setdefault(name, index)
    has_loss = any("loss" in words_of(name) for name in metrics)
    if not (slots.keys() & COUNTS and (has_loss or slots.keys() & MEASURES)):
        return None
    others = tuple((index, name) for name, index in metrics.items())
    form = Form(has_count=True, has_values=True, is_clear=len(slots.keys() & MEASURES) > 1, key=tuple(names))
    template = Template(tuple(slots.values()), form=form, metrics=others)
    return Table(template, len(names), separators(text.encode(errors="replace")))
