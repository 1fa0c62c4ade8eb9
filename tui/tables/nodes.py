"""The table of a run's nodes."""

from __future__ import annotations

from tui.analysis.node_metrics import NodeSnapshot
from tui.tables.column import Column, Span
from tui.text.units import BYTES_PER_MIB, UNKNOWN, bytes_iec, cores, percent

HOT, FULL = 0.9, 0.97


def _use(node: NodeSnapshot) -> list[Span]:
    return [(percent(node.mean_utilization_now), "plain")]


def _each(node: NodeSnapshot) -> list[Span]:
    use = node.gpu_utilization_now
    return [
        (
            " ".join(UNKNOWN if utilization is None else f"{utilization * 100:.0f}" for utilization in use)
            or UNKNOWN,
            "muted",
        )
    ]


def _full(node: NodeSnapshot) -> list[Span]:
    full = node.disk_utilization_now
    return [(percent(full), "caution" if full is not None and full > HOT else "plain")]


def _memory(node: NodeSnapshot) -> list[Span]:
    return [(bytes_iec(node.cpu_memory_now), "plain")]


def _disk(node: NodeSnapshot) -> list[Span]:
    return [(bytes_iec(node.disk_usage_now), "plain")]


def node_columns(gpu_memory_mib: int | None = None) -> tuple[Column[NodeSnapshot], ...]:
    """Return the columns; GPU memory is marked where it is nearly all of ``gpu_memory_mib``."""

    def gpu_memory(node: NodeSnapshot) -> list[Span]:
        used = node.mean_memory_now
        crowded = bool(gpu_memory_mib and used and used > FULL * gpu_memory_mib * BYTES_PER_MIB)
        return [(bytes_iec(used), "caution" if crowded else "plain")]

    return (
        Column(
            "node", "node", lambda node: [(node.name, "strong")], 7, flex=1, keep=9, shrinks=True
        ),
        Column("use", "gpu", _use, align="right"),
        Column("each", "each %", _each, shrinks=True),
        Column("gpu_memory", "gpu mem", gpu_memory, align="right"),
        Column(
            "cpu", "cores", lambda node: [(cores(node.cpu_now), "plain")], 5,
            align="right", keep=8, heading="CPU",
        ),
        Column("memory", "memory", _memory, 9, align="right", keep=7),
        Column("disk", "disk", _disk, 9, align="right", keep=6),
        Column("full", "full", _full, align="right"),
    )  # fmt: skip
