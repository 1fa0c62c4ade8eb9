"""The snapshot that Home shows: jobs, projects and teams as rows, with filter, sort order and totals.

``FleetFold`` builds successive snapshots with work proportional to the number of unfinished jobs, because
almost all jobs of a large account have ended.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import takewhile
from operator import attrgetter

from api_client.models import WAITING_STATUSES, JobStatus, TrainingJob, TrainingProject
from tui.analysis.billing import Bill
from tui.analysis.cost import Charge, charge, total_cost
from tui.analysis.logs.excerpt import excerpt
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.finding import (
    NODE_CHARACTERS,
    SEVERITIES,
    SIGNS,
    TONES,
    HealthFinding,
    SnoozedFindings,
)
from tui.analysis.status import StatusView, status_view
from tui.text.names import clip_middle
from tui.text.sanitize import sanitize
from tui.text.times import time_key
from tui.text.units import UNKNOWN, age, count, counted, duration, hardware, percent


@dataclass(frozen=True, slots=True)
class TeamRow:
    """A selectable team, with its numbers of projects and jobs."""

    name: str
    projects: int
    jobs: int
    running: int

    @property
    def about(self) -> str:
        projects = counted(self.projects, "project")
        return f"{projects}, {counted(self.jobs, 'job')}, {self.running} running"


def teams_of(projects: Iterable[ProjectRow]) -> tuple[TeamRow, ...]:
    found: dict[str, TeamRow] = {}
    for project in projects:
        if project.team:
            team = found.get(project.team, TeamRow(project.team, 0, 0, 0))
            found[project.team] = replace(
                team,
                projects=team.projects + 1,
                jobs=team.jobs + project.jobs,
                running=team.running + project.running,
            )
    return tuple(found[name] for name in sorted(found, key=str.lower))


def of_team(fleet: FleetSnapshot, team: str) -> FleetSnapshot:
    """Return only that team's projects and jobs; everything for "", and for a team that has no project."""
    projects: Sequence[ProjectRow] = [one for one in fleet.projects if one.team == team]
    if not team or not projects:
        return fleet
    ids = {project.id for project in projects}
    jobs = tuple(row for row in fleet.jobs if row.job.project_id in ids)
    return replace(fleet, projects=tuple(projects), jobs=jobs)


_OUT_OF_MEMORY = re.compile(r"(?:CUDA )?out of memory|OutOfMemory", re.IGNORECASE)
_EXIT_CODE = re.compile(r"exit(?:ed with)?(?: code)? (\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class JobPreview:
    """A preview of a running job: its progress, and its recent GPU utilization (0–1, oldest first)."""

    progress: ProgressSnapshot | None = None
    trace: tuple[float | None, ...] = ()
    findings: tuple[HealthFinding, ...] = ()


NO_PREVIEW = JobPreview()
"""The preview of a job that has not been polled yet."""


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as shown on Home.

    All text is sanitized; ``job`` is the API's record, ``marked`` the user's own marks.
    """

    job: TrainingJob
    id: str
    project_id: str
    rank: tuple[int, float]
    """Running jobs first, then the newest."""
    name: str
    project: str
    status: StatusView
    gpu: str
    gpu_count: int
    charge: Charge | None
    """The usage that counts toward its cost so far; None if it has not run."""
    note: str
    note_tone: str
    progress: tuple[float, int] | None
    """The fraction done (0 if the total is unknown) and the step; None for a job that reports no step."""
    steps: str
    loss: float | None
    trace: tuple[float | None, ...]
    age: str
    age_s: float
    running: bool
    user: str
    spot: bool
    alarmed: bool
    findings: tuple[HealthFinding, ...] = ()
    judged: bool = False
    """True once the job has been checked for findings."""
    marked: bool = False
    bookmarked: bool = False
    stopping: bool = False
    """It will be stopped after its next checkpoint."""

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
    """How many jobs and projects are missing because the server's data about them is invalid."""

    @property
    def running(self) -> int:
        return sum(1 for _ in takewhile(lambda row: row.running, self.jobs))

    def cost_of(self, row: JobRow) -> tuple[float, bool] | None:
        """Return a job's dollars, and True if part of them is an upper bound; None if they are not known."""
        cost = total_cost([(row.job, row.charge)], self.prices, self.bill, self.at)
        usd = cost.billed.usd + (cost.usd or 0.0)
        return (usd, bool(cost.usd)) if usd and not cost.unpriced else None


def job_row(job: TrainingJob, job_preview: JobPreview, now: datetime) -> JobRow:
    age_s = max(0.0, (now - job.created_at).total_seconds()) if job.created_at else 0.0
    note, tone = _note(job, job_preview, age_s, now)
    status = status_view(job.current_status)
    return JobRow(
        job=job,
        id=job.id,
        project_id=job.project_id,
        rank=(status.order, -time_key(job.created_at)),
        name=sanitize(job.name or job.id),
        project=sanitize(job.project_name),
        status=status,
        gpu=hardware(job),
        gpu_count=job.total_gpus,
        charge=charge(job, now),
        note=note,
        note_tone=tone,
        progress=_done(job_preview.progress),
        steps=_steps(job_preview.progress),
        loss=job_preview.progress.loss if job_preview.progress else None,
        trace=job_preview.trace,
        age=age(age_s) if job.created_at else UNKNOWN,
        age_s=age_s,
        running=job.current_status == JobStatus.RUNNING,
        user=sanitize(job.user_email or ""),
        spot=job.is_spot,
        alarmed=any(found.severity != "info" for found in job_preview.findings) and not job.is_finished,
        findings=() if job.is_finished else job_preview.findings,
        judged=job_preview is not NO_PREVIEW,
    )


def status_line(row: JobRow) -> str:
    """Return the row as an item of a Markdown list."""
    note = " ".join(row.note.split())
    submitted = f"submitted {row.age} ago"
    facts = (row.status.word, row.gpu, note, submitted, row.project, f"`{sanitize(row.id)}`")
    return f"- {row.status.sign} **{row.name}** {' · '.join(filter(None, facts))}"


def older_row(row: JobRow, now: datetime) -> JobRow:
    """Return an ended job's row at a later time: only its age changes."""
    created_at = row.job.created_at
    if created_at is None:
        return row
    age_s = max(0.0, (now - created_at).total_seconds())
    return replace(row, age=age(age_s), age_s=age_s)


def without_snoozed(row: JobRow, snoozed: SnoozedFindings) -> JobRow:
    """Clear the row's alarm if all findings of its job are snoozed."""
    if not row.alarmed or not all((row.id, found.key) in snoozed for found in row.findings):
        return row
    return replace(row, alarmed=False, note=f"z {row.note.partition(' ')[2]}", note_tone="muted")


def attention(rows: Iterable[JobRow]) -> str:
    """Return ``✗ 1 ▲ 2 need attention``: the jobs with findings, by the sign of the worst; "" for none."""
    counts = Counter(row.note[:1] for row in rows if row.alarmed)
    signs = " ".join(f"{sign} {counts[sign]}" for one in SEVERITIES if counts[sign := SIGNS[one]])
    return signs and f"{signs} {'needs' if counts.total() == 1 else 'need'} attention"


def worst_first(rows: Iterable[JobRow]) -> list[JobRow]:
    """Return the jobs that need attention by severity; the order of ``rows`` does not matter."""

    def key(row: JobRow) -> tuple[int, tuple[int, float], str]:
        return min(SEVERITIES.index(found.severity) for found in row.findings), row.rank, row.id

    return sorted((row for row in rows if row.alarmed), key=key)


def _note(job: TrainingJob, job_preview: JobPreview, age_s: float, now: datetime) -> tuple[str, str]:
    if job.current_status in WAITING_STATUSES:
        return f"waiting {duration(age_s)}", "muted"
    if job.is_finished:
        if job.current_status == JobStatus.COMPLETED:
            return f"took ≤ {duration(_lifetime_s(job))}", "muted"
        words = short_reason(sanitize(job.error_message or ""))
        lifetime_s = _lifetime_s(job)
        return words or (f"after {duration(lifetime_s)}" if lifetime_s else ""), "muted"
    worst = next((found for found in job_preview.findings if found.severity != "info"), None)
    if worst is not None:
        return f"{SIGNS[worst.severity]} {brief(worst, now)}", TONES[worst.severity]
    progress = job_preview.progress
    if progress is None or progress.step is None:
        return "", "muted"
    if progress.fraction is None:
        return f"step {count(progress.step)}", "plain"
    left = f"  {duration(progress.eta_s)} left" if (progress.eta_s or 0) >= 1 else ""
    return f"{percent(progress.fraction)}{left}", "plain"


def _done(progress: ProgressSnapshot | None) -> tuple[float, int] | None:
    if progress is None or progress.step is None:
        return None
    return progress.fraction or 0.0, progress.step


def _steps(progress: ProgressSnapshot | None) -> str:
    if progress is None or progress.step is None:
        return ""
    return count(progress.step) + (f"/{count(progress.total_steps)}" if progress.total_steps else "")


def brief(finding: HealthFinding, now: datetime) -> str:
    """Shorten a finding to two or three words for a narrow column: ``stalled 17m``, ``node-2 slow``."""
    node = clip_middle(sanitize(finding.node or ""), NODE_CHARACTERS)
    kind = finding.kind
    words = kind.brief if finding.node else kind.brief_of_job or kind.brief
    if not words:
        text = sanitize(finding.short).replace(" for ", " ")
        return text.replace(sanitize(finding.node), node) if finding.node else text
    since = f" {age((now - finding.since).total_seconds())}" if finding.since is not None else ""
    return words.format(since=since, node=node)


def short_reason(message: str) -> str:
    """Shorten out-of-memory messages to ``CUDA out of memory`` and the exit code; keep others unchanged."""
    text = excerpt(message)
    if _OUT_OF_MEMORY.search(text):
        exit_code = _EXIT_CODE.search(text)
        return "CUDA out of memory" + (f", exit {exit_code[1]}" if exit_code else "")
    return message


def _lifetime_s(job: TrainingJob) -> float:
    """Return the seconds from creation to last change, queue time included: the list has no start times."""
    if job.created_at is None or job.updated_at is None:
        return 0.0
    return max(0.0, (job.updated_at - job.created_at).total_seconds())


_RANK = attrgetter("rank")

_Entry = tuple[TrainingJob, JobPreview, JobRow]


class FleetFold:
    """Builds successive snapshots without rebuilding ended jobs, the bulk of a large account, each time.

    ``warm`` takes all jobs; after that ``fold`` receives only unfinished jobs and those that have changed
    since. The ages of the others are those of the last ``warm``.
    """

    def __init__(self) -> None:
        self._ended: dict[str, _Entry] = {}
        self._ended_rows: list[JobRow] = []

    def warm(
        self, jobs: Sequence[TrainingJob], job_previews: Mapping[str, JobPreview], now: datetime
    ) -> None:
        """Build the rows of all ended jobs, and drop those that are gone; safe to run in a thread."""
        entries: dict[str, _Entry] = {}
        for job in jobs:
            if job.is_finished:
                job_preview = job_previews.get(job.id, NO_PREVIEW)
                before = self._ended.get(job.id)
                if before is not None and before[0] is job and before[1] is job_preview:
                    row = older_row(before[2], now)
                else:
                    row = job_row(job, job_preview, now)
                entries[job.id] = (job, job_preview, row)
        self._ended = entries
        self._ended_rows = sorted((row for _, _, row in entries.values()), key=_RANK)

    def fold(
        self,
        projects: Iterable[TrainingProject],
        jobs: Iterable[TrainingJob],
        job_previews: Mapping[str, JobPreview],
        now: datetime,
        prices: Mapping[str, float] | None = None,
        bill: Bill | None = None,
    ) -> FleetSnapshot:
        """Build a snapshot from both lists; running jobs first, then the newest.

        ``jobs`` are added to the ended ones known since ``warm``, or replace them.
        """
        rows = [job_row(job, job_previews.get(job.id, NO_PREVIEW), now) for job in jobs]
        changed = {row.id for row in rows}
        rows += [row for row in self._ended_rows if row.id not in changed]
        rows.sort(key=_RANK)
        return FleetSnapshot(_project_rows(projects, rows), tuple(rows), now, prices or {}, bill)


def _project_rows(projects: Iterable[TrainingProject], rows: Sequence[JobRow]) -> tuple[ProjectRow, ...]:
    total = Counter([row.project_id for row in rows])
    running = Counter([row.project_id for row in takewhile(lambda row: row.running, rows)])
    found = [
        ProjectRow(
            project.id,
            sanitize(project.name) or project.id,
            sanitize(project.team_name or ""),
            total[project.id],
            running[project.id],
        )
        for project in projects
    ]
    return tuple(sorted(found, key=lambda project: (-project.running, project.name.lower())))
