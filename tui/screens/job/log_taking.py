"""Taking lines of a log elsewhere: to the clipboard, into a file, a pager, an editor."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC
from pathlib import Path

from textual import on
from textual.app import SuspendNotSupported
from textual.widget import Widget

from api_client.files import why_not_written
from api_client.models import TrainingJob
from tui.clipboard import LONGEST_COPY_BYTES
from tui.insight.logs.written import message_text
from tui.insight.text import inert
from tui.insight.units import count
from tui.messages import CopyRequested, FilesSaved
from tui.outbox import landing
from tui.screens.job.log_outside import Program, program_of, show_outside
from tui.screens.job.log_pane import LogPane
from tui.screens.job.log_saving import default_path, own_path, save_entries

MANY_LINES = 50_000
"""Writing more takes a moment that wants a word."""


class LogTaking(Widget):
    """The job screen's actions that take lines out of the dashboard."""

    job: TrainingJob
    _replaceable: Path | None = None
    """A file that is there already; saving to it once more replaces it."""

    @property
    def log_pane(self) -> LogPane:
        """The pane that holds the lines."""
        return self.query_one(LogPane)

    def action_extend_down(self) -> None:
        """Select one line more, downwards."""
        self.log_pane.view.action_extend_selection(1)

    def action_extend_up(self) -> None:
        """Select one line more, upwards."""
        self.log_pane.view.action_extend_selection(-1)

    def action_copy_lines(self) -> None:
        """Copy the line under the cursor, or the selection."""
        entries = self.log_pane.view.selected_entries()
        if not entries:
            self.notify("There is no line to copy.")
            return
        text = "\n".join(message_text(entry) for entry in entries)
        if len(text.encode("utf-8", "replace")) > LONGEST_COPY_BYTES:
            what = "This line is" if len(entries) == 1 else f"{count(len(entries))} lines are"
            self.notify(f"{what} too long for the clipboard; W saves lines to a file.")
            return
        what = "line" if len(entries) == 1 else f"{count(len(entries))} lines:"
        self.post_message(CopyRequested(text, what, lines=True))

    def action_save_log(self) -> None:
        """Ask where to."""
        self._replaceable = None
        self.log_pane.open_field("save", str(default_path(self.job.name or "", self.job.id)))

    @on(LogPane.SaveWanted)
    def _save(self, message: LogPane.SaveWanted) -> None:
        self.run_worker(
            self._saving(own_path(message.path), everything=message.everything),
            name="saving of the log",
            group="save log",
            exclusive=True,
            exit_on_error=False,
        )

    async def _saving(self, path: Path, *, everything: bool) -> None:
        pane = self.log_pane
        replace = path == self._replaceable
        path = landing(self.app, path)
        zone = UTC if pane.view.time_mode == "utc" else None
        try:
            with pane.held():
                entries = pane.view.entries(filtered=not everything)
                lines = await save_entries(entries, path, timezone=zone, replace=replace)
        except FileExistsError:
            self._replaceable = path
            pane.field.problem = f"{path} exists; enter once more replaces it"
            return
        except OSError as error:
            pane.field.problem = f"not saved: {why_not_written(error)}"
            return
        except ValueError as error:
            pane.field.problem = f"not saved: {error}"
            return
        pane.close_field()
        where = f"as {path.name}" if self.app.is_web else f"to {path}"
        self.notify(f"Saved {count(lines)} lines {where}.")
        self.post_message(FilesSaved((path,)))

    def action_page_log(self) -> None:
        """Open the lines shown in the pager."""
        self._show_outside("pager")

    def action_edit_log(self) -> None:
        """Open the lines shown in the editor."""
        self._show_outside("editor")

    def _show_outside(self, kind: Program) -> None:
        command = program_of(kind, os.environ)
        if command is None:
            self.notify(f"There is no {kind}; set ${kind.upper()}.", severity="warning")
            return
        self.run_worker(
            self._showing(command), name=kind, group="log outside", exclusive=True, exit_on_error=False
        )

    async def _showing(self, command: list[str]) -> None:
        pane = self.log_pane
        view = pane.view
        if view.shown_count > MANY_LINES:
            self.notify(f"Writing {count(view.shown_count)} lines for {inert(command[0])}…")
        try:
            with pane.held():
                await show_outside(
                    command,
                    view.entries(filtered=True),
                    default_path(self.job.name or "", self.job.id).stem,
                    here=None if view.follow else view.cursor_entry,
                    timezone=UTC if view.time_mode == "utc" else None,
                    environ=os.environ,
                    suspended=self.app.suspend,
                )
        except SuspendNotSupported:
            self.notify("This terminal cannot be lent to another program.", severity="warning")
        except (OSError, subprocess.SubprocessError) as error:
            self.notify(f"{inert(command[0])} did not start: {error}", severity="error")
