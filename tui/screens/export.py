"""The dialog that asks where to save tables, and saves them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Input

from api_client.files import why_not_written
from tui.analysis.export import ExportTable
from tui.screens.base import Question
from tui.system.saved_files import landing, save_tables, typed_path
from tui.text.sanitize import sanitize
from tui.text.units import count
from tui.widgets.text_panel import WrappedText


class ExportScreen(Question[tuple[Path, ...]]):
    """Export dialog; the result is the files written, empty if the user cancels."""

    CSS_PATH = "export.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "cancel", show=False)]

    def __init__(self, what: str, tables: Sequence[ExportTable], proposal: Path) -> None:
        super().__init__()
        self._what = what
        self._tables = tuple(tables)
        self._proposal = proposal
        self._replaceable: Path | None = None

    def compose(self) -> ComposeResult:
        rows = sum(len(table.rows) for table in self._tables)
        with Vertical(id="box"):
            yield WrappedText(f"Export {sanitize(self._what)}", id="question")
            several = (
                f" in {len(self._tables)} tables; CSV writes one file each" if len(self._tables) > 1 else ""
            )
            about = f"{count(rows)} rows{several}. .json saves JSON, any other name CSV."
            yield WrappedText(about, id="about")
            yield Input(str(self._proposal), id="file", compact=True)
            yield WrappedText(id="problem")
            with Horizontal(id="buttons"):
                yield Button("Save (enter)", variant="primary", id="yes", compact=True)
                yield Button("Cancel (esc)", id="no", compact=True)

    def on_mount(self) -> None:
        self.query_one("#file", Input).focus()

    @on(Input.Changed)
    def _changed(self) -> None:
        self._say("")

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self._save()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "yes":
            self._save()
        else:
            self.dismiss(())

    @work(exclusive=True, group="export")
    async def _save(self) -> None:
        try:
            path = typed_path(self.query_one("#file", Input).value)
            replace = path == self._replaceable
            place = landing(self.app, path)
            files = await asyncio.to_thread(save_tables, self._tables, place, replace=replace)
        except FileExistsError:
            self._replaceable = path
            self._say(f"{sanitize(str(path))} already exists; press enter again to replace it")
        except OSError as error:
            self._say(f"not saved: {why_not_written(error)}")
        except (ValueError, RuntimeError) as error:
            self._say(f"not saved: {sanitize(str(error))}")
        else:
            self.dismiss(tuple(files))

    def _say(self, problem: str) -> None:
        self.query_one("#problem", WrappedText).update(problem)

    def action_leave(self) -> None:
        self.dismiss(())
