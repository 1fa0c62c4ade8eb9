"""The snapshot of one run, which screens and commands share, and the run's events."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from api_client.models import Checkpoint, QueueContext, QueueEvent, TrainingJob
from api_client.models.logs import NS_PER_S
from api_client.vocabulary import JobStatus
from tui.analysis.cost import Bill, Cost, RunningTime, cost_of, is_all_billed, running_time
from tui.analysis.node_metrics import MetricsSnapshot
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.checkpoints import CheckpointFault, KeptLosses, SavedKey
from tui.analysis.run.finding import HealthFinding, costliest, is_stuck, lost_usd
from tui.analysis.status import StatusView, status_view
from tui.text.units import HOUR_S, MINUTE_S

RunEventKind = Literal["checkpoint", "restart", "error", "status"]

SAME_CHECKPOINT_S = 600.0
"""A checkpoint in the log and a checkpoint that the API lists are the same if their times are this close."""


@dataclass(frozen=True, slots=True)
class RunEvent:
    """An event of a run at ``at_s`` (epoch seconds). ``text`` may be from the server and is not sanitized."""

    at_s: float
    kind: RunEventKind
    text: str


def run_events(
    history: Iterable[QueueEvent], checkpoints: Sequence[Checkpoint], progress: ProgressSnapshot | None
) -> tuple[RunEvent, ...]:
    """Return status changes, checkpoints, restarts and errors, oldest first.

    Checkpoints are those listed by the API, plus those that only the log mentions.
    """
    events = [
        RunEvent(event.created.timestamp(), "status", status_view(event.status).word)
        for event in history
        if event.created is not None
    ]
    listed_checkpoints = [
        RunEvent(checkpoint.created_at.timestamp(), "checkpoint", checkpoint.checkpoint_id)
        for checkpoint in checkpoints
        if checkpoint.created_at is not None
    ]
    events += listed_checkpoints
    if progress is not None:
        listed_names, listed_times = (
            {event.text for event in listed_checkpoints},
            sorted(event.at_s for event in listed_checkpoints),
        )
        for name, at_ns in progress.saves:
            at_s = at_ns / NS_PER_S
            candidate_index = bisect_left(listed_times, at_s - SAME_CHECKPOINT_S)
            is_listed = (
                candidate_index < len(listed_times)
                and listed_times[candidate_index] <= at_s + SAME_CHECKPOINT_S
            )
            if name not in listed_names and not is_listed:
                events.append(RunEvent(at_s, "checkpoint", name))
        events += [RunEvent(at_s, "restart", "step count went back") for at_s in progress.restarts]
        events += [RunEvent(error.at_ns / NS_PER_S, "error", error.text) for error in progress.errors.kept]
    return tuple(sorted(events, key=lambda event: event.at_s))


STALE_AFTER_S = 30.0
"""A job's status is stale if it is older than this."""


def seconds_left(progress: ProgressSnapshot, now: datetime) -> float | None:
    """Return the seconds from ``now`` to the expected last step; None if unknown."""
    return _seconds_left_from(progress, progress.eta_s, now)


def seconds_left_range(progress: ProgressSnapshot, now: datetime) -> tuple[float, float] | None:
    """Return the likely minimum and maximum of ``seconds_left``; None if unknown."""
    low = _seconds_left_from(progress, progress.eta_low_s, now)
    high = _seconds_left_from(progress, progress.eta_high_s, now)
    return None if low is None or high is None else (low, high)


def _seconds_left_from(progress: ProgressSnapshot, left_s: float | None, now: datetime) -> float | None:
    if left_s is None or progress.last_step_at_ns is None:
        return left_s
    return max(0.0, left_s - max(0.0, now.timestamp() - progress.last_step_at_ns / NS_PER_S))


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """A run at the time ``at`` (local clock). Data is None until it has been read."""

    job: TrainingJob
    at: datetime
    seen_at: datetime
    """Time of the last successful response with the status, by the local clock."""
    progress: ProgressSnapshot | None = None
    metrics: MetricsSnapshot | None = None
    """The metrics in the time range of the charts."""
    metrics_at: datetime | None = None
    """Time of the last successful response with ``metrics``, by the local clock."""
    health_metrics: MetricsSnapshot | None = None
    """The metrics for health checks, which do not depend on the time range of the charts."""
    health_metrics_at: datetime | None = None
    """Time of the last successful response with ``health_metrics``, by the local clock."""
    checkpoints: tuple[Checkpoint, ...] | None = None
    checkpoints_recorded: bool = True
    """False for a recording without checkpoints."""
    queue: QueueContext | None = None
    history_known: bool = False
    """True once the status history has been requested; some accounts may not read it."""
    findings: tuple[HealthFinding, ...] = ()
    checked_sources: frozenset[str] = frozenset()
    """The data on which ``findings`` are based: display names such as ``tui.analysis.connection.LOG``."""
    failing: frozenset[str] = frozenset()
    """The data whose last request failed, by display name."""
    compares_nodes: bool = False
    """True if a node looks slow, but there is no finding yet because its usual speed is still unknown."""
    kept_losses: KeptLosses | None = None
    """Losses from the trainer's own record; None until the record has been requested."""
    faults: Mapping[SavedKey, CheckpointFault | None] | None = None
    """The fault of each checkpoint; None until checkpoints have been checked."""
    stale_after_s: float = STALE_AFTER_S
    """The status is stale if ``seen_at`` is longer ago than this."""
    price_per_minute: float | None = None
    """US dollars for one node; None if no price is known."""
    bill: Bill | None = None
    log_read: bool = False
    """True if ``progress`` includes the whole log so far."""
    clock_ahead_s: float = 0.0
    """Seconds that the local clock is ahead of the server's."""

    @property
    def usd_per_hour(self) -> float | None:
        """The price of all nodes in US dollars per hour; None if unknown."""
        price = self.price_per_minute
        return None if price is None else price * self.node_count * HOUR_S / MINUTE_S

    @property
    def lost_usd(self) -> float:
        """An estimate of the US dollars that the costliest finding has wasted so far; 0 if unknown."""
        return lost_usd(costliest(self.findings), self.usd_per_hour, self.end_or_now)

    @property
    def status(self) -> StatusView:
        return status_view(self.job.current_status)

    @property
    def server_now(self) -> datetime:
        """The current time by the server's clock, to compare with the timestamps of lines and samples."""
        now = self.at - timedelta(seconds=self.clock_ahead_s)
        newest_s = max(
            (metrics.at for metrics in (self.metrics, self.health_metrics) if metrics and metrics.at),
            default=None,
        )
        if self.progress is not None and self.progress.last_line_at_ns is not None:
            # A line's timestamp may be wrong and in the future, so it is limited to the local time.
            line_s = min(self.progress.last_line_at_ns / NS_PER_S, self.at.timestamp())
            newest_s = line_s if newest_s is None else max(newest_s, line_s)
        return (
            now if newest_s is None or now.timestamp() >= newest_s else datetime.fromtimestamp(newest_s, UTC)
        )

    @property
    def end_or_now(self) -> datetime:
        """The end of a finished run, else the current time by the server's clock."""
        return (self.job.updated_at if self.job.is_finished else None) or self.server_now

    @property
    def node_count(self) -> int:
        """Number of nodes that the job's record states, else of nodes in the metrics; at least 1."""
        if self.job.node_count:
            return self.job.node_count
        return max(1, len(self.metrics.nodes) if self.metrics else 1)

    @property
    def status_history(self) -> tuple[QueueEvent, ...]:
        """The status changes of this job, oldest first (``queue`` also has status changes of other jobs)."""
        if self.queue is None:
            return ()
        return tuple(event for event in self.queue.events if event.training_job_id == self.job.id)

    @property
    def events(self) -> tuple[RunEvent, ...]:
        return run_events(self.status_history, self.checkpoints or (), self.progress)

    @property
    def running_time(self) -> RunningTime:
        return running_time(self.job, self.status_history, self.at)

    @property
    def running_since(self) -> datetime | None:
        """The time the job began to run, else its creation time; None until the history was requested."""
        if not self.history_known:
            return None
        return self.running_time.since or self.job.created_at

    @property
    def elapsed_s(self) -> float | None:
        """Seconds from ``running_since`` until now, or until the last update of a finished job."""
        since = self.running_since
        if since is None:
            return None
        end = self.job.updated_at if self.job.is_finished and self.job.updated_at else self.at
        return max(0.0, (end - since).total_seconds())

    @property
    def cost(self) -> Cost:
        """GPU-hours and US dollars, so far and until the expected end; an empty ``Cost`` until known."""
        if not self.history_known or not self._has_run:
            return Cost()
        return cost_of(
            self.job,
            self.running_time,
            node_count=self.node_count,
            price_per_minute=self.price_per_minute,
            left_s=self.left_s,
            billed=self.bill.of(self.job) if self.bill is not None else None,
            all_billed=is_all_billed(self.job, self.at),
        )

    @property
    def left_s(self) -> tuple[float, float, float] | None:
        """The minimum, likely and maximum seconds left; None if unknown, or if the run ended or is stuck."""
        if self.progress is None or self.job.is_finished or is_stuck(self.findings):
            return None
        likely = seconds_left(self.progress, self.server_now)
        if likely is None:
            return None
        low, high = seconds_left_range(self.progress, self.server_now) or (likely, likely)
        return low, likely, high

    @property
    def _has_run(self) -> bool:
        return self.job.is_finished or self.job.current_status == JobStatus.RUNNING
