"""The job screen's actions on its log: filter, search, bookmark, and copy, save or open lines."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC
from pathlib import Path

from textual import on
from textual.app import SuspendNotSupported
from textual.reactive import var
from textual.widget import Widget

from api_client.errors import RequestError
from api_client.files import why_not_written
from api_client.models import TrainingJob
from api_client.models.logs import LogGap, stamp_ns
from tui.feeds.run import RunFeed
from tui.screens.base import key_on
from tui.screens.job.log_bar import FirstErrorLine, LogFilterState
from tui.screens.job.log_pane import LogPane
from tui.screens.messages import CopyRequested, FilesSaved
from tui.system.external_programs import LONGEST_COPY_BYTES, Program, program_of, show_in_program
from tui.system.saved_files import default_path, landing, own_path, save_entries
from tui.text.log_entries import message_text
from tui.text.sanitize import sanitize
from tui.text.units import count

MANY_LINES = 50_000
"""Notify the user before writing more lines than this, which takes a moment."""


class LogExportActions(Widget):
    """The job screen's actions that copy, save or open lines of the log."""

    job: TrainingJob
    _replaceable: Path | None = None
    """Existing file that the user was warned about; saving to it again replaces it."""

    @property
    def log_pane(self) -> LogPane:
        """The pane that holds the lines."""
        return self.query_one(LogPane)

    def action_extend_down(self) -> None:
        self.log_pane.view.action_extend_selection(1)

    def action_extend_up(self) -> None:
        self.log_pane.view.action_extend_selection(-1)

    def action_copy_lines(self) -> None:
        """Copy the selected lines, or the line under the cursor."""
        entries = self.log_pane.view.selected_entries()
        if not entries:
            self.notify("No line to copy.")
            return
        text = "\n".join(message_text(entry) for entry in entries)
        if len(text.encode("utf-8", "replace")) > LONGEST_COPY_BYTES:
            what = "This line is" if len(entries) == 1 else f"{count(len(entries))} lines are"
            self.notify(f"{what} too long for the clipboard; W saves lines to a file.")
            return
        what = "line" if len(entries) == 1 else f"{count(len(entries))} lines:"
        self.post_message(CopyRequested(text, what, lines=True))

    def action_save_log(self) -> None:
        self._replaceable = None
        self.log_pane.open_field("save", str(default_path(self.job.name or "", self.job.id)))

    @on(LogPane.SaveWanted)
    def _save(self, message: LogPane.SaveWanted) -> None:
        self.run_worker(
            self._saving(own_path(message.path), everything=message.everything),
            name="log export",
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
            pane.field.problem = f"{path} already exists; press enter again to replace it"
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
        self._open_in_program("pager")

    def action_edit_log(self) -> None:
        self._open_in_program("editor")

    def _open_in_program(self, kind: Program) -> None:
        command = program_of(kind, os.environ)
        if command is None:
            self.notify(f"No {kind} found; set ${kind.upper()}.", severity="warning")
            return
        self.run_worker(
            self._showing(command), name=kind, group="log outside", exclusive=True, exit_on_error=False
        )

    async def _showing(self, command: list[str]) -> None:
        pane = self.log_pane
        view = pane.view
        if view.shown_count > MANY_LINES:
            self.notify(f"Preparing {count(view.shown_count)} lines for {sanitize(command[0])}…")
        try:
            with pane.held():
                await show_in_program(
                    command,
                    view.entries(filtered=True),
                    default_path(self.job.name or "", self.job.id).stem,
                    here=None if view.follow else view.cursor_entry,
                    timezone=UTC if view.time_mode == "utc" else None,
                    environ=os.environ,
                    suspended=self.app.suspend,
                )
        except SuspendNotSupported:
            self.notify("This terminal can't run an external program.", severity="warning")
        except (OSError, subprocess.SubprocessError) as error:
            self.notify(f"Can't start {sanitize(command[0])}: {error}", severity="error")


MINUTE_S = 60
HOUR_S = 3600
NO_BOOKMARK = "No bookmarks yet."


class LogActions(LogExportActions):
    """The job screen's actions on its log; the screen watches ``node``."""

    _feed: RunFeed
    node: var[str | None] = var(None, init=False)
    # Reading

    def action_toggle_follow(self) -> None:
        view = self.log_pane.view
        view.follow = not view.follow

    def action_oldest_line(self) -> None:
        self.log_pane.view.action_first()

    def action_newest_line(self) -> None:
        """Go to the newest line and follow."""
        self.log_pane.view.action_last()

    def action_go_to_time(self) -> None:
        self.log_pane.open_field("time")

    def action_minute_back(self) -> None:
        self._jump(-MINUTE_S)

    def action_minute_on(self) -> None:
        self._jump(MINUTE_S)

    def action_hour_back(self) -> None:
        self._jump(-HOUR_S)

    def action_hour_on(self) -> None:
        self._jump(HOUR_S)

    def _jump(self, seconds: int) -> None:
        for view in self.log_pane.columns.views:
            view.jump(seconds)

    # Searching

    def action_find_in_log(self) -> None:
        self.log_pane.open_field("find")

    def action_filter_log(self) -> None:
        self.log_pane.open_field("filter")

    def action_next_match(self) -> None:
        self.log_pane.view.action_next_match()

    def action_previous_match(self) -> None:
        self.log_pane.view.action_previous_match()

    @on(FirstErrorLine.Chosen)
    def action_first_error(self) -> None:
        """Go to the first error of all nodes.

        Views without that line go to its time, to show what their nodes did then.
        """
        pane = self.log_pane
        first = pane.view.first_error
        if first is None:
            self.notify("No errors so far.")
            return
        went = [view.go_to_first_error() for view in pane.columns.views]
        for view, has_it in zip(pane.columns.views, went, strict=True):
            if not has_it:
                view.go_to_time(stamp_ns(first))  # show what the other nodes did at that time
        if not any(went):
            key = key_on(self, "screen.back")
            self.notify(f"The first error is filtered out; {key} shows more.")

    def action_next_error(self) -> None:
        self._notify_unless(self.log_pane.view.next_error(), "No more errors below.")

    def action_previous_error(self) -> None:
        self._notify_unless(self.log_pane.view.next_error(backwards=True), "No more errors above.")

    def action_toggle_bookmark(self) -> None:
        self.log_pane.view.toggle_bookmark()

    def action_next_bookmark(self) -> None:
        self._notify_unless(self.log_pane.view.go_to_bookmark(), NO_BOOKMARK)

    def action_previous_bookmark(self) -> None:
        self._notify_unless(self.log_pane.view.go_to_bookmark(backwards=True), NO_BOOKMARK)

    def _notify_unless(self, went: bool, words: str) -> None:
        if not went:
            self.notify(words)

    # Current state

    def action_next_level(self) -> None:
        self._choose(self.log_pane.choice.with_next_level())

    def action_shorter_log(self) -> None:
        self._choose(self.log_pane.choice.with_next_span(1))

    def action_longer_log(self) -> None:
        self._choose(self.log_pane.choice.with_next_span(-1))

    def _choose(self, choice: LogFilterState) -> None:
        self.log_pane.choose(choice)

    def action_hide_node(self) -> None:
        self.log_pane.hide_node()

    def action_show_all_nodes(self) -> None:
        self.log_pane.show_all_nodes()

    def action_split_log(self) -> None:
        """Toggle between nodes side by side and one log."""
        self.log_pane.toggle_split()

    def action_next_column(self) -> None:
        self.log_pane.columns.focus_next(1)

    def action_previous_column(self) -> None:
        self.log_pane.columns.focus_next(-1)

    @on(LogPane.NodeWanted)
    def _node_wanted(self, message: LogPane.NodeWanted) -> None:
        self.node = message.node

    # Display options

    def action_toggle_wrap(self) -> None:
        self._switch_log("wrap")

    def action_toggle_tracebacks(self) -> None:
        self._switch_log("fold_tracebacks")

    def action_toggle_progress(self) -> None:
        """Toggle between the last state of a progress bar and all its states."""
        self._switch_log("collapse_progress")

    def action_toggle_repeats(self) -> None:
        """Toggle folding of a line that many ranks repeat."""
        self._switch_log("fold_repeats")

    def _switch_log(self, name: str) -> None:
        pane = self.log_pane
        wanted = not getattr(pane.view, name)
        for view in pane.columns.views:
            setattr(view, name, wanted)
        pane.show_log_status()

    def action_next_time_mode(self) -> None:
        """Cycle through the time formats, in all columns."""
        pane = self.log_pane
        pane.view.action_next_time_mode()
        for view in pane.columns.views:
            view.time_mode = pane.view.time_mode
        pane.show_log_status()

    def action_toggle_fold(self) -> None:
        self.log_pane.view.action_open_row()

    @on(LogPane.GapWanted)
    def _gap_wanted(self, message: LogPane.GapWanted) -> None:
        self.notify("Retrying the gap…")
        self.run_worker(
            self._read_gap(message.gap),
            name="gap retry",
            group="gap",
            exclusive=True,
            exit_on_error=False,
        )

    async def _read_gap(self, gap: LogGap) -> None:
        try:
            await self._feed.retry(gap)
        except RequestError as error:
            self.notify(str(error), title="Still missing", severity="warning")
