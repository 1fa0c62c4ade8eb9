"""Run all health checks on a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from api_client.models import WAITING_STATUSES, JobStatus
from tui.analysis.connection import LOG, METRICS
from tui.analysis.health.checkpoints import overdue_checkpoint
from tui.analysis.health.context import Context
from tui.analysis.health.idle import idle_gpus, underused_gpus
from tui.analysis.health.loss import broken_loss, exploding_loss, exploding_norm, rising_loss
from tui.analysis.health.memory import gpu_memory, leaks, storage
from tui.analysis.health.missing import missing_nodes
from tui.analysis.health.reported import errors, repeated_restarts, waiting
from tui.analysis.health.rules import DEFAULT_RULES, HealthRules
from tui.analysis.health.stall import stall
from tui.analysis.health.stragglers import may_have_stragglers, stragglers
from tui.analysis.health.trends import overfitting, plateau, slowdown
from tui.analysis.run.finding import LOSS_KINDS, SEVERITIES, FindingKind, HealthFinding
from tui.analysis.run.snapshot import RunSnapshot

_ORDER = {kind: place for place, kind in enumerate(FindingKind)}


def health(
    run: RunSnapshot, rules: HealthRules = DEFAULT_RULES, previous: Iterable[HealthFinding] = ()
) -> tuple[HealthFinding, ...]:
    """Return the findings of a running or waiting job, worst first; none if it is healthy or finished.

    Timestamps of lines and samples are compared with ``run.server_now``. Given the ``previous`` findings
    of the same job, a finding stays until it is clearly over, and keeps its start time.
    """
    context = _context(run, rules, previous)
    status = run.job.current_status
    if status in WAITING_STATUSES:
        found = list(waiting(context))
    elif status == JobStatus.RUNNING:
        found = _of_running(context)
    else:
        return ()
    kept = [_since_earlier(one, context.held.get(one.key)) for one in found if one.kind not in rules.off]
    return tuple(sorted(kept, key=_sort_key))


def judged(
    run: RunSnapshot, rules: HealthRules = DEFAULT_RULES, previous: Iterable[HealthFinding] = ()
) -> RunSnapshot:
    """Return the run with its ``health`` findings and the rules they are based on."""
    held = tuple(previous)
    found = health(run, rules, held)
    if not run.log_read:
        found = without_stall_findings(found)
    read = ((LOG, run.log_read), (METRICS, run.health_metrics is not None))
    checked = frozenset(part for part, known in read if known)
    compares = (
        run.job.current_status == JobStatus.RUNNING
        and FindingKind.STRAGGLER not in rules.off
        and may_have_stragglers(_context(run, rules, held))
    )
    return with_findings(replace(run, checked_sources=checked, compares_nodes=compares), found)


def _context(run: RunSnapshot, rules: HealthRules, previous: Iterable[HealthFinding]) -> Context:
    return Context(run, rules, {found.key: found for found in previous})


def without_stall_findings(found: Iterable[HealthFinding]) -> tuple[HealthFinding, ...]:
    """Drop the findings that need the whole log: a run's pauses are unknown until it has been read."""
    return tuple(one for one in found if one.kind != FindingKind.STALLED)


def with_findings(run: RunSnapshot, found: Iterable[HealthFinding]) -> RunSnapshot:
    """Return the run with these findings, worst first, and the nodes they name."""
    ordered = tuple(sorted(found, key=_sort_key))
    return replace(
        run,
        findings=ordered,
        slow_nodes=nodes_found(ordered, FindingKind.STRAGGLER),
        missing_nodes=nodes_found(ordered, FindingKind.NODE_MISSING),
    )


def _sort_key(found: HealthFinding) -> tuple[int, int]:
    return SEVERITIES.index(found.severity), _ORDER[found.kind]


def nodes_found(findings: Iterable[HealthFinding], kind: FindingKind) -> frozenset[str]:
    return frozenset(found.node for found in findings if found.kind == kind and found.node is not None)


def _of_running(context: Context) -> list[HealthFinding]:
    found = [*stall(context), *broken_loss(context)]
    if all(one.kind != FindingKind.LOSS_NOT_FINITE for one in found):
        found += next(
            filter(None, (list(one(context)) for one in (exploding_loss, exploding_norm, rising_loss))), []
        )
    kinds = {one.kind for one in found}
    missing = list(missing_nodes(context, stalled=FindingKind.STALLED in kinds))
    idle = list(idle_gpus(context))
    found += [*missing, *idle]
    if not any(one.node is None for one in idle):
        blamed = {one.node for one in (*missing, *idle) if one.node is not None}
        found += stragglers(context, frozenset(blamed))
    found += [*gpu_memory(context), *leaks(context), *storage(context)]
    if FindingKind.STALLED not in kinds:
        found += [*overdue_checkpoint(context), *slowdown(context)]
    if kinds.isdisjoint(LOSS_KINDS):
        found += [*plateau(context), *overfitting(context)]
    if {FindingKind.GPU_IDLE, FindingKind.SLOWDOWN}.isdisjoint(one.kind for one in found):
        found += underused_gpus(context)
    found += [*repeated_restarts(context), *errors(context)]
    return found


def _since_earlier(found: HealthFinding, held: HealthFinding | None) -> HealthFinding:
    if held is None or held.since is None or (found.since is not None and found.since <= held.since):
        return found
    return replace(found, since=held.since)
