"""Tables below a line with the names of their columns: fastai's, Chainer's, spaCy's, MATLAB's, CSV files."""

from __future__ import annotations

import re
from typing import Any

from tui.analysis.progress.lines.reading import ParsedMetrics, to_float, to_step
from tui.analysis.progress.lines.vocabulary import Meaning, meaning

_COLUMN_GAP = re.compile(r"\s{2,}|\t")
_CSV_NAMES = re.compile(r"[A-Za-z_][^,\"'(){}=:]{0,40}(?:,[A-Za-z_][^,\"'(){}=:]{0,40}){2,}$")
_NAME = re.compile(r"\S+(?: \S+)*")
_CELL = re.compile(r"\S+")
_MIN_CELLS = 4  # of a row with empty ones; fewer are a torn line
_BARS = ("|", "│", "┃")
_TO_BAR = str.maketrans("│┃", "||")
_SPACY = {"E": Meaning("epoch"), "#": Meaning("step")}
_COLUMNS = ("step", "epoch", "loss", "eval_loss", "learning_rate")


class Table:
    """A table below a line with the names of its columns: ``epoch  train_loss  time``."""

    def __init__(self, names: list[str], separator: str | None, header: str = "") -> None:
        self.names = names
        self.separator = separator
        self._spans = [match.span() for match in _NAME.finditer(header)]
        known = [_SPACY.get(name) or meaning(name.partition(" (")[0]) for name in names]
        ranked = ((one.rank, place, one.field) for place, one in enumerate(known) if one is not None)
        self._place: dict[str, int] = {}  # of several columns with a field, that with the lowest rank
        for _, place, field in sorted(ranked):
            if field in _COLUMNS:
                self._place.setdefault(field, place)
        self._counts = 0 in (self._place.get("step"), self._place.get("epoch"))
        self._last = -1

    def is_of_training(self) -> bool:
        """Return True if the columns are those of a training: a count first, and a loss or a rate."""
        if self._counts:
            trains = (
                "loss" in self._place or "learning_rate" in self._place or _SPACY.keys() <= set(self.names)
            )
            return trains or any("Train" in name for name in self.names)
        return self.separator == "," and {"loss", "eval_loss"} <= self._place.keys()

    def read(self, text: str) -> ParsedMetrics | None:
        """Parse a row: as many values as there are columns, and a count that does not go back."""
        if self.separator == "|" and not text.startswith(_BARS):
            return None
        if self.separator is None and not text.lstrip()[:1].isdecimal():
            return None
        cells = _cells(text, self.separator)
        if len(cells) != len(self.names) and self.separator is None:
            cells = _COLUMN_GAP.split(text.strip())
        if len(cells) < len(self.names) == len(self._spans):
            cells = self._below_names(text)
        if len(cells) != len(self.names):
            return None
        if self._counts:
            count = to_step(cells[0].partition(" ")[0])
            if count is None or count < self._last:
                return None
            self._last = count
        values: dict[str, Any] = {}
        for field, place in self._place.items():
            cell = cells[place].partition(" ")[0]
            value = to_step(cell) if field == "step" else to_float(cell)
            if value is None and cell:
                return None
            values[field] = value
        return ParsedMetrics(**values)

    def _below_names(self, text: str) -> list[str]:
        """Return the cells of a row by the columns they are printed in, as some of them are empty."""
        cells = [""] * len(self.names)
        for match in _CELL.finditer(text):
            columns = [
                place
                for place, (start, end) in enumerate(self._spans)
                if match.start() < end and start < match.end()
            ]
            if len(columns) != 1 or cells[columns[0]]:
                return []
            cells[columns[0]] = match[0]
        return cells if sum(map(bool, cells)) >= _MIN_CELLS else []


def table_below(text: str, above: Table | None) -> Table | None:
    """Return the table that a line of names begins, ``above`` the table whose names it may continue."""
    if text.startswith(_BARS):
        names = _cells(text, "|")
        if above is not None and above.separator == "|" and len(above.names) == len(names):
            names = [f"{one} {other}".strip() for one, other in zip(above.names, names, strict=True)]
        return Table(names, "|")
    if "," in text:
        return Table(_cells(text, ","), ",") if _CSV_NAMES.match(text) else None
    names = []
    for name in _COLUMN_GAP.split(text.strip().removeprefix("# ").removeprefix("#  ").strip()):
        words = name.split()
        names += words if meaning(name) is None and all(map(meaning, words)) else [name]
    return Table(names, None, text) if len(names) > 2 else None


def _cells(text: str, separator: str | None) -> list[str]:
    if separator == "|":
        return [cell.strip() for cell in text.translate(_TO_BAR).strip().strip("|").split("|")]
    return text.split() if separator is None else [cell.strip() for cell in text.split(separator)]
