"""Pages that compare two jobs (code, settings, hardware) or two checkpoints."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from textual.app import ComposeResult
from textual.timer import Timer

from api_client.errors import RequestError
from api_client.models import CheckpointFile, TrainingJob
from tui.analysis.checkpoints.comparison import ComparedLine, compare_checkpoints
from tui.analysis.checkpoints.facts import CheckpointFacts
from tui.analysis.differences import JobDifferences
from tui.readers.code import read_differences
from tui.screens.base import AppScreen, Page, PageServices
from tui.tables.column import Column, Span
from tui.text.sanitize import clip, sanitize
from tui.widgets.background import run_in_background
from tui.widgets.row_table import RowTable
from tui.widgets.text_panel import Line, TextPanel, WrappedText

RETRY_DELAY_S = 10.0


class ReadOnceScreen(AppScreen):
    """Shows what ``read`` returns; reads again on request, and after an error."""

    DEFAULT_CSS = """
    ReadOnceScreen {
        #header { background: $surface; padding: 0 1; }
        #remark { color: $text-muted; padding: 0 1; }
        #differences { height: 1fr; }
    }
    DifferencesScreen #differences { padding: 0 1; }
    """
    AUTO_FOCUS = "#differences"

    def __init__(self, read: Callable[[], Awaitable[Any]]) -> None:
        super().__init__()
        self._read = read
        self._retry: Timer | None = None

    @abstractmethod
    def show_remark(self, remark: str, tone: str) -> None: ...

    def action_refresh(self) -> None:
        if self._retry is not None:
            self._retry.stop()
        run_in_background(self, self._load, "differences", group="feed", exclusive=True)

    async def _load(self) -> None:
        try:
            answer = await self._read()
        except RequestError as error:
            reason, key = sanitize(str(error)).rstrip("."), self.key_for("screen.refresh")
            self.show_remark(
                f"✗ Can't read: {reason}. Retrying automatically; press {key} to retry now.", "bad"
            )
            self._retry = self.set_timer(RETRY_DELAY_S, self.action_refresh, name="try again")
        else:
            self.take(answer)


class DifferencesScreen(ReadOnceScreen):
    """The differences from one job to another."""

    def __init__(self, title: str, read: Callable[[], Awaitable[JobDifferences]]) -> None:
        super().__init__(read)
        self._title = title
        self._lines: list[Line] = []

    def compose_body(self) -> ComposeResult:
        yield TextPanel(id="differences")

    def on_mount(self) -> None:
        self.set_header("Differences", self._title)
        self.show_remark("Reading the code of both jobs…", "muted")
        self.action_refresh()

    def take(self, differences: JobDifferences) -> None:
        missing = (
            f"Code not compared: {sanitize(differences.not_compared)}" if differences.not_compared else ""
        )
        remarks: list[Line] = [[(text, "muted")] for text in (missing, differences.none_words) if text]
        # Long lines, usually data, are cut at five rows of a narrow screen.
        lines = ((clip(line, 400), tone) for line, tone in differences.lines())
        self._lines = [*remarks, *([(line, tone or "plain")] for line, tone in lines)]
        self._show()

    def show_remark(self, remark: str, tone: str) -> None:
        self._show([(remark, tone)])

    def _show(self, *remarks: Line) -> None:
        """Show the remarks, and below them the differences read last."""
        self.query_one(TextPanel).set_lines([*remarks, *self._lines], keep_place=True)


@dataclass(frozen=True, eq=False)
class DifferencesPage(Page):
    """The differences from one job to another."""

    before: TrainingJob
    after: TrainingJob

    def open(self, services: PageServices) -> DifferencesScreen:
        read = partial(read_differences, services.session.client, self.before, self.after)
        return DifferencesScreen(JobDifferences(self.before, self.after).title, read)


def _column(name: str, title: str, read: Callable[[ComparedLine], str]) -> Column[ComparedLine]:
    def cell(line: ComparedLine) -> list[Span]:
        return [(read(line), "plain" if line.differs else "muted")]

    return Column(name, sanitize(title), cell, 10, flex=1, priority=2)


class CompareCheckpointsScreen(ReadOnceScreen):
    """Settings and files of two checkpoints; ``list_files`` lists the files of one."""

    def __init__(
        self,
        left: CheckpointFacts,
        right: CheckpointFacts,
        list_files: Callable[[str], Awaitable[Sequence[CheckpointFile]]],
    ) -> None:
        async def read() -> list[Sequence[CheckpointFile]]:
            return [await list_files(side.name) for side in (left, right)]

        super().__init__(read)
        self._left = left
        self._right = right

    def compose_body(self) -> ComposeResult:
        columns = (
            Column[ComparedLine](
                "mark", "", lambda line: [("≠" if line.differs else "", "muted")], 1, priority=3
            ),
            Column[ComparedLine]("what", "", lambda line: [(line.name, "muted")], 24, priority=3),
            _column("left", self._left.name, lambda line: line.left),
            _column("right", self._right.name, lambda line: line.right),
        )
        yield RowTable(columns, lambda line: line.name, id="differences", opens=False)
        yield WrappedText(id="remark")

    def on_mount(self) -> None:
        self._show(compare_checkpoints(self._left, self._right), "Listing files…")
        self.action_refresh()

    def take(self, files: list[Sequence[CheckpointFile]]) -> None:
        left, right = files
        compared = compare_checkpoints(self._left, self._right, left_files=left, right_files=right)
        self._show(compared, "Identical files are hidden.")

    def show_remark(self, remark: str, tone: str) -> None:
        self.show_text("#remark", remark)

    def _show(self, compared: Sequence[ComparedLine], remark: str) -> None:
        differing = f"{sum(line.differs for line in compared)} of {len(compared)} differ"
        names = f"{sanitize(self._left.name)} with {sanitize(self._right.name)}"
        self.set_header("Compare", names, [[(differing, "accent")]])
        self.query_one("#differences", RowTable).set_rows(compared)
        self.show_text("#remark", remark)


@dataclass(frozen=True, eq=False)
class CompareCheckpointsPage(Page):
    """Two checkpoints of a job."""

    job: TrainingJob
    left: CheckpointFacts
    right: CheckpointFacts

    @property
    def ids(self) -> tuple[str, ...]:
        return (self.job.id, self.left.name, self.right.name)

    def open(self, services: PageServices) -> CompareCheckpointsScreen:
        list_files = partial(services.session.client.checkpoints.files_of, self.job.project_id, self.job.id)
        return CompareCheckpointsScreen(self.left, self.right, list_files)
