"""The three lines that answer "is it healthy": who and at what cost, how far, and what is wrong."""

from __future__ import annotations

from datetime import datetime

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.reactive import var

from api_client.models import WAITING_STATUSES
from tui.insight.fleet import hardware
from tui.insight.health import FindingKind
from tui.insight.progress import loss_trend
from tui.insight.run import RunSnapshot, seconds_left
from tui.insight.text import inert
from tui.insight.units import age, count, duration, money, number, percent, rate, significant
from tui.widgets.line import FactLine
from tui.widgets.tones import Span

Fact = list[Span]
NANOSECONDS = 1e9
CENT = 0.01
IDENTITY_ESSENTIALS = 4
"""Name, status, hardware and the age of the data are always told."""


class RunHeader(Vertical):
    """Shows a ``RunSnapshot`` in three lines; what does not fit is left out from the right."""

    DEFAULT_CSS = """
    RunHeader { height: 3; background: $surface; padding: 0 1; }
    """

    snapshot: var[RunSnapshot | None] = var(None)

    def compose(self) -> ComposeResult:
        """Identity, progress, health."""
        yield FactLine(id="identity", separator="  ", essential=IDENTITY_ESSENTIALS)
        yield FactLine(id="progress")
        yield FactLine(id="health")

    def watch_snapshot(self, snapshot: RunSnapshot | None) -> None:
        """Say it anew; lines that read the same are not painted."""
        if snapshot is None:
            return
        self.query_one("#identity", FactLine).set_facts(identity(snapshot))
        self.query_one("#progress", FactLine).set_facts(progress(snapshot))
        self.query_one("#health", FactLine).set_facts(health(snapshot))


def identity(run: RunSnapshot) -> list[Fact]:
    """The job, how long it has run, on what, at what cost, how old the data is, and the project."""
    job, status = run.job, run.status
    elapsed = f" {duration(run.elapsed_s)}" if run.elapsed_s else ""
    facts: list[Fact] = [
        [(f"{status.sign} ", status.tone), (inert(job.name or job.id), "strong")],
        [(status.word.upper(), status.tone), (elapsed, "plain")],
        [(hardware(job), "plain")],
    ]
    if not job.is_finished:
        facts.append([(f"seen {age((run.at - run.seen_at).total_seconds())} ago", "muted")])
    facts.append(_cost(run))
    project = inert(job.training_project.name if job.training_project else "") or job.project_id
    facts.append([(f"‹ {project}", "muted")])
    if (job.availability_model or "").lower() == "spot":
        facts.append([("spot", "caution")])
    return [fact for fact in facts if fact]


def progress(run: RunSnapshot) -> list[Fact]:
    """How far and how fast, as the log tells it; or why there is nothing to tell."""
    if run.job.current_status in WAITING_STATUSES:
        return [_queue(run)]
    if run.job.is_finished and run.job.error_message:
        return [[(inert(run.job.error_message), "bad" if run.status.tone == "bad" else "plain")]]
    told = run.progress
    facts: list[Fact] = []
    if told is not None and told.step is not None:
        step = [("step ", "muted"), (count(told.step), "strong")]
        if told.total_steps:
            step += [(f"/{count(told.total_steps)} ", "muted"), (percent(told.fraction), "plain")]
        facts.append(step)
    if told is not None and told.loss is not None:
        facts.append(
            [
                ("loss ", "muted"),
                (number(told.loss), "strong"),
                (f" {loss_trend(told)}".rstrip(), "accent"),
            ]
        )
    left_s = seconds_left(told, run.at) if told is not None else None
    if left_s is not None and not run.job.is_finished and not _moves_no_more(run):
        facts.append([("ETA ", "muted"), (duration(left_s), "plain")])
    if told is not None and told.rate_steps_per_s is not None:
        facts.append([(rate(told.rate_steps_per_s), "plain")])
    if told is not None and told.learning_rate is not None:
        facts.append([("lr ", "muted"), (f"{told.learning_rate:.2e}", "plain")])
    if told is not None and told.epoch is not None:
        facts.append([("epoch ", "muted"), (f"{told.epoch:.2f}", "plain")])
    if not facts and not run.log_read:
        return [[("reading the log …", "muted")]]
    if not facts and not run.job.is_finished:
        return [[("no training progress in the log so far", "muted")]]
    return facts


def health(run: RunSnapshot) -> list[Fact]:
    """What is wrong, if anything, and the last checkpoint."""
    facts: list[Fact] = [
        [(f"▲ {finding.text}", "bad" if finding.severity == "critical" else "warn")]
        for finding in run.findings
    ]
    if not facts and run.status.tone == "running" and run.progress is not None and run.progress.step:
        facts.append([("✓ healthy", "good")])
    return [*facts, _checkpoint(run)]


def _moves_no_more(run: RunSnapshot) -> bool:
    """Whether a run is beyond promising an end: it stands still, or its loss is no number."""
    return any(found.kind in (FindingKind.STALLED, FindingKind.LOSS_NOT_FINITE) for found in run.findings)


def _cost(run: RunSnapshot) -> Fact:
    """GPU-hours, and the money where a price is known."""
    fact: Fact = []
    if run.gpu_hours is not None:
        fact.append((f"{significant(run.gpu_hours)} GPU·h", "plain"))
    if run.cost_usd is not None and run.cost_usd >= CENT:
        fact.append((f"{' ' if fact else ''}≈ {money(run.cost_usd)}", "plain"))
    return fact


def _checkpoint(run: RunSnapshot) -> Fact:
    if run.checkpoints:
        newest = max(
            run.checkpoints, key=lambda found: found.created_at.timestamp() if found.created_at else 0.0
        )
        return [(inert(newest.checkpoint_id), "plain"), (f" {_ago(newest.created_at, run.at)}", "muted")]
    if run.progress is not None and run.progress.last_checkpoint is not None:
        name, stamp_ns = run.progress.last_checkpoint
        return [(inert(name), "plain"), (f" {age(run.at.timestamp() - stamp_ns / NANOSECONDS)} ago", "muted")]
    if run.checkpoints is None:
        return []
    return [("no checkpoints" if run.job.is_finished else "no checkpoint yet", "muted")]


def _queue(run: RunSnapshot) -> Fact:
    waiting = (run.at - run.job.created_at).total_seconds() if run.job.created_at else None
    words = f"waiting for capacity for {duration(waiting)}"
    if run.queue is not None and run.queue.pending_ahead_at_submit:
        words += f", {len(run.queue.pending_ahead_at_submit)} ahead when it was submitted"
    if run.job.error_message:
        words += f" · {inert(run.job.error_message)}"
    return [(words, "plain")]


def _ago(moment: datetime | None, now: datetime) -> str:
    return f"{age((now - moment).total_seconds())} ago" if moment else ""
