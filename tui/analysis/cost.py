"""The cost of a run: GPU-hours always, money where it was billed or a price is known.

Billed money is shown as such; all other money is labeled as an estimate.

A node is billed by the minute while it is up; waiting, pulling and draining are free. The
API reports neither the start nor the end of a run; both come from the status history if it has them.

The bill has dollars and minutes of each job, but not the time up to which it is complete. So the unbilled
time is the job's running time minus the billed minutes, and zero a day after the job ended. The minutes of a
job on several nodes may count each node or not; where neither running time nor price decides that, the
unbilled time is unknown.
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
    """Return the unbilled node-minutes of a run that is not billed entirely; None if unknown.

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


def total_billed(bills: Iterable[Billed]) -> Billed:
    all_bills = list(bills)
    return Billed(sum(bill.usd for bill in all_bills), sum(bill.minutes for bill in all_bills))


@dataclass(frozen=True, slots=True)
class RunningTime:
    """A job's running time, and its start; ``measured`` if both come from the status history.

    Otherwise ``seconds`` is an upper bound: the time since the job was released from the queue, or since it
    was created. ``label`` says which.
    """

    seconds: float
    since: datetime | None
    label: str = "run time"
    measured: bool = True


@dataclass(frozen=True, slots=True)
class Cost:
    """GPU-hours and money so far, and up to the expected end.

    ``None`` means unknown: money without a price, an end without an ETA. ``usd`` is an estimate of the whole
    run, ``unbilled_usd`` of the ``unbilled_minutes`` (node-minutes) that are missing in ``billed``.
    ``price_per_minute`` is USD for one node; ``of`` describes how the estimate was made; ``measured`` is
    that of the ``RunningTime``.
    """

    gpu_hours: float | None = None
    usd: float | None = None
    gpu_hours_to_end: float | None = None
    usd_to_end: float | None = None
    usd_to_end_low: float | None = None
    usd_to_end_high: float | None = None
    price_per_minute: float | None = None
    of: str = ""
    billed: Billed | None = None
    unbilled_minutes: float | None = None
    unbilled_usd: float | None = None
    measured: bool = True

    @property
    def spent_text(self) -> str:
        """The money spent, with ``≈`` unless all of it is billed; "" if unknown."""
        is_billed = self.billed is not None and not self.unbilled_usd
        return "" if self.spent_usd is None else f"{'' if is_billed else '≈ '}{money(self.spent_usd)}"

    @property
    def spent_usd(self) -> float | None:
        """The bill and an estimate of the rest; without a bill, the estimate of the whole run."""
        if self.billed is None:
            return self.usd
        return None if self.unbilled_usd is None else self.billed.usd + self.unbilled_usd


def running_time(job: TrainingJob, history: Sequence[QueueEvent], now: datetime) -> RunningTime:
    """Return how long a job has run, based on its status changes (oldest first, empty if unreadable).

    ``now`` is timezone-aware. A job that was stopped and restarted counts each of its runs.
    """
    own = [event for event in history if event.created is not None and event.training_job_id == job.id]
    end = (job.updated_at if job.is_finished else None) or now
    # The API documents that the events end when the job is released from the queue, before it runs.
    if not any(event.status == JobStatus.RUNNING or event.status == job.current_status for event in own):
        since = own[-1].created if own else job.created_at
        label = "time since release" if own else "time since creation"
        if since is None or not _may_have_run(job):
            return RunningTime(0.0, None, label, measured=False)
        return RunningTime(max(0.0, (end - since).total_seconds()), since, label, measured=False)
    seconds, since = 0.0, None
    for number, event in enumerate(own):
        if event.status != JobStatus.RUNNING or event.created is None:
            continue
        since = since or event.created
        following = own[number + 1].created if number + 1 < len(own) else end
        seconds += max(0.0, ((following or end) - event.created).total_seconds())
    return RunningTime(seconds, since)


def _may_have_run(job: TrainingJob) -> bool:
    """Return False if a job's status implies that it has not run: it waits, starts, or failed to deploy."""
    status = job.current_status
    return status == JobStatus.RUNNING or (job.is_finished and status != JobStatus.DEPLOY_FAILED)


def price_of(
    job: TrainingJob, listed: Mapping[str, float], overrides: Mapping[str, float] | None = None
) -> float | None:
    """Return USD per minute for one node: the user's price, else the listed one, by instance id or name."""
    machine = job.instance_type
    for prices in (overrides or {}, listed):
        for name in (machine.id, machine.name):
            if name and name in prices:
                return prices[name]
    return None


def cost_of(
    job: TrainingJob,
    ran: RunningTime,
    *,
    node_count: int,
    price_per_minute: float | None = None,
    left_s: tuple[float, float, float] | None = None,
    billed: Billed | None = None,
    all_billed: bool = False,
) -> Cost:
    """Return the cost of a run on ``node_count`` nodes; ``left_s`` is the low, likely, and high time left.

    ``all_billed`` means that the bill has the whole run.
    """
    gpus = max(0, job.instance_type.gpu_count) * node_count
    usd_per_s = None if price_per_minute is None else price_per_minute * node_count / MINUTE_S
    of, minutes = _estimate_text(ran, node_count, price_per_minute), None
    if billed is not None:
        of += ", less the billed minutes"
        minutes = (
            0.0
            if all_billed
            else unbilled_minutes(billed, ran.seconds / MINUTE_S, node_count, price_per_minute)
        )
    cost = Cost(
        gpu_hours=gpus * ran.seconds / HOUR_S if gpus else None,
        usd=None if usd_per_s is None else usd_per_s * ran.seconds,
        price_per_minute=price_per_minute,
        of=of,
        billed=billed,
        unbilled_minutes=minutes,
        unbilled_usd=_price(minutes, price_per_minute),
        measured=ran.measured,
    )
    if left_s is None or job.is_finished:
        return cost
    if gpus:
        cost = replace(cost, gpu_hours_to_end=gpus * (ran.seconds + left_s[1]) / HOUR_S)
    if usd_per_s is not None and (spent := cost.spent_usd) is not None:
        low, likely, high = (spent + usd_per_s * seconds for seconds in left_s)
        cost = replace(cost, usd_to_end_low=low, usd_to_end=likely, usd_to_end_high=high)
    return cost


def _price(minutes: float | None, price_per_minute: float | None) -> float | None:
    """Return the price of node-minutes; None if unknown. Zero minutes are free even without a price."""
    if minutes == 0.0:
        return 0.0
    return None if minutes is None or price_per_minute is None else minutes * price_per_minute


def _estimate_text(ran: RunningTime, node_count: int, price_per_minute: float | None) -> str:
    nodes = counted(node_count, "node")
    if price_per_minute is None:
        return f"{nodes} × {ran.label}; price unknown"
    return f"list price ${price_per_minute:g} per node-minute × {nodes} × {ran.label}"


@dataclass(frozen=True, slots=True)
class TotalCost:
    """The cost of several jobs: the ``billed`` part, and ``usd``, an estimate of the unbilled rest.

    ``unpriced`` is the number of jobs for which no estimate can be made; ``usd`` lacks them.
    """

    usd: float | None = None
    unpriced: int = 0
    billed: Billed = NOTHING

    @property
    def spent_usd(self) -> float:
        return self.billed.usd + (self.usd or 0.0)

    @property
    def sign(self) -> str:
        """``≈``, or "" if all of the money is billed."""
        return "≈" if self.usd else ""


def node_seconds(job: TrainingJob, now: datetime, idle_s: float | None = None) -> float | None:
    """Return the seconds that a job has run so far, over all nodes; None if it has not run.

    A job list lacks the start of jobs, so the time counts from creation (for an ended job, up to its last
    change), less ``idle_s``, the time in which it did not run. If that is None, this is an overestimate.
    """
    if job.created_at is None or not _may_have_run(job):
        return None
    end = job.updated_at if job.is_finished and job.updated_at is not None else now
    return max(0.0, (end - job.created_at).total_seconds() - (idle_s or 0.0)) * (job.node_count or 1)


def total_cost(
    used: Iterable[tuple[TrainingJob, float | None]],
    prices: Mapping[str, float],
    bill: Bill | None,
    now: datetime,
) -> TotalCost:
    """Sum up the cost of jobs: the bill, and an estimate of the unbilled part of their ``node_seconds``."""
    billed: list[Billed] = []
    usd, unpriced = None, 0
    for job, seconds in used:
        bill_of_job = bill.of(job) if bill is not None else None
        if bill_of_job is not None:
            billed.append(bill_of_job)
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
    return TotalCost(usd, unpriced, total_billed(billed))
