"""The cost of a run: always GPU-hours; also US dollars if the run is billed or its price is known.

Billed dollars are displayed as billed, all others as an estimate.

A node is billed by the minute while it is up; queueing, pulling the image and draining are free. The API does
not report when a run started and ended; both times come from the status history if it has them.

The bill has the dollars and minutes of each job, but not the time up to which it is complete. So the unbilled
time is the running time minus the billed minutes, and zero a day after the job ended. For a job on several
nodes, billed minutes may be those of the job or the sum over its nodes; if neither the running time nor the
price tells which, the unbilled time is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from api_client.vocabulary import JobStatus
from tui.text.units import HOUR_S, MINUTE_S, count, counted, money

if TYPE_CHECKING:
    from api_client.models import QueueEvent, TrainingJob


class Billed(NamedTuple):
    """The bill of one job, in USD and minutes."""

    usd: float
    minutes: float


NOTHING = Billed(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Bill:
    """What was billed for each job (by id) since ``since``; or the reason why it is unreadable.

    ``deleted`` is the total of jobs that were deleted after they had been billed.
    """

    since: datetime
    jobs: Mapping[str, Billed] = field(default_factory=dict)
    deleted: Billed = NOTHING
    unreadable_reason: str = ""

    def of(self, job: TrainingJob) -> Billed | None:
        """Return what was billed for a job; None if unknown, or if the job may be older than the bill."""
        if job.created_at is None or job.created_at < self.since:
            return None
        return self.jobs.get(job.id)


def is_all_billed(job: TrainingJob, now: datetime) -> bool:
    """Return True if a job ended so long ago that its bill is complete."""
    # the bill is updated hourly, so a day after its end a job is billed completely
    return job.is_finished and job.updated_at is not None and now - job.updated_at > timedelta(days=1)


def unbilled_minutes(
    billed: Billed, run_minutes: float, node_count: int, price_per_minute: float | None
) -> float | None:
    """Return the unbilled node-minutes of a run whose bill is incomplete; None if unknown.

    ``run_minutes`` is the running time or its upper bound; ``price_per_minute`` is in USD for one node.
    """
    nodes = _nodes_per_billed_minute(billed, run_minutes, node_count, price_per_minute)
    return None if nodes is None else max(0.0, run_minutes * node_count - billed.minutes * nodes)


def _nodes_per_billed_minute(
    billed: Billed, run_minutes: float, node_count: int, price_per_minute: float | None
) -> int | None:
    """Return the number of nodes that a billed minute stands for.

    That is 1 if the minutes of the nodes are added up, ``node_count`` if the job's minutes are billed, None
    if unknown.
    """
    # 2 minutes of tolerance, because billed minutes are rounded
    if node_count == 1 or not billed.minutes or billed.minutes > run_minutes + 2.0:
        return 1
    paid_per_minute = billed.usd / billed.minutes
    candidates = [
        nodes
        for nodes in (1, node_count)
        if price_per_minute and abs(paid_per_minute / (price_per_minute * nodes) - 1.0) <= 0.05
    ]
    return candidates[0] if len(candidates) == 1 else None


def billed_text(billed: Billed) -> str:
    return f"{money(billed.usd)} for {count(billed.minutes)} min"


def total_billed(bills: Iterable[Billed]) -> Billed:
    all_bills = list(bills)
    return Billed(sum(bill.usd for bill in all_bills), sum(bill.minutes for bill in all_bills))


@dataclass(frozen=True, slots=True)
class RunningTime:
    """How long a job has run, and since when.

    If ``measured``, both come from the status history. Otherwise ``seconds`` is an upper bound: the time
    since the job was released from the queue, or since it was created, as ``label`` states.
    """

    seconds: float
    since: datetime | None
    label: str = "run time"
    measured: bool = True


@dataclass(frozen=True, slots=True)
class Cost:
    """GPU-hours and US dollars so far, and until the expected end; None if unknown (no price, no ETA)."""

    gpu_hours: float | None = None
    usd: float | None = None
    """An estimate for the whole run so far, from its price and running time."""
    gpu_hours_to_end: float | None = None
    usd_to_end: float | None = None
    usd_to_end_low: float | None = None
    usd_to_end_high: float | None = None
    price_per_minute: float | None = None
    """USD for one node."""
    basis: str = ""
    """How the estimate was computed, such as ``list price $0.10 per node-minute × 2 nodes × run time``."""
    billed: Billed | None = None
    unbilled_minutes: float | None = None
    """Node-minutes that ``billed`` does not include yet."""
    unbilled_usd: float | None = None
    """An estimate for the unbilled minutes."""
    measured: bool = True
    """False if the running time is an upper bound (``RunningTime.measured``)."""

    @property
    def spent_text(self) -> str:
        """The US dollars spent, preceded by ``≈`` unless all are billed; "" if unknown."""
        is_billed = self.billed is not None and not self.unbilled_usd
        return "" if self.spent_usd is None else f"{'' if is_billed else '≈ '}{money(self.spent_usd)}"

    @property
    def spent_usd(self) -> float | None:
        """The billed dollars plus the estimate of the rest; without a bill, the estimate of the whole run."""
        if self.billed is None:
            return self.usd
        return None if self.unbilled_usd is None else self.billed.usd + self.unbilled_usd


def running_time(job: TrainingJob, history: Sequence[QueueEvent], now: datetime) -> RunningTime:
    """Return how long a job has run, based on its status changes (oldest first, empty if unreadable).

    ``now`` is timezone-aware. If a job was stopped and restarted, the times of all its runs are added up.
    """
    own_events = [event for event in history if event.created is not None and event.training_job_id == job.id]
    end = (job.updated_at if job.is_finished else None) or now
    # The API documents that events end when the job leaves the queue, so RUNNING may be missing.
    if not any(
        event.status == JobStatus.RUNNING or event.status == job.current_status for event in own_events
    ):
        since = own_events[-1].created if own_events else job.created_at
        label = "time since release" if own_events else "time since creation"
        if since is None or not _may_have_run(job):
            return RunningTime(0.0, None, label, measured=False)
        return RunningTime(max(0.0, (end - since).total_seconds()), since, label, measured=False)
    seconds, since = 0.0, None
    for index, event in enumerate(own_events):
        if event.status != JobStatus.RUNNING or event.created is None:
            continue
        since = since or event.created
        following = own_events[index + 1].created if index + 1 < len(own_events) else end
        seconds += max(0.0, ((following or end) - event.created).total_seconds())
    return RunningTime(seconds, since)


def _may_have_run(job: TrainingJob) -> bool:
    """Return False if a job has not run, according to its status: queued, starting, or failed to deploy."""
    status = job.current_status
    return status == JobStatus.RUNNING or (job.is_finished and status != JobStatus.DEPLOY_FAILED)


def price_of(
    job: TrainingJob, listed: Mapping[str, float], overrides: Mapping[str, float] | None = None
) -> float | None:
    """Return USD per minute for one node: from the user's ``overrides``, else from the price list.

    Both map the id or the name of an instance type to its price.
    """
    instance_type = job.instance_type
    for prices in (overrides or {}, listed):
        for name in (instance_type.id, instance_type.name):
            if name and name in prices:
                return prices[name]
    return None


def cost_of(
    job: TrainingJob,
    run_time: RunningTime,
    *,
    node_count: int,
    price_per_minute: float | None = None,
    left_s: tuple[float, float, float] | None = None,
    billed: Billed | None = None,
    all_billed: bool = False,
) -> Cost:
    """Return the cost of a run on ``node_count`` nodes.

    ``left_s`` is the minimum, likely and maximum time left; ``all_billed`` is True if the bill is complete.
    """
    gpus = max(0, job.instance_type.gpu_count) * node_count
    usd_per_s = None if price_per_minute is None else price_per_minute * node_count / MINUTE_S
    basis, unbilled = _basis_text(run_time, node_count, price_per_minute), None
    if billed is not None:
        basis += ", less the billed minutes"
        unbilled = (
            0.0
            if all_billed
            else unbilled_minutes(billed, run_time.seconds / MINUTE_S, node_count, price_per_minute)
        )
    cost = Cost(
        gpu_hours=gpus * run_time.seconds / HOUR_S if gpus else None,
        usd=None if usd_per_s is None else usd_per_s * run_time.seconds,
        price_per_minute=price_per_minute,
        basis=basis,
        billed=billed,
        unbilled_minutes=unbilled,
        unbilled_usd=_price(unbilled, price_per_minute),
        measured=run_time.measured,
    )
    if left_s is None or job.is_finished:
        return cost
    if gpus:
        cost = replace(cost, gpu_hours_to_end=gpus * (run_time.seconds + left_s[1]) / HOUR_S)
    if usd_per_s is not None and (spent_usd := cost.spent_usd) is not None:
        low, likely, high = (spent_usd + usd_per_s * seconds for seconds in left_s)
        cost = replace(cost, usd_to_end_low=low, usd_to_end=likely, usd_to_end_high=high)
    return cost


def _price(minutes: float | None, price_per_minute: float | None) -> float | None:
    """Return the price of node-minutes in USD; None if unknown. Zero minutes cost 0 even without a price."""
    if minutes == 0.0:
        return 0.0
    return None if minutes is None or price_per_minute is None else minutes * price_per_minute


def _basis_text(run_time: RunningTime, node_count: int, price_per_minute: float | None) -> str:
    nodes = counted(node_count, "node")
    if price_per_minute is None:
        return f"{nodes} × {run_time.label}; price unknown"
    return f"list price ${price_per_minute:g} per node-minute × {nodes} × {run_time.label}"


@dataclass(frozen=True, slots=True)
class TotalCost:
    """The cost of several jobs: what is ``billed``, and ``usd``, an estimate of the unbilled rest.

    ``unpriced`` is the number of jobs whose cost cannot be estimated; ``usd`` does not include them.
    """

    usd: float | None = None
    unpriced: int = 0
    billed: Billed = NOTHING

    @property
    def spent_usd(self) -> float:
        return self.billed.usd + (self.usd or 0.0)

    @property
    def sign(self) -> str:
        """``≈`` if a part of the cost is an estimate, "" if all of it is billed."""
        return "≈" if self.usd else ""


def node_seconds(job: TrainingJob, now: datetime, idle_s: float | None = None) -> float | None:
    """Return the seconds that a job has run so far, summed over its nodes; None if it has not run.

    A job list has no start times, so the result is the time since creation (of an ended job, until its last
    change) minus ``idle_s``, the time in which the job did not run. If that is None, the result is too high.
    """
    if job.created_at is None or not _may_have_run(job):
        return None
    end = job.updated_at if job.is_finished and job.updated_at is not None else now
    return max(0.0, (end - job.created_at).total_seconds() - (idle_s or 0.0)) * (job.node_count or 1)


def total_cost(
    jobs_with_seconds: Iterable[tuple[TrainingJob, float | None]],
    prices: Mapping[str, float],
    bill: Bill | None,
    now: datetime,
) -> TotalCost:
    """Return the total cost of jobs, given with their ``node_seconds`` (None if they have not run)."""
    bills: list[Billed] = []
    usd, unpriced = None, 0
    for job, seconds in jobs_with_seconds:
        bill_of_job = bill.of(job) if bill is not None else None
        if bill_of_job is not None:
            bills.append(bill_of_job)
        if seconds is None or (bill_of_job is not None and is_all_billed(job, now)):
            continue
        price, nodes = price_of(job, prices), job.node_count or 1
        minutes: float | None = seconds / MINUTE_S
        if bill_of_job is not None:
            minutes = unbilled_minutes(bill_of_job, seconds / MINUTE_S / nodes, nodes, price)
            if minutes == 0.0:
                continue
        if price is None or minutes is None:
            unpriced += 1
        else:
            usd = (usd or 0.0) + price * minutes
    return TotalCost(usd, unpriced, total_billed(bills))
