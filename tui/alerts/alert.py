"""One notification, in words for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from api_client.models import JobStatus, TrainingJob
from tui.analysis.fleet.snapshot import JobRow, brief
from tui.analysis.run.finding import Finding, Severity
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.status import status_view
from tui.text.sanitize import clip, inert

NAME_CELLS = 48
TEXT_CELLS = 160
SIGNS: dict[Severity, str] = {"critical": "✗", "warning": "▲", "info": "ℹ"}


@dataclass(frozen=True, slots=True)
class Alert:
    """Something worth telling of a job: a new ``finding``, or, without one, its end. ``at`` is UTC."""

    job: TrainingJob
    severity: Severity
    at: datetime
    finding: Finding | None = None

    @property
    def event(self) -> Literal["finding", "job-ended"]:
        """What it is."""
        return "finding" if self.finding is not None else "job-ended"

    @property
    def title(self) -> str:
        """The job, with a sign; inert and short."""
        sign = status_view(self.job.current_status).sign if self.finding is None else SIGNS[self.severity]
        return f"{sign} {job_name(self.job)}"

    @property
    def text(self) -> str:
        """What happened; inert and short."""
        if self.finding is not None:
            text, node = inert(self.finding.text), inert(self.finding.node or "")
            return clip(f"{node}: {text}" if node and node not in text else text, TEXT_CELLS)
        word = status_view(self.job.current_status).word
        reason = inert(self.job.error_message or "")
        completed = self.job.current_status == JobStatus.COMPLETED
        return clip(f"{word}: {reason}" if reason and not completed else word, TEXT_CELLS)

    @property
    def short(self) -> str:
        """The same for a notice over a screen, which says the rest."""
        if self.finding is None:
            return self.text
        text, node = inert(self.finding.short), inert(self.finding.node or "")
        return f"{node}: {text}" if node and node not in text else text

    def as_json(self) -> bytes:
        """One JSON object in ASCII, for a command's standard input and for a webhook."""
        job, finding = self.job, self.finding
        body = {
            "event": self.event,
            "severity": self.severity,
            "text": f"{self.title}: {self.text}",
            "at": self.at.isoformat(),
            "job": {
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
        return json.dumps(body).encode("ascii")


def job_name(job: TrainingJob) -> str:
    """A job's name, inert and short."""
    return clip(inert(job.name or job.id), NAME_CELLS)


def severity_of_end(job: TrainingJob) -> Severity:
    """How grave the end of a job is: what nobody knows may be a failure."""
    if job.current_status == JobStatus.COMPLETED:
        return "info"
    return "warning" if job.current_status == JobStatus.STOPPED else "critical"


PROGRAM = "bt-tui"


def run_title(run: RunSnapshot, findings: Sequence[Finding]) -> str:
    """``▲ llama-70b stalled 17m – bt-tui``: the worst of these findings, else the status."""
    name = job_name(run.job)
    if findings:
        worst = findings[0]
        return f"{SIGNS[worst.severity]} {name} {brief(worst, run.server_now)} – {PROGRAM}"
    status, told = run.status, run.progress
    if not run.job.is_finished and told is not None and told.fraction is not None:
        return f"{status.sign} {name} {told.fraction:.0%} – {PROGRAM}"
    return f"{status.sign} {name} {status.word} – {PROGRAM}"


def fleet_title(rows: Sequence[JobRow]) -> str:
    """``▲ 2 need a look – bt-tui``, or how many run."""
    alarmed = sum(row.alarmed for row in rows)
    if alarmed:
        return f"▲ {alarmed} need{'' if alarmed > 1 else 's'} a look – {PROGRAM}"
    running = sum(row.running for row in rows)
    return f"● {running} running – {PROGRAM}" if running else PROGRAM


Mark = tuple[str, str]
"""A job's id and a finding's key."""

AWAY = timedelta(minutes=30)
"""A finding that comes back sooner than that is the same trouble, and was told."""
FORGET_AFTER = timedelta(days=2)
MOST_MARKS = 5_000


class AlertBook:
    """Remembers what was seen, so that nothing is told twice.

    What had begun before ``started`` is no news at the first look of a source: whoever opens the dashboard
    sees it there.
    """

    def __init__(self, started: datetime) -> None:
        self._started = started
        self._ended: dict[str, bool] = {}
        self._looked: set[tuple[str, str]] = set()
        self._seen: dict[Mark, datetime] = {}
        self._snoozed: dict[Mark, datetime] = {}

    def look(
        self, job: TrainingJob, findings: Iterable[Finding], now: datetime, *, source: str
    ) -> tuple[Alert, ...]:
        """What is new of a job, the end first. ``source`` names who looked: some see more than others."""
        news: list[Alert] = []
        ended = self._ended.get(job.id)
        self._ended[job.id] = job.is_finished
        if ended is False and job.is_finished:
            news.append(Alert(job, severity_of_end(job), now))
        first = (job.id, source) not in self._looked
        self._looked.add((job.id, source))
        news += [
            Alert(job, found.severity, now, found)
            for found in findings
            if self._is_new(job, found, now, first)
        ]
        if len(self._seen) > MOST_MARKS:
            self._forget(now)
        return tuple(news)

    def _is_new(self, job: TrainingJob, found: Finding, now: datetime, first: bool) -> bool:
        mark = (job.id, found.key)
        seen = self._seen.get(mark)
        self._seen[mark] = now
        until = self._snoozed.get(mark)
        if until is not None:
            if now < until:
                return False
            del self._snoozed[mark]
            return True  # whoever snoozes wants to hear of it again
        if seen is not None and now - seen < AWAY:
            return False
        return not first or (found.since is not None and found.since >= self._started)

    def snooze(self, job_id: str, keys: Iterable[str], until: datetime) -> None:
        """Be silent about these findings of a job until then."""
        for key in keys:
            self._snoozed[(job_id, key)] = until

    def wake(self, job_id: str, keys: Iterable[str]) -> None:
        """Snooze them no longer; they have been told."""
        for key in keys:
            self._snoozed.pop((job_id, key), None)

    def snoozed(self, now: datetime) -> frozenset[Mark]:
        """What is snoozed now."""
        return frozenset(mark for mark, until in self._snoozed.items() if now < until)

    def _forget(self, now: datetime) -> None:
        self._seen = {mark: at for mark, at in self._seen.items() if now - at < FORGET_AFTER}
        while len(self._seen) > MOST_MARKS:
            del self._seen[min(self._seen, key=self._seen.__getitem__)]
