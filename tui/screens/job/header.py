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
Form = Literal["dated", "long", "short", "clause", "brief"]
_FORMS: tuple[Form, ...] = ("dated", "long", "short", "clause", "brief")
_WHOLE = frozenset({"dated", "long"})
"""The forms that show a finding's full text."""
_CLAUSE = re.compile("[:,;] ")
SAVED, EARLIER, FAULTY = ("◆", "good"), ("◆", "muted"), ("✗", "bad")
"""Signs of checkpoints: the newest, earlier ones, and those saved after the loss diverged."""


class RunHeader(Vertical):
    """Shows a ``RunSnapshot`` in four lines, three on a low screen; long error messages take more."""

    DEFAULT_CSS = """
    RunHeader { height: auto; background: $surface; padding: 0 1; }
    RunHeader > #progress, RunHeader > #health { max-height: 30vh; }
    """

    snapshot: var[RunSnapshot | None] = var(None)
    snoozed: var[SnoozedFindings] = var(SnoozedFindings())
    stopping: var[Mapping[str, str]] = var[Mapping[str, str]]({})

    def compose(self) -> ComposeResult:
        # Priority facts: name, status and hardware; then the worst finding, the number of others, the loss
        # in dollars and the last checkpoint.
        yield StatusLine(id="identity", separator="  ", priority_count=3)
        yield StatusLine(id="health", priority_count=4)
        yield StatusLine(id="bar")
        yield StatusLine(id="progress")

    def on_resize(self) -> None:
        run, width = self.snapshot, self.content_size.width
        if run is None:
            return
        bar = [] if self.screen.has_class("-low") else run_bar(run, width)
        self.query_one("#bar").display = bool(bar)
        rows = {
            "#identity": identity(run, width, stopping=self.stopping.get(run.job.id, "")),
            "#health": health(run, width, self.snoozed),
            "#bar": [bar],
            "#progress": progress(run) if bar else [*pace(run), *progress(run)],
        }
        for name, facts in rows.items():
            self.query_one(name, StatusLine).set_facts(facts)

    watch_snapshot = watch_snoozed = watch_stopping = on_resize

    @on(events.Click, "#progress, #health")
    async def _explain(self) -> None:
        await self.run_action("screen.why")


def run_bar(run: RunSnapshot, width: int) -> Fact:
    """Return a progress bar over the whole width, with a sign for each checkpoint, and the ETA after it.

    It is red if the run failed or has a critical finding, and gray once it has ended. Without a total, it is
    empty.
    """
    if run.progress is None or run.progress.fraction is None:
        return []
    after: Fact = []
    for separator, fact in zip((" ", " · "), pace(run), strict=False):
        after += [(separator, "muted"), *fact]
    if width - _cells(after) < 20:
        after = [span for span in after if not span[0].startswith(" (")]  # drop the range of the ETA
    cells = max(20, width - _cells(after))
    is_ruined = run.status.tone == "bad" or any(finding.severity == "critical" for finding in run.findings)
    tone = "bad" if is_ruined else "muted" if run.job.is_finished else "bar"
    done, rest = thin_bar(run.progress.fraction, cells)
    bar = [*((sign, tone) for sign in done), *((sign, "faint") for sign in rest)]
    total = run.progress.total_steps or 0
    saved_by_step = {
        step: saved
        for saved in (run.checkpoints or () if total else ())
        if (step := step_of(saved.checkpoint_id)) is not None and 0 <= step <= total
    }
    newest = max(saved_by_step, default=0)
    for step, saved in sorted(saved_by_step.items(), key=itemgetter(0)):
        sign = SAVED if step == newest else EARLIER
        faulty = (run.faults or {}).get(saved_key(saved)) is not None
        bar[min(round(step / total * cells), cells - 1)] = FAULTY if faulty else sign
    same = groupby([*bar, *after], key=itemgetter(1))
    return [("".join(text for text, _ in spans), tone) for tone, spans in same]


def identity(run: RunSnapshot, width: int, *, stopping: str = "") -> list[Fact]:
    job, status = run.job, run.status
    elapsed = f" {duration(run.elapsed_s)}" if run.elapsed_s else ""
    facts: list[Fact] = [
        [("‹ ", "muted"), (f"{status.sign} ", status.tone), (sanitize(job.name or job.id), "strong")],
        [(status.word.upper(), status.tone), (elapsed, "plain")],
        [(hardware(job), "plain")],
    ]
    if stopping and not job.is_finished:
        facts.insert(2, [(f"■ {stopping}", "caution")])
    spent = cost(run)
    room = width - sum(_cells(fact) + 2 for fact in facts)
    facts.append(spent if _cells(spent) <= room else spent[-1:])
    if job.is_spot:
        facts.append([("spot", "caution")])
    facts.append([(sanitize(job.project_name), "muted")])
    return [fact for fact in facts if fact]


def pace(run: RunSnapshot) -> list[Fact]:
    """Return the step, the total, and the ETA."""
    progress = run.progress
    if progress is None or progress.step is None:
        return []
    facts: list[Fact] = [[("step ", "muted"), (count(progress.step), "strong")]]
    if progress.total_steps:
        total, done = count(progress.total_steps), percent(progress.fraction)
        facts[0] += [(f"/{total} ", "muted"), (done, "strong")]
    left_s = seconds_left(progress, run.server_now)
    if left_s is not None and left_s >= 1 and not run.job.is_finished:
        facts.append([("no ETA", "muted")] if is_stuck(run.findings) else _eta_fact(run, left_s))
    return facts


def progress(run: RunSnapshot) -> list[Fact]:
    """Return the newest values in the log; for a waiting run, what it waits for."""
    if run.job.current_status in WAITING_STATUSES:
        _, words = waiting_text(run.job, run.node_count, run.queue, run.at)
        hint = f" · {sanitize(run.job.error_message)}" if run.job.error_message else ""
        return [[(f"{words}{hint}", "plain")]]
    progress = run.progress or ProgressSnapshot()
    facts: list[Fact] = []
    if headlines := headline_metrics(progress.metrics):
        newest = progress.metrics[headlines[0]].values[-1]
        facts.append([("reward ", "muted"), (number(newest), "strong")])
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


def health(
    run: RunSnapshot, width: int, snoozed: SnoozedFindings = frozenset(), *, dated: bool = True
) -> list[Fact]:
    """Return the findings, the worst first, or the reason of a failure, and the last checkpoint.

    If the full texts do not fit into ``width`` cells, shorter forms are used, as many as fit. Snoozed
    findings come last and are marked as such. If ``dated``, findings say since when, in local time.
    """
    waits = run.job.current_status in WAITING_STATUSES
    checkpoint = [] if waits and not run.checkpoints else _checkpoint_fact(run, width)
    snoozed_findings = [finding for finding in run.findings if (run.job.id, finding.key) in snoozed]
    ordered = [*(finding for finding in run.findings if finding not in snoozed_findings), *snoozed_findings]
    if waits:  # the progress line shows what it waits for
        return [[("Nodes, charts and logs appear here once the job is running.", "muted")], checkpoint]
    if run.job.is_finished and run.job.error_message:
        sign = "✗ " if run.status.tone == "bad" else ""
        return [[(sign, "bad"), (sanitize(run.job.error_message), "plain")], checkpoint]
    running = run.status.tone == "running"
    progresses = running and run.progress is not None and run.progress.step is not None
    healthy = (
        [_verdict_fact(run)] if progresses and all(finding.severity == "info" for finding in ordered) else []
    )
    if not ordered:
        return [*healthy, checkpoint]
    now = run.server_now
    lost: Fact = [(f"≈${run.lost_usd:,.0f} lost", "strong")] if run.lost_usd >= 1 else []
    last = [fact for fact in (lost, checkpoint) if fact]
    room = width - _line_cells(last) + len(SEPARATOR)
    quote_cells = width - _line_cells([*healthy, *last])
    facts: list[Fact] = []
    for form in _FORMS[not dated :]:
        facts = healthy + [
            _snoozed_fact(finding, now, form)
            if finding in snoozed_findings
            else _finding_fact(finding, now, form, quote_cells)
            for finding in ordered
        ]
        if _line_cells(facts) <= room:
            return [*facts, *last]
        if form not in _WHOLE and _line_cells(_counted(facts, len(healthy) + 1)) <= room:
            break
    fitting = next(
        (listed for listed in range(len(facts), 1, -1) if _line_cells(_counted(facts, listed)) <= room), 1
    )
    return [*_counted(facts, fitting), *last]


def _counted(facts: list[Fact], listed: int) -> list[Fact]:
    return [*facts[:listed], [(f"+{len(facts) - listed} more", "warn")]] if listed < len(facts) else facts


def _line_cells(facts: list[Fact]) -> int:
    """Return the width of a line, with a separator after each fact."""
    return sum(_cells(fact) + len(SEPARATOR) for fact in facts)


def _verdict_fact(run: RunSnapshot) -> Fact:
    judged = verdict(run)
    return [("✓ healthy", "good")] if judged.state == "healthy" else [(judged.words, "muted")]


def _finding_fact(finding: HealthFinding, now: datetime, form: Form, room: int = 0) -> Fact:
    sign, tone = SIGNS[finding.severity], TONES[finding.severity]
    text = finding.text if form in _WHOLE else brief(finding, now) if form == "brief" else finding.short
    if form == "clause" and not finding.kind.quotes_log:
        text = _CLAUSE.split(text.removeprefix(f"{finding.node}: "), maxsplit=1)[0]
    if form == "brief" and finding.kind.quotes_log and room >= 24:
        # if there is room, the beginning of the error is more useful than a count
        text = shortened(finding.short, room - cell_len(f"{sign} "))
    text = sanitize(text)
    if finding.node is not None:
        name = sanitize(finding.node)
        cut = name if form in _WHOLE else clip_middle(name, NODE_CHARACTERS)
        if name not in text and cut not in text:
            text = f"{cut}: {text}"
    since: Fact = []
    # show how long it has lasted
    if finding.since is not None and now > finding.since and not finding.kind.states_duration:
        if form != "brief" and "{since}" in finding.kind.brief:
            clause = _CLAUSE.split(text, maxsplit=1)[0]
            text = f"{clause} for {duration((now - finding.since).total_seconds())}{text[len(clause) :]}"
        elif form == "dated":
            since = [(f" (since {compact_time(finding.since, now, '%H:%M')})", "muted")]
    return [(f"{sign} ", tone), (text, tone), *since]


def _snoozed_fact(finding: HealthFinding, now: datetime, form: Form) -> Fact:
    words = _finding_fact(finding, now, form)[1:]
    return [("z snoozed: ", "muted"), *((text, "muted") for text, _ in words)]


def _cells(fact: Fact) -> int:
    return sum(cell_len(text) for text, _ in fact)


def _eta_fact(run: RunSnapshot, left_s: float) -> Fact:
    fact: Fact = [("ETA ", "muted"), (duration(left_s), "strong")]
    between = seconds_left_range(run.progress, run.server_now) if run.progress is not None else None
    if between is not None and between[1] - between[0] > 0.1 * left_s:
        fact.append((f" ({duration(between[0])}–{duration(between[1])})", "muted"))
    return fact


def cost(run: RunSnapshot) -> Fact:
    """Return the GPU-hours and their cost: the billed part plus an estimate of the rest."""
    gpu_hours, usd = run.cost.gpu_hours, run.cost.spent_usd
    facts: Fact = []
    if gpu_hours is not None:
        facts.append((f"{gpu_time(gpu_hours)} ", "muted"))
    if usd is not None and usd >= 0.01:
        facts.append((run.cost.spent_text, "plain"))
    return facts


def _checkpoint_fact(run: RunSnapshot, width: int) -> Fact:
    last = last_checkpoint(run)
    if last is not None:
        remark = f" ({last.remark})" if last.where == "log" else ""
        room = width // 4 if run.findings else width // 2
        name = name_within(sanitize(last.name), max(20, room))
        fault = (run.faults or {}).get((last.name, last.at))
        broken: Fact = [(f" {fault.mark}", "bad")] if fault is not None else []
        sign = SAVED if fault is None else FAULTY  # the same sign as on the progress bar
        signs = [] if run.findings and fault is None else [sign, (" ", "plain")]  # leave the room to findings
        ago = f"{age((run.at - last.at).total_seconds())} ago" if last.at else ""
        return [*signs, (name, "plain"), (f" {ago}{remark}", "muted"), *broken]
    if run.checkpoints is None:
        return []
    return [("no checkpoints" if run.job.is_finished else "no checkpoint yet", "muted")]


def status_markdown(run: RunSnapshot) -> str:
    """Return the header's facts as Markdown, to paste into a chat or an issue."""
    job, status = run.job, run.status
    elapsed = f" {duration(run.elapsed_s)}" if run.elapsed_s else ""
    facts = (f"{status.word}{elapsed}", hardware(job), _plain(cost(run)), job.project_name)
    about = " · ".join(filter(None, facts))
    lines = [f"{status.sign} **{markdown_code(job.name or job.id)}** {markdown_code(about)}"]
    waits = job.current_status in WAITING_STATUSES
    shown = (pace(run), progress(run), [] if waits else health(run, 10_000, dated=False))
    texts = [" · ".join(filter(None, map(_plain, line))) for line in shown]
    lines += [f"- {markdown_code(text)}" for text in texts if text]
    lines.append(f"- {markdown_code(job.id)}, as of {run.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC")
    return "\n".join(lines)


def _plain(fact: Fact) -> str:
    return "".join(text for text, _ in fact).strip()
