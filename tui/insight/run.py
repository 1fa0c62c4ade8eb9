"""The job screen's snapshot: one run, as of now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from api_client.models import Checkpoint, JobStatus, QueueContext, QueueEvent, TrainingJob
from tui.insight.health import Finding
from tui.insight.node_metrics import MetricsSnapshot
from tui.insight.progress import ProgressSnapshot
from tui.insight.status import StatusView, status_view

_SECONDS_PER_MINUTE = 60
_NANOSECONDS = 1_000_000_000


def server_time(metrics: MetricsSnapshot, local_now: datetime) -> datetime:
    """Now by the server's clock, as far as its samples tell; ours may be minutes off."""
    return local_now if metrics.at is None else datetime.fromtimestamp(metrics.at, UTC)


def seconds_left(progress: ProgressSnapshot, now: datetime) -> float | None:
    """Seconds to the last step, counted from ``now``; None where the log does not tell."""
    if progress.eta_s is None or progress.last_step_at_ns is None:
        return progress.eta_s
    return max(0.0, progress.eta_s - max(0.0, now.timestamp() - progress.last_step_at_ns / _NANOSECONDS))


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """One run as of ``at``.

    ``history_known`` says that the history of statuses was asked for (not everybody may read it), and
    ``log_read`` that all of the log so far is in ``progress``. ``checkpoints`` is None until they were
    listed once; ``metrics_at`` and ``seen_at`` are the times of the last good answers;
    ``price_per_minute`` is USD for one node, None where no price is known.
    """

    job: TrainingJob
    at: datetime
    seen_at: datetime
    progress: ProgressSnapshot | None = None
    metrics: MetricsSnapshot | None = None
    metrics_at: datetime | None = None
    checkpoints: tuple[Checkpoint, ...] | None = None
    queue: QueueContext | None = None
    history_known: bool = False
    findings: tuple[Finding, ...] = ()
    slow_nodes: frozenset[str] = frozenset()
    price_per_minute: float | None = None
    log_read: bool = False

    @property
    def status(self) -> StatusView:
        """The job's status, as it is shown."""
        return status_view(self.job.current_status)

    @property
    def node_count(self) -> int:
        """Nodes, as the job says or else as the metrics show; at least one."""
        if self.job.node_count:
            return self.job.node_count
        return max(1, len(self.metrics.nodes) if self.metrics else 1)

    @property
    def events(self) -> tuple[QueueEvent, ...]:
        """The job's own changes of status, oldest first; the queue tells those of its neighbours too."""
        if self.queue is None:
            return ()
        return tuple(event for event in self.queue.events if event.training_job_id == self.job.id)

    @property
    def running_since(self) -> datetime | None:
        """When the job began to run, if the status history is ours to read; else when it was created."""
        if not self.history_known:
            return None
        for event in self.events:
            if event.status == JobStatus.RUNNING:
                return event.created
        return self.job.created_at

    @property
    def elapsed_s(self) -> float | None:
        """Seconds of running so far, or until the last change of a job that has ended."""
        since = self.running_since
        if since is None:
            return None
        end = self.job.updated_at if self.job.is_finished and self.job.updated_at else self.at
        return max(0.0, (end - since).total_seconds())

    @property
    def gpu_hours(self) -> float | None:
        """GPU-hours so far: all GPUs of all nodes, for as long as the job ran."""
        gpus = (self.job.instance_type.gpu_count or 0) * self.node_count
        if not gpus or self.elapsed_s is None or not self._has_run:
            return None
        return gpus * self.elapsed_s / 3600

    @property
    def cost_usd(self) -> float | None:
        """An estimate: list price per minute × nodes × minutes run; None without a price."""
        if self.price_per_minute is None or self.elapsed_s is None or not self._has_run:
            return None
        return self.price_per_minute * self.node_count * self.elapsed_s / _SECONDS_PER_MINUTE

    @property
    def _has_run(self) -> bool:
        return self.job.is_finished or self.job.current_status == JobStatus.RUNNING
