"""The table of a job's checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tui.analysis.checkpoints.facts import CheckpointFacts, SyncState
from tui.analysis.run.finding import FindingKind
from tui.tables.column import Column, Span
from tui.text.sanitize import sanitize
from tui.text.units import UNKNOWN, age, bytes_iec, count, number

SYNC_VIEWS: dict[SyncState, tuple[str, str]] = {
    "uploading": ("↑ uploading", "caution"),
    "stored": ("✓ stored", "good"),
}


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """A row as of ``now``; ``key`` is unique even if several checkpoints have the same name.

    ``is_marked`` is None where checkpoints cannot be marked.
    """

    key: str
    facts: CheckpointFacts
    now: datetime
    is_marked: bool | None = None

    @property
    def name(self) -> str:
        """The checkpoint's own name, not sanitized."""
        return self.facts.name

    @property
    def age(self) -> str:
        created = self.facts.checkpoint.created_at
        return age((self.now - created).total_seconds()) if created is not None else UNKNOWN


def _name(row: CheckpointRow) -> list[Span]:
    name = (sanitize(row.name), "strong")
    return [name] if row.is_marked is None else [("✓ " if row.is_marked else "  ", "good"), name]


def _written(row: CheckpointRow) -> list[Span]:
    return [(row.age if row.age == UNKNOWN else f"{row.age} ago", "plain")]


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


def _mark(row: CheckpointRow) -> list[Span]:
    facts = row.facts
    fault = facts.fault.mark if facts.fault is not None else ""
    words = [word for word, holds in (("newest", facts.is_newest), ("best", facts.is_best)) if holds]
    return [(", ".join([*words, *filter(None, [fault])]), "bad" if fault else "good")]


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
    return [(sanitize(row.facts.checkpoint.sync_status or UNKNOWN), "muted")]


def _size(row: CheckpointRow) -> list[Span]:
    return [(bytes_iec(row.facts.checkpoint.size_bytes), "plain")]


def _base(row: CheckpointRow) -> list[Span]:
    return [(sanitize(row.facts.checkpoint.base_model or ""), "muted")]


CHECKPOINTS: tuple[Column[CheckpointRow], ...] = (
    Column("name", "  checkpoint", _name, 18, flex=3, keep=10, heading="CHECKPOINT", shrinks=True),
    Column("mark", "mark", _mark),
    Column("step", "step", lambda row: [(count(row.facts.step), "plain")], 7, align="right", keep=2),
    Column("kind", "type", lambda row: [(sanitize(row.facts.kind), "plain")], 9, keep=7),
    Column("size", "size", _size, 9, align="right", keep=8),
    Column("written", "written", _written, 8, align="right", keep=6),
    Column("age", "age", lambda row: [(row.age, "muted")], align="right"),
    Column("sync", "storage", _sync, 11, keep=5),
    Column("score", "loss", _score, 7, align="right", keep=3),
    Column("marks", "", _marks, 14, keep=4),
    Column("base", "base model", _base, 16, flex=2, keep=1, shrinks=True),
)
"""``marks`` are short, with signs; ``mark`` has all words."""
