"""The table of compared runs: a column per run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tui.analysis.comparison import ComparisonRow
from tui.tables.column import Column, Span, text_cell


def comparison_columns(names: Sequence[str]) -> tuple[Column[ComparisonRow], ...]:
    """Return the columns: difference sign, title, and one per run; narrow tables drop the last runs."""
    run_columns = [
        Column(
            f"run-{index}",
            name,
            partial(_value_of_run, index),
            width=16,
            flex=1,
            max_width=44,
            priority=len(names) - index,
            heading=name,
            shrinks=True,
        )
        for index, name in enumerate(names)
    ]
    title: Callable[[ComparisonRow], Sequence[Span]] = text_cell(lambda row: row.title, "muted")
    priority_above_runs = len(names) + 1
    return (
        Column("differs", "", _difference_sign, width=1, priority=priority_above_runs + 1, heading=" "),
        Column("title", "", title, width=14, priority=priority_above_runs, heading=" "),
        *run_columns,
    )


def _difference_sign(row: ComparisonRow) -> list[Span]:
    return [("≠", "muted")] if row.differs else []


def _value_of_run(run_index: int, row: ComparisonRow) -> list[Span]:
    if run_index >= len(row.texts):
        return []
    is_best = run_index in row.best
    tone = "good" if is_best else ("plain" if row.differs else "muted")
    return [("★ " if is_best else "", tone), (row.texts[run_index], tone)]
