"""The table of compared runs: a column per run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tui.analysis.comparison import ComparisonRow
from tui.tables.column import Column, Span, text_cell


def comparison_columns(names: Sequence[str]) -> tuple[Column[ComparisonRow], ...]:
    """Return the columns: difference marker, title, and one per run; narrow tables hide the last runs."""
    runs = [
        Column(
            f"run-{index}",
            name,
            partial(_value, index),
            width=16,
            flex=1,
            most=44,
            keep=len(names) - index,
            heading=name,
            shrinks=True,
        )
        for index, name in enumerate(names)
    ]
    last_to_go = len(names) + 1
    return (
        Column("differs", "", _differs, width=1, keep=last_to_go + 1, heading=" "),
        Column(
            "title", "", text_cell(lambda row: row.title, "muted"), width=14, keep=last_to_go, heading=" "
        ),
        *runs,
    )


def _differs(row: ComparisonRow) -> list[Span]:
    return [("≠", "muted")] if row.differs else []


def _value(index: int, row: ComparisonRow) -> list[Span]:
    if index >= len(row.shown):
        return []
    best = index in row.best
    tone = "good" if best else ("plain" if row.differs else "muted")
    return [("★ " if best else "", tone), (row.shown[index], tone)]
