"""Memory of a GPU or node that grows steadily and will be full before the run ends."""

from __future__ import annotations

from tui.analysis.health import growth
from tui.analysis.health.check import Check, Example, FindingKind, Findings, Watched
from tui.text.units import BYTES_PER_MIB, bytes_iec, duration


def find(run: Watched, limits: growth.Limits) -> Findings:
    machine = run.run.job.instance_type
    gpu_limit = (machine.gpu_memory_limit_mib or 0) * BYTES_PER_MIB
    host_limit = (machine.memory_limit_mib or 0) * BYTES_PER_MIB
    is_held = bool(run.held_nodes)
    leaks: list[tuple[str, str, growth.Forecast]] = []
    for node in run.metrics.nodes:
        gpus = zip(node.gpus, node.gpu_memory, strict=True)
        parts = [(f"GPU memory of {node.name} GPU {gpu}", series, gpu_limit) for gpu, series in gpus]
        for part, series, size in (*parts, (f"memory of {node.name}", node.cpu_memory, host_limit)):
            ahead = growth.forecast(run, limits, series, size, held=is_held) if size else None
            if ahead is not None:
                leaks.append((node.name, part, ahead))
    if not leaks:
        return
    _, part, worst = min(leaks, key=lambda leak: leak[2].full_in_s)
    more = f" (and {len(leaks) - 1} more)" if len(leaks) > 1 else ""
    full = duration(worst.full_in_s)
    names = {name for name, _, _ in leaks}
    node_name = names.pop() if len(names) == 1 and len(run.metrics.nodes) > 1 else None
    text = f"{part}{more} leaks {bytes_iec(worst.rate * 3600)}/h: full in {full}"
    since = min(ahead.since for _, _, ahead in leaks)
    yield run.finding("warning", text, short=f"{part} full in {full}", node=node_name, since_s=since)


CHECK = Check(
    FindingKind("memory-leak", 90, "memory leak", note="↗ leak", figures=("memory", "GPU memory")),
    "Memory leak",
    "warning",
    growth.Limits,
    find,
    needs="memory of a GPU or node that has grown in each part of the window, that will be full before the"
    " run ends, and that is above 90% of its limit, or full within 10 minutes, or has grown for an hour.",
    excused="the first 15 minutes of training, growth below half of the limit or that slows down or rests,"
    " and a sawtooth, up to its highest level since the last restart.",
    costs="nothing until memory is full, then the work since the last checkpoint",
    examples=(
        Example(
            "a data loader that leaks 40 GiB an hour",
            "memory of node-0 full in",
            minutes=360,
            memory_gib=lambda at: 120 + at / 3600 * 40,
        ),
        Example(
            "a cache that is collected", minutes=360, memory_gib=lambda at: 100 + 120 * (at % 4000 / 4000)
        ),
    ),
)
