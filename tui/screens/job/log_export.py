"""Copy lines of a log, save them to a file, or open them in a pager or an editor."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, tzinfo
from pathlib import Path

from textual.app import SuspendNotSupported
from textual.widget import Widget

from api_client.files import why_not_written
from api_client.models import TrainingJob
from tui.screens.messages import CopyRequested, FilesSaved
from tui.system.external_programs import LONGEST_COPY_BYTES, Program, program_of, show_in_program
from tui.system.saved_files import landing, own_path, proposed_path, save_entries
from tui.text.log_entries import message_text
from tui.text.sanitize import sanitize
from tui.text.units import counted
from tui.widgets.log_view.view import LogView

MANY_LINES = 50_000
"""Notify the user before writing more lines than this, which takes a moment."""


def _timezone(view: LogView) -> tzinfo | None:
    return UTC if view.options.time == "utc" else None


class LogExport:
    """Takes lines out of a pane, which holds back new ones meanwhile."""

    def __init__(
        self, pane: Widget, job: TrainingJob, hold: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._pane = pane
        self._hold = hold
        self._path = proposed_path(job.name or job.id, suffix=".log", otherwise="job")
        self._replaceable: Path | None = None
        """Existing file that the user was warned about; saving to it again replaces it."""

    def copy(self, view: LogView) -> None:
        entries = view.model.selected_entries()
        text = "\n".join(message_text(entry) for entry in entries)
        if not entries:
            self._pane.notify("No line to copy.")
        elif len(text.encode("utf-8", "replace")) > LONGEST_COPY_BYTES:
            what = counted(len(entries), "line is", "lines are")
            self._pane.notify(f"{what} too long for the clipboard; W saves lines to a file.")
        else:
            what = "line" if len(entries) == 1 else f"{counted(len(entries), 'line')}:"
            self._pane.post_message(CopyRequested(text, what, lines=True))

    def suggested_path(self) -> str:
        self._replaceable = None
        return str(self._path)

    async def save(self, view: LogView, typed: str, *, everything: bool) -> str:
        """Save the lines shown, or all lines; return what prevented it, or an empty string."""
        path = own_path(typed)
        can_replace = path == self._replaceable
        path = landing(self._pane.app, path)
        try:
            with self._hold():
                entries = view.model.entries(filtered=not everything)
                lines = await save_entries(entries, path, timezone=_timezone(view), replace=can_replace)
        except FileExistsError:
            self._replaceable = path
            return f"{path} already exists; press enter again to replace it"
        except OSError as error:
            return f"not saved: {why_not_written(error)}"
        except ValueError as error:
            return f"not saved: {error}"
        where = f"as {path.name}" if self._pane.app.is_web else f"to {path}"
        self._pane.notify(f"Saved {counted(lines, 'line')} {where}.")
        self._pane.post_message(FilesSaved((path,)))
        return ""

    async def open(self, view: LogView, kind: Program) -> None:
        notify, command = self._pane.notify, program_of(kind, os.environ)
        if command is None:
            notify(f"No {kind} found; set ${kind.upper()}.", severity="warning")
            return
        if view.model.passing_count > MANY_LINES:
            notify(f"Preparing {counted(view.model.passing_count, 'line')} for {sanitize(command[0])}…")
        try:
            with self._hold():
                await show_in_program(
                    command,
                    view.model.entries(filtered=True),
                    self._path.stem,
                    here=None if view.viewport.follow else view.model.cursor_entry,
                    timezone=_timezone(view),
                    environ=os.environ,
                    suspended=self._pane.app.suspend,
                )
        except SuspendNotSupported:
            notify("This terminal can't run an external program.", severity="warning")
        except (OSError, subprocess.SubprocessError) as error:
            notify(f"Can't start {sanitize(command[0])}: {error}", severity="error")
