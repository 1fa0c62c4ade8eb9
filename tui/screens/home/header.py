"""The first line of Home: where one is, what needs a look, how much runs and what it has cost."""

from __future__ import annotations

from collections.abc import Sequence

from tui.insight.cost.fleet import charges_cost
from tui.insight.fleet.snapshot import FleetSnapshot, JobRow
from tui.insight.units import count, money
from tui.widgets.tones import Span

LEAST_GPU_HOURS = 1.0


def header_facts(
    place: str,
    snapshot: FleetSnapshot | None,
    rows: Sequence[JobRow],
    *,
    marked: int,
    compare_key: str,
    filter_key: str,
    query: str,
    project: str,
) -> tuple[list[list[Span]], int]:
    """Return the facts, the most important first, and how many of them must be seen.

    What hides jobs is among these: the filter ``query`` after its key, the ``project`` if one is chosen, and
    how many of how many jobs are listed as ``rows``.
    """
    facts: list[list[Span]] = [[("bt-tui", "key"), (f"  {place}", "plain")]]
    if query:
        facts.append([(filter_key, "key"), (query, "accent")])
    total = len(snapshot.jobs) if snapshot is not None else 0
    jobs = f"{total} job{'' if total == 1 else 's'}"
    if snapshot is not None and (query or project):
        within = [(" in ", "muted"), (project, "accent")] if project else []
        facts.append([(f"{len(rows)} of {jobs}", "plain"), *within])
    essential = len(facts)
    if marked:
        facts.append([(f"◆ {marked} marked", "key"), (f" {compare_key} compares", "muted")])
    if snapshot is not None:
        running = [row for row in rows if row.running]
        alarmed = sum(row.alarmed for row in rows)
        if alarmed:
            facts.append([(f"▲ {alarmed} need{'' if alarmed > 1 else 's'} a look", "warn")])
        if not (query or project):
            facts.append([(jobs, "muted")])
        facts.append([(f"{len(running)} running", "running" if running else "muted")])
        busy = sum(row.gpu_count for row in running)
        if busy:
            facts.append([(f"{busy} GPUs busy", "muted")])
        if spent := _total(rows, snapshot):
            facts.append(spent)
    return facts, essential


def _total(rows: Sequence[JobRow], snapshot: FleetSnapshot) -> list[Span]:
    """At most so many GPU-hours, and the money where prices are known; of the jobs that are listed."""
    cost = charges_cost((row.charge for row in rows), snapshot.prices)
    if cost.gpu_hours < LEAST_GPU_HOURS:
        return []
    said: list[Span] = [(f"≤ {count(cost.gpu_hours)} GPU·h", "muted")]
    if cost.usd:
        more = f" + {cost.unpriced} unpriced" if cost.unpriced else ""
        said.append((f" ≈ {money(cost.usd)}{more}", "muted"))
    return said
