"""Explain a finding of a run, or why a run failed, from its log lines and metrics.

A node with a finding is compared with the other nodes; a loss that became NaN or diverged, with the time
before. The kind of the finding determines which log lines and charts explain it.

When a rank dies, the other ranks report timeouts and closed connections, and the launcher reports every
process that it stops. The cause of a failure is the first error that is not one of these consequences, and
after which the run made no steps and did not retry.
"""

from __future__ import annotations

import math
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import median

from api_client.models import WAITING_STATUSES, JobStatus
from api_client.models.logs import NS_PER_S, LogLine
from tui.analysis.logs.errors import SAME_ERROR_NS, TEXT_CHARACTERS, TracebackReader, error_text
from tui.analysis.logs.excerpt import excerpt
from tui.analysis.node_metrics import MetricsSnapshot, NodeSnapshot
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.checkpoints import step_of
from tui.analysis.run.finding import HealthFinding, lost_usd, stop_advice
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.series import EMPTY, Series, latest, values_between
from tui.analysis.why.explanation import Clue, Explanation, Figure, Section
from tui.analysis.why.lines import displayed_text, last_lines, line_pattern, only_on, warnings
from tui.text.names import shortened
from tui.text.times import time_key
from tui.text.units import count, duration, money, number, percent

MAX_LINES = 20_000
"""Maximum number of log lines to search: the newest lines in ``explained_range``."""

BEFORE = timedelta(minutes=10)
"""How long before the start of a finding, and after its onset, log lines are searched."""
MAX_RANGE = timedelta(hours=1)
"""Of a finding that lasts longer, only the log lines of this last period are searched."""
_MAX_CLUES = 8
_MAX_NODES = 64
_NEWEST_NORMS = 5
_ENQUEUED_PATTERN = re.compile(
    r"[Rr]ank (\d{1,9})\]?.{0,160}?last enqueued (?:NCCL )?work: (\d{1,18}), last completed "
)

_RESOURCE_PATTERN = re.compile(
    r"[KMG]i?B/s|Gbps|throttl|thermal|temperature|\bXid\b|\bECC\b|\bclocks?\b|retransmi|\blink\b|\bNFS\b|\bdisk\b"
    r"|\bswap|NET/IB|InfiniBand|\bPCIe\b|NVLink",
    re.IGNORECASE,
)
"""Words that name a resource: warnings with these explain more than warnings that only report waiting."""
KILLED = frozenset({137, -9})
"""Exit codes of a process that was killed by SIGKILL, as the kernel does when memory is exhausted."""


def explained_findings(run: RunSnapshot) -> tuple[HealthFinding | None, ...]:
    """Return the findings that can be explained, worst first.

    Return ``(None,)`` for a failed job, where None stands for the failure; ``()`` for a waiting job.
    """
    if run.job.current_status in (JobStatus.FAILED, JobStatus.DEPLOY_FAILED):
        return (None,)
    return () if run.job.current_status in WAITING_STATUSES else run.findings


def explained_range(run: RunSnapshot, finding: HealthFinding | None) -> tuple[datetime, datetime]:
    """Return the time range of the log lines that explain ``finding``; if None, the failure of the run."""
    end = run.end_or_now
    if run.job.is_finished:
        end += BEFORE  # also lines that are logged after the end that the job's record reports
    if finding is None:
        return run.job.earliest_time(run.server_now), end
    since = finding.since or end - MAX_RANGE
    if finding.kind.lines == "onset":
        return since - BEFORE, min(end, since + BEFORE)
    if finding.kind.lines == "quiet":
        return since - BEFORE, end
    return max(since - BEFORE, end - MAX_RANGE), end


def explain(run: RunSnapshot, finding: HealthFinding | None, lines: Sequence[LogLine]) -> Explanation:
    """Explain ``finding``; if None, the failure. ``lines`` are those in ``explained_range``, by time."""
    if finding is None:
        return _explain_failure(run, lines)
    node_clues = only_on(lines, finding.node, limit=_MAX_CLUES) if finding.node is not None else ()
    all_warnings = warnings(lines, limit=_MAX_CLUES)
    if finding.kind.quotes_log:
        all_warnings = tuple(sorted(all_warnings, key=lambda clue: clue.at_ns))
    sections = [
        Section(f"Only {finding.node} logs this", node_clues),
        Section("Last line of each node, the quietest first", last_lines(lines, limit=_MAX_NODES)),
        Section("Warnings and errors", tuple(clue for clue in all_warnings if clue not in node_clues)),
    ]
    if finding.kind.lines != "quiet" and (node_clues or all_warnings or finding.kind.lines == "onset"):
        del sections[1]
    cause_text = _late_ranks_sentence(lines) if finding.kind.lines == "quiet" else ""
    node_warnings = [clue for clue in node_clues if clue.is_warning]
    if not node_warnings and not cause_text:
        node_warnings = _resource_warnings(finding, lines)
    if node_warnings:
        best_clue = min(node_warnings, key=lambda clue: not _RESOURCE_PATTERN.search(clue.text))
        is_recent = explained_range(run, finding)[0] > (finding.since or run.server_now)
        period = " in the last hour" if is_recent else ""
        occurrences = f"{count(best_clue.count)}×{period}, " if best_clue.count > 1 else ""
        cause_text = (
            f"{best_clue.node} logs: {shortened(best_clue.text, 160)} ({occurrences}no other node does)"
        )
    facts = [*_loss_facts(run, finding), *_last_checkpoint_fact(run, finding), *_cost_facts(run, finding)]
    if finding.kind.halts and run.progress is not None and run.progress.step is not None:
        facts.insert(0, f"last step: {count(run.progress.step)}")
    figures = _figures(run, finding.kind.figures, finding.node, finding.text)
    advice = "" if run.job.is_finished else stop_advice(run.findings)
    return Explanation(finding.text, finding, cause_text, tuple(facts), _non_empty(sections), figures, advice)


def _resource_warnings(finding: HealthFinding, lines: Sequence[LogLine]) -> list[Clue]:
    """Return the warnings about a resource that only one of several nodes logs.

    Empty for a finding of a single node, or one that already quotes the log.
    """
    clues = warnings(lines, limit=_MAX_NODES)
    nodes_by_pattern = Counter(line_pattern(clue.text) for clue in clues)
    can_compare_nodes = finding.node is None and len({line.replica for line in lines}) > 1
    clues_of_one_node = (
        clue
        for clue in clues
        if nodes_by_pattern[line_pattern(clue.text)] == 1 and _RESOURCE_PATTERN.search(clue.text)
    )
    return list(clues_of_one_node) if can_compare_nodes and not finding.kind.quotes_log else []


def _non_empty(sections: Sequence[Section]) -> tuple[Section, ...]:
    return tuple(section for section in sections if section.clues)


def _explain_failure(run: RunSnapshot, lines: Sequence[LogLine]) -> Explanation:
    progress, message = run.progress or ProgressSnapshot(), run.job.error_message or ""
    failure = failure_of(lines, progress.last_step_at_ns, progress.step_interval_s, message)
    facts = [] if failure.exit_code is None else [exit_words(failure.exit_code)]
    if progress.step is not None:
        facts.append(f"last step: {count(progress.step)}")
    titles: tuple[str, ...] = ("memory", "GPU memory") if failure.exit_code in KILLED else ()
    if failure.cause is None:
        cause_text = _late_ranks_sentence(lines) or message
        sections = [
            Section("Errors, none of them the cause", failure.following_errors),
            Section("Last line of each node", last_lines(lines, limit=_MAX_NODES)),
        ]
    else:
        node = f"{failure.cause.node}: " if failure.cause.node and run.node_count > 1 else ""
        cause_text = f"{node}{failure.cause.text}"
        facts += [f"reported by the platform: {message}"] if message else []
        sections = [
            Section("The first error", failure.trace),
            Section("Errors that followed", failure.following_errors),
        ]
        if "outofmemory" in failure.cause.text.lower().replace(" ", ""):
            titles = ("GPU memory",)
    facts += _outcome_facts(run)
    figures = _figures(run, titles, None)
    return Explanation(run.status.word, None, cause_text, tuple(facts), _non_empty(sections), figures)


def _outcome_facts(run: RunSnapshot) -> Iterator[str]:
    """Yield an ended run's running time and cost, then its newest checkpoint."""
    if run.elapsed_s and run.job.current_status != JobStatus.DEPLOY_FAILED:
        spent_usd = run.cost.spent_usd
        yield f"ran {duration(run.elapsed_s)}" + (f" for {run.cost.spent_text}" if spent_usd else "")
    if run.checkpoints is not None:
        newest = max(run.checkpoints, key=lambda checkpoint: time_key(checkpoint.created_at), default=None)
        yield "no checkpoint" if newest is None else f"newest checkpoint: {newest.checkpoint_id}"


def _late_ranks_sentence(lines: Sequence[LogLine]) -> str:
    late_rank_list = late_ranks(lines)
    rank_names = ", ".join(map(str, late_rank_list))
    noun = "rank" if len(late_rank_list) == 1 else "ranks"
    return (
        f"{noun} {rank_names} did not reach the collective that the others waited in"
        if late_rank_list
        else ""
    )


def late_ranks(lines: Sequence[LogLine]) -> list[int]:
    """Return the ranks that have enqueued the fewest collectives, according to NCCL's watchdog.

    Empty if these are not a minority.
    """
    last_enqueued: dict[int, int] = {}
    for line in lines:
        if "last enqueued" in line.message:
            for rank, work in _ENQUEUED_PATTERN.findall(displayed_text(line)):
                last_enqueued[int(rank)] = int(work)
    if len(last_enqueued) < 2 or min(last_enqueued.values()) == max(last_enqueued.values()):
        return []
    lowest = min(last_enqueued.values())
    late = sorted(rank for rank, work in last_enqueued.items() if work == lowest)
    return late if 2 * len(late) < len(last_enqueued) else []


def _loss_facts(run: RunSnapshot, finding: HealthFinding) -> Iterator[str]:
    """Yield the step at which a loss became NaN or diverged, and the last loss and gradient norms before."""
    progress = run.progress or ProgressSnapshot()
    if not finding.kind.loss or finding.since is None:
        return
    since = finding.since.timestamp()
    if (step := latest(progress.step_series, since + 1.0)) is not None:
        yield f"began at step {count(step)}"
    if losses_before := values_between(progress.loss_series, end=since):
        yield f"last loss before: {number(losses_before[-1])}"
    if norms_before := values_between(progress.grad_norm_series, end=since):
        newest_norms = ", ".join(map(number, norms_before[-_NEWEST_NORMS:]))
        median_text = (
            f" (median before: {number(median(norms_before[:-_NEWEST_NORMS]))})"
            if len(norms_before) > 2 * _NEWEST_NORMS
            else ""
        )
        yield f"last gradient norms before: {newest_norms}{median_text}"


def _last_checkpoint_fact(run: RunSnapshot, finding: HealthFinding) -> Iterator[str]:
    """Yield the last checkpoint from before the finding, if there may be no further usable checkpoint."""
    since = finding.since
    if (
        run.checkpoints is None
        or since is None
        or not (finding.kind.loss or finding.kind.may_never_save_again)
    ):
        return
    saves = [(save.created_at, save.checkpoint_id) for save in run.checkpoints if save.created_at is not None]
    saved_at, name = max((save for save in saves if save[0] < since), default=(since, ""))
    step_note = "" if step_of(name) is None else f" (step {count(step_of(name))})"
    age = duration((since - saved_at).total_seconds())
    if name:
        yield f"last checkpoint from before: {name}{step_note}, {age} earlier"
    else:
        yield "no earlier checkpoint is listed"


def _cost_facts(run: RunSnapshot, finding: HealthFinding) -> Iterator[str]:
    if run.usd_per_hour is None or run.job.current_status in WAITING_STATUSES:
        return
    if (wasted_usd := lost_usd(finding, run.usd_per_hour, run.end_or_now)) >= 1:
        share, hourly_cost = percent(finding.wasted), money(run.usd_per_hour)
        so_far = "" if run.job.is_finished else " so far"
        yield f"lost{so_far}: ≈${wasted_usd:,.0f}, {share} of the run's {hourly_cost} an hour (estimate)"
    elif not run.job.is_finished:
        yield f"the run costs {money(run.usd_per_hour)} an hour (estimate)"


_NODE_CHARTS: Mapping[str, tuple[str, Callable[[NodeSnapshot], Series]]] = {
    "GPU use": ("%", lambda node: node.mean_utilization),
    "cores": ("cores", lambda node: node.cpu),
    "GPU memory": ("B", lambda node: node.mean_memory),
    "memory": ("B", lambda node: node.cpu_memory),
    "disk": ("%", lambda node: node.disk_utilization),
}
"""The charts of nodes by title: the unit, and a function that returns a node's curve."""


def _figures(
    run: RunSnapshot, titles: Sequence[str], node_name: str | None, text: str = ""
) -> tuple[Figure, ...]:
    """Return the charts with these titles that have data.

    Charts of nodes show the node ``node_name`` and the median of the others; all nodes if it is None. The
    title ``metric`` stands for the metric whose name is at the beginning of ``text``.
    """
    progress = run.progress or ProgressSnapshot()
    metrics = run.health_metrics or run.metrics or MetricsSnapshot()
    named_metric = max(
        (metric for metric in progress.metrics if text.startswith(f"{metric} ")), key=len, default=""
    )
    run_curves = {
        **progress.metrics,
        "loss": progress.loss_series,
        "evaluation loss": progress.eval_loss_series,
        "gradient norm": progress.grad_norm_series,
        "learning rate": progress.learning_rate_series,
        "speed": progress.throughput_series[0],
        "step": progress.step_series,
        "cache": metrics.cache_utilization,
    }
    figures = []
    for title in (named_metric if title == "metric" else title for title in titles):
        unit, curves = "%" if title == "cache" else "", [run_curves.get(title, EMPTY)]
        if title in _NODE_CHARTS:
            unit, curve_of = _NODE_CHARTS[title]
            curves = _with_median_of_others(
                [replace(curve_of(node), name=node.name) for node in metrics.nodes], node_name
            )
        figures.append(Figure(title, unit, tuple(filter(len, curves))))
    return tuple(figure for figure in figures if figure.series)


def _with_median_of_others(curves: list[Series], name: str | None) -> list[Series]:
    """Return the median of the other nodes, and the curve of node ``name``; all curves if it has none."""
    node_curves = [curve for curve in curves if curve.name == name and len(curve)]
    other_curves = [curve for curve in curves if curve.name != name and len(curve)]
    if not node_curves or not other_curves:
        return node_curves or curves
    times = max(other_curves, key=len).times
    values_at = (
        [value for curve in other_curves if (value := latest(curve, at)) is not None] for at in times
    )
    return [
        Series("others", times, tuple(median(values or [math.nan]) for values in values_at)),
        *node_curves,
    ]


_CONSEQUENCE_PATTERN = re.compile(
    r"collective operation timeout|Watchdog caught|ProcessGroup(?:NCCL|Gloo)|DistBackendError"
    r"|NCCL (?:communicator was aborted|operations have failed)|ncclRemoteError|remote process exited"
    r"|ncclSystemError|ncclInternalError|Connection (?:reset|closed|refused)|Broken pipe"
    r"|[Ss]ocket (?:closed|Timeout)"
    r"|recvValue failed|recvBytes|sendBytes|TCPStore|Rendezvous\w{0,40}Error|store\w{0,40} (?:closed|timeout)"
    r"|ChildFailedError|torch\.?distributed|elastic|closing signal|SignalException|SIGTERM|signal 15"
    r"|exit ?code|exited with|exit status|stopping the others|Killing subprocess|terminated by"
    r"|srun: error|mpirun|The actor (?:died|is dead)|ActorDiedError|WorkerCrashedError|RayActorError"
    r"|exits with return code|Fatal Python error: Aborted|Root Cause|Traceback \(most recent call last\):$",
)
"""Errors that a process reports because another process has died."""

_RETRY_PATTERN = re.compile(r"\bretry(?:ing)?\b|\bwill be retried\b", re.IGNORECASE)
"""Errors after which the program retries: they are the cause of a failure only if there is no other error."""

_PROCESS_DEATH_PATTERN = re.compile(
    r"^\s*(?:[\w./-]+: line \d+: +\d+ )?(?:Killed|Segmentation fault|Bus error|Aborted)\b"
    r"|Out of memory: Killed process|oom-kill|oom_reaper|exitcode *: *-?\d+|srun: error",
    re.IGNORECASE,
)
"""Lines that report the death of a process without a log level."""

_EXIT_CODE_PATTERN = re.compile(
    r"\b(?:exit(?:ed)?(?: with)?[ _-]?|return )(?:code|status)(?: of| is)?\s{0,4}[:=]?\s*+\(?(-?\d{1,3})\b",
    re.IGNORECASE,
)
_MAX_TRACE_LINES = 20
_MAX_FOLLOWING = 8
_STEP_TOLERANCE_S = 20.0  # an error may be logged this long before the last step, plus a step's duration
_SHELL_SIGNAL_BASE = 128  # a shell reports a process killed by signal 9 as exit code 137


@dataclass(frozen=True, slots=True)
class RunFailure:
    """The cause of a failure: the first error (None if not found), its traceback, and later errors."""

    cause: Clue | None = None
    trace: tuple[Clue, ...] = ()
    following_errors: tuple[Clue, ...] = ()
    exit_code: int | None = None


def failure_of(
    lines: Sequence[LogLine], last_step_ns: int | None, step_interval_s: float | None, message: str
) -> RunFailure:
    """Find the cause of a failure in the last ``lines`` of a run, which are sorted by time.

    ``message`` is the platform's error message, which may contain the exit code.
    """
    tolerance_ns = int((_STEP_TOLERANCE_S + (step_interval_s or 0.0)) * NS_PER_S)
    since = 0 if last_step_ns is None else last_step_ns - tolerance_ns
    errors = [line for line in lines if line.timestamp_ns >= since and _is_error(line)]
    candidates = [line for line in errors if not _CONSEQUENCE_PATTERN.search(_error_text_of(line))]
    failure_exit_code = exit_code(message)
    if failure_exit_code is None:
        failure_exit_code = next(
            (parsed for line in errors if (parsed := exit_code(displayed_text(line))) is not None), None
        )
    if not candidates:
        return RunFailure(None, (), _other_errors(errors, None), failure_exit_code)
    cause = next(
        (line for line in candidates if not _RETRY_PATTERN.search(_error_text_of(line))), candidates[0]
    )
    clue = Clue(_error_text_of(cause), cause.timestamp_ns, cause.replica, is_warning=True)
    trace = _traceback_of(lines, cause)
    later_errors = [line for line in errors if line not in trace and line.timestamp_ns >= cause.timestamp_ns]
    following_errors = _other_errors(later_errors, cause)
    shown_trace = tuple(Clue(displayed_text(line), line.timestamp_ns, line.replica) for line in trace)
    return RunFailure(clue, shown_trace, following_errors, failure_exit_code)


def _is_error(line: LogLine) -> bool:
    return (
        error_text(line.message, line.level) is not None
        or _PROCESS_DEATH_PATTERN.search(displayed_text(line)) is not None
    )


def _error_text_of(line: LogLine) -> str:
    return error_text(line.message, line.level) or shortened(displayed_text(line).strip(), TEXT_CHARACTERS)


def _traceback_of(lines: Sequence[LogLine], cause: LogLine) -> list[LogLine]:
    """Return the traceback that ends with ``cause``, without interleaved lines of other ranks."""
    reader = TracebackReader()
    lines_and_lanes: list[tuple[LogLine, str | None]] = []
    for line in lines:
        if line.replica == cause.replica and abs(line.timestamp_ns - cause.timestamp_ns) <= SAME_ERROR_NS:
            trace_line = reader.read(displayed_text(line))
            if trace_line is not None or line is cause:
                lines_and_lanes.append((line, trace_line.lane if trace_line is not None else None))
    index, lane = next((index, lane) for index, (line, lane) in enumerate(lines_and_lanes) if line is cause)
    trace_lines = lines_and_lanes[max(0, index - _MAX_TRACE_LINES) : index + 1]
    return [line for line, line_lane in trace_lines if line_lane == lane]


def _other_errors(errors: Sequence[LogLine], cause: LogLine | None) -> tuple[Clue, ...]:
    """Return one clue for each line pattern of the errors other than the cause, with its number of lines."""
    cause_pattern = line_pattern(_error_text_of(cause)) if cause is not None else ""
    clues = [Clue(_error_text_of(line), line.timestamp_ns, line.replica, is_warning=True) for line in errors]
    counts = Counter(line_pattern(clue.text) for clue in clues)
    first_clues = {line_pattern(clue.text): clue for clue in reversed(clues)}
    other_clues = (
        replace(first_clues[pattern], count=line_count)
        for pattern, line_count in counts.items()
        if pattern != cause_pattern
    )
    return tuple(other_clues)[:_MAX_FOLLOWING]


def exit_code(text: str) -> int | None:
    """Return the exit code in a message; None if there is none, or if it is 0."""
    match = _EXIT_CODE_PATTERN.search(excerpt(text))
    return (int(match[1]) or None) if match else None


def exit_words(code: int) -> str:
    """Return ``exit code 137 (SIGKILL)``: shells add 128 to the signal's number, Python negates it."""
    signal_number = -code if code < 0 else code - _SHELL_SIGNAL_BASE
    try:
        name = signal.Signals(signal_number).name if signal_number > 0 else ""
    except ValueError:
        name = ""
    return f"exit code {code} ({name})" if name else f"exit code {code}"
