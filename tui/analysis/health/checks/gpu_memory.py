"""GPUs whose memory has been near its limit for a while, in a single finding."""

from __future__ import annotations

from dataclasses import dataclass

from tui.analysis.health.check import MINUTE_S, Check, Example, FindingKind, Findings, Watched, limit
from tui.analysis.health.windows import holds_since, lowest_since
from tui.text.units import BYTES_PER_MIB, bytes_iec, percent


@dataclass(frozen=True, slots=True)
class Limits:
    gpu_memory_share: float = limit(0.97, "Share of GPU memory in use above which it is near its limit.")


def find(run: Watched, limits: Limits) -> Findings:
    size = (run.run.job.instance_type.gpu_memory_limit_mib or 0) * BYTES_PER_MIB
    if not size or run.metrics.at is None:
        return
    # Healthy is a tenth below the limit, the room that PyTorch's caching allocator leaves.
    threshold = size * run.eased(limits.gpu_memory_share, 0.9, held=bool(run.held_nodes))
    start = run.metrics.at - 2 * MINUTE_S
    near: list[tuple[float, str, str]] = []
    since = start
    for node in run.metrics.nodes:
        for gpu, series in zip(node.gpus, node.gpu_memory, strict=True):
            lowest = lowest_since(series, start)
            if lowest is not None and lowest >= threshold:
                near.append((lowest / size, node.name, gpu))
                since = min(since, holds_since(series, lambda value: value >= threshold) or since)
    if not near:
        return
    share, name, gpu = max(near)
    where = f"{name} GPU {gpu}" + (f" and {len(near) - 1} more" if len(near) > 1 else "")
    yield run.finding(
        "warning",
        f"GPU memory at {percent(share)} of {bytes_iec(size)}: {where}",
        short=f"GPU memory {percent(share)} full: {where}",
        node=name if len(run.metrics.nodes) > 1 and len(near) == 1 else None,
        since_s=since,
    )


CHECK = Check(
    FindingKind("gpu-memory", 80, "GPU memory full", note="■ full", figures=("GPU memory",)),
    "GPU memory near its limit",
    "warning",
    Limits,
    find,
    needs="a GPU whose memory stays above `gpu_memory_share` of its limit for two minutes.",
    excused="peaks.",
    costs="nothing until an allocation fails, then the work since the last checkpoint",
    examples=(
        Example("memory at its limit", "GPU memory 99% full: node-0 GPU 1 and 1 more", gpu_memory_gib=79.2),
        Example("an allocator that takes most of it", gpu_memory_gib=74.0),
    ),
)
