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
from tui.text.sanitize import cell_width, clip, sanitize
from tui.widgets.background import run_in_background
from tui.widgets.status_line import StatusLine
from tui.widgets.text_panel import Line, TextPanel

WHAT_CELLS = 24
FRAME_CELLS = 7
"""Width of everything but the text: margins, scroll bar, difference marker and column gaps."""
RETRY_DELAY_S = 10.0

ListFiles = Callable[[str], Awaitable[Sequence[CheckpointFile]]]


class CompareCheckpointsScreen(AppScreen):
    """Settings and files of two checkpoints; ``list_files`` lists the files of one."""

    CSS_PATH = "compare.tcss"
    AUTO_FOCUS = "#compared"

    def __init__(self, left: CheckpointFacts, right: CheckpointFacts, list_files: ListFiles) -> None:
        super().__init__()
        self._left = left
        self._right = right
        self._list_files = list_files
        self._compared: Sequence[ComparedLine] = ()
        self._remark = "Listing files…"

    def compose_body(self) -> ComposeResult:
        yield TextPanel(id="compared")

    def on_mount(self) -> None:
        self._compared = compare_checkpoints(self._left, self._right)
        self.action_refresh()

    def on_resize(self) -> None:
        self._show_lines()

    def action_refresh(self) -> None:
        self._show_lines()
        run_in_background(self, self._list, "comparison", group="feed", exclusive=True)

    async def _list(self) -> None:
        try:
            files = [await self._list_files(side.name) for side in (self._left, self._right)]
        except RequestError as error:
            key = self.key_for("screen.refresh")
            self._remark = (
                f"✗ Can't list the files: {sanitize(str(error)).rstrip('.')}."
                f" Retrying automatically; press {key} to retry now."
            )
            self.set_timer(RETRY_DELAY_S, self.action_refresh, name="try again")
        else:
            self._compared = compare_checkpoints(
                self._left, self._right, left_files=files[0], right_files=files[1]
            )
            self._remark = "Identical files are hidden."
        self._show_lines()

    def _show_lines(self) -> None:
        differing = sum(line.differs for line in self._compared)
        self.query_one(StatusLine).set_facts(
            [
                [
                    ("‹ ", "muted"),
                    ("Compare ", "key"),
                    (sanitize(self._left.name), "strong"),
                    (" with ", "muted"),
                    (sanitize(self._right.name), "strong"),
                ],
                [(f"{differing} of {len(self._compared)} differ", "accent")],
            ]
        )
        column = max(10, (self.size.width - WHAT_CELLS - FRAME_CELLS) // 2)
        lines: list[Line] = [
            [
                (" " * (WHAT_CELLS + 3), "plain"),
                (_fitted(self._left.name, column), "strong"),
                (_fitted(self._right.name, column), "strong"),
            ]
        ]
        for line in self._compared:
            tone = "accent" if line.differs else "muted"
            lines.append(
                [
                    ("≠ " if line.differs else "  ", tone),
                    (_fitted(line.what, WHAT_CELLS), "muted"),
                    (_fitted(line.left, column), "plain" if line.differs else "muted"),
                    (_fitted(line.right, column), "plain" if line.differs else "muted"),
                ]
            )
        lines.append("")
        lines.append([(self._remark, "muted")])
        self.query_one(TextPanel).set_lines(lines, keep_place=True)


def _fitted(text: str, cells: int) -> str:
    shown = clip(sanitize(text), cells)
    return shown + " " * (cells - cell_width(shown) + 1)


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
