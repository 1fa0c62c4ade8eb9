"""The bill beside the estimate: what was billed for each job, and what is not billed yet.

The bill has dollars and minutes of each job, but does not say until when. So what it lacks is the job's
running time minus the billed minutes, and nothing a day after the job ended. The minutes of a job on several
nodes may count each node or not; where neither running time nor price decides that, the rest is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from tui.text.units import count, money

if TYPE_CHECKING:
    from api_client.models import TrainingJob


class Billed(NamedTuple):
    """The bill of one job, in USD and minutes."""

    usd: float
    minutes: float


NOTHING = Billed(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Bill:
    """The bills by job id since ``since``; or ``why_not``, the reason why it cannot be read.

    ``deleted`` is what was billed for jobs that have been deleted since.
    """

    since: datetime
    jobs: Mapping[str, Billed] = field(default_factory=dict)
    deleted: Billed = NOTHING
    why_not: str = ""

    def of(self, job: TrainingJob) -> Billed | None:
        """Return what was billed for a job; None if nothing is known or it may be older than the bill."""
        if job.created_at is None or job.created_at < self.since:
            return None
        return self.jobs.get(job.id)


def is_all_billed(job: TrainingJob, now: datetime) -> bool:
    """Return True if a job ended so long ago that all of it is billed."""
    # the bill is updated hourly; a day after its end, all of a job is billed
    return job.is_finished and job.updated_at is not None and now - job.updated_at > timedelta(days=1)


def unbilled_minutes(
    billed: Billed, run_minutes: float, node_count: int, price_per_minute: float | None
) -> float | None:
    """Return the node-minutes that the bill lacks, None if unknown, of a run that is not billed entirely.

    ``run_minutes`` is the running time, or an upper bound; ``price_per_minute`` is USD for one node.
    """
    nodes = _nodes_per_billed_minute(billed, run_minutes, node_count, price_per_minute)
    return None if nodes is None else max(0.0, run_minutes * node_count - billed.minutes * nodes)


def _nodes_per_billed_minute(
    billed: Billed, run_minutes: float, node_count: int, price_per_minute: float | None
) -> int | None:
    """Return 1 if each node's minutes are billed, ``node_count`` if those of the job; None if unknown."""
    # billed minutes are rounded
    if node_count == 1 or not billed.minutes or billed.minutes > run_minutes + 2.0:
        return 1
    paid = billed.usd / billed.minutes
    fitting = [
        nodes
        for nodes in (1, node_count)
        if price_per_minute and abs(paid / (price_per_minute * nodes) - 1.0) <= 0.05
    ]
    return fitting[0] if len(fitting) == 1 else None


def billed_text(billed: Billed) -> str:
    return f"{money(billed.usd)} for {count(billed.minutes)} min"


def total_billed(several: Iterable[Billed]) -> Billed:
    bills = list(several)
    return Billed(sum(bill.usd for bill in bills), sum(bill.minutes for bill in bills))
