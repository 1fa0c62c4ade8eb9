"""The snapshot of one run that screens and commands share, with its verdict and its events.

A run without findings is healthy only once its log and its metrics have been checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from api_client.models import Checkpoint, JobStatus, QueueContext, QueueEvent, TrainingJob
from api_client.models.logs import NS_PER_S
from tui.analysis.billing import Bill, is_all_billed
from tui.analysis.connection import LOG, METRICS, STATUS
from tui.analysis.cost import Cost, RunningTime, cost_of, running_time
from tui.analysis.node_metrics import MetricsSnapshot
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.finding import FindingKind, HealthFinding
from tui.analysis.status import StatusView, status_view
from tui.text.units import age, duration

PARTS = frozenset({LOG, METRICS})
"""The data that a verdict requires."""
STALE_METRICS_S = 90.0
"""A verdict needs newer health metrics if they are older than this."""

ENOUGH_S = 300.0
"""Nothing can be said of a run before its metrics cover this time …"""
STARTING_S = 1500.0
"""… or this time, as long as the log shows no steps: it may still load."""

State = Literal["findings", "checking", "stale", "unknown", "healthy"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The health of a run; ``words`` is the text to display, empty if there are findings, remarks aside."""

    state: State
    words: str = ""


def is_settled(run: RunSnapshot) -> bool:
    """Return True once all data has been checked or could not be read: no more will be known soon."""
    judged = (
        run.checked_sources if run.log_read else run.checked_sources - {LOG}
    )  # not while the log is being read again
    return judged | run.failing >= PARTS


def is_starting(run: RunSnapshot) -> bool:
    """Return True if too little of a run has been seen to judge it, whatever has been read."""
    metrics, progress = run.health_metrics, run.progress
    nodes = metrics.nodes if metrics is not None else ()
    uses = [use for node in nodes for use in (node.mean_utilization, node.cpu, node.cpu_memory)]
    began = min((use.times[0] for use in uses if use.times), default=None)
    if metrics is None or metrics.at is None or began is None:
        return False
    makes_steps = progress is not None and (progress.loss is not None or progress.step_interval_s is not None)
    return metrics.at - began < (ENOUGH_S if makes_steps else STARTING_S)


def verdict(run: RunSnapshot) -> Verdict:
    if any(found.severity != "info" for found in run.findings):
        return Verdict("findings")
    if not is_settled(run):
        return Verdict("checking", "checking health…")
    unseen_s = (run.at - run.seen_at).total_seconds()
    if STATUS in run.failing or unseen_s > run.stale_after_s:
        return Verdict("stale", f"no problems when last seen, {age(unseen_s)} ago")
    if run.failing >= PARTS:
        return Verdict("unknown", "health unknown: can't read the log or the metrics")
    if LOG in run.failing:
        return Verdict("unknown", "no problems in the metrics; can't read the log")
    if METRICS in run.failing:
        return Verdict("unknown", "no problems in the log; can't read the metrics")
    if run.health_metrics is None or run.health_metrics.at is None:
        return Verdict("unknown", "no problems in the log, no metrics yet")
    if (
        run.health_metrics_at is not None
        and (run.at - run.health_metrics_at).total_seconds() > STALE_METRICS_S
    ):
        return Verdict("checking", "checking health…")
    if is_starting(run):
        return Verdict("checking", "checking health: just started…")
    if run.compares_nodes:
        return Verdict("checking", "checking health: comparing nodes…")
    return Verdict("healthy", "healthy")


RunEventKind = Literal["checkpoint", "restart", "error", "status"]

SAME_CHECKPOINT_S = 600.0
"""A checkpoint in the log and one from the API within this time are the same."""


@dataclass(frozen=True, slots=True)
class RunEvent:
    """An event at ``at_s`` (epoch seconds). ``text`` may come from the server and is not sanitized."""

    at_s: float
    kind: RunEventKind
    text: str


def run_events(
    history: Iterable[QueueEvent], checkpoints: Sequence[Checkpoint], progress: ProgressSnapshot | None
) -> tuple[RunEvent, ...]:
    """Return status changes, checkpoints, restarts and errors, oldest first.

    Checkpoints are those listed by the API, plus those that only the log mentions.
    """
    found = [
        RunEvent(event.created.timestamp(), "status", status_view(event.status).word)
        for event in history
        if event.created is not None
    ]
    listed = [
        RunEvent(one.created_at.timestamp(), "checkpoint", one.checkpoint_id)
        for one in checkpoints
        if one.created_at is not None
    ]
    found += listed
    if progress is not None:
        names = {event.text for event in listed}
        for name, at_ns in progress.saves:
            at_s = at_ns / NS_PER_S
            near = any(abs(event.at_s - at_s) <= SAME_CHECKPOINT_S for event in listed)
            if name not in names and not near:
                found.append(RunEvent(at_s, "checkpoint", name))
        found += [RunEvent(at_s, "restart", "step count went back") for at_s in progress.restarts]
        found += [RunEvent(error.at_ns / NS_PER_S, "error", error.text) for error in progress.errors.kept]
    return tuple(sorted(found, key=lambda event: event.at_s))


STALE_AFTER_S = 30.0


def seconds_left(progress: ProgressSnapshot, now: datetime) -> float | None:
    """Return the seconds to the last step, counted from ``now``; None if the log does not tell."""
    return _counted_down(progress, progress.eta_s, now)


def seconds_left_range(progress: ProgressSnapshot, now: datetime) -> tuple[float, float] | None:
    """Return the minimum and maximum seconds likely left, counted from ``now``."""
    low = _counted_down(progress, progress.eta_low_s, now)
    high = _counted_down(progress, progress.eta_high_s, now)
    return None if low is None or high is None else (low, high)


def _counted_down(progress: ProgressSnapshot, left_s: float | None, now: datetime) -> float | None:
    if left_s is None or progress.last_step_at_ns is None:
        return left_s
    return max(0.0, left_s - max(0.0, now.timestamp() - progress.last_step_at_ns / NS_PER_S))


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """One run as of ``at``.

    - ``seen_at`` (of the status), ``metrics_at``, ``health_metrics_at``: times of the last successful
      responses by the local clock, which is ``clock_ahead_s`` ahead of the server's. The status is stale
      after ``stale_after_s``.
    - ``log_read``: all of the log so far is in ``progress``.
    - ``metrics`` cover the time range of the charts, ``health_metrics`` always the last hour, for health
      checks.
    - ``history_known``: the status history has been requested; not everybody may read it.
    - ``checkpoints``, ``kept_losses`` (from the trainer's own record) and ``faults`` are None until they
      have been listed, requested, or checked.
    - ``checked_sources``: the data that ``findings`` are based on; ``failing``: the data whose last request
      failed. Both use the names in ``tui.analysis.connection``.
    - ``compares_nodes``: a node looks slow, but the run has just started or paused: not judged yet.
    - ``slow_nodes``, ``missing_nodes``: names as in ``metrics``.
    - ``price_per_minute``: USD for one node, None if no price is known. ``bill``: None until requested.
    """

    job: TrainingJob
    at: datetime
    seen_at: datetime
    progress: ProgressSnapshot | None = None
    metrics: MetricsSnapshot | None = None
    metrics_at: datetime | None = None
    health_metrics: MetricsSnapshot | None = None
    health_metrics_at: datetime | None = None
    checkpoints: tuple[Checkpoint, ...] | None = None
    queue: QueueContext | None = None
    history_known: bool = False
    findings: tuple[HealthFinding, ...] = ()
    checked_sources: frozenset[str] = frozenset()
    failing: frozenset[str] = frozenset()
    compares_nodes: bool = False
    kept_losses: KeptLosses | None = None
    faults: Mapping[SavedKey, CheckpointFault | None] | None = None
    stale_after_s: float = STALE_AFTER_S
    slow_nodes: frozenset[str] = frozenset()
    missing_nodes: frozenset[str] = frozenset()
    price_per_minute: float | None = None
    bill: Bill | None = None
    log_read: bool = False
    clock_ahead_s: float = 0.0

    @property
    def status(self) -> StatusView:
        return status_view(self.job.current_status)

    @property
    def server_now(self) -> datetime:
        """The current time by the server's clock, for comparison with timestamps of lines and samples."""
        now = self.at - timedelta(seconds=self.clock_ahead_s)
        newest = max((one.at for one in (self.metrics, self.health_metrics) if one and one.at), default=None)
        if self.progress is not None and self.progress.last_line_at_ns is not None:
            # A line may have any timestamp: it can only reduce the lead of the local clock, not show that it
            # is behind.
            line_at = min(self.progress.last_line_at_ns / NS_PER_S, self.at.timestamp())
            newest = line_at if newest is None else max(newest, line_at)
        return now if newest is None or now.timestamp() >= newest else datetime.fromtimestamp(newest, UTC)

    @property
    def node_count(self) -> int:
        """Number of nodes according to the job, or else to the metrics; at least one."""
        if self.job.node_count:
            return self.job.node_count
        return max(1, len(self.metrics.nodes) if self.metrics else 1)

    @property
    def status_history(self) -> tuple[QueueEvent, ...]:
        """The job's own status changes, oldest first; the queue also has those of neighboring jobs."""
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
        """The time the job began to run if the status history is readable; otherwise its creation time."""
        if not self.history_known:
            return None
        return self.running_time.since or self.job.created_at

    @property
    def elapsed_s(self) -> float | None:
        """Seconds of running so far, or until the last change of a job that has ended."""
        since = self.running_since
        if since is None:
            return None
        end = self.job.updated_at if self.job.is_finished and self.job.updated_at else self.at
        return max(0.0, (end - since).total_seconds())

    @property
    def cost(self) -> Cost:
        """GPU-hours and money: so far, up to the expected end, and per checkpoint. Empty until known."""
        if not self.history_known or not self._has_run:
            return Cost()
        return cost_of(
            self.job,
            self.running_time,
            node_count=self.node_count,
            price_per_minute=self.price_per_minute,
            left_s=self._left_s(),
            checkpoints=len(self.checkpoints or ()),
            billed=self.bill.of(self.job) if self.bill is not None else None,
            settled=is_all_billed(self.job, self.at),
        )

    def _left_s(self) -> tuple[float, float, float] | None:
        if self.progress is None or self.job.is_finished:
            return None
        likely = seconds_left(self.progress, self.server_now)
        if likely is None:
            return None
        low, high = seconds_left_range(self.progress, self.server_now) or (likely, likely)
        return low, likely, high

    @property
    def _has_run(self) -> bool:
        return self.job.is_finished or self.job.current_status == JobStatus.RUNNING


StepValues = Sequence[tuple[int, float]]
"""A curve as (step, value), sorted by step."""

SavedKey = tuple[str, datetime | None]
"""Identifies a checkpoint; one written again under the same name is a different one."""

# The platform's own pattern comes first; of its two numbers one is a step and the other an
# epoch or an attempt, so the larger one is used. The others are the directory names of trainers.
_PLATFORM = re.compile(r".*checkpoint-([0-9]{1,18})(?:-([0-9]{1,18}))?", re.ASCII | re.DOTALL)
_OTHERS = re.compile(
    r"(?:global_?step|step|iter(?:ation)?|checkpoint|ckpt)[-_=]?([0-9]{1,18})", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class KeptLosses:
    """The losses by step that the trainer itself saved with its newest checkpoint; empty if none."""

    training: StepValues = ()
    evaluation: StepValues = ()


@dataclass(frozen=True, slots=True)
class CheckpointFault:
    """The reason a checkpoint is unusable: the loss had broken at ``since`` (UTC), before it was written."""

    kind: FindingKind
    what: str
    since: datetime | None = None

    @property
    def mark(self) -> str:
        """The shortest form, for tables: ``after NaN``."""
        return "after NaN" if self.kind is FindingKind.LOSS_NOT_FINITE else "diverged"

    def words(self, created_at: datetime | None) -> str:
        """Return a phrase such as ``written 24m after the loss became NaN (11:50 UTC)``."""
        if self.since is None:
            return f"written after {self.what}"
        later_s = (created_at - self.since).total_seconds() if created_at is not None else 0.0
        later = f"{duration(later_s)} " if later_s >= 1 else ""
        return f"written {later}after {self.what} ({self.since:%Y-%m-%d %H:%M} UTC)"


def saved_key(checkpoint: Checkpoint) -> SavedKey:
    return checkpoint.checkpoint_id, checkpoint.created_at


def step_of(name: str) -> int | None:
    """Return the step in a checkpoint's name; None if it has none."""
    platform = _PLATFORM.fullmatch(name)
    if platform is not None:
        return max(int(digits) for digits in platform.groups() if digits)
    others = _OTHERS.findall(name)
    return int(others[-1]) if others else None
