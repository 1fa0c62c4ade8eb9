"""Two checkpoints side by side, with the differences marked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from textual.app import ComposeResult

from api_client.errors import RequestError
from api_client.models import CheckpointFile, TrainingJob
from tui.analysis.checkpoints.comparison import ComparedLine, compare_checkpoints
from tui.analysis.checkpoints.facts import CheckpointFacts
from tui.screens.base import AppScreen, Page, PageServices
from tui.tables.column import Column, Span
from tui.text.sanitize import sanitize
from tui.widgets.background import run_in_background
from tui.widgets.row_table import RowTable
from tui.widgets.status_line import StatusLine
from tui.widgets.text_panel import WrappedText

RETRY_DELAY_S = 10.0

ListFiles = Callable[[str], Awaitable[Sequence[CheckpointFile]]]


def _column(name: str, title: str, read: Callable[[ComparedLine], str]) -> Column[ComparedLine]:
    def cell(line: ComparedLine) -> list[Span]:
        return [(read(line), "plain" if line.differs else "muted")]

    return Column(name, sanitize(title), cell, 10, flex=1, keep=2)


class CompareCheckpointsScreen(AppScreen):
    """Settings and files of two checkpoints; ``list_files`` lists the files of one."""

    CSS_PATH = "compare.tcss"
    AUTO_FOCUS = "#compared"

    def __init__(self, left: CheckpointFacts, right: CheckpointFacts, list_files: ListFiles) -> None:
        super().__init__()
        self._left = left
        self._right = right
        self._list_files = list_files

    def compose_body(self) -> ComposeResult:
        columns = (
            Column[ComparedLine](
                "mark", "", lambda line: [("≠" if line.differs else "", "accent")], 1, keep=3
            ),
            Column[ComparedLine]("what", "", lambda line: [(line.what, "muted")], 24, keep=3),
            _column("left", self._left.name, lambda line: line.left),
            _column("right", self._right.name, lambda line: line.right),
        )
        yield RowTable(columns, lambda line: line.what, id="compared", opens=False)
        yield WrappedText(id="remark")

    def on_mount(self) -> None:
        self._show(compare_checkpoints(self._left, self._right), "Listing files…")
        self.action_refresh()

    def action_refresh(self) -> None:
        run_in_background(self, self._list, "comparison", group="feed", exclusive=True)

    async def _list(self) -> None:
        try:
            files = [await self._list_files(side.name) for side in (self._left, self._right)]
        except RequestError as error:
            key = self.key_for("screen.refresh")
            self.query_one("#remark", WrappedText).update(
                f"✗ Can't list the files: {sanitize(str(error)).rstrip('.')}."
                f" Retrying automatically; press {key} to retry now."
            )
            self.set_timer(RETRY_DELAY_S, self.action_refresh, name="try again")
        else:
            compared = compare_checkpoints(self._left, self._right, left_files=files[0], right_files=files[1])
            self._show(compared, "Identical files are hidden.")

    def _show(self, compared: Sequence[ComparedLine], remark: str) -> None:
        differing = sum(line.differs for line in compared)
        self.query_one("#header", StatusLine).set_facts(
            [
                [
                    ("‹ ", "muted"),
                    ("Compare ", "key"),
                    (sanitize(self._left.name), "strong"),
                    (" with ", "muted"),
                    (sanitize(self._right.name), "strong"),
                ],
                [(f"{differing} of {len(compared)} differ", "accent")],
            ]
        )
        self.query_one("#compared", RowTable).set_rows(compared)
        self.query_one("#remark", WrappedText).update(remark)


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
        list_files = services.session.client.checkpoints.files_of
        return CompareCheckpointsScreen(
            self.left, self.right, lambda name: list_files(self.job.project_id, self.job.id, name)
        )
