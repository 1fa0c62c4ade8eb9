"""Alerts as text and as JSON objects, the terminal's title, and ``AlertTracker``, which selects news."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from api_client.vocabulary import JobStatus
from tui.analysis.fleet.snapshot import JobRow, brief, count_needing_attention
from tui.analysis.run.finding import (
    SEVERITIES,
    SIGNS,
    FindingId,
    HealthFinding,
    Severity,
    SnoozedFindings,
    attention,
)
from tui.analysis.status import status_view
from tui.text.sanitize import clip, sanitize
from tui.text.units import percent

if TYPE_CHECKING:
    from api_client.models import TrainingJob
    from tui.analysis.run.snapshot import RunSnapshot

TEXT_CELLS = 160
"""Maximum width of an alert's text, in terminal cells."""
PROGRAM = "bt-tui"


Event = Literal[
    "finding", "finding-ended", "job-ended", "status", "blind", "sighted",
    "stop-planned", "stop-withdrawn", "would-stop", "stopped", "not-stopped",
    "resumed", "not-resumed", "heartbeat", "test",
]  # fmt: skip
"""What an alert is about: the ``event`` in its JSON object."""


@dataclass(frozen=True, slots=True)
class Alert:
    """An event to report, at the time ``at`` (UTC): a new ``finding`` or, if it is None, the end of a job.

    All other events come from ``bt-tui guard`` and have a ``guard_event`` and a ``message``; ``job`` is None
    if such an event is not about a single job.
    """

    job: TrainingJob | None
    severity: Severity
    at: datetime
    finding: HealthFinding | None = None
    guard_event: Event | None = None
    message: str = ""

    @property
    def event(self) -> Event:
        return self.guard_event or ("finding" if self.finding is not None else "job-ended")

    def is_wanted(self, min_severity: Severity, *, job_end: bool) -> bool:
        """Return False for findings below ``min_severity``, and for the end of a job unless ``job_end``."""
        if self.event == "job-ended":
            return job_end
        return self.finding is None or SEVERITIES.index(self.severity) <= SEVERITIES.index(min_severity)

    @property
    def title(self) -> str:
        if self.job is None:
            return f"{SIGNS[self.severity]} {PROGRAM}"
        sign = SIGNS[self.severity]
        if self.event in ("job-ended", "status"):
            sign = status_view(self.job.current_status).sign
        elif self.event in ("finding-ended", "sighted"):
            sign = "✓"
        return f"{sign} {job_name(self.job)}"

    @property
    def text(self) -> str:
        if self.message or self.job is None:
            return clip(sanitize(self.message), 500)
        if self.finding is not None:
            text = clip(sanitize(self.finding.sentence), TEXT_CELLS)
            return f"over: {text}" if self.event == "finding-ended" else text
        word = status_view(self.job.current_status).word
        reason = sanitize(self.job.error_message or "")
        is_completed = self.job.current_status == JobStatus.COMPLETED
        return clip(f"{word}: {reason}" if reason and not is_completed else word, TEXT_CELLS)

    @property
    def toast_text(self) -> str:
        """A shorter text for a toast, since screens show the details."""
        return self.text if self.finding is None else sanitize(self.finding.headline)

    def record(self) -> dict[str, Any]:
        """Return the alert as a JSON object, for programs, webhooks and files."""
        job, finding = self.job, self.finding
        return {
            "event": self.event,
            "severity": self.severity,
            "text": f"{self.title}: {self.text}",
            "at": self.at.isoformat(),
            "job": None
            if job is None
            else {
                "id": job.id,
                "name": job.name,
                "status": job.current_status,
                "project_id": job.project_id,
                "project": job.training_project.name if job.training_project else None,
            },
            "finding": None
            if finding is None
            else {
                "kind": str(finding.kind),
                "node": finding.node,
                "text": finding.text,
                "since": finding.since.isoformat() if finding.since else None,
            },
        }


def job_name(job: TrainingJob) -> str:
    return clip(sanitize(job.name or job.id), 48)


def severity_of_end(job: TrainingJob) -> Severity:
    if job.current_status == JobStatus.COMPLETED:
        return "info"
    return "warning" if job.current_status in (JobStatus.STOPPED, JobStatus.EXPIRED) else "critical"


def run_title(run: RunSnapshot, findings: Sequence[HealthFinding]) -> str:
    """Return ``▲ llama-70b stalled 17m – bt-tui``: the worst of ``findings``, else the progress or status."""
    name = job_name(run.job)
    if findings:
        worst = findings[0]
        return f"{SIGNS[worst.severity]} {name} {brief(worst, run.server_now)} – {PROGRAM}"
    status, progress = run.status, run.progress
    if not run.job.is_finished and progress is not None and progress.fraction is not None:
        return f"{status.sign} {name} {percent(progress.fraction)} – {PROGRAM}"
    return f"{status.sign} {name} {status.word} – {PROGRAM}"


def fleet_title(rows: Sequence[JobRow]) -> str:
    """Return ``✗ 1 ▲ 2 need attention – bt-tui``; if no job needs attention, the number of running jobs."""
    if summary := attention(count_needing_attention(rows)):
        return f"{summary} – {PROGRAM}"
    running_count = sum(row.running for row in rows)
    return f"● {running_count} running – {PROGRAM}" if running_count else PROGRAM


NEWS_AFTER_ABSENCE = timedelta(minutes=30)
"""A finding that was absent for at least this long counts as new when it returns."""


def is_news(last_seen: datetime | None, now: datetime) -> bool:
    """Return True if a finding was never present, or last present ``NEWS_AFTER_ABSENCE`` ago or earlier."""
    return last_seen is None or now - last_seen >= NEWS_AFTER_ABSENCE


class AlertTracker:
    """Remembers which findings were reported, so that none is reported twice.

    During the first two minutes of a source's updates, findings that began before ``started`` are not new: a
    user who opens the dashboard sees these findings there.
    """

    def __init__(self, started: datetime) -> None:
        self._started_at = started
        self._first_updates: dict[str, dict[str, datetime]] = {}
        """Time of the first update from each source, by ID of an unfinished job and name of the source."""
        self._last_seen_at: dict[FindingId, datetime] = {}
        """When each finding was last present."""
        self._snoozed_until: dict[FindingId, datetime] = {}
        """Until when each finding is snoozed."""

    def update(
        self, job: TrainingJob, findings: Iterable[HealthFinding], now: datetime, *, source: str
    ) -> tuple[Alert, ...]:
        """Return alerts for the end of the job, if it has just ended, and for its new findings.

        ``source`` names what has read the job: its screen, Home's preview, or the list. Each source reads
        other data, so each has its own first minutes, in which older findings are not new.
        """
        alerts: list[Alert] = []
        if job.is_finished:
            first_updates = self._first_updates.pop(job.id, {})
            if first_updates:
                alerts.append(Alert(job, severity_of_end(job), now))
        else:
            first_updates = self._first_updates.setdefault(job.id, {})
        first_at = first_updates.setdefault(source, now)
        alerts += [
            Alert(job, finding.severity, now, finding)
            for finding in findings
            if self._is_new(job, finding, now, first_at)
        ]
        return tuple(alerts)

    def _is_new(self, job: TrainingJob, finding: HealthFinding, now: datetime, first_at: datetime) -> bool:
        key = (job.id, finding.key)
        last_seen = self._last_seen_at.get(key)
        self._last_seen_at[key] = now
        until = self._snoozed_until.get(key)
        if until is not None:
            if now < until:
                return False
            del self._snoozed_until[key]
            return True  # a snoozed finding that is still present counts as new
        if not is_news(last_seen, now):
            return False
        if finding.since is None:
            return now > first_at
        # in its first minutes, a source also finds problems that began before the dashboard was opened
        return finding.since >= self._started_at or now - first_at >= timedelta(minutes=2)

    def snooze(self, job_id: str, keys: Iterable[str], until: datetime) -> None:
        for key in keys:
            self._snoozed_until[(job_id, key)] = until

    def end_snooze(self, job_id: str, keys: Iterable[str]) -> None:
        """End the snooze of these findings, without alerts about those that are still present."""
        for key in keys:
            self._snoozed_until.pop((job_id, key), None)

    def snoozed(self, now: datetime) -> SnoozedFindings:
        return frozenset(key for key, until in self._snoozed_until.items() if now < until)

    def prune(self, job_ids: Set[str], now: datetime) -> None:
        """Forget jobs not in ``job_ids``, findings absent for ``NEWS_AFTER_ABSENCE``, and their snoozes."""
        self._first_updates = {key: time for key, time in self._first_updates.items() if key in job_ids}
        self._last_seen_at = {
            key: time
            for key, time in self._last_seen_at.items()
            if key[0] in job_ids and now - time < NEWS_AFTER_ABSENCE
        }
        self._snoozed_until = {
            key: until
            for key, until in self._snoozed_until.items()
            if key[0] in job_ids and (now < until or key in self._last_seen_at)
        }
