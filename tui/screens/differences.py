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
    """Shows the result of ``read``; reads again when the user refreshes, and some time after an error."""

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
        self._retry_timer: Timer | None = None

    @abstractmethod
    def show_remark(self, remark: str, tone: str) -> None: ...

    def action_refresh(self) -> None:
        if self._retry_timer is not None:
            self._retry_timer.stop()
        run_in_background(self, self._load, "differences", group="feed", exclusive=True)

    async def _load(self) -> None:
        try:
            result = await self._read()
        except RequestError as error:
            reason, retry_key = sanitize(str(error)).rstrip("."), self.key_for("screen.refresh")
            self.show_remark(
                f"✗ Can't read: {reason}. Retrying automatically; press {retry_key} to retry now.", "bad"
            )
            self._retry_timer = self.set_timer(RETRY_DELAY_S, self.action_refresh, name="try again")
        else:
            self.receive(result)


class DifferencesScreen(ReadOnceScreen):
    """Shows what differs between two jobs, as changes from the first job to the second."""

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

    def receive(self, differences: JobDifferences) -> None:
        not_compared_text = (
            f"Code not compared: {sanitize(differences.not_compared)}" if differences.not_compared else ""
        )
        texts = (not_compared_text, differences.no_differences_text)
        remarks: list[Line] = [[(text, "muted")] for text in texts if text]
        # Cut long lines, usually data, at 400 characters: five rows of a narrow screen.
        lines = ((clip(line, 400), tone) for line, tone in differences.lines())
        self._lines = [*remarks, *([(line, tone or "plain")] for line, tone in lines)]
        self._show()

    def show_remark(self, remark: str, tone: str) -> None:
        self._show([(remark, tone)])

    def _show(self, *remarks: Line) -> None:
        """Show remarks, and below them the newest differences."""
        self.query_one(TextPanel).set_lines([*remarks, *self._lines], keep_place=True)


@dataclass(frozen=True, eq=False)
class DifferencesPage(Page):
    """The page with the changes from the job ``before`` to the job ``after``."""

    before: TrainingJob
    after: TrainingJob

    def open(self, services: PageServices) -> DifferencesScreen:
        read_both_jobs = partial(read_differences, services.session.client, self.before, self.after)
        return DifferencesScreen(JobDifferences(self.before, self.after).title, read_both_jobs)


def _checkpoint_column(name: str, title: str, text_of: Callable[[ComparedLine], str]) -> Column[ComparedLine]:
    def cell(line: ComparedLine) -> list[Span]:
        return [(text_of(line), "plain" if line.differs else "muted")]

    return Column(name, sanitize(title), cell, 10, flex=1, priority=2)


class CompareCheckpointsScreen(ReadOnceScreen):
    """Compares the settings and files of two checkpoints.

    ``list_files`` lists the files of the checkpoint with the given name.
    """

    def __init__(
        self,
        left: CheckpointFacts,
        right: CheckpointFacts,
        list_files: Callable[[str], Awaitable[Sequence[CheckpointFile]]],
    ) -> None:
        async def list_both() -> list[Sequence[CheckpointFile]]:
            return [await list_files(checkpoint.name) for checkpoint in (left, right)]

        super().__init__(list_both)
        self._left = left
        self._right = right

    def compose_body(self) -> ComposeResult:
        columns = (
            Column[ComparedLine](
                "mark", "", lambda line: [("≠" if line.differs else "", "muted")], 1, priority=3
            ),
            Column[ComparedLine]("what", "", lambda line: [(line.name, "muted")], 24, priority=3),
            _checkpoint_column("left", self._left.name, lambda line: line.left),
            _checkpoint_column("right", self._right.name, lambda line: line.right),
        )
        yield RowTable(columns, lambda line: line.name, id="differences", opens=False)
        yield WrappedText(id="remark")

    def on_mount(self) -> None:
        self._show(compare_checkpoints(self._left, self._right), "Listing files…")
        self.action_refresh()

    def receive(self, files: list[Sequence[CheckpointFile]]) -> None:
        left_files, right_files = files
        lines = compare_checkpoints(self._left, self._right, left_files=left_files, right_files=right_files)
        self._show(lines, "Identical files are hidden.")

    def show_remark(self, remark: str, tone: str) -> None:
        self.show_text("#remark", remark)

    def _show(self, lines: Sequence[ComparedLine], remark: str) -> None:
        differing_text = f"{sum(line.differs for line in lines)} of {len(lines)} differ"
        names = f"{sanitize(self._left.name)} with {sanitize(self._right.name)}"
        self.set_header("Compare", names, [[(differing_text, "accent")]])
        self.query_one("#differences", RowTable).set_rows(lines)
        self.show_text("#remark", remark)


@dataclass(frozen=True, eq=False)
class CompareCheckpointsPage(Page):
    """The page that compares two checkpoints of a job."""

    job: TrainingJob
    left: CheckpointFacts
    right: CheckpointFacts

    @property
    def ids(self) -> tuple[str, ...]:
        return (self.job.id, self.left.name, self.right.name)

    def open(self, services: PageServices) -> CompareCheckpointsScreen:
        list_files = partial(services.session.client.checkpoints.files_of, self.job.project_id, self.job.id)
        return CompareCheckpointsScreen(self.left, self.right, list_files)
