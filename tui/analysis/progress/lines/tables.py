"""Tables: a line of names, and rows of numbers below it, separated by bars, commas, tabs or wide spaces."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tui.analysis.progress.lines.reading import ParsedMetrics
from tui.analysis.progress.lines.template import COUNTS, MEASURES, Form, Slot, Template, over_epochs
from tui.analysis.progress.lines.vocabulary import meaning, words_of

_SEPARATOR = re.compile(r"\s*[|,\t]\s*|\s{2,}")
_NUMBER = re.compile(r"[-+]?[\d.]+(?:[eE][-+]?\d+|/\d+)?(?=$|[ %sm(])|nan|inf", re.IGNORECASE)


def separators(line: bytes) -> int:
    """Return the number of bars, commas and tabs, which the rows of a table share with its header."""
    return sum(map(line.count, (b"|", b",", b"\t", "│".encode())))


def cells(text: str) -> list[str]:
    return _SEPARATOR.split(text.strip(" |\t"))


@dataclass(frozen=True, slots=True)
class Table:
    """How the rows below a line of names are read."""

    template: Template
    width: int
    """Number of cells of a row."""
    separators: int

    def read(self, text: str, beside: ParsedMetrics | None = None) -> ParsedMetrics | None:
        """Return what a row reports; None for a line that is none. A bar beside it counts in its epoch."""
        numbers = [match[0] if (match := _NUMBER.match(cell)) else "" for cell in cells(text)]
        counts = next(slot for slot in self.template.slots if slot.field in COUNTS)
        is_row = len(numbers) >= self.width and numbers[counts.index]
        row = self.template.read(numbers) if is_row else None
        if row is None or beside is None or row.epoch is None or not (beside.step and beside.total_steps):
            return row
        over = over_epochs(beside.step, beside.total_steps, row.epoch, row.total_epochs)
        return row._replace(**over, step_time_s=beside.step_time_s, from_bar=beside.from_bar)


def table_below(text: str) -> Table | None:
    """Return the table that a line of names begins; None for another line."""
    names = cells(text)
    slots: dict[str, Slot] = {}
    metrics: dict[str, int] = {}
    for index, name in enumerate(names):
        told = meaning("step" if name == "#" else name)
        if told is not None and told.field not in slots:
            slots[told.field] = Slot(index, told.field, name, told.scale)
        elif name and told is None:
            metrics.setdefault(name, index)
    has_loss = any("loss" in words_of(name) for name in metrics)
    if not (slots.keys() & COUNTS and (has_loss or slots.keys() & MEASURES)):
        return None
    others = tuple((index, name) for name, index in metrics.items())
    form = Form(has_count=True, has_values=True, is_clear=len(slots.keys() & MEASURES) > 1, key=tuple(names))
    template = Template(tuple(slots.values()), form=form, metrics=others)
    return Table(template, len(names), separators(text.encode(errors="replace")))
