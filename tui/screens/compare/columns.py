"""The columns of the table of finals: what it is, and one for each run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tui.insight.comparison import ComparisonRow
from tui.widgets.row_table import Column
from tui.widgets.tones import Span

TITLE_CELLS = 14
RUN_CELLS = 16


def columns_of(names: Sequence[str]) -> tuple[Column[ComparisonRow], ...]:
    """A sign for what differs, the title, and the runs in their order; the last go first for want of room."""
    runs = [
        Column(f"run-{place}", name, partial(_value, place), width=RUN_CELLS, flex=1, keep=len(names) - place)
        for place, name in enumerate(names)
    ]
    most = len(names) + 1
    return (
        Column("differs", "", _differs, width=1, keep=most + 1),
        Column("title", "", lambda row: [(row.title, "muted")], width=TITLE_CELLS, keep=most),
        *runs,
    )


def _differs(row: ComparisonRow) -> list[Span]:
    return [("≠", "caution")] if row.differs else []


def _value(place: int, row: ComparisonRow) -> list[Span]:
    if place >= len(row.shown):
        return []
    best = place in row.best
    tone = "good" if best else ("plain" if row.differs else "muted")
    return [("★ " if best else "", tone), (row.shown[place], tone)]
