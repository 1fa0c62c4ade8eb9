"""The snapshot that Home shows: the rows of jobs, projects and teams, the order of jobs, and costs.

``FleetFold`` builds successive snapshots with work proportional to the number of unfinished jobs, because
almost all jobs of a large account have ended.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import IntEnum
from heapq import nlargest
from itertools import takewhile
from math import isfinite
from operator import attrgetter
from typing import TYPE_CHECKING

from api_client.vocabulary import WAITING_STATUSES, JobStatus
from tui.analysis.cost import Bill, TotalCost, node_seconds, price_of, total_cost
from tui.analysis.fleet.capacity import gpu_allocations
from tui.analysis.logs.excerpt import excerpt
from tui.analysis.progress.metrics import headline_series
from tui.analysis.run.finding import (
    NODE_CHARACTERS,
    SEVERITIES,
    SIGNS,
    TONES,
    HealthFinding,
    Severity,
    SnoozedFindings,
    by_severity,
    costliest,
    is_stuck,
    lost_usd,
)
from tui.analysis.series import EMPTY, latest
from tui.analysis.status import StatusView, status_view
from tui.text.names import clip_middle
from tui.text.sanitize import markdown_code, sanitize
from tui.text.times import time_key
from tui.text.units import HOUR_S, MINUTE_S, UNKNOWN, age, count, counted, duration, hardware, number, percent

if TYPE_CHECKING:
    from api_client.models import TrainingJob, TrainingProject
    from tui.analysis.progress.snapshot import ProgressSnapshot


@dataclass(frozen=True, slots=True)
class TeamRow:
    """A team that users can select, with its numbers of projects and jobs."""

    name: str
    projects: int
    jobs: int
    running: int
    """Number of running jobs."""

    @property
    def about(self) -> str:
        projects = counted(self.projects, "project")
        return f"{projects}, {counted(self.jobs, 'job')}, {self.running} running"


def teams_of(projects: Iterable[ProjectRow]) -> tuple[TeamRow, ...]:
    by_team: dict[str, list[ProjectRow]] = {}
    for project in projects:
        if project.team:
            by_team.setdefault(project.team, []).append(project)
    return tuple(
        TeamRow(name, len(rows), sum(row.jobs for row in rows), sum(row.running for row in rows))
        for name, rows in sorted(by_team.items(), key=lambda item: item[0].lower())
    )


def limited_to_team(fleet: FleetSnapshot, team: str) -> FleetSnapshot:
    """Return the projects and jobs of a team; all of them if ``team`` is "" or has no project."""
    projects: Sequence[ProjectRow] = [project for project in fleet.projects if project.team == team]
    if not team or not projects:
        return fleet
    ids = {project.id for project in projects}
    jobs = tuple(row for row in fleet.jobs if row.job.project_id in ids)
    return replace(fleet, projects=tuple(projects), jobs=jobs)


@dataclass(frozen=True, slots=True)
class JobPreview:
    """What Home shows of a job besides its record: progress, GPU utilization, findings, log lines."""

    progress: ProgressSnapshot | None = None
    gpu_utilization: float | None = None
    """The current mean of all nodes (0–1)."""
    findings: tuple[HealthFinding, ...] = ()
    curve: tuple[float | None, ...] = ()
    """Means of the loss in equal parts of the run (None: no loss); () until the whole log has been read."""
    last_lines: tuple[str, ...] = ()
    """The newest lines of the log."""
    log_read: bool = False
    """True once the whole log has been read."""
    idle_s: float | None = None
    """Seconds since its creation in which the job did not run; None until its status history is read."""
    reading: bool = False
    """True while data is still being read, so that missing values may appear."""
    at_s: float = 0.0
    """Time of the data (epoch seconds)."""


NO_PREVIEW, UNREAD = JobPreview(), JobPreview(reading=True)
"""The previews of a job that will not be read, and of a job that has not been read yet."""
MAX_PREVIEWED_JOBS = 24
"""Maximum number of running jobs to poll, and of ended jobs to read once; the newest jobs are chosen."""


def previewed_jobs(jobs: Iterable[TrainingJob]) -> list[TrainingJob]:
    """Return the newest jobs, at most ``MAX_PREVIEWED_JOBS``."""
    return nlargest(MAX_PREVIEWED_JOBS, jobs, key=lambda job: time_key(job.created_at))


class Need(IntEnum):
    """The groups of the job list, in their order."""

    ATTENTION = 0
    RUNNING = 1
    WAITING = 2
    ENDED = 3


Rank = tuple[Need, float, float, float, float, float]
"""The sort key of the job list: the group, then five numbers, of which lower ones come first.

For jobs that need attention: wasted USD per hour, wasted GPUs, severity, USD per hour or GPUs of the job, and
time; for others: the status order, and time. Numbers are negated where the highest comes first.
"""


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as shown on Home. All text is sanitized, except in ``job``, the API's record."""

    job: TrainingJob
    id: str
    project_id: str
    rank: Rank
    """The sort key of the list: jobs that need attention first, by waste."""
    name: str
    project: str
    status: StatusView
    gpu: str
    gpu_count: int
    node_seconds: float | None
    """Running time so far, summed over the nodes, to estimate the cost; None if the job has not run."""
    sign: str
    """The sign of the worst finding; without findings, of the status."""
    tone: str
    note: str
    """The most wasteful finding, the reason of a failure, or a waiting job's place in the queue."""
    saved: str
    """The newest checkpoint in the log, and its age; for an ended job, the best loss and that checkpoint."""
    preview: JobPreview
    age: str
    age_s: float
    running: bool
    user: str
    spot: bool
    alarmed: bool
    usd_per_hour: float | None = None
    wasted: float = 0.0
    """The fraction of its cost that is wasted now; 0 if unknown."""
    lost_usd: float = 0.0
    """An estimate of the US dollars that the most wasteful finding has cost so far."""
    reward: float | None = None
    """The newest reward of reinforcement learning, whose loss does not show progress."""
    findings: tuple[HealthFinding, ...] = ()
    judged: bool = False
    """True once the job has been checked for findings."""
    marked: bool = False
    """True if the user has selected the job for the next action."""
    bookmarked: bool = False
    stopping: str = ""
    """The user's condition for stopping the job, such as ``stops after its next checkpoint``, if any."""

    @property
    def need(self) -> Need:
        return self.rank[0]

    @property
    def wasted_usd_per_hour(self) -> float:
        return self.wasted * (self.usd_per_hour or 0.0)

    @property
    def progress(self) -> ProgressSnapshot | None:
        return self.preview.progress

    @property
    def loss(self) -> float | None:
        return self.progress.loss if self.progress is not None else None

    @property
    def fraction_and_step(self) -> tuple[float, int] | None:
        """The completed fraction (0 if the total is unknown) and the step; None if no step is reported."""
        progress = self.progress
        if progress is None or progress.step is None:
            return None
        return progress.fraction or 0.0, progress.step

    @property
    def steps(self) -> str:
        progress = self.progress
        if progress is None or progress.step is None:
            return ""
        return count(progress.step) + (f"/{count(progress.total_steps)}" if progress.total_steps else "")

    @property
    def eta_s(self) -> float | None:
        """Seconds left; None if unknown, below one second, or if the run makes no progress."""
        left_s = self.progress.eta_s if self.running and self.progress is not None else None
        return None if left_s is None or left_s < 1 or is_stuck(self.findings) else left_s

    @property
    def created_at(self) -> datetime:
        """The time the job was created; jobs without a timestamp count as oldest."""
        return self.job.created_at or datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ProjectRow:
    id: str
    name: str
    team: str
    jobs: int
    running: int
    """Number of running jobs."""
    alarmed: int = 0
    """Number of its jobs that need attention."""
    is_critical: bool = False
    """True if any job in the project has a critical finding."""


@dataclass(frozen=True, slots=True)
class FleetSnapshot:
    projects: tuple[ProjectRow, ...]
    jobs: tuple[JobRow, ...]
    at: datetime
    prices: Mapping[str, float] = field(default_factory=dict)
    """USD per minute and node, by instance; empty if no prices are known."""
    bill: Bill | None = None
    """What was billed recently; None until it has been read."""
    left_out: str = ""
    """A text with the number of jobs and projects that are missing because their data is invalid."""
    is_read: bool = False
    """True once the bill, and the logs and metrics of all previewed jobs, have been read."""

    @property
    def running(self) -> int:
        return sum(1 for _ in takewhile(lambda row: row.running, self.jobs))

    def cost_of(self, rows: Iterable[JobRow]) -> TotalCost:
        return total_cost(((row.job, row.node_seconds) for row in rows), self.prices, self.bill, self.at)


def job_row(
    job: TrainingJob,
    preview: JobPreview,
    now: datetime,
    usd_per_hour: float | None = None,
    queue_place: int = 0,
) -> JobRow:
    """Return a job's row; ``queue_place`` is its queue position, from 1 (0: not in the queue)."""
    age_s = max(0.0, (now - job.created_at).total_seconds()) if job.created_at else 0.0
    status = status_view(job.current_status)
    running = job.current_status == JobStatus.RUNNING
    findings = () if job.is_finished else preview.findings
    alarms = [finding for finding in findings if finding.severity != "info"]
    costliest_alarm = costliest(alarms)
    wasted = costliest_alarm.wasted if costliest_alarm is not None else 0.0
    row = JobRow(
        job=job,
        id=job.id,
        project_id=job.project_id,
        rank=_rank_by_status(job, status),
        name=sanitize(job.name or job.id),
        project=sanitize(job.project_name),
        status=status,
        gpu=hardware(job),
        gpu_count=job.total_gpus,
        node_seconds=node_seconds(job, now, preview.idle_s),
        sign=SIGNS[alarms[0].severity] if alarms else status.sign,
        tone=TONES[alarms[0].severity] if alarms else status.tone,
        note=brief(costliest_alarm, now) if costliest_alarm is not None else _status_note(job, queue_place),
        saved=_saved_text(job, preview, now),
        preview=preview,
        age=age(age_s) if job.created_at else UNKNOWN,
        age_s=age_s,
        running=running,
        user=sanitize(job.user_email or ""),
        spot=job.is_spot,
        alarmed=bool(alarms),
        usd_per_hour=usd_per_hour,
        wasted=wasted,
        lost_usd=lost_usd(costliest_alarm, usd_per_hour, now),
        reward=_newest_reward(preview.progress),
        findings=findings,
        judged=preview is not NO_PREVIEW and preview is not UNREAD,
    )
    if not alarms:
        return row
    waste_key = (-row.wasted_usd_per_hour, -wasted * job.total_gpus)
    tie_breakers = (-(usd_per_hour or 0.0) or -float(job.total_gpus), row.rank[-1])
    return replace(
        row, rank=(Need.ATTENTION, *waste_key, float(SEVERITIES.index(alarms[0].severity)), *tie_breakers)
    )


def _rank_by_status(job: TrainingJob, status: StatusView) -> Rank:
    """Return the sort key of a job without findings."""
    waits = status.order > 0 and not job.is_finished
    need = Need.WAITING if waits else Need.ENDED if status.order else Need.RUNNING
    return need, status.order, 0.0, 0.0, 0.0, -time_key(job.created_at)


def status_line(row: JobRow) -> str:
    """Return the row as an item of a Markdown list: status, problem, progress, hardware, project, id."""
    problem = f"{row.sign} {row.note}" if row.alarmed else row.note
    progress = progress_words(row) if row.running else ""
    facts = (row.status.word, " ".join(problem.split()), progress, row.gpu, f"submitted {row.age} ago")
    texts = " · ".join(filter(None, (*facts, row.project, row.id)))
    return f"- {row.status.sign} **{markdown_code(row.name)}** {markdown_code(texts)}"


def progress_words(row: JobRow) -> str:
    """Return ``46%, 7h 21m left``; only the step if the total is unknown; "" without steps."""
    progress = row.progress
    if progress is None or progress.step is None:
        return ""
    if progress.fraction is None:
        return f"step {count(progress.step)}"
    eta_text = f", {duration(row.eta_s)} left" if row.eta_s is not None else ""
    return f"{percent(progress.fraction)}{eta_text}"


def without_snoozed(row: JobRow, snoozed: SnoozedFindings) -> JobRow:
    """Clear the row's alarm if all findings of its job are snoozed."""
    if not row.alarmed or not all((row.id, finding.key) in snoozed for finding in row.findings):
        return row
    rank = _rank_by_status(row.job, row.status)
    return replace(row, alarmed=False, sign="z", tone="muted", rank=rank, wasted=0.0, lost_usd=0.0)


def count_needing_attention(rows: Iterable[JobRow]) -> dict[Severity, int]:
    """Count the jobs that need attention by the severity of their worst finding; omit zeros."""
    return by_severity(row.sign for row in rows if row.alarmed)


def worst_first(rows: Iterable[JobRow]) -> list[JobRow]:
    """Return the jobs that need attention, the most wasteful first."""
    return sorted((row for row in rows if row.alarmed), key=attrgetter("rank"))


def _newest_reward(progress: ProgressSnapshot | None) -> float | None:
    name, values = headline_series(progress) if progress is not None else ("", EMPTY)
    return latest(values) if name == "reward" else None


def _saved_text(job: TrainingJob, preview: JobPreview, now: datetime) -> str:
    last_checkpoint = preview.progress.last_checkpoint if preview.progress is not None else None
    if not job.is_finished:
        return (
            f"{sanitize(last_checkpoint[0])} {age(now.timestamp() - last_checkpoint[1])} ago"
            if last_checkpoint
            else ""
        )
    return " · ".join(
        filter(None, (_best_value_text(preview), sanitize(last_checkpoint[0]) if last_checkpoint else ""))
    )


def _best_value_text(preview: JobPreview) -> str:
    """Return ``best eval 1.02`` (or loss, or reward); until the log is read, the newest: ``eval 1.02``."""
    progress = preview.progress
    name, series = headline_series(progress) if progress is not None else ("", EMPTY)
    if progress is not None and name == "loss" and progress.eval_loss_series:
        name, series = "eval", progress.eval_loss_series
    values = list(filter(isfinite, series.values))
    if progress is None or not values:
        return ""
    if not preview.log_read or progress.gaps or (name != "reward" and not progress.has_ranking_loss):
        return f"eval {number(values[-1])}" if name == "eval" else ""
    return f"best {name} {number((max if name == 'reward' else min)(values))}"


def _status_note(job: TrainingJob, queue_place: int) -> str:
    if job.current_status in WAITING_STATUSES:
        return f"place {queue_place} in line" if queue_place else ""
    return short_reason(sanitize(job.error_message or "")) if job.is_finished else ""


def brief(finding: HealthFinding, now: datetime) -> str:
    """Shorten a finding to two or three words, such as ``stalled 17m`` or ``node-2 slow``."""
    node = clip_middle(sanitize(finding.node or ""), NODE_CHARACTERS)
    kind = finding.kind
    template = kind.brief if finding.node else kind.brief_of_job or kind.brief
    if not template:
        text = sanitize(finding.short).replace(" for ", " ")
        return text.replace(sanitize(finding.node), node) if finding.node else text
    since = f" {age((now - finding.since).total_seconds())}" if finding.since is not None else ""
    return template.format(since=since, node=node)


def short_reason(message: str) -> str:
    """Put the reason of a failure first, since a narrow column cuts off the end.

    Out-of-memory messages become ``CUDA out of memory`` (or ``out of memory``) and the exit code. In the
    platform's message about a node, the exit code and the node's name follow the reason. Other messages are
    not changed.
    """
    text = excerpt(message)
    if re.search(r"(?:CUDA )?out of memory|OutOfMemory", text, re.IGNORECASE):
        exit_code = re.search(r"exit(?:ed with)?(?: code)? (\d+)", text, re.IGNORECASE)
        memory_error = (
            "CUDA out of memory" if re.search(r"CUDA|torch", text, re.IGNORECASE) else "out of memory"
        )
        return memory_error + (f", exit {exit_code[1]}" if exit_code else "")
    # the platform's message about the node that ended the job: node, exit code, and perhaps the reason
    if (node_exit := re.fullmatch(r"([\w.-]{1,64}): exit code (-?\d{1,9})(?: \((.+)\))?", text)) is not None:
        reason = f"{node_exit[3]}, " if node_exit[3] else ""
        return f"{reason}exit code {node_exit[2]} on {node_exit[1]}"
    return message


_RANK = attrgetter("rank")


class FleetFold:
    """Builds successive snapshots without rebuilding the rows of ended jobs, which are most jobs.

    ``warm`` needs all jobs; after that, ``fold`` needs only unfinished jobs and jobs that changed. The ages
    in all other rows are as of the last ``warm``.
    """

    def __init__(self) -> None:
        self._ended_rows: list[JobRow] = []

    def warm(
        self, jobs: Sequence[TrainingJob], job_previews: Mapping[str, JobPreview], now: datetime
    ) -> None:
        """Build the rows of all ended jobs. May run in a thread."""
        ended = [job for job in jobs if job.is_finished]
        rows = [job_row(job, job_previews.get(job.id, NO_PREVIEW), now) for job in ended]
        self._ended_rows = sorted(rows, key=_RANK)

    def fold(
        self,
        projects: Iterable[TrainingProject],
        jobs: Iterable[TrainingJob],
        job_previews: Mapping[str, JobPreview],
        now: datetime,
        prices: Mapping[str, float] | None = None,
        bill: Bill | None = None,
    ) -> FleetSnapshot:
        """Build a snapshot of the projects and jobs; rows of ``jobs`` replace or join those of ``warm``."""
        prices, changed_jobs = prices or {}, list(jobs)
        places = {allocation.job.id: allocation.place for allocation in gpu_allocations(changed_jobs, now)[0]}
        new_rows: dict[str, JobRow] = {}
        for job in changed_jobs:
            price = price_of(job, prices)
            usd_per_hour = None if price is None else price * (job.node_count or 1) * HOUR_S / MINUTE_S
            preview = job_previews.get(job.id, NO_PREVIEW)
            new_rows[job.id] = job_row(job, preview, now, usd_per_hour, places.get(job.id, 0))
        ended_rows = [
            new_rows.pop(row.id, row) for row in self._ended_rows
        ]  # replace rows in place, so that jobs of equal rank keep their order
        rows = sorted((*new_rows.values(), *ended_rows), key=_RANK)
        return FleetSnapshot(_project_rows(projects, rows), tuple(rows), now, prices, bill)


def _project_rows(projects: Iterable[TrainingProject], rows: Sequence[JobRow]) -> tuple[ProjectRow, ...]:
    job_counts = Counter([row.project_id for row in rows])
    running_counts = Counter([row.project_id for row in takewhile(lambda row: row.running, rows)])
    alarmed_counts = Counter([row.project_id for row in takewhile(lambda row: row.alarmed, rows)])
    critical_projects = {
        row.project_id for row in takewhile(lambda row: row.alarmed, rows) if row.sign == SIGNS["critical"]
    }
    project_rows = [
        ProjectRow(
            project.id,
            sanitize(project.name) or project.id,
            sanitize(project.team_name or ""),
            job_counts[project.id],
            running_counts[project.id],
            alarmed_counts[project.id],
            project.id in critical_projects,
        )
        for project in projects
    ]
    project_rows.sort(key=lambda project: (-project.alarmed, -project.running, project.name.lower()))
    return tuple(project_rows)
