"""The screen that explains a problem: the cause if it is known, facts, log lines, and charts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import zip_longest

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.reactive import var
from textual.widgets import Button

from api_client.models import TrainingJob
from tui.actions.table import Scope
from tui.analysis.fleet.batches import Verb
from tui.analysis.run.finding import SIGNS, TONES, HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.why.explanation import Clue, Explanation, Figure, markdown
from tui.feeds.why import WhyFeed, WhyView
from tui.screens.base import AppScreen, FeedFactory, Page, PageServices
from tui.screens.messages import BatchRequested, CopyRequested, ResumeRequested, resume_obstacle
from tui.tables.column import Span
from tui.text.sanitize import sanitize, sanitize_beginning
from tui.text.times import TIME_OF_DAY, compact_time, local_time
from tui.text.units import bytes_iec, cores, number, percent
from tui.widgets.charts.line_chart import LineChart
from tui.widgets.charts.spec import ChartSpec, Mark, Tone
from tui.widgets.text_panel import TextPanel

READING_TEXT = "Reading the evidence…"
UNEXPLAINED = Explanation("")
"""Stands in for the explanation until it is available."""
ACTION_LABELS = {
    "show_log": "show log",
    "stop_job": "stop",
    "resume": "resume",
    "copy_markdown": "copy for a chat",
}
"""Actions on a problem, and the labels of their buttons."""
UNIT_FORMATS = {"%": percent, "B": bytes_iec, "cores": cores}
"""Functions that format values, by unit."""
Line = list[Span]
ShowLog = Callable[[datetime, WhyView], object]
"""Shows the log at a time on the job screen below; going back there opens the explanation again."""


class WhyScreen(AppScreen):
    """Explains the problems of a job, one at a time; ``make_feed`` creates the feed that explains them."""

    CSS_PATH = "why.tcss"
    AUTO_FOCUS = "#evidence"
    SCOPES = (Scope.WHY,)
    VERTICAL_BREAKPOINTS = [(0, "-low"), (24, "-tall")]
    _feed: WhyFeed
    job: TrainingJob

    snapshot: var[WhyView] = var(WhyView(()), init=False)

    def __init__(
        self,
        latest_run: Callable[[], RunSnapshot],
        make_feed: FeedFactory,
        show_log: ShowLog,
    ) -> None:
        super().__init__(make_feed)
        self._latest_run = latest_run
        self._show_log = show_log
        self.job = latest_run().job

    def compose_body(self) -> ComposeResult:
        with Horizontal(id="do"):
            for action, label in ACTION_LABELS.items():
                button_label = Content.assemble((self.key_for(f"why.{action}"), "$primary bold"), f" {label}")
                yield Button(button_label, action=f"screen.{action}", id=action, compact=True)
        yield TextPanel(id="evidence")
        with Horizontal(id="charts"):
            yield LineChart()
            yield LineChart()

    def on_mount(self) -> None:
        self._show()
        self.run_feed("why feed")

    def watch_snapshot(self) -> None:
        self.job = self._latest_run().job
        self._show()

    @property
    def _problem_began_at(self) -> datetime | None:
        """When the displayed problem began; None if unknown."""
        explanation = self.snapshot.explanation or UNEXPLAINED
        if explanation.finding is not None and explanation.finding.since is not None:
            return explanation.finding.since
        return next((section.clues[0].at for section in explanation.sections), None)

    def _show(self) -> None:
        view, job, explanation = self.snapshot, self.job, self.snapshot.explanation or UNEXPLAINED
        facts: list[Line] = []
        if view.at is not None:
            facts.append([(f"as of {local_time(view.at, TIME_OF_DAY)}", "muted")])
        elif job.is_finished and job.updated_at is not None:
            facts.append([(f"ended {local_time(job.updated_at)}", "muted")])
        if len(view.problems) > 1:
            facts.append([(f"{view.index + 1} of {len(view.problems)}", "muted")])
        self.set_header("Why", sanitize(job.name or job.id), facts)
        lines = list(_evidence_lines(explanation, view.at)) if view.explanation is not None else []
        if view.error:
            retry_hint = f"Press {self.key_for('screen.refresh')} to retry."
            lines.insert(0, [(f"✗ {sanitize(view.error)} {retry_hint}", "bad")])
        self.query_one("#evidence", TextPanel).set_lines(lines or [[(READING_TEXT, "muted")]])
        self.set_class(not explanation.figures, "-without-charts")
        for chart, figure in zip_longest(self.query(LineChart), explanation.figures[:2]):
            chart.display = figure is not None
            if figure is not None:
                spec = _chart_spec(figure, explanation.finding, self._problem_began_at, view.at)
                chart.show(figure.series, spec)
        self.hide_hints(
            next_problem=len(view.problems) < 2,
            show_log=self._problem_began_at is None,
            stop_job=job.is_finished,
            resume=bool(resume_obstacle(self._latest_run())),
            copy_markdown=view.explanation is None,
        )
        for action in ACTION_LABELS:
            self.query_one(f"#{action}").display = action not in self.hidden_hints

    # Actions

    def action_next_problem(self) -> None:
        if len(self.snapshot.problems) < 2:
            self.notify("There is no other problem to explain.")
        else:
            self._feed.show_next()

    def action_show_log(self) -> None:
        if self._problem_began_at is not None:
            self._show_log(self._problem_began_at, self.snapshot)
            self.leave()
        else:
            self.notify(
                READING_TEXT if self.snapshot.explanation is None else "The start of this problem is unknown."
            )

    def action_resume(self) -> None:
        if obstacle := resume_obstacle(self._latest_run()):
            self.notify(obstacle)
        else:
            self.post_message(ResumeRequested(self.job))

    def action_stop_job(self) -> None:
        if self.job.is_finished:
            self.notify("The job has ended.")
        else:
            self.post_message(BatchRequested(Verb.STOP, [self.job], self._latest_run()))

    def action_copy_markdown(self) -> None:
        explanation = self.snapshot.explanation
        if explanation is not None:
            text = markdown(explanation, self.job.name or self.job.id)
            self.post_message(CopyRequested(text, "explanation", keeps_line_breaks=True))
        else:
            self.notify(READING_TEXT)


def _evidence_lines(explanation: Explanation, as_of: datetime | None) -> Iterator[Line]:
    finding = explanation.finding
    severity = finding.severity if finding is not None else "critical"
    tone = TONES[severity]
    problem = finding.sentence if finding is not None else explanation.problem
    since = f" (since {compact_time(finding.since, as_of)})" if finding is not None and finding.since else ""
    yield [(f"{SIGNS[severity]} ", tone), (sanitize(problem), tone), (since, "muted")]
    if explanation.answer:
        yield [("  ", "plain"), (sanitize(explanation.answer), "strong")]
    if explanation.advice:
        yield [("→ ", "key"), (explanation.advice, "plain")]
    if explanation.facts:
        yield [("  ", "plain"), (" · ".join(map(sanitize, explanation.facts)), "plain")]
    for section in explanation.sections:
        yield []
        yield [(sanitize(section.title), "heading")]
        for clue in section.clues:
            yield from _clue_lines(clue)


def _clue_lines(clue: Clue) -> Iterator[Line]:
    time = local_time(clue.at, TIME_OF_DAY)
    node = f"{sanitize(clue.node)} " if clue.node else ""
    repeat_count = f"{clue.count}× " if clue.count > 1 else ""
    first_line, *more_lines = clue.text.splitlines() or [""]
    yield [(f"{time} {node}", "muted"), (repeat_count, "strong"), (sanitize_beginning(first_line), "plain")]
    yield from ([("    ", "plain"), (sanitize_beginning(line), "plain")] for line in more_lines)


def _chart_spec(
    figure: Figure, finding: HealthFinding | None, began_at: datetime | None, as_of: datetime | None
) -> ChartSpec:
    severity = finding.severity if finding is not None else "critical"
    mark_tone: Tone = "bad" if severity == "critical" else "caution"
    marks = (Mark(began_at.timestamp(), SIGNS[severity], mark_tone),) if began_at is not None else ()
    times = [time for series in figure.series for time in (series.times[:1] + series.times[-1:])]
    if as_of is not None:  # so that curves that ended earlier end before the right edge
        times.append(as_of.timestamp())
    start, end = min(times), max(times)
    # Extend the axis to the left to show the beginning of the problem, but by at most an eighth.
    if began_at is not None and start - began_at.timestamp() < (end - start) / 8:
        start = min(start, began_at.timestamp() - (end - start) / 64)
    return ChartSpec(
        title=figure.title,
        start=start,
        end=max(end, start + 1),
        y_min=0.0,
        y_max=1.0 if figure.unit == "%" else None,
        unit=UNIT_FORMATS.get(figure.unit, number),
        tick_base=2 if figure.unit == "B" else 10,
        x_axis="clock",
        emphasis=frozenset({figure.series[-1].name}) if finding is not None and finding.node else frozenset(),
        has_band=len(figure.series) > 1,
        marks=marks,
    )


@dataclass(frozen=True, eq=False)
class WhyPage(Page):
    """The page that explains the problems of a run."""

    run: RunSnapshot
    latest: Callable[[], RunSnapshot | None]
    """Returns the newest state of the run."""
    show_log: ShowLog
    view: WhyView | None = None
    """The view to show first; None shows the worst problem."""

    @property
    def ids(self) -> tuple[str, ...]:
        return (self.run.job.id,)

    def open(self, services: PageServices) -> WhyScreen:
        return WhyScreen(
            lambda: self.latest() or self.run,
            partial(WhyFeed, services.session, self.run, self.latest, self.view),
            self.show_log,
        )
