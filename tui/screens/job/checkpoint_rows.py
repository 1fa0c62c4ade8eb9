"""The table of checkpoints: its rows, its columns, its orders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from tui.insight.checkpoints.facts import CheckpointFacts, SyncState
from tui.insight.natural import natural_key
from tui.insight.run.finding import FindingKind
from tui.insight.text import inert
from tui.insight.units import UNKNOWN, age, bytes_iec, count, number
from tui.widgets.row_table import Column
from tui.widgets.tones import Span

SYNC_VIEWS: dict[SyncState, tuple[str, str]] = {
    "uploading": ("↑ uploading", "caution"),
    "stored": ("✓ stored", "good"),
}
ORDERS = (("age", True), ("name", False), ("step", True), ("size", True), ("kind", False), ("score", False))
"""Columns to sort by, and whether the first look at one is descending."""


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """A checkpoint as the table shows it; ``key`` tells checkpoints apart that have one name."""

    key: str
    facts: CheckpointFacts
    age: str
    is_marked: bool

    @property
    def name(self) -> str:
        """The checkpoint's own name, not inert."""
        return self.facts.name


def keyed(facts: Sequence[CheckpointFacts]) -> dict[str, CheckpointFacts]:
    """The facts by name; a name that comes again gets a number."""
    found: dict[str, CheckpointFacts] = {}
    for one in facts:
        key, again = one.name, 1
        while key in found:
            again += 1
            key = f"{one.name}\0{again}"
        found[key] = one
    return found


def arranged(facts: dict[str, CheckpointFacts], order: tuple[str, bool]) -> list[str]:
    """The keys in that order; what is not known comes last either way."""
    column, descending = order
    value = _VALUES[column]
    values = {key: value(one) for key, one in facts.items()}
    known = [key for key in facts if values[key] is not None]
    unknown = [key for key in facts if values[key] is None]
    known.sort(key=values.__getitem__, reverse=descending)  # type: ignore[arg-type]
    placed: list[str] = []
    for _, group in groupby(known, key=values.__getitem__):
        equal = list(group)  # by their names, which only few need to be read for
        placed += sorted(equal, key=lambda key: natural_key(facts[key].name)) if len(equal) > 1 else equal
    return placed + unknown


def _created(facts: CheckpointFacts) -> float | None:
    created = facts.checkpoint.created_at
    return created.timestamp() if created is not None else None


_VALUES: dict[str, Callable[[CheckpointFacts], object]] = {
    "age": _created,
    "name": lambda facts: natural_key(facts.name),
    "step": lambda facts: facts.step,
    "size": lambda facts: facts.checkpoint.size_bytes,
    "kind": lambda facts: facts.kind.lower(),
    "score": lambda facts: facts.score.value if facts.score else None,
}


def rows_of(
    facts: dict[str, CheckpointFacts], order: tuple[str, bool], marked: frozenset[str], now: datetime
) -> list[CheckpointRow]:
    """The table's rows."""
    return [
        CheckpointRow(key, facts[key], written(facts[key], now), key in marked)
        for key in arranged(facts, order)
    ]


def written(facts: CheckpointFacts, now: datetime) -> str:
    """``12m ago``."""
    created = facts.checkpoint.created_at
    return f"{age((now - created).total_seconds())} ago" if created is not None else UNKNOWN


def _name(row: CheckpointRow) -> list[Span]:
    return [("✓ " if row.is_marked else "  ", "good"), (inert(row.name), "strong")]


def _marks(row: CheckpointRow) -> list[Span]:
    facts = row.facts
    if facts.fault is not None:
        return [(f"✗ {facts.fault.mark}", "bad")]
    spans: list[Span] = []
    if facts.is_best and facts.score is not None:
        spans.append(("★ best", "accent"))
    if facts.is_newest:
        spans.append((", newest" if spans else "newest", "key"))
    return spans


def _score(row: CheckpointRow) -> list[Span]:
    score = row.facts.score
    fault = row.facts.fault
    if fault is not None and fault.kind is FindingKind.LOSS_NOT_FINITE:
        return [("NaN", "bad")]
    return [(number(score.value), "plain")] if score is not None else [(UNKNOWN, "muted")]


def _sync(row: CheckpointRow) -> list[Span]:
    known = SYNC_VIEWS.get(row.facts.sync)
    if known is not None:
        return [known]
    return [(inert(row.facts.checkpoint.sync_status or UNKNOWN), "muted")]


CHECKPOINT_COLUMNS: tuple[Column[CheckpointRow], ...] = (
    Column("name", "  checkpoint", _name, width=18, flex=3, keep=10),
    Column("step", "step", lambda row: [(count(row.facts.step), "plain")], width=7, align="right", keep=2),
    Column("kind", "type", lambda row: [(inert(row.facts.kind), "plain")], width=9, keep=7),
    Column(
        "size",
        "size",
        lambda row: [(bytes_iec(row.facts.checkpoint.size_bytes), "plain")],
        width=9,
        align="right",
        keep=8,
    ),
    Column("age", "written", lambda row: [(row.age, "plain")], width=8, align="right", keep=6),
    Column("sync", "storage", _sync, width=11, keep=5),
    Column("score", "loss", _score, width=7, align="right", keep=3),
    Column("marks", "", _marks, width=14, keep=4),
    Column(
        "base",
        "base model",
        lambda row: [(inert(row.facts.checkpoint.base_model or ""), "muted")],
        width=16,
        flex=2,
        keep=1,
    ),
)
