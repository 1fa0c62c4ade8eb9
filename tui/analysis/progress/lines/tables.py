"""Tables: a line of names, and rows of numbers below it, separated by bars, commas, tabs or wide spaces."""

from __future__ import annotations

import re

from tui.analysis.progress.lines.reading import ParsedMetrics
from tui.analysis.progress.lines.template import COUNTS, LOSSES, Slot, Template
from tui.analysis.progress.lines.vocabulary import meaning

_SEPARATOR = re.compile(r"\s*[|,\t│]\s*|\s{2,}")
_UNIT = re.compile(r"\s?\(([^()]{0,40})\)$")
_NUMBER = re.compile(r"[-+]?[\d.]+(?:[eE][-+]?\d+)?(?=$|[ %sm(])|nan|inf", re.IGNORECASE)
_MAX_COLUMNS = 40


def cells(text: str) -> list[str]:
    return _SEPARATOR.split(text.strip(" |│\t"))


def header(text: str) -> tuple[Template, int] | None:
    """Return how rows below a line of names are read, and their number of cells; None for another line."""
    names = cells(text)
    if not 2 <= len(names) <= _MAX_COLUMNS:
        return None
    slots: dict[str, Slot] = {}
    metrics: dict[str, int] = {}
    for index, name in enumerate(names):
        unit = _UNIT.search(name)
        told = meaning(_UNIT.sub("", name), unit[1].lower() if unit is not None else "")
        if told is not None and told.field not in slots:
            slots[told.field] = Slot(index, told.field, name, told.scale)
        elif name and told is None:
            metrics.setdefault(name, index)
    if not (slots.keys() & COUNTS and slots.keys() & LOSSES):
        return None
    others = tuple((index, name) for name, index in metrics.items())
    return Template(tuple(slots.values()), metrics=others), len(names)


def row(text: str, table: tuple[Template, int]) -> ParsedMetrics | None:
    """Return what a row reports; None for a line that is none."""
    template, width = table
    values = cells(text)
    if len(values) != width:
        return None
    numbers = [match[0] if (match := _NUMBER.match(value)) else "" for value in values]
    counts = next(slot for slot in template.slots if slot.field in COUNTS)
    return template.read(numbers) if numbers[counts.index] else None
