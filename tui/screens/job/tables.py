"""The job screen's tables: nodes without GPUs, and checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from api_client.models import Checkpoint
from tui.insight.node_metrics import NodeSnapshot
from tui.insight.text import inert
from tui.insight.units import age, bytes_iec, cores
from tui.widgets.charts.trace import trace
from tui.widgets.row_table import Column
from tui.widgets.tones import Span

TRACE_CELLS = 10


def _cpu_trace(node: NodeSnapshot) -> list[Span]:
    return [(trace(node.cpu.values[-40:], TRACE_CELLS, low=0.0), "running")]


NODE_COLUMNS: tuple[Column[NodeSnapshot], ...] = (
    Column("node", "node", lambda node: [(inert(node.name), "plain")], width=7, flex=1, keep=9),
    Column("cpu", "cores", lambda node: [(cores(node.cpu_now), "plain")], width=5, align="right", keep=8),
    Column("trace", "", _cpu_trace, width=TRACE_CELLS, keep=3),
    Column(
        "memory",
        "memory",
        lambda node: [(bytes_iec(node.cpu_memory_now), "plain")],
        width=9,
        align="right",
        keep=7,
    ),
    Column(
        "disk",
        "disk",
        lambda node: [(bytes_iec(node.disk_usage_now), "plain")],
        width=9,
        align="right",
        keep=6,
    ),
)


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """A checkpoint as the table shows it."""

    name: str
    kind: str
    base_model: str
    size: str
    age: str
    sync: str
    sync_tone: str


def checkpoint_rows(checkpoints: Sequence[Checkpoint], now: datetime) -> list[CheckpointRow]:
    """Newest first."""
    newest_first = sorted(
        checkpoints, key=lambda one: one.created_at.timestamp() if one.created_at else 0.0, reverse=True
    )
    return [_checkpoint_row(checkpoint, now) for checkpoint in newest_first]


def _checkpoint_row(checkpoint: Checkpoint, now: datetime) -> CheckpointRow:
    kind = inert(checkpoint.checkpoint_type or "–")
    rank = (checkpoint.lora_adapter_config or {}).get("r")
    if rank is not None:
        kind += f" r={inert(str(rank))}"
    sync = (checkpoint.sync_status or "").upper()
    word, tone = {
        "SYNCING": ("↑ uploading", "caution"),
        "COMPLETE": ("✓ stored", "good"),
        "COMPLETED": ("✓ stored", "good"),
        "": ("–", "muted"),
    }.get(sync, (inert(checkpoint.sync_status or ""), "unknown"))
    created = checkpoint.created_at
    return CheckpointRow(
        name=inert(checkpoint.checkpoint_id),
        kind=kind,
        base_model=inert(checkpoint.base_model or ""),
        size=bytes_iec(checkpoint.size_bytes),
        age=f"{age((now - created).total_seconds())} ago" if created else "–",
        sync=word,
        sync_tone=tone,
    )


CHECKPOINT_COLUMNS: tuple[Column[CheckpointRow], ...] = (
    Column("name", "checkpoint", lambda row: [(row.name, "strong")], width=16, flex=2, keep=9),
    Column("kind", "type", lambda row: [(row.kind, "plain")], width=9, keep=7),
    Column("size", "size", lambda row: [(row.size, "plain")], width=9, align="right", keep=8),
    Column("age", "written", lambda row: [(row.age, "plain")], width=8, align="right", keep=6),
    Column("sync", "storage", lambda row: [(row.sync, row.sync_tone)], width=11, keep=5),
    Column("base", "base model", lambda row: [(row.base_model, "muted")], width=16, flex=2, keep=3),
)
