"""Tables below a line with the names of their columns: fastai's, Chainer's, spaCy's, scikit-learn's."""

from __future__ import annotations

import re
from typing import Any

from tui.analysis.progress.lines.reading import ParsedMetrics, to_float, to_step
from tui.analysis.progress.lines.vocabulary import Meaning, meaning

_COLUMN_GAP = re.compile(r"\s{2,}|\t")
_SPACY = {"E": Meaning("epoch"), "#": Meaning("step")}
_COLUMNS = ("step", "epoch", "loss", "eval_loss", "learning_rate")


class Table:
    """A table below a line with the names of its columns, the first a count: ``epoch  train_loss  time``."""

    def __init__(self, fields: tuple[str | None, ...]) -> None:
        self._fields = fields
        self._last = -1

    def read(self, text: str) -> ParsedMetrics | None:
        """Parse a row: as many values as there are columns, and a count that does not go back."""
        cells = text.split()
        if len(cells) != len(self._fields) or not cells[0].isdecimal() or int(cells[0]) < self._last:
            return None
        self._last = int(cells[0])
        values: dict[str, Any] = {
            field: to_step(cell) if field == "step" else to_float(cell)
            for field, cell in zip(self._fields, cells, strict=True)
            if field is not None
        }
        return None if None in values.values() else ParsedMetrics(**values)


def table_below(text: str) -> Table | None:
    """Return the table that a line of names begins; None if it names no count and no loss."""
    names = _COLUMN_GAP.split(text.strip())
    if len(names) < 3:
        return None
    known = [_SPACY.get(name) or meaning(name) for name in names]
    ranked = ((one.rank, place, one.field) for place, one in enumerate(known) if one is not None)
    best: dict[str, int] = {}  # of several columns with a field, that with the lowest rank
    for _, place, field in sorted(ranked):
        if field in _COLUMNS:
            best.setdefault(field, place)
    if 0 not in (best.get("step"), best.get("epoch")) or not ("loss" in best or _SPACY.keys() <= set(names)):
        return None
    field_at = {place: field for field, place in best.items()}
    return Table(tuple(field_at.get(place) for place in range(len(names))))
