"""The page of the differences between two jobs in code, settings and hardware."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from textual.app import ComposeResult

from api_client.errors import RequestError
from api_client.models import TrainingJob
from tui.analysis.differences import JobDifferences
from tui.readers.code import read_differences
from tui.screens.base import AppScreen, Page, PageServices
from tui.tables.column import Span
from tui.text.sanitize import clip, sanitize
from tui.widgets.background import run_in_background
from tui.widgets.status_line import StatusLine
from tui.widgets.text_panel import Line, TextPanel

READING = "Reading the code of both jobs…"
RETRY_DELAY_S = 10.0
LONGEST_LINE_CELLS = 400
"""Longer lines, such as data, are cut: five rows of a narrow screen."""


class DifferencesScreen(AppScreen):
    """The differences from one job to another; ``read`` reads them."""

    AUTO_FOCUS = "#differences"
    DEFAULT_CSS = """
    DifferencesScreen {
        #header { background: $surface; padding: 0 1; }
        #differences { height: 1fr; padding: 0 1; }
    }
    """

    def __init__(self, title: str, read: Callable[[], Awaitable[JobDifferences]]) -> None:
        super().__init__()
        self._title = title
        self._read = read
        self._lines: list[Line] = []

    def compose_body(self) -> ComposeResult:
        yield TextPanel(id="differences")

    def on_mount(self) -> None:
        facts: list[list[Span]] = [[("‹ ", "muted"), ("Differences ", "key"), (self._title, "strong")]]
        self.query_one(StatusLine).set_facts(facts)
        self._show([(READING, "muted")])
        self.action_refresh()

    def action_refresh(self) -> None:
        run_in_background(self, self._load, "differences", group="feed", exclusive=True)

    async def _load(self) -> None:
        try:
            found = await self._read()
        except RequestError as error:
            reason, key = sanitize(str(error)).rstrip("."), self.key_for("screen.refresh")
            text = f"✗ Can't read: {reason}. Retrying automatically; press {key} to retry now."
            self._show([(text, "bad")])
            self.set_timer(RETRY_DELAY_S, self.action_refresh, name="try again")
            return
        missing = f"Code not compared: {sanitize(found.not_compared)}" if found.not_compared else ""
        remarks: list[Line] = [[(text, "muted")] for text in (missing, found.none_words) if text]
        lines = ((clip(line, LONGEST_LINE_CELLS), tone) for line, tone in found.lines())
        self._lines = [*remarks, *([(line, tone or "plain")] for line, tone in lines)]
        self._show()

    def _show(self, *remarks: Line) -> None:
        """Show what was read last, below remarks."""
        self.query_one(TextPanel).set_lines([*remarks, *self._lines], keep_place=True)


@dataclass(frozen=True, eq=False)
class DifferencesPage(Page):
    """The differences from one job to another."""

    before: TrainingJob
    after: TrainingJob

    @property
    def ids(self) -> tuple[str, ...]:
        return (self.before.id, self.after.id)

    def open(self, services: PageServices) -> DifferencesScreen:
        read = partial(read_differences, services.session.client, self.before, self.after)
        return DifferencesScreen(JobDifferences(self.before, self.after).title, read)
