"""The table of a run's nodes."""

from __future__ import annotations

from tui.analysis.node_metrics import NodeSnapshot
from tui.tables.column import Column, Span, text_cell
from tui.text.units import BYTES_PER_MIB, UNKNOWN, bytes_iec, cores, percent


def _each(node: NodeSnapshot) -> str:
    use = node.gpu_utilization_now
    return " ".join(UNKNOWN if share is None else f"{share * 100:.0f}" for share in use) or UNKNOWN


def _full(node: NodeSnapshot) -> list[Span]:
    full = node.disk_utilization_now
    return [(percent(full), "caution" if full is not None and full > 0.9 else "plain")]


def node_columns(gpu_memory_mib: int | None = None) -> tuple[Column[NodeSnapshot], ...]:
    """Return the columns; GPU memory is marked where it is nearly all of ``gpu_memory_mib``."""

    def gpu_memory(node: NodeSnapshot) -> list[Span]:
        used = node.mean_memory_now
        crowded = bool(gpu_memory_mib and used and used > 0.97 * gpu_memory_mib * BYTES_PER_MIB)
        return [(bytes_iec(used), "caution" if crowded else "plain")]

    return (
        Column(
            "node", "node", text_cell(lambda node: node.name, "strong"), 7, flex=1, keep=9, shrinks=True
        ),
        Column("use", "gpu", text_cell(lambda node: percent(node.mean_utilization_now)), align="right"),
        Column("each", "each %", text_cell(_each, "muted"), shrinks=True),
        Column("gpu_memory", "gpu mem", gpu_memory, align="right"),
        Column(
            "cpu", "cores", text_cell(lambda node: cores(node.cpu_now)), 5,
            align="right", keep=8, heading="CPU",
        ),
        Column(
            "memory", "memory", text_cell(lambda node: bytes_iec(node.cpu_memory_now)), 9,
            align="right", keep=7,
        ),
        Column(
            "disk", "disk", text_cell(lambda node: bytes_iec(node.disk_usage_now)), 9,
            align="right", keep=6,
        ),
        Column("full", "full", _full, align="right"),
    )  # fmt: skip
