"""Export tables as CSV that is safe to open in spreadsheets, and as strictly valid JSON.

CSV is also sanitized, so that it can be printed in a terminal; JSON has the exact text. Spreadsheets would
run a text cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break as a formula, so CSV has an
apostrophe before it. Numbers are not changed.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from tui.analysis.series import Series
from tui.text.sanitize import sanitize_whole
from tui.text.times import iso_time

Value = str | int | float | bool | datetime | None


@dataclass(frozen=True, slots=True)
class ExportTable:
    """A table: column names and rows. ``name`` is its key in JSON that has several tables."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


def without_formula(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would run as a formula."""
    return (
        f"'{text}" if text[:1] and (text[0] in "=+-@\t\r\n" or text.lstrip()[:1] in tuple("=+-@")) else text
    )


def json_number(value: float | None) -> float | str | None:
    """Convert a float for JSON, which lacks NaN and infinity: these become strings, such as ``"NaN"``."""
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def _csv_cell(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return iso_time(value)
    return without_formula(sanitize_whole(value)) if isinstance(value, str) else str(value)


def _json_cell(value: Value) -> str | int | float | bool | None:
    if isinstance(value, datetime):
        return iso_time(value)
    if isinstance(value, float):
        return json_number(value)
    return value


def csv_lines(rows: Iterable[Sequence[Value]]) -> str:
    """Format rows as CSV, each line ending in a line feed."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([_csv_cell(value) for value in row] for row in rows)
    return buffer.getvalue()


def csv_text(tables: Sequence[ExportTable]) -> str:
    return "\n".join(csv_lines([table.columns, *table.rows]) for table in tables)


def records(table: ExportTable) -> list[dict[str, object]]:
    return [
        {name: _json_cell(value) for name, value in zip(table.columns, row, strict=True)}
        for row in table.rows
    ]


def json_text(tables: Sequence[ExportTable]) -> str:
    """Return JSON: an object that maps each table's name to its rows; for one table, only its rows."""
    value: object = {table.name: records(table) for table in tables}
    if len(tables) == 1:
        value = records(tables[0])
    return json.dumps(value, indent=2, ensure_ascii=True).replace("\x7f", "\\u007f") + "\n"


def table_of_series(
    name: str,
    charts: Iterable[tuple[str, str, str, Sequence[Series]]],
    time_of: Callable[[float], float],
    step_at: Callable[[float], int | None],
) -> ExportTable:
    """Return charts as one table with a row for each sample: chart, series, time, step, value, unit.

    A chart is a tuple of its title, its unit, its x axis ("step", or else epoch seconds), and its lines.
    ``time_of`` returns the time of a step, ``step_at`` the step at a time, so that each row has both. A NaN
    of a platform metric is a gap and is left out; a NaN of a loss was printed by the trainer and is exported.
    """
    rows = tuple(_samples(charts, time_of, step_at))
    return ExportTable(name, ("chart", "series", "time", "step", "value", "unit"), rows)


def _samples(
    charts: Iterable[tuple[str, str, str, Sequence[Series]]],
    time_of: Callable[[float], float],
    step_at: Callable[[float], int | None],
) -> Iterator[tuple[Value, ...]]:
    for title, unit, axis, lines in charts:
        for line in lines:
            for x, value in zip(line.times, line.values, strict=True):
                # only platform metrics have these units
                if math.isnan(value) and unit in {"fraction", "bytes", "cores"}:
                    continue
                time_s, step = (time_of(x), int(x)) if axis == "step" else (x, step_at(x))
                yield (title, line.name, iso_time(time_s), step, value, unit)
