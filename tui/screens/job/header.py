"""The header of the job screen: identity and cost, health, progress, and the newest metrics."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import groupby
from math import isfinite
from operator import itemgetter
from typing import Literal

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.reactive import var

from api_client.models import WAITING_STATUSES
from tui.analysis.checkpoints.facts import last_checkpoint, name_within
from tui.analysis.fleet.snapshot import brief
from tui.analysis.progress.metrics import headline_metrics
from tui.analysis.progress.snapshot import ProgressSnapshot, loss_trend
from tui.analysis.run.checkpoints import saved_key, step_of
from tui.analysis.run.finding import (
    NODE_CHARACTERS,
    SIGNS,
    TONES,
    HealthFinding,
    SnoozedFindings,
    is_stuck,
)
from tui.analysis.run.snapshot import RunSnapshot, seconds_left, seconds_left_range
from tui.analysis.run.verdict import side_activity, verdict
from tui.analysis.run.waiting import waiting_text
from tui.tables.column import Span
from tui.text.names import clip_middle, shortened
from tui.text.sanitize import markdown_code, sanitize
from tui.text.times import compact_time
from tui.text.units import age, count, duration, gpu_time, hardware, number, percent, rate, thin_bar
from tui.widgets.status_line import SEPARATOR, StatusLine

Fact = list[Span]
"""The spans of one fact; a status line never breaks a line within a fact."""
FindingForm = Literal["dated", "long", "short", "clause", "brief"]
_FORMS: tuple[FindingForm, ...] = ("dated", "long", "short", "clause", "brief")
"""How a finding is worded, from the longest form to the shortest."""
_FULL_TEXT_FORMS = frozenset({"dated", "long"})
"""The forms that show a finding's full text."""
_CLAUSE_END = re.compile("[:,;] ")
SAVED_SIGN, EARLIER_SIGN, FAULTY_SIGN = ("◆", "good"), ("◆", "muted"), ("✗", "bad")
"""Signs of the newest checkpoint, earlier checkpoints, and checkpoints saved after the loss diverged."""


class RunHeader(Vertical):
    """Shows a ``RunSnapshot`` in four lines, three on a low screen, and more for long error messages."""

    DEFAULT_CSS = """
    RunHeader { height: auto; background: $surface; padding: 0 1; }
    RunHeader > #progress, RunHeader > #health { max-height: 30vh; }
    """

    snapshot: var[RunSnapshot | None] = var(None)
    snoozed: var[SnoozedFindings] = var(SnoozedFindings())
    planned_stops: var[Mapping[str, str]] = var[Mapping[str, str]]({})

    def compose(self) -> ComposeResult:
        # always shown of identity: name, status, hardware; of health: the worst finding, the number of other
        # findings, the loss in dollars, the last checkpoint
        yield StatusLine(id="identity", separator="  ", priority_count=3)
        yield StatusLine(id="health", priority_count=4)
        yield StatusLine(id="bar")
        yield StatusLine(id="progress")

    def on_resize(self) -> None:
        run, width = self.snapshot, self.content_size.width
        if run is None:
            return
        bar = [] if self.screen.has_class("-low") else progress_bar_fact(run, width)
        self.query_one("#bar").display = bool(bar)
        rows = {
            "#identity": identity_facts(run, width, planned_stop=self.planned_stops.get(run.job.id, "")),
            "#health": health_facts(run, width, self.snoozed),
            "#bar": [bar],
            "#progress": progress_facts(run) if bar else [*step_and_eta_facts(run), *progress_facts(run)],
        }
        for name, facts in rows.items():
            self.query_one(name, StatusLine).set_facts(facts)

    watch_snapshot = watch_snoozed = watch_planned_stops = on_resize

    @on(events.Click, "#progress, #health")
    async def _open_why(self) -> None:
        await self.run_action("screen.why")


def progress_bar_fact(run: RunSnapshot, width: int) -> Fact:
    """Return a progress bar with a sign for each checkpoint, then step and ETA; both fill the width.

    The bar is red if the run failed or has a critical finding, and gray once the run has ended. Return
    nothing if the fraction done is unknown.
    """
    if run.progress is None or run.progress.fraction is None:
        return []
    step_and_eta_spans: Fact = []
    for separator, fact in zip((" ", " · "), step_and_eta_facts(run), strict=False):
        step_and_eta_spans += [(separator, "muted"), *fact]
    if width - _fact_cells(step_and_eta_spans) < 20:
        step_and_eta_spans = [
            span for span in step_and_eta_spans if not span[0].startswith(" (")
        ]  # drop the range of the ETA
    cells = max(20, width - _fact_cells(step_and_eta_spans))
    is_failing = run.status.tone == "bad" or any(finding.severity == "critical" for finding in run.findings)
    tone = "bad" if is_failing else "muted" if run.job.is_finished else "bar"
    done, rest = thin_bar(run.progress.fraction, cells)
    bar = [*((sign, tone) for sign in done), *((sign, "faint") for sign in rest)]
    total_steps = run.progress.total_steps or 0
    saved_by_step = {
        step: checkpoint
        for checkpoint in (run.checkpoints or () if total_steps else ())
        if (step := step_of(checkpoint.checkpoint_id)) is not None and 0 <= step <= total_steps
    }
    newest_step = max(saved_by_step, default=0)
    for step, checkpoint in sorted(saved_by_step.items(), key=itemgetter(0)):
        sign = SAVED_SIGN if step == newest_step else EARLIER_SIGN
        is_faulty = (run.faults or {}).get(saved_key(checkpoint)) is not None
        bar[min(round(step / total_steps * cells), cells - 1)] = FAULTY_SIGN if is_faulty else sign
    spans_by_tone = groupby([*bar, *step_and_eta_spans], key=itemgetter(1))
    return [("".join(text for text, _ in spans), tone) for tone, spans in spans_by_tone]


def identity_facts(run: RunSnapshot, width: int, *, planned_stop: str = "") -> list[Fact]:
    job, status = run.job, run.status
    elapsed = f" {duration(run.elapsed_s)}" if run.elapsed_s else ""
    facts: list[Fact] = [
        [("‹ ", "muted"), (f"{status.sign} ", status.tone), (sanitize(job.name or job.id), "strong")],
        [(status.word.upper(), status.tone), (elapsed, "plain")],
        [(hardware(job), "plain")],
    ]
    if planned_stop and not job.is_finished:
        facts.insert(2, [(f"■ {planned_stop}", "caution")])
    cost_spans = _cost_fact(run)
    free_cells = width - sum(_fact_cells(fact) + 2 for fact in facts)
    facts.append(cost_spans if _fact_cells(cost_spans) <= free_cells else cost_spans[-1:])
    if job.is_spot:
        facts.append([("spot", "caution")])
    facts.append([(sanitize(job.project_name), "muted")])
    return [fact for fact in facts if fact]


def step_and_eta_facts(run: RunSnapshot) -> list[Fact]:
    """Return the facts about the current step, the total number of steps, and the ETA."""
    progress = run.progress
    if progress is None or progress.step is None:
        return []
    facts: list[Fact] = [[("step ", "muted"), (count(progress.step), "strong")]]
    if progress.total_steps:
        total_text, done_text = count(progress.total_steps), percent(progress.fraction)
        facts[0] += [(f"/{total_text} ", "muted"), (done_text, "strong")]
    remaining_s = seconds_left(progress, run.server_now)
    if remaining_s is not None and remaining_s >= 1 and not run.job.is_finished:
        facts.append([("no ETA", "muted")] if is_stuck(run.findings) else _eta_fact(run, remaining_s))
    return facts


def progress_facts(run: RunSnapshot) -> list[Fact]:
    """Return the newest values in the log; for a waiting run, the reason why it waits."""
    if run.job.current_status in WAITING_STATUSES:
        _, reason_text = waiting_text(run.job, run.node_count, run.queue, run.at)
        hint = f" · {sanitize(run.job.error_message)}" if run.job.error_message else ""
        return [[(f"{reason_text}{hint}", "plain")]]
    progress = run.progress or ProgressSnapshot()
    facts: list[Fact] = []
    if headline_names := headline_metrics(progress.metrics):
        newest_reward = progress.metrics[headline_names[0]].values[-1]
        facts.append([("reward ", "muted"), (number(newest_reward), "strong")])
    if progress.loss is not None:
        trend = f" {loss_trend(progress)}".rstrip() if isfinite(progress.loss) else ""
        facts.append([("loss ", "muted"), (number(progress.loss), "strong"), (trend, "plain")])
    if activity := side_activity(run):
        facts.append([(activity, "accent")])
    if progress.rate_steps_per_s is not None:
        facts.append([(rate(progress.rate_steps_per_s), "plain")])
    if progress.learning_rate is not None:
        facts.append([("lr ", "muted"), (f"{progress.learning_rate:.2e}", "plain")])
    if progress.epoch is not None:
        facts.append([("epoch ", "muted"), (f"{progress.epoch:.2f}", "plain")])
    if facts or progress.step is not None or (run.log_read and run.job.is_finished):
        return facts
    return [[("no training progress in the log so far" if run.log_read else "reading the log…", "muted")]]


def health_facts(
    run: RunSnapshot, width: int, snoozed: SnoozedFindings = frozenset(), *, dated: bool = True
) -> list[Fact]:
    """Return the findings, the worst first, or why the run failed; then the last checkpoint.

    If the full texts do not fit into ``width`` cells, shorter forms are used, then fewer findings. Snoozed
    findings come last and are marked as such. If ``dated``, findings show their start, in local time.
    """
    is_waiting = run.job.current_status in WAITING_STATUSES
    checkpoint = [] if is_waiting and not run.checkpoints else _checkpoint_fact(run, width)
    snoozed_findings = [finding for finding in run.findings if (run.job.id, finding.key) in snoozed]
    ordered_findings = [
        *(finding for finding in run.findings if finding not in snoozed_findings),
        *snoozed_findings,
    ]
    if is_waiting:  # the progress line shows why
        return [[("Nodes, charts and logs appear here once the job is running.", "muted")], checkpoint]
    if run.job.is_finished and run.job.error_message:
        sign = "✗ " if run.status.tone == "bad" else ""
        return [[(sign, "bad"), (sanitize(run.job.error_message), "plain")], checkpoint]
    is_running = run.status.tone == "running"
    makes_steps = is_running and run.progress is not None and run.progress.step is not None
    healthy_facts = (
        [_verdict_fact(run)]
        if makes_steps and all(finding.severity == "info" for finding in ordered_findings)
        else []
    )
    if not ordered_findings:
        return [*healthy_facts, checkpoint]
    now = run.server_now
    loss_fact: Fact = [(f"≈${run.lost_usd:,.0f} lost", "strong")] if run.lost_usd >= 1 else []
    last_facts = [fact for fact in (loss_fact, checkpoint) if fact]
    free_cells = width - _line_cells(last_facts) + len(SEPARATOR)
    quote_cells = width - _line_cells([*healthy_facts, *last_facts])
    facts: list[Fact] = []
    for form in _FORMS[not dated :]:
        facts = healthy_facts + [
            _snoozed_fact(finding, now, form)
            if finding in snoozed_findings
            else _finding_fact(finding, now, form, quote_cells)
            for finding in ordered_findings
        ]
        if _line_cells(facts) <= free_cells:
            return [*facts, *last_facts]
        if (
            form not in _FULL_TEXT_FORMS
            and _line_cells(_with_rest_count(facts, len(healthy_facts) + 1)) <= free_cells
        ):
            break
    listed_count = next(
        (
            fact_count
            for fact_count in range(len(facts), 1, -1)
            if _line_cells(_with_rest_count(facts, fact_count)) <= free_cells
        ),
        1,
    )
    return [*_with_rest_count(facts, listed_count), *last_facts]


def _with_rest_count(facts: list[Fact], listed_count: int) -> list[Fact]:
    """Return the first ``listed_count`` facts, and the number of the other facts."""
    rest_count = len(facts) - listed_count
    return [*facts[:listed_count], [(f"+{rest_count} more", "warn")]] if rest_count > 0 else facts


def _line_cells(facts: list[Fact]) -> int:
    """Return the width of a line, with a separator after each fact."""
    return sum(_fact_cells(fact) + len(SEPARATOR) for fact in facts)


def _verdict_fact(run: RunSnapshot) -> Fact:
    run_verdict = verdict(run)
    return [("✓ healthy", "good")] if run_verdict.state == "healthy" else [(run_verdict.words, "muted")]


def _finding_fact(finding: HealthFinding, now: datetime, form: FindingForm, max_cells: int = 0) -> Fact:
    sign, tone = SIGNS[finding.severity], TONES[finding.severity]
    text = (
        finding.text
        if form in _FULL_TEXT_FORMS
        else brief(finding, now)
        if form == "brief"
        else finding.short
    )
    if form == "clause" and not finding.kind.quotes_log:
        text = _CLAUSE_END.split(text.removeprefix(f"{finding.node}: "), maxsplit=1)[0]
    if form == "brief" and finding.kind.quotes_log and max_cells >= 24:
        # if there is room, the beginning of the error is more useful than a count
        text = shortened(finding.short, max_cells - cell_len(f"{sign} "))
    text = sanitize(text)
    if finding.node is not None:
        name = sanitize(finding.node)
        short_name = name if form in _FULL_TEXT_FORMS else clip_middle(name, NODE_CHARACTERS)
        if name not in text and short_name not in text:
            text = f"{short_name}: {text}"
    since: Fact = []
    # show how long the problem has lasted
    if finding.since is not None and now > finding.since and not finding.kind.states_duration:
        if form != "brief" and "{since}" in finding.kind.brief:
            clause = _CLAUSE_END.split(text, maxsplit=1)[0]
            text = f"{clause} for {duration((now - finding.since).total_seconds())}{text[len(clause) :]}"
        elif form == "dated":
            since = [(f" (since {compact_time(finding.since, now, '%H:%M')})", "muted")]
    return [(f"{sign} ", tone), (text, tone), *since]


def _snoozed_fact(finding: HealthFinding, now: datetime, form: FindingForm) -> Fact:
    finding_spans = _finding_fact(finding, now, form)[1:]
    return [("z snoozed: ", "muted"), *((text, "muted") for text, _ in finding_spans)]


def _fact_cells(fact: Fact) -> int:
    return sum(cell_len(text) for text, _ in fact)


def _eta_fact(run: RunSnapshot, remaining_s: float) -> Fact:
    fact: Fact = [("ETA ", "muted"), (duration(remaining_s), "strong")]
    range_s = seconds_left_range(run.progress, run.server_now) if run.progress is not None else None
    if range_s is not None and range_s[1] - range_s[0] > 0.1 * remaining_s:
        fact.append((f" ({duration(range_s[0])}–{duration(range_s[1])})", "muted"))
    return fact


def _cost_fact(run: RunSnapshot) -> Fact:
    """Return the GPU-hours and their cost: the billed amount plus an estimate of the unbilled time."""
    gpu_hours, usd = run.cost.gpu_hours, run.cost.spent_usd
    facts: Fact = []
    if gpu_hours is not None:
        facts.append((f"{gpu_time(gpu_hours)} ", "muted"))
    if usd is not None and usd >= 0.01:
        facts.append((run.cost.spent_text, "plain"))
    return facts


def _checkpoint_fact(run: RunSnapshot, width: int) -> Fact:
    newest = last_checkpoint(run)
    if newest is not None:
        remark = f" ({newest.remark})" if newest.where == "log" else ""
        max_cells = width // 4 if run.findings else width // 2
        name = name_within(sanitize(newest.name), max(20, max_cells))
        fault = (run.faults or {}).get((newest.name, newest.at))
        fault_spans: Fact = [(f" {fault.mark}", "bad")] if fault is not None else []
        sign = SAVED_SIGN if fault is None else FAULTY_SIGN  # the same sign as on the progress bar
        signs = [] if run.findings and fault is None else [sign, (" ", "plain")]  # findings need the space
        age_text = f"{age((run.at - newest.at).total_seconds())} ago" if newest.at else ""
        return [*signs, (name, "plain"), (f" {age_text}{remark}", "muted"), *fault_spans]
    if run.checkpoints is None:
        return []
    return [("no checkpoints" if run.job.is_finished else "no checkpoint yet", "muted")]


def status_markdown(run: RunSnapshot) -> str:
    """Return the header's facts as Markdown, to paste into a chat or an issue."""
    job, status = run.job, run.status
    elapsed = f" {duration(run.elapsed_s)}" if run.elapsed_s else ""
    facts = (f"{status.word}{elapsed}", hardware(job), _plain_text(_cost_fact(run)), job.project_name)
    summary = " · ".join(filter(None, facts))
    lines = [f"{status.sign} **{markdown_code(job.name or job.id)}** {markdown_code(summary)}"]
    is_waiting = job.current_status in WAITING_STATUSES
    fact_lines = (
        step_and_eta_facts(run),
        progress_facts(run),
        [] if is_waiting else health_facts(run, 10_000, dated=False),
    )
    texts = [" · ".join(filter(None, map(_plain_text, line))) for line in fact_lines]
    lines += [f"- {markdown_code(text)}" for text in texts if text]
    lines.append(f"- {markdown_code(job.id)}, as of {run.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC")
    return "\n".join(lines)


def _plain_text(fact: Fact) -> str:
    return "".join(text for text, _ in fact).strip()
