"""The rows of the node × GPU cells. Pure."""

from __future__ import annotations

from tui.insight.run import RunSnapshot
from tui.insight.text import inert
from tui.widgets.gpu_matrix import MatrixRow


def matrix_rows(run: RunSnapshot, *, memory: bool) -> list[MatrixRow]:
    """A row a node; memory is shown as a share of the largest GPU memory known."""
    nodes = run.metrics.nodes if run.metrics else ()
    per_gpu = _gpu_memory_bytes(run) if memory else 1.0
    rows = []
    for node in nodes:
        now = node.gpu_memory_now if memory else node.gpu_utilization_now
        values = tuple(None if value is None else min(1.0, value / per_gpu) for value in now)
        known = [value for value in values if value is not None]
        note = "▲ slow" if node.name in run.slow_nodes else ""
        rows.append(MatrixRow(inert(node.name), note, values, sum(known) / len(known) if known else None))
    return rows


def _gpu_memory_bytes(run: RunSnapshot) -> float:
    """The size of one GPU's memory: as the instance type says, else the most ever seen in use."""
    limit_mib = run.job.instance_type.gpu_memory_limit_mib
    if limit_mib:
        return limit_mib * 1024.0**2
    nodes = run.metrics.nodes if run.metrics else ()
    return max((value for node in nodes for value in node.gpu_memory_now if value), default=1.0)
