"""Run all health checks on a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from api_client.models import WAITING_STATUSES, JobStatus
from tui.analysis.connection import LOG, METRICS
from tui.analysis.health.checks import straggler
from tui.analysis.health.registry import CHECKS
from tui.analysis.health.rules import DEFAULT_RULES, HealthRules
from tui.analysis.health.watched import Watched
from tui.analysis.run.finding import SEVERITIES, HealthFinding
from tui.analysis.run.snapshot import RunSnapshot


def health(
    run: RunSnapshot, rules: HealthRules = DEFAULT_RULES, previous: Iterable[HealthFinding] = ()
) -> tuple[HealthFinding, ...]:
    """Return the findings of a running or waiting job, worst first; none if it is healthy or finished.

    Timestamps of lines and samples are compared with ``run.server_now``. A finding that is
    among the ``previous`` findings of the job stays until the problem is clearly over, and keeps its start.
    """
    waits = run.job.current_status in WAITING_STATUSES
    if not waits and run.job.current_status != JobStatus.RUNNING:
        return ()
    watched = Watched(run, rules, previous)
    for check in CHECKS:
        if check.of_waiting == waits:
            watched.found += check.findings(watched)
    return _worst_first(_since_earlier(finding, watched.held.get(finding.key)) for finding in watched.found)


def judged(
    run: RunSnapshot, rules: HealthRules = DEFAULT_RULES, previous: Iterable[HealthFinding] = ()
) -> RunSnapshot:
    """Return a copy of the run with its findings, and the data sources that they are based on."""
    previous = tuple(previous)
    findings = _findings_at_end(run, rules) if run.job.is_finished else health(run, rules, previous)
    if not run.log_read:
        findings = _sure_of_partly_read(findings, Watched(run, rules).growth_since)
    sources = ((LOG, run.log_read), (METRICS, run.health_metrics is not None))
    checked = frozenset(source for source, is_read in sources if is_read)
    compares = (
        run.job.current_status == JobStatus.RUNNING
        and str(straggler.CHECK.kind) not in rules.off
        and straggler.may_be_found(Watched(run, rules, previous))
    )
    return replace(run, checked_sources=checked, compares_nodes=compares, findings=findings)


def _findings_at_end(run: RunSnapshot, rules: HealthRules) -> tuple[HealthFinding, ...]:
    """Return the findings of a finished run: a loss that was broken at its end; also a halt, if it failed."""
    if not run.log_read:
        return ()
    running = replace(run, job=run.job.model_copy(update={"current_status": JobStatus.RUNNING}))
    broken = [finding for finding in health(running, rules) if finding.kind.loss]
    if run.job.current_status == JobStatus.COMPLETED or run.job.updated_at is None:
        return tuple(broken)
    at_end = replace(running, at=run.job.updated_at, clock_ahead_s=0.0)
    halted = [finding for finding in health(at_end, rules) if finding.kind.halts]
    return _worst_first([*broken, *halted])


def _sure_of_partly_read(findings: Iterable[HealthFinding], judged_since: float) -> tuple[HealthFinding, ...]:
    """Return what is sure before the whole log has been read.

    That a run has halted is not sure: which pauses are usual is unknown. Findings that were present already
    at the first time that can be judged may have begun long before: neither their duration nor their cost is
    known, so their ``since`` becomes None.
    """
    return tuple(
        replace(finding, since=None)
        if finding.since is not None and finding.since.timestamp() <= judged_since
        else finding
        for finding in findings
        if not finding.kind.halts
    )


def with_earlier(
    findings: Iterable[HealthFinding], earlier: Iterable[HealthFinding]
) -> tuple[HealthFinding, ...]:
    """Add the findings of an ``earlier`` evaluation, while parts of the run are still being read again.

    Drop current findings that an earlier finding explains, such as an overdue checkpoint during a stall.
    """
    current = tuple(findings)
    keys = {finding.key for finding in current}
    retained = [finding for finding in earlier if finding.key not in keys]
    unexplained = (
        finding
        for check in CHECKS
        for finding in check.unexplained((each for each in current if each.kind == check.kind), retained)
    )
    return (*retained, *unexplained)


def with_findings(run: RunSnapshot, findings: Iterable[HealthFinding]) -> RunSnapshot:
    """Return a copy of the run with these findings, worst first."""
    return replace(run, findings=_worst_first(findings))


def _worst_first(findings: Iterable[HealthFinding]) -> tuple[HealthFinding, ...]:
    return tuple(sorted(findings, key=lambda each: (SEVERITIES.index(each.severity), each.kind.rank)))


def _since_earlier(finding: HealthFinding, previous: HealthFinding | None) -> HealthFinding:
    """Return the finding with the earlier of both start times."""
    before = None if previous is None else previous.since
    if before is None or (finding.since is not None and finding.since <= before):
        return finding
    return replace(finding, since=before)
