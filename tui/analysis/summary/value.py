"""The summary of a run as plain values for JSON, each of which has a maximum size.

Every text from the server or the log is cut by ``bounded``. If the whole summary is still too long,
``tui.analysis.summary.rendering`` leaves out the least important items.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from math import isfinite
from typing import Any, Protocol

from api_client.models import WAITING_STATUSES, JobStatus
from api_client.models.logs import LogLine
from tui.analysis.checkpoints.facts import CheckpointFacts, facts_of_run, last_checkpoint, newest_sound
from tui.analysis.checkpoints.unsaved import unsaved_work
from tui.analysis.export import json_number
from tui.analysis.health.registry import CHECKS
from tui.analysis.progress.metrics import curves_of, grouped, headline_metrics
from tui.analysis.progress.snapshot import ProgressSnapshot, loss_trend, over_steps
from tui.analysis.run.finding import SEVERITIES, is_stuck, lost_usd, stop_advice
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.run.verdict import side_activity, verdict
from tui.analysis.run.waiting import waiting_text
from tui.analysis.summary.rendering import NOTICE, Document, shortened_to_limit
from tui.analysis.why.explanation import Clue, Explanation
from tui.analysis.why.lines import displayed_text
from tui.text.sanitize import ELLIPSIS, sanitize
from tui.text.times import MONTH_DAY_AND_TIME, iso_time, moment_at
from tui.text.units import counted, hardware

_FAILED = (JobStatus.FAILED, JobStatus.DEPLOY_FAILED)


class Command(Protocol):
    """Returns a command line for the same server; empty if there is none (see ``Remote.command_line``)."""

    def __call__(self, *arguments: str, changes: bool = False) -> str: ...


Suggestion = tuple[tuple[str, ...], str, bool]
"""The arguments of a command, its purpose, and whether it changes something."""


def next_steps(
    run: RunSnapshot, checkpoints: Sequence[CheckpointFacts], command: Command
) -> list[dict[str, str | bool]]:
    """Return commands with their purpose, the most useful first.

    ``changes`` marks commands that change something. Commands with an unusual name, which a shell may
    misread, are left out.
    """
    steps: list[dict[str, str | bool]] = []
    usable_checkpoints = [
        fact for fact in checkpoints if not fact.name.startswith("-")
    ]  # a command would parse the name as an option
    for arguments, purpose, changes in _suggestions(run, usable_checkpoints):
        line = command(*arguments, changes=changes) if all(map(_is_safe_argument, arguments)) else ""
        if line:
            change_mark = {"changes": True} if changes else {}
            steps.append({"command": line, "purpose": purpose, **change_mark})
    return steps


def _is_safe_argument(name: str) -> bool:
    return 0 < len(name) <= 80 and name.isascii() and sanitize(name) == name


def _suggestions(run: RunSnapshot, checkpoints: Sequence[CheckpointFacts]) -> Iterator[Suggestion]:
    job = run.job.id
    if run.job.current_status in WAITING_STATUSES:
        yield ("capacity",), "who has the GPUs", False
        yield ("wait", job, "--until", "running"), "wait until it runs", False
        if not run.job.is_spot:
            spot_command = ("update", job, "--availability-model", "spot")
            yield spot_command, "change it to wait for spot capacity, which can be reclaimed", True
    elif run.job.is_finished:
        yield from _after_the_end(run, checkpoints)
    else:
        yield from _while_running(run, checkpoints)


def _while_running(run: RunSnapshot, checkpoints: Sequence[CheckpointFacts]) -> Iterator[Suggestion]:
    job = run.job.id
    problems = [finding for finding in run.findings if finding.severity != "info"]
    if problems:
        yield ("why", job), "all evidence of the findings", False
    node = next((finding.node for finding in problems if finding.node), None)
    if node is not None and not node.startswith("-"):
        warnings_command = ("logs", job, "--node", node, "--min-level", "warning", "--since", "1h")
        yield warnings_command, "warnings of that node", False
    if advice := stop_advice(run.findings):
        yield ("stop", job), advice, True
        yield from _resuming(run, checkpoints)
    elif problems and checkpoints and not any(finding.kind.may_never_save_again for finding in run.findings):
        yield ("stop", job, "--after-checkpoint"), "stop it once its next checkpoint is stored", True
    yield ("summary", job, "--follow"), "report what changes until it ends", False


def _after_the_end(run: RunSnapshot, checkpoints: Sequence[CheckpointFacts]) -> Iterator[Suggestion]:
    job, status = run.job.id, run.job.current_status
    if status in _FAILED:
        yield ("why", job), "all evidence of the failure", False
        yield ("logs", job, "--min-level", "error"), "all errors", False
        yield ("download", job), "its code, to correct and push again", False
    best = next((fact for fact in checkpoints if fact.is_best), newest_sound(checkpoints))
    if status == JobStatus.COMPLETED and best is not None:
        yield ("checkpoints", "show", best.name, "--job-id", job), "what is in the checkpoint", False
        deploy_command = ("deploy_checkpoints", "--job-id", job, "--checkpoint", best.name)
        yield deploy_command, "deploy it; in a terminal, it asks for what is missing, such as the GPU", True
    if status != JobStatus.COMPLETED:
        yield from _resuming(run, checkpoints)
        if status not in _FAILED:
            yield ("recreate", job), "submit it again, from the beginning", True


def _resuming(run: RunSnapshot, checkpoints: Sequence[CheckpointFacts]) -> Iterator[Suggestion]:
    newest = newest_sound(checkpoints)
    if newest is not None:
        if run.job.is_finished:
            resume_command = ("resume", run.job.id, "--from", newest.name, "--dry-run", "--yes")
            yield (
                resume_command,
                "what continuing from it sends; runs the job's config.py on this machine",
                False,
            )
        snippet_command = ("checkpoints", "snippet", newest.name, "--job-id", run.job.id)
        yield snippet_command, "code that resumes training from it", False


MAX_EXPLAINED = 3
"""Maximum number of findings to explain from their log lines; the worst are chosen."""
MAX_LINES = 6
"""Maximum number of the newest log lines that are quoted."""

_MAX_PROBLEMS = 6
_MAX_METRICS = 10
_COSTS_BY_KIND = {str(check.kind): check.costs for check in CHECKS}
_TREND_WORDS = {"↓": "falling", "↑": "rising", "→": "steady", "": None}

JsonNumber = float | str | None
"""A number for JSON, in which NaN and infinity are strings."""


def without_empty(**values: Any) -> Document:
    """Return a document without unknown, empty and False values, but with empty lists."""
    return {
        name: value for name, value in values.items() if value not in (None, "", {}) and value is not False
    }


def _range(low: float | None, likely: float | None, high: float | None) -> Document | None:
    """Return an estimate as ``low``, ``likely`` and ``high``; None if the likely value is unknown."""
    if likely is None:
        return None
    return without_empty(low=rounded(low), likely=rounded(likely), high=rounded(high))


def bounded(text: str | None, max_bytes: int) -> str:
    """Return a text on one line, cut to at most ``max_bytes`` bytes in ASCII JSON.

    ASCII JSON is the longest format, since an escape sequence has more bytes than its character in UTF-8.
    """
    line = sanitize((text or "")[: 2 * max_bytes])
    if len(text or "") <= 2 * max_bytes and len(json.dumps(line)) - 2 <= max_bytes:
        return line
    bytes_left = max_bytes - (len(json.dumps(ELLIPSIS)) - 2)
    for index, character in enumerate(line):
        bytes_left -= len(json.dumps(character)) - 2
        if bytes_left < 0:
            return line[:index] + ELLIPSIS
    return line + ELLIPSIS


def rounded(value: float | None) -> JsonNumber:
    """Round a number to six digits, to keep the summary short; None for integers from 2**53."""
    if isinstance(value, int):
        return value if abs(value) < 2**53 else None
    return json_number(None if value is None else float(f"{value:.6g}"))


def state_of(run: RunSnapshot) -> tuple[object, ...]:
    """Return the values that cause a new summary if they change: status, findings, checkpoints, restarts."""
    progress = run.progress or ProgressSnapshot()
    newest = last_checkpoint(run)
    return (
        run.job.current_status,
        frozenset((finding.key, finding.severity) for finding in run.findings),
        newest and newest.name,
        len(progress.restarts),
        progress.is_done,
    )


def summarize(
    run: RunSnapshot,
    explanations: Sequence[Explanation],
    lines: Sequence[LogLine],
    *,
    gap_count: int = 0,
    unread: Sequence[str] = (),
    queue: str = "",
    command: Command,
) -> Document:
    """Summarize a run whose health has been checked in at most ``LIMIT_BYTES``, important values first.

    ``explanations`` are the explanations of its worst findings, ``lines`` the newest lines of its log,
    ``unread`` the names of data that could not be read, ``queue`` a text on a waiting job's queue position.
    ``command`` returns a command line for the same server.
    """
    job, at = run.job, run.at
    unread_log = (f"{counted(gap_count, 'part')} of the log",) if gap_count else ()
    facts = facts_of_run(run)
    best = next((fact for fact in facts if fact.is_best), None)
    problems, metrics = _problems(run, explanations), _metrics(run)
    left_out = {"problems": len(problems) - _MAX_PROBLEMS, "metrics": len(metrics) - _MAX_METRICS}
    return shortened_to_limit(
        without_empty(
            notice=NOTICE,
            job_id=bounded(job.id, 80),
            name=bounded(job.name, 120),
            project=bounded(job.project_name, 100),
            hardware=bounded(hardware(job), 60),
            is_spot=job.is_spot,
            at=iso_time(at.replace(microsecond=0)),
            current_status=bounded(job.current_status, 60),
            status=bounded(run.status.word, 60),
            has_ended=job.is_finished,
            running_s=rounded(run.elapsed_s) if run.running_time.since is not None else None,
            activity=bounded("; ".join(filter(None, (_activity(run), queue))), 240),
            verdict=_verdict(run),
            message=bounded(job.error_message, 300),
            problems=problems[:_MAX_PROBLEMS],
            progress=_progress(run),
            metrics=metrics[:_MAX_METRICS],
            cost=_cost(run),
            checkpoint_count=None if run.checkpoints is None else len(run.checkpoints),
            newest_checkpoint=_newest_checkpoint(run, facts),
            best_checkpoint=_checkpoint(best, at) if best is not None else None,
            unread=[bounded(name, 60) for name in (*unread_log, *unread)],
            next=next_steps(run, facts, command),
            untrusted_log=[
                _quoted(Clue(displayed_text(line), line.timestamp_ns, line.replica))
                for line in lines[-MAX_LINES:]
            ],
            left_out={name: number for name, number in left_out.items() if number > 0},
        )
    )


def _activity(run: RunSnapshot) -> str:
    """Return the run's activity, such as ``training``; empty if the status is enough."""
    if run.job.current_status in WAITING_STATUSES:
        words = waiting_text(run.job, run.node_count, run.queue, run.at)[1]
        return "" if any(finding.text == words for finding in run.findings) else words
    if run.job.current_status != JobStatus.RUNNING:
        return ""
    progress = run.progress or ProgressSnapshot()
    if any(finding.kind.halts for finding in run.findings):
        return "no new steps"
    if progress.step is None:
        return "no training step in the log so far"
    return side_activity(run) or ("last step done" if progress.is_done else "training")


def _verdict(run: RunSnapshot) -> str:
    counts = Counter(finding.severity for finding in run.findings)
    if counts["critical"] or counts["warning"]:
        ended = "ended with " if run.job.is_finished else ""
        return ended + ", ".join(
            counted(counts[name], name) if name == "warning" else f"{counts[name]} {name}"
            for name in SEVERITIES
            if counts[name]
        )
    if run.job.current_status == JobStatus.RUNNING:
        return verdict(run).words
    return "ended" if run.job.is_finished else "not judged before it runs"


def _problems(run: RunSnapshot, explanations: Sequence[Explanation]) -> list[Document]:
    """Return the failure of a run and its findings, with their explanations."""
    explanations_by_key = {
        explanation.finding.key: explanation
        for explanation in explanations
        if explanation.finding is not None
    }
    problems: list[Document] = []
    reported: set[Clue | str] = set()
    for explanation in explanations:
        if explanation.finding is None:
            failure = without_empty(kind="failed", severity="critical", text=bounded(explanation.problem, 60))
            problems.append(failure | _explanation(explanation, reported))
    for finding in run.findings:
        since = finding.since
        problem = without_empty(
            kind=str(finding.kind),
            severity=finding.severity,
            text=bounded(finding.sentence, 280),
            node=bounded(finding.node, 80),
            since=iso_time(since.replace(microsecond=0)) if since is not None else None,
            for_s=None if finding.kind.states_duration else _age(since, run.end_or_now),
            costs=_COSTS_BY_KIND[str(finding.kind)],
            lost_usd=rounded(lost_usd(finding, run.usd_per_hour, run.end_or_now) or None),
        )
        problems.append(problem | _explanation(explanations_by_key.get(finding.key), reported))
    return problems


def _explanation(explanation: Explanation | None, reported: set[Clue | str]) -> Document:
    """Return a problem's explanation; leave out facts and lines that are already ``reported``."""
    if explanation is None:
        return {"facts": [], "untrusted_log": []}
    clues = [clue for section in explanation.sections for clue in section.clues if clue not in reported]
    facts = [
        fact
        for fact in explanation.facts
        if fact not in reported and not (explanation.answer and explanation.answer in fact)
    ]
    reported.update(clues, facts)
    return without_empty(
        answer=bounded(explanation.answer, 320),
        facts=[bounded(fact, 160) for fact in facts[:5]],
        untrusted_log=[_quoted(clue) for clue in clues[:3]],
    )


def _quoted(clue: Clue) -> str:
    """Return a clue on one line; of a text with several lines, such as a traceback, the last three lines."""
    text = " / ".join(line.strip() for line in clue.text[-2000:].strip().splitlines()[-3:])
    moment = moment_at(clue.at_ns, UTC)
    time = f"{moment:{MONTH_DAY_AND_TIME}}" if moment is not None else ""
    count_text = f"{clue.count}×" if clue.count > 1 else ""
    return bounded(" ".join(part for part in (time, bounded(clue.node, 40), count_text, text) if part), 220)


def _progress(run: RunSnapshot) -> Document:
    """Return the progress of the run, with speed and time left only while the run advances."""
    progress, now = run.progress or ProgressSnapshot(), run.server_now
    eta = _range(*run.left_s) if run.left_s is not None and not progress.is_done else None
    has_no_rate = run.job.is_finished or is_stuck(run.findings)
    last_ns = None if run.job.is_finished else progress.last_step_at_ns
    return without_empty(
        step=rounded(progress.step),
        total_steps=rounded(progress.total_steps),
        fraction=rounded(progress.fraction),
        epoch=rounded(progress.epoch),
        steps_per_s=None if has_no_rate else rounded(progress.rate_steps_per_s),
        steps_per_s_overall=rounded(progress.rate_overall),
        tokens_per_s=rounded(progress.tokens_per_s),
        samples_per_s=rounded(progress.samples_per_s),
        last_step_s_ago=None if last_ns is None else _age(moment_at(last_ns, UTC), now),
        eta_s=eta,
    )


def _metrics(run: RunSnapshot) -> list[Document]:
    """Return the metrics, the main metrics first: newest values, and best values if that makes sense."""
    progress = run.progress or ProgressSnapshot()
    curves = {curve.name: curve.series for curve in curves_of(progress)}
    headlines = headline_metrics(progress.metrics)
    losses = ("loss", "eval_loss")
    best_functions: dict[str, Callable[..., tuple[float, float]]] = {}
    if progress.has_ranking_loss:
        best_functions |= dict.fromkeys(losses, min)
    if headlines:
        best_functions[headlines[0]] = lambda points: max(points, key=lambda point: (point[0], -point[1]))
    names = (*losses, *headlines, "grad_norm", "learning_rate", *grouped(progress.metrics))
    metrics: list[Document] = []
    for name in dict.fromkeys(names):
        series = curves.get(name)
        if series is None:
            continue
        newest = series.values[-1]
        has_trend = name == "loss" and isfinite(newest) and progress.has_ranking_loss
        trend = _TREND_WORDS[loss_trend(progress)] if has_trend else None
        best = step = None
        if name in best_functions:
            over_steps_series = over_steps(series, progress, whole=run.log_read)
            points = [
                point
                for point in zip(over_steps_series.values, over_steps_series.times, strict=True)
                if isfinite(point[0])
            ]
            best, step = best_functions[name](points) if points else (None, None)
        metric = without_empty(
            name=bounded(name, 60),
            newest=rounded(newest),
            best=rounded(best),
            # Without steps in the log, the curve's x values only count its samples.
            best_at_step=rounded(round(step)) if step is not None and progress.step_series.times else None,
            trend=trend,
        )
        metrics.append(metric)
    return metrics


def _cost(run: RunSnapshot) -> Document:
    """Return the cost of the run (an upper bound if it may include queueing), and its unsaved work."""
    cost = run.cost
    is_running = run.job.current_status == JobStatus.RUNNING
    at_end = _range(cost.usd_to_end_low, cost.usd_to_end, cost.usd_to_end_high)
    loss_is_finite = not any(finding.kind.loss == "not finite" for finding in run.findings)
    unsaved = unsaved_work(run) if loss_is_finite else None
    return without_empty(
        usd_so_far=rounded(cost.spent_usd),
        is_upper_bound=not cost.measured,
        billed_usd=rounded(cost.billed.usd) if cost.billed is not None else None,
        gpu_hours=rounded(cost.gpu_hours),
        usd_per_hour=rounded(run.usd_per_hour) if is_running else None,
        usd_at_end=at_end,
        unsaved_s=rounded(unsaved.seconds) if unsaved is not None else None,
        unsaved_usd=rounded(unsaved.usd) if unsaved is not None else None,
        next_checkpoint_due_s=rounded(unsaved.next_due_s) if unsaved is not None else None,
        unsaved_work=bounded(unsaved.words, 240) if unsaved is not None else "",
    )


def _newest_checkpoint(run: RunSnapshot, facts: Sequence[CheckpointFacts]) -> Document | None:
    newest = next((fact for fact in facts if fact.is_newest), None)
    if newest is not None:
        return _checkpoint(newest, run.at)
    last_saved = last_checkpoint(run)
    if last_saved is None:
        return None
    return without_empty(
        name=bounded(last_saved.name, 100), age_s=_age(last_saved.at, run.at), where=last_saved.where
    )


def _checkpoint(fact: CheckpointFacts, now: datetime) -> Document:
    return without_empty(
        name=bounded(fact.name, 100),
        age_s=_age(fact.checkpoint.created_at, now),
        where=fact.sync,
        score_value=rounded(fact.score.value) if fact.score else None,
        score_at_step=rounded(fact.score.at_step) if fact.score else None,
        score=bounded(fact.score.words, 80) if fact.score else "",
        after_fault_s=_age(fact.fault.since, fact.checkpoint.created_at or now) if fact.fault else None,
        fault=bounded(fact.fault.words(fact.checkpoint.created_at), 120) if fact.fault else "",
    )


def _age(moment: datetime | None, now: datetime) -> JsonNumber:
    return rounded(max(0.0, (now - moment).total_seconds())) if moment is not None else None
