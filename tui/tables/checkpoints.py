"""The table of a job's checkpoints."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from tui.analysis.checkpoints.facts import CheckpointFacts, SyncState
from tui.tables.column import Column, Span, text_cell
from tui.text.names import natural_key
from tui.text.units import UNKNOWN, age, bytes_iec, count, number

SYNC_VIEWS: dict[SyncState, tuple[str, str]] = {
    "uploading": ("↑ uploading", "caution"),
    "stored": ("✓ stored", "muted"),
}


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """A checkpoint and the current time, from which its age is computed.

    ``key`` is unique even if several checkpoints have the same name. ``is_marked`` is None where checkpoints
    cannot be marked.
    """

    key: str
    facts: CheckpointFacts
    now: datetime
    is_marked: bool | None = None

    @property
    def name(self) -> str:
        """The name as the server sent it, not sanitized."""
        return self.facts.name

    @property
    def age(self) -> str:
        created = self.facts.checkpoint.created_at
        return age((self.now - created).total_seconds()) if created is not None else UNKNOWN


def _created(row: CheckpointRow) -> float | None:
    created = row.facts.checkpoint.created_at
    return created.timestamp() if created is not None else None


def _name(row: CheckpointRow) -> list[Span]:
    name = (row.name, "strong" if row.facts.is_best else "plain")
    return [name] if row.is_marked is None else [("✓ " if row.is_marked else "  ", "good"), name]


def _marks(row: CheckpointRow) -> list[Span]:
    facts = row.facts
    spans: list[Span] = []
    if facts.fault is not None:
        spans.append((f"✗ {facts.fault.mark}", "bad"))
    elif facts.sync == "uploading":
        spans.append(SYNC_VIEWS["uploading"])
    elif facts.is_best:
        spans.append(("★ best", "accent"))
    if facts.is_newest:
        spans.append((", newest" if spans else "newest", "key"))
    return spans


def _training_loss(row: CheckpointRow) -> float | None:
    fault, loss = row.facts.fault, row.facts.loss
    if fault is not None and fault.kind.loss == "not finite":
        return math.nan
    return loss.value if loss is not None else None


def _loss(row: CheckpointRow) -> list[Span]:
    value = _training_loss(row)
    if value is None:
        return [(UNKNOWN, "muted")]
    return [("NaN", "bad") if math.isnan(value) else (number(value), "plain")]


def _reward(row: CheckpointRow) -> float | None:
    return row.facts.reward.value if row.facts.reward is not None else None


def _evaluation_loss(row: CheckpointRow) -> float | None:
    return row.facts.evaluation.value if row.facts.evaluation is not None else None


def _score_column(
    id: str, title: str, score_of: Callable[[CheckpointRow], float | None]
) -> Column[CheckpointRow]:
    """Return a column of numbers that is shown only if a row has a number."""

    def cell(row: CheckpointRow) -> list[Span]:
        value = score_of(row)
        return [(number(value), "plain")] if value is not None else []

    def has_score(row: CheckpointRow) -> bool:
        return score_of(row) is not None

    return Column(id, title, cell, 7, align="right", priority=7, needed_by=has_score, sort_key=score_of)


def _sync(row: CheckpointRow) -> list[Span]:
    view = SYNC_VIEWS.get(row.facts.sync)
    if view is not None:
        return [view]
    return [(row.facts.checkpoint.sync_status or UNKNOWN, "muted")]


CHECKPOINT_COLUMNS: tuple[Column[CheckpointRow], ...] = (
    Column(
        "name",
        "  checkpoint",
        _name,
        width=18,
        flex=3,
        max_width=40,
        priority=10,
        heading="CHECKPOINT",
        shrinks=True,
        sort_key=lambda row: natural_key(row.name),
    ),
    Column("marks", "", _marks, 19, priority=9, heading="MARK"),
    Column(
        "step",
        "step",
        text_cell(lambda row: count(row.facts.step)),
        width=7,
        align="right",
        priority=8,
        sort_key=lambda row: row.facts.step,
        descending=True,
    ),
    _score_column("reward", "reward", _reward),
    Column("loss", "loss", _loss, 8, align="right", priority=6, sort_key=_training_loss),
    _score_column("evaluation", "eval", _evaluation_loss),
    Column(
        "written",
        "written",
        text_cell(lambda row: row.age if row.age == UNKNOWN else f"{row.age} ago"),
        width=8,
        align="right",
        priority=5,
        sort_key=_created,
        descending=True,
    ),
    Column(
        "kind",
        "type",
        text_cell(lambda row: row.facts.kind),
        width=9,
        priority=3,
        sort_key=lambda row: natural_key(row.facts.kind),
    ),
    Column(
        "size",
        "size",
        text_cell(lambda row: bytes_iec(row.facts.checkpoint.size_bytes)),
        width=9,
        align="right",
        priority=4,
        sort_key=lambda row: row.facts.checkpoint.size_bytes,
        descending=True,
    ),
    Column("age", "age", text_cell(lambda row: row.age, "muted"), align="right"),
    Column(
        "sync",
        "storage",
        _sync,
        width=11,
        priority=2,
        # The "marks" column shows uploads, and "stored" is normal: only an unknown status needs this column.
        needed_by=lambda row: row.facts.sync == "unknown" and row.facts.checkpoint.sync_status,
        sort_key=lambda row: row.facts.checkpoint.sync_status and row.facts.sync,
    ),
    Column(
        "base",
        "base model",
        text_cell(lambda row: row.facts.checkpoint.base_model or "", "muted"),
        width=16,
        flex=2,
        priority=1,
        shrinks=True,
        sort_key=lambda row: (row.facts.checkpoint.base_model or "").lower() or None,
    ),
)
