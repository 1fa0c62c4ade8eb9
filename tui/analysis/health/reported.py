"""Report what the platform and the log state themselves: a queue, restarts, errors."""

from __future__ import annotations

import re
from collections.abc import Iterator

from api_client.models import JobStatus
from api_client.models.logs import NS_PER_S
from tui.analysis.health.context import Context, finding
from tui.analysis.run.finding import FindingKind, HealthFinding, Severity
from tui.analysis.run.waiting import waited, waiting_text
from tui.text.sanitize import sanitize
from tui.text.units import counted, duration

_COUNT_FIELDS = ("retry_count", "restart_count", "retries")
"""Fields that the API may have in the future (the platform counts BT_RETRY_COUNT)."""

_MANY_RESTARTS = 5
_RETRIED = re.compile(r"\b(?:re-?try|re-?tries|retrying|try again|re-?connect|attempt \d)", re.IGNORECASE)
_AFTER_S = 10.0
_LEVEL = re.compile(r"^(?:\W{0,8}+(?:ERROR|CRITICAL|FATAL|Error)\b)++\W{0,4}(?=\S)")


def repeated_restarts(context: Context) -> Iterator[HealthFinding]:
    """Report more than one restart, according to the platform, the log, or the step numbers."""
    rules, run = context.rules, context.run
    history = [
        event.created.timestamp()
        for event in run.status_history
        if event.status == JobStatus.RUNNING and event.created is not None
    ][1:]
    logged = context.progress.restarts
    times = max((history, list(logged)), key=len)
    restarts = max(_reported(run.job.model_extra or {}), len(times))
    if restarts < rules.restarts:
        return
    newest = max(times, default=None)
    if newest is not None and context.now_s - newest > rules.restarts_within_s:
        return
    last = f", last {duration(context.now_s - newest)} ago" if newest is not None else ""
    severity: Severity = "critical" if restarts >= _MANY_RESTARTS else "warning"
    text = f"restarted {counted(restarts, 'time')}{last}"
    yield finding(FindingKind.RESTARTS, severity, text, since_s=min(times, default=None))


def _reported(fields: dict[str, object]) -> int:
    known = [fields.get(name) for name in _COUNT_FIELDS]
    return max((count for count in known if isinstance(count, int)), default=0)


def errors(context: Context) -> Iterator[HealthFinding]:
    """Report errors logged in the last `errors_within_s`: their number, and the text of the first."""
    recent = [
        error
        for error in context.progress.errors.kept
        if context.now_s - error.at_ns / NS_PER_S <= context.rules.errors_within_s
    ]
    if not recent:
        return
    first = recent[0]
    words = sanitize(first.text)
    ago = duration(max(0.0, context.now_s - first.at_ns / NS_PER_S))
    text, number = f"an error in the log, {ago} ago: {words}", ""
    if len(recent) > 1:
        number = counted(len(recent), "error")
        text = f"{number} in the log, first {ago} ago: {words}"
    short = f"{number}: {_LEVEL.sub('', words)}" if number else _LEVEL.sub("", words)
    severity: Severity = "warning"
    if _survived(context, recent[-1].at_ns / NS_PER_S):
        repeated = len(recent) > 1 and not all(_RETRIED.search(error.text) for error in recent)
        if not repeated:
            severity, text = "info", f"{text} (training continued)"
    elif _may_survive(context, recent[-1].at_ns / NS_PER_S):
        return
    yield finding(FindingKind.ERRORS, severity, text, short=short, since_s=first.at_ns / NS_PER_S)


def _survived(context: Context, at: float) -> bool:
    """Return True if the run made steps after an error."""
    progress = context.progress
    step_ns = progress.last_step_at_ns
    return step_ns is not None and step_ns / NS_PER_S > at + max(_AFTER_S, progress.step_interval_s or 0.0)


def _may_survive(context: Context, at: float) -> bool:
    """Return True if a run that makes steps has not had the time for the next ones since its only error."""
    progress = context.progress
    usual_s = progress.step_interval_s
    if usual_s is None or context.training_since is None or context.is_held(FindingKind.ERRORS):
        return False
    return context.now_s - at < _AFTER_S + min(context.rules.stall_after_s, max(60.0, 3 * usual_s))


def waiting(context: Context) -> Iterator[HealthFinding]:
    run = context.run
    waited_s = waited(run.job, run.at)
    if waited_s is not None and waited_s >= context.rules.queued_after_s:
        short, text = waiting_text(run.job, run.node_count, run.queue, run.at)
        yield HealthFinding(FindingKind.QUEUED, "info", text, None, run.job.created_at, short)
