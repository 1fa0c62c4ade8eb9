"""Explain a finding of a run, or why a run failed, from its log lines and samples."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from statistics import median

from api_client.models import JobStatus
from api_client.models.logs import LogLine
from tui.analysis.node_metrics import MetricsSnapshot, NodeSnapshot
from tui.analysis.run.checkpoints import step_of
from tui.analysis.run.finding import LOSS_KINDS, FindingKind, HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.series import Series
from tui.analysis.why.explanation import Clue, Explanation, Figure, Section
from tui.analysis.why.failure import exit_words, failure_of
from tui.analysis.why.lines import last_lines, only_on, shown, warnings
from tui.text.names import shortened
from tui.text.units import count, money, number

MAX_LINES = 20_000
"""Maximum number of log lines to search, the newest of the range."""

BEFORE = timedelta(minutes=10)
AT_MOST = timedelta(hours=1)
_QUIET = frozenset(
    {FindingKind.STALLED, FindingKind.GPU_IDLE, FindingKind.NODE_MISSING, FindingKind.METRICS_MISSING}
)
"""What was logged last explains these, however long ago it was."""
_CLUES = 8
_NODES = 64
_TEXT = 160
_NORMS = 5
_RANK_WORK = re.compile(
    r"[Rr]ank (\d{1,9})\]?.{0,160}?last enqueued (?:NCCL )?work: (\d{1,18}), last completed "
)

_RESOURCE = re.compile(
    r"[KMG]i?B/s|Gbps|throttl|thermal|temperature|\bXid\b|\bECC\b|\bclocks?\b|retransmi|\blink\b|\bNFS\b|\bdisk\b"
    r"|\bswap",
    re.IGNORECASE,
)
"""Warnings that name a resource tell more than those that only report waiting."""
KILLED = frozenset({137, -9})
FAILED = frozenset({JobStatus.FAILED, JobStatus.DEPLOY_FAILED})


def explained_findings(run: RunSnapshot) -> tuple[HealthFinding | None, ...]:
    """Return the findings that can be explained, worst first; for a failed job None, its end."""
    if run.job.current_status in FAILED:
        return (None,)
    return tuple(found for found in run.findings if found.kind is not FindingKind.QUEUED)


def explained_range(run: RunSnapshot, finding: HealthFinding | None) -> tuple[datetime, datetime]:
    """Return the time range whose lines explain the finding, or the end of the run if it is None."""
    now = run.server_now
    if run.job.is_finished:
        end = run.job.updated_at or now
        start = run.job.earliest_time(now)
        return start, end + BEFORE
    since = (finding.since if finding is not None else None) or now - AT_MOST
    if finding is not None and finding.kind in LOSS_KINDS:
        return since - BEFORE, min(now, since + BEFORE)
    if finding is not None and finding.kind in _QUIET:
        return since - BEFORE, now
    return max(since - BEFORE, now - AT_MOST), now


def explain(run: RunSnapshot, finding: HealthFinding | None, lines: Sequence[LogLine]) -> Explanation:
    """Explain a finding, or the end of a failed run; ``lines`` are those of ``explained_range``, in order."""
    if finding is None:
        return _end(run, lines)
    return _EXPLAINED.get(finding.kind, _other)(run, finding, lines)


def _end(run: RunSnapshot, lines: Sequence[LogLine]) -> Explanation:
    progress = run.progress
    message = run.job.error_message or ""
    found = failure_of(
        lines,
        progress.last_step_at_ns if progress else None,
        progress.step_interval_s if progress else None,
        message,
    )
    facts: list[str] = []
    if found.exit_code is not None:
        facts.append(exit_words(found.exit_code))
    if progress is not None and progress.step is not None:
        facts.append(f"last step: {count(progress.step)}")
    sections: list[Section] = []
    answer = message
    if found.cause is not None:
        node = f"{found.cause.node}: " if found.cause.node and run.node_count > 1 else ""
        answer = f"{node}{found.cause.text}"
        if message:
            facts.append(f"reported by the platform: {message}")
        sections.append(Section("The first error", found.trace))
    if found.following:
        title = "Errors that followed" if found.cause is not None else "Errors, none of them the cause"
        sections.append(Section(title, found.following))
    if found.cause is None and (late := _late_words(lines)):
        answer = late
    if found.cause is None and lines:
        sections.append(Section("Last line of each node", last_lines(lines, limit=_NODES)))
    figures = _all_figures(run, FindingKind.MEMORY_LEAK) if found.exit_code in KILLED else ()
    return Explanation(run.status.word, None, answer, tuple(facts), tuple(sections), figures)


def _straggler(run: RunSnapshot, finding: HealthFinding, lines: Sequence[LogLine]) -> Explanation:
    node = finding.node or ""
    own = only_on(lines, node, limit=_CLUES)
    bad = sorted((clue for clue in own if clue.is_warning), key=lambda clue: not _RESOURCE.search(clue.text))
    answer = ""
    if bad:
        times = f"{count(bad[0].count)}×, no other node does" if bad[0].count > 1 else "no other node does"
        answer = f"{node} logs: {shortened(bad[0].text, _TEXT)} ({times})"
    sections = [Section(f"Only {node} logs this", own)] if own else []
    return Explanation(finding.text, finding, answer, _money(run), tuple(sections), _node_figures(run, node))


def _stall(run: RunSnapshot, finding: HealthFinding, lines: Sequence[LogLine]) -> Explanation:
    facts = list(_money(run))
    progress = run.progress
    if progress is not None and progress.step is not None:
        facts.insert(0, f"last step: {count(progress.step)}")
    answer = _late_words(lines)
    bad = warnings(lines, limit=_CLUES)
    sections = []
    if lines:
        sections.append(
            Section("Last line of each node, the quietest first", last_lines(lines, limit=_NODES))
        )
    if bad:
        sections.append(Section("Warnings and errors", bad))
    return Explanation(
        finding.text, finding, answer, tuple(facts), tuple(sections), _all_figures(run, finding.kind)
    )


def _late_words(lines: Sequence[LogLine]) -> str:
    late = late_ranks(lines)
    ranks = ", ".join(map(str, late))
    nouns = "rank" if len(late) == 1 else "ranks"
    return f"{nouns} {ranks} did not reach the collective that the others waited in" if late else ""


def late_ranks(lines: Sequence[LogLine]) -> list[int]:
    """Return the ranks that NCCL's watchdog reports to be behind the others, if they are a minority."""
    enqueued: dict[int, int] = {}
    for line in lines:
        if "last enqueued" in line.message:
            for rank, last in _RANK_WORK.findall(shown(line)):
                enqueued[int(rank)] = int(last)
    if len(enqueued) < 2 or min(enqueued.values()) == max(enqueued.values()):
        return []
    lowest = min(enqueued.values())
    late = sorted(rank for rank, last in enqueued.items() if last == lowest)
    return late if 2 * len(late) < len(enqueued) else []


def _loss(run: RunSnapshot, finding: HealthFinding, lines: Sequence[LogLine]) -> Explanation:
    progress, facts = run.progress, []
    since_s = finding.since.timestamp() if finding.since is not None else None
    figures: list[Figure] = []
    if progress is not None and since_s is not None:
        step = _value_before(progress.step_series, since_s + 1.0)
        if step is not None:
            facts.append(f"began at step {count(step)}")
        before = _value_before(progress.loss_series, since_s)
        if before is not None:
            facts.append(f"last loss before: {number(before)}")
        norms = [
            value
            for time, value in zip(
                progress.grad_norm_series.times, progress.grad_norm_series.values, strict=True
            )
            if time < since_s and math.isfinite(value)
        ]
        if norms:
            newest = ", ".join(map(number, norms[-_NORMS:]))
            usual = f" (median before: {number(median(norms[:-_NORMS]))})" if len(norms) > 2 * _NORMS else ""
            facts.append(f"last gradient norms before: {newest}{usual}")
        figures = [
            Figure(title, "", (series,))
            for title, series in (
                ("loss", progress.loss_series),
                ("gradient norm", progress.grad_norm_series),
            )
            if len(series)
        ]
    facts += _last_checkpoint_before(run, finding)
    bad = warnings(lines, limit=_CLUES)
    sections = [Section("Warnings and errors around that time", bad)] if bad else []
    return Explanation(finding.text, finding, "", (*facts, *_money(run)), tuple(sections), tuple(figures))


def _last_checkpoint_before(run: RunSnapshot, finding: HealthFinding) -> list[str]:
    since = finding.since
    if run.checkpoints is None or since is None:
        return []
    dated = [(one.created_at, one) for one in run.checkpoints if one.created_at is not None]
    before = [(created, one) for created, one in dated if created < since]
    if not before:
        return ["no checkpoint from before is listed"]
    _, newest = max(before, key=itemgetter(0))
    step = step_of(newest.checkpoint_id)
    words = f" (step {count(step)})" if step is not None else ""
    return [f"last checkpoint from before: {newest.checkpoint_id}{words}"]


def _errors(run: RunSnapshot, finding: HealthFinding, lines: Sequence[LogLine]) -> Explanation:
    bad = sorted(warnings(lines, limit=_CLUES), key=lambda clue: clue.at_ns)
    sections = (Section("Warnings and errors", tuple(bad)),) if bad else ()
    return Explanation(finding.text, finding, "", _money(run), sections)


def _other(run: RunSnapshot, finding: HealthFinding, lines: Sequence[LogLine]) -> Explanation:
    sections: list[Section] = []
    own = only_on(lines, finding.node, limit=_CLUES) if finding.node is not None else ()
    if own:
        sections.append(Section(f"Only {finding.node} logs this", own))
    bad: tuple[Clue, ...] = warnings(lines, limit=_CLUES)
    if bad:
        sections.append(Section("Warnings and errors", bad))
    if lines and (not sections or finding.kind in _QUIET):
        sections.append(Section("Last line of each node", last_lines(lines, limit=_NODES)))
    figures = _all_figures(run, finding.kind, finding.node)
    return Explanation(finding.text, finding, "", _money(run), tuple(sections), figures)


_EXPLAINED = {
    FindingKind.STRAGGLER: _straggler,
    FindingKind.STALLED: _stall,
    FindingKind.LOSS_NOT_FINITE: _loss,
    FindingKind.LOSS_EXPLODING: _loss,
    FindingKind.ERRORS: _errors,
}


def _money(run: RunSnapshot) -> tuple[str, ...]:
    price = run.price_per_minute
    if price is None or run.job.current_status != JobStatus.RUNNING:
        return ()
    return (f"the run costs {money(price * 60 * run.node_count)} an hour (estimate)",)


def _value_before(series: Series, at_s: float) -> float | None:
    """Return the newest finite value before a time."""
    for place in range(bisect_left(series.times, at_s) - 1, -1, -1):
        if math.isfinite(series.values[place]):
            return series.values[place]
    return None


_FIGURES: tuple[tuple[str, str, Callable[[NodeSnapshot], Series]], ...] = (
    ("GPU use", "%", lambda node: node.mean_utilization),
    ("CPU", "cores", lambda node: node.cpu),
    ("GPU memory", "B", lambda node: node.mean_memory),
    ("memory", "B", lambda node: node.cpu_memory),
    ("disk", "B", lambda node: node.disk_usage),
)


def _node_figures(run: RunSnapshot, name: str) -> tuple[Figure, ...]:
    """Return the node's series beside the median of the others."""
    metrics = run.health_metrics or run.metrics or MetricsSnapshot()
    node = metrics.node(name)
    others = [one for one in metrics.nodes if one.name != name]
    if node is None:
        return ()
    figures: list[Figure] = []
    for title, unit, of in _FIGURES:
        own = of(node)
        rest = median_series("others", [of(one) for one in others])
        if len(own) and len(rest):
            figures.append(Figure(title, unit, (rest, Series(name, own.times, own.values))))
    return tuple(figures)


def median_series(name: str, series: Sequence[Series]) -> Series:
    """Return the median at each time of the longest series; others contribute their last value before it."""
    filled = [one for one in series if len(one)]
    if not filled:
        return Series(name, (), ())
    times = max(filled, key=len).times
    values: list[float] = []
    for time in times:
        found = [value for one in filled if (value := _value_before(one, time + 1e-6)) is not None]
        values.append(median(found) if found else math.nan)
    return Series(name, times, tuple(values))


_FIGURES_OF = {
    FindingKind.STALLED: ("GPU use",),
    FindingKind.GPU_IDLE: ("GPU use", "CPU"),
    FindingKind.GPU_MEMORY: ("GPU memory",),
    FindingKind.MEMORY_LEAK: ("memory", "GPU memory"),
    FindingKind.DISK_FILLING: ("disk",),
    FindingKind.SLOWDOWN: ("GPU use", "CPU"),
}


def _all_figures(run: RunSnapshot, kind: FindingKind, name: str | None = None) -> tuple[Figure, ...]:
    """Return the series that belong to a kind of problem, of one node or of all."""
    metrics = run.health_metrics or run.metrics or MetricsSnapshot()
    nodes = [node for node in metrics.nodes if name in (None, node.name)]
    figures = []
    for title, unit, of in _FIGURES:
        series = [Series(node.name, of(node).times, of(node).values) for node in nodes if len(of(node))]
        if series and title in _FIGURES_OF.get(kind, ()):
            figures.append(Figure(title, unit, tuple(series)))
    if kind is FindingKind.CACHE_FILLING and len(metrics.cache_utilization):
        figures.append(Figure("cache", "%", (metrics.cache_utilization,)))
    return tuple(figures)
