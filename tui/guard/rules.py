"""Decide what a guard does after it has read a run: pure functions of a poll, the saved state and the rules.

A poll reads a run once. It may be incomplete: then new findings are reported, but none is reported as
ended, and no run is stopped.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from api_client.models import JobStatus, TrainingJob, short_status
from tui.alerts.alert import Alert, Event, is_news, severity_of_end
from tui.analysis.checkpoints.facts import sync_state
from tui.analysis.checkpoints.unsaved import unsaved_words
from tui.analysis.health.registry import KINDS
from tui.analysis.run.finding import FindingKind, HealthFinding, Severity
from tui.analysis.run.snapshot import RunSnapshot
from tui.guard.memory import Resume, RunMemory, SeenFinding, Stop
from tui.text.times import local_time, time_key
from tui.text.units import duration, money

OUTAGE_REPORT_DELAY_S = 300.0
"""Time after which an outage of a run is reported (seconds); shorter outages are common."""
REPEAT_STOP_S = 120.0
"""Time after which the request to stop a run is sent again if the run still runs (seconds)."""


Action = Literal["none", "stop", "resume"]


class Deadline(NamedTuple):
    """A deadline as the user typed it (``06:00``, ``8h``), and the time (UTC) that it means."""

    typed: str
    at: datetime


@dataclass(frozen=True, slots=True)
class GuardRules:
    """When to stop a run, and when to resume it.

    ``stop_on`` are kinds of findings; ``resume_on`` are short statuses, such as ``FAILED``.
    """

    stop_on: frozenset[str] = frozenset()
    budget_usd: float | None = None
    until: Deadline | None = None
    after_checkpoint: bool = False
    dry_run: bool = False
    resume_on: frozenset[str] = frozenset()
    max_resumes: int = 0

    @property
    def may_stop(self) -> bool:
        return bool(self.stop_on) or self.budget_usd is not None or self.until is not None


@dataclass(frozen=True, slots=True)
class Poll:
    """The result of reading a run at ``run.at``; ``problem`` says what could not be read, empty if nothing.

    ``is_judged``: the findings are based on data read now. ``is_gone``: the server has no such job.
    """

    run: RunSnapshot
    problem: str = ""
    is_judged: bool = True
    is_gone: bool = False

    @property
    def is_complete(self) -> bool:
        return self.is_judged and not self.problem


@dataclass(frozen=True, slots=True)
class Decision:
    """What to save, report and do; ``is_over`` is True if the run need not be read again."""

    memory: RunMemory
    alerts: tuple[Alert, ...] = ()
    action: Action = "none"
    is_over: bool = False


def decide(memory: RunMemory, poll: Poll, rules: GuardRules, *, outage_end_s: float = 0.0) -> Decision:
    """Decide what to do after a poll of a run.

    ``outage_end_s`` (epoch) is when another run could be read again after a reported outage: the same outage
    may still affect this run.
    """
    decider = _Decider(memory, poll, rules, outage_end_s)
    return Decision(decider.memory, tuple(decider.alerts), decider.action, decider.is_over)


def record_stop_response(memory: RunMemory, run: RunSnapshot, problem: str) -> Decision:
    """Record the response to a request to stop a run; ``problem`` is why it failed, empty after success."""
    stop = memory.stop or Stop()
    if not problem:
        updated = replace(memory, stop=replace(stop, state="done"))
        message = f"stopped: {stop.reason}. {stop.loss}"
        return Decision(updated, (_alert(run, "stopped", message, "critical"),))
    if "stop" in memory.reported:
        return Decision(memory)
    message = f"could not be stopped: {problem}. The guard tries again. Reason for the stop: {stop.reason}"
    updated = replace(memory, reported=[*memory.reported, "stop"])
    return Decision(updated, (_alert(run, "not-stopped", message, "critical"),))


def record_resume_response(
    memory: RunMemory, run: RunSnapshot, job: TrainingJob | None, problem: str
) -> Decision:
    """Record that a run was resumed as ``job``; if it is None, that the resume failed with ``problem``."""
    resume = memory.resume or Resume()
    if job is not None:
        updated = replace(resume, state="done", job_id=job.id)
        message = f"resumed as {job.name or job.id} ({job.id})"
        alert = _alert(run, "resumed", message, "warning")
    else:
        updated = replace(resume, state="given-up")
        alert = _alert(run, "not-resumed", f"not resumed: {problem}", "critical")
    return Decision(replace(memory, resume=updated), (alert,))


def record_server(memory: RunMemory, now_s: float, problem: str, since_s: float) -> Decision:
    """Record whether the server responds, before any run can be read; ``problem`` says why not, if so.

    ``since_s`` is when the outage began, used unless ``memory`` has an earlier record of it.
    """
    now = datetime.fromtimestamp(now_s, UTC)
    since_s = memory.blind_since_s or since_s
    changes: dict[str, Any] = {"blind_since_s": since_s if problem else None}
    alerts: tuple[Alert, ...] = ()
    if not problem and memory.blind_reported:
        changes |= {"blind_reported": False, "sighted_s": now_s}
        message = f"the server answers again, {_after_outage(since_s, now_s)}"
        alerts = (Alert(None, "info", now, guard_event="sighted", message=message),)
    elif problem and not memory.blind_reported and now_s - since_s >= OUTAGE_REPORT_DELAY_S:
        changes |= {"blind_reported": True}
        message = f"no run could be read since {_clock_time(since_s)}: {problem}"
        alerts = (Alert(None, "warning", now, guard_event="blind", message=message),)
    return Decision(replace(memory, **changes), alerts)


def spent_usd(run: RunSnapshot) -> float | None:
    """Return a lower bound of the run's cost; without a status history, estimate it from the first sample."""
    cost = run.cost
    if cost.measured:
        return cost.spent_usd
    billed_usd = cost.billed.usd if cost.billed is not None else None
    began_s = run.health_metrics.began if run.health_metrics is not None else None
    if run.price_per_minute is None or began_s is None:
        return billed_usd
    minutes = max(0.0, run.server_now.timestamp() - began_s) / 60
    return max(billed_usd or 0.0, minutes * run.price_per_minute * run.node_count)


@dataclass
class _Decider:
    """Applies the rules to one poll; its fields are then the new state, the alerts and the action."""

    memory: RunMemory
    poll: Poll
    rules: GuardRules
    outage_end_s: float
    alerts: list[Alert] = field(default_factory=list)
    action: Action = "none"
    is_over: bool = False

    def __post_init__(self) -> None:
        self.run = self.poll.run
        self.job = self.run.job
        self.now_s = self.run.at.timestamp()
        self._update_outage()
        if not self.poll.is_judged:
            return
        self._update_status()
        self._update_findings()
        if self.job.is_finished:
            self._consider_resume()
        elif self.poll.is_complete:
            self._consider_stop()

    def _change(self, **values: Any) -> None:
        self.memory = replace(self.memory, **values)

    def _report(self, event: Event, message: str, severity: Severity = "warning") -> None:
        self.alerts.append(_alert(self.run, event, message, severity))

    def _is_first(self, key: str) -> bool:
        """Return True if an event was not reported before; remember it as reported."""
        if key in self.memory.reported:
            return False
        self._change(reported=[*self.memory.reported, key])
        return True

    # Observations

    def _update_outage(self) -> None:
        if not self.poll.problem:
            if self.memory.blind_reported:
                self._report(
                    "sighted",
                    f"can be read again, {_after_outage(self.memory.blind_since_s, self.now_s)}",
                    "info",
                )
                self._change(sighted_s=self.now_s)
            self._change(blind_since_s=None, blind_reported=False, seen_s=self.now_s)
            return
        # Not later than now: the clock may have been set back.
        since_s = min(self.memory.blind_since_s or self.memory.seen_s or self.now_s, self.now_s)
        self._change(blind_since_s=since_s)
        if self.now_s - max(since_s, min(self.outage_end_s, self.now_s)) < OUTAGE_REPORT_DELAY_S:
            return
        self.is_over = self.poll.is_gone
        if self.memory.blind_reported:
            return
        self._change(blind_reported=True)
        message = f"could not be read since {_clock_time(since_s)}: {self.poll.problem}"
        if self.is_over:
            message += ". It is no longer watched"
        elif self.rules.may_stop:
            message += ". It is not stopped in the meantime"
        self._report("blind", message)

    def _update_status(self) -> None:
        previous_status, status = self.memory.status, self.job.current_status
        self._change(status=status)
        if status == previous_status:
            return
        stop = self.memory.stop
        if stop is not None and stop.state == "requested" and status == JobStatus.STOPPED:
            decision = record_stop_response(self.memory, self.run, "")  # the server's response was lost
            self.memory = decision.memory
            self.alerts.extend(decision.alerts)
        if self.job.is_finished:
            self.alerts.append(Alert(self.job, severity_of_end(self.job), self.run.at))
        elif previous_status:
            self._report("status", f"{short_status(previous_status)} → {short_status(status)}", "info")

    def _update_findings(self) -> None:
        present_findings = {finding.key: finding for finding in self.run.findings}
        findings = dict(self.memory.findings)
        last_seen_s = dict(self.memory.last_seen_s)
        for key, finding in present_findings.items():
            poll_count = findings[key].looks if key in findings else 0
            if key not in findings:
                self.alerts.append(Alert(self.job, finding.severity, self.run.at, finding))
            since_s = finding.since.timestamp() if finding.since is not None else None
            poll_count += self.poll.is_complete
            findings[key] = SeenFinding(text=finding.text, since_s=since_s, looks=poll_count)
            last_seen_s[key] = self.now_s
        for key in findings.keys() - present_findings.keys() if self.poll.is_complete else ():
            # A finding ends at the second complete poll without it: at the first, the run may have ended.
            if findings[key].looks:
                findings[key] = replace(findings[key], looks=0)
                continue
            finding = _restored_finding(key, findings.pop(key))
            if not self.job.is_finished:
                self.alerts.append(Alert(self.job, "info", self.run.at, finding, "finding-ended"))
        self._change(findings=findings, last_seen_s=last_seen_s)

    # Actions

    def _consider_stop(self) -> None:
        stop, due_stop = self.memory.stop, self._due_stop()
        if stop is not None and stop.state == "done":
            if self.now_s - stop.at_s >= 600.0 and self._is_first("still running"):
                self._report("not-stopped", "still runs, although its stop was accepted", "critical")
            return
        if due_stop is None:
            if stop is not None and stop.state == "planned" and stop.cause not in self.memory.findings:
                self._change(stop=None)
                self._report(
                    "stop-withdrawn", f"will not be stopped, since this has ended: {stop.reason}", "info"
                )
            return
        unsaved_text = unsaved_words(self.run)
        if self.rules.dry_run:
            if self._is_first(f"would stop: {due_stop.cause}"):
                self._report("would-stop", f"would be stopped (dry run): {due_stop.reason}. {unsaved_text}")
        elif stop is not None and stop.state == "requested":
            if not 0 <= self.now_s - stop.at_s < REPEAT_STOP_S:
                self._request_stop(due_stop, unsaved_text)
        elif not self.rules.after_checkpoint or self._may_never_save_again(due_stop) or self._has_saved(stop):
            self._request_stop(due_stop, unsaved_text)
        elif stop is None:
            self._plan_stop(due_stop, unsaved_text)

    def _request_stop(self, due_stop: Stop, unsaved_text: str) -> None:
        self._change(stop=replace(due_stop, state="requested", loss=unsaved_text, at_s=self.now_s))
        self.action = "stop"

    def _plan_stop(self, due_stop: Stop, unsaved_text: str) -> None:
        self._change(
            stop=replace(due_stop, loss=unsaved_text, at_s=self.now_s, stored_s=self._newest_stored_s())
        )
        message = f"will be stopped after its next checkpoint: {due_stop.reason}. {unsaved_text}"
        self._report("stop-planned", message, "critical")

    def _due_stop(self) -> Stop | None:
        """Return a stop with its cause and reason if a rule requires a stop now, else None."""
        for finding in self.run.findings:
            poll_count = self.memory.findings[finding.key].looks
            # A finding stops a run only after two consecutive polls, since one response may be wrong.
            if str(finding.kind) in self.rules.stop_on and poll_count >= 2:
                return Stop(cause=finding.key, reason=f"{finding.kind}: {finding.text}")
        until = self.rules.until
        if until is not None and self.run.at >= until.at:
            return Stop(cause="deadline", reason=f"it is past {local_time(until.at, '%H:%M')}")
        return self._stop_by_budget(self.rules.budget_usd)

    def _stop_by_budget(self, budget_usd: float | None) -> Stop | None:
        if budget_usd is None or self.job.current_status != JobStatus.RUNNING:
            return None
        cost_usd = spent_usd(self.run)
        if cost_usd is None:
            if self._is_first("budget"):
                message = (
                    "can't watch the budget: the price of the nodes is unknown; see [prices] in the settings"
                )
                self._report("not-stopped", message)
            return None
        if cost_usd < budget_usd:
            return None
        return Stop(cause="budget", reason=f"spent ≈ {money(cost_usd)} of a budget of {money(budget_usd)}")

    def _may_never_save_again(self, due_stop: Stop) -> bool:
        """Return True if the run may never store another checkpoint."""
        kind = KINDS.get(due_stop.cause.partition(":")[0])
        return (kind is not None and kind.may_never_save_again) or any(
            finding.kind.halts for finding in self.run.findings
        )

    def _has_saved(self, plan: Stop | None) -> bool:
        return plan is not None and self._newest_stored_s() > plan.stored_s

    def _newest_stored_s(self) -> float:
        checkpoints = self.run.checkpoints or ()
        stored_checkpoints = (
            checkpoint for checkpoint in checkpoints if sync_state(checkpoint) != "uploading"
        )
        return max((time_key(checkpoint.created_at) for checkpoint in stored_checkpoints), default=0.0)

    def _consider_resume(self) -> None:
        resume, status = self.memory.resume, short_status(self.job.current_status)
        self.is_over = status not in self.rules.resume_on or (
            resume is not None and resume.state != "requested"
        )
        if self.is_over:
            return
        if self.memory.resumes >= self.rules.max_resumes:
            self.is_over = True
            self._change(resume=Resume(state="given-up", at_s=self.now_s))
            message = f"not resumed again: {status} after {self.memory.resumes} resumes"
            self._report("not-resumed", message, "critical")
        elif self.rules.dry_run:
            self.is_over = True
            self._report("not-resumed", f"would be resumed (dry run): {status}", "info")
        else:
            if resume is None:
                self._change(resume=Resume(at_s=self.now_s))
            self.action = "resume"


def _alert(run: RunSnapshot, event: Event, message: str, severity: Severity) -> Alert:
    return Alert(run.job, severity, run.at, guard_event=event, message=message.strip())


def is_worth_sending(memory: RunMemory, alert: Alert) -> bool:
    """Return True if an alert is worth a notification; ``memory`` is the state before this poll.

    Findings that have ended or soon came back are not worth one, nor are changes of the status.
    """
    if alert.event in ("finding-ended", "status"):
        return False
    if alert.event == "job-ended":
        return bool(memory.status)
    if alert.finding is None:
        return True
    seen_s = memory.last_seen_s.get(alert.finding.key)
    return is_news(None if seen_s is None else datetime.fromtimestamp(seen_s, UTC), alert.at)


def resumable_statuses() -> tuple[str, ...]:
    """Return the statuses after which a guard can resume a run; not STOPPED: a user stopped that run."""
    return tuple(map(short_status, (JobStatus.PREEMPTED, JobStatus.FAILED, JobStatus.EXPIRED)))


def _restored_finding(key: str, seen: SeenFinding) -> HealthFinding:
    name, _, node = key.partition(":")
    kind = KINDS.get(name) or FindingKind(name, 0, "")
    since = None if seen.since_s is None else datetime.fromtimestamp(seen.since_s, UTC)
    return HealthFinding(kind, "info", seen.text, node or None, since)


def _clock_time(epoch_s: float | None) -> str:
    return local_time(None if epoch_s is None else datetime.fromtimestamp(epoch_s, UTC), "%H:%M")


def _after_outage(since_s: float | None, now_s: float) -> str:
    return f"after {duration(now_s - (since_s or now_s))}"
