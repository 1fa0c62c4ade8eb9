"""The checkpoints tab: its table with columns and sort orders, and the actions on checkpoints."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from api_client.models import Checkpoint, TrainingJob
from tui.analysis.checkpoints.facts import CheckpointFacts, facts_of_run, last_checkpoint, resume_snippet
from tui.analysis.progress.holes import unread_steps
from tui.analysis.run.snapshot import RunSnapshot
from tui.analysis.transfers import DownloadRequest
from tui.screens import messages
from tui.screens.base import OpenPage, key_for_widget
from tui.screens.charts.builder import ChartData, run_charts
from tui.screens.charts.view import ChartView
from tui.tables.checkpoints import CHECKPOINT_COLUMNS, CheckpointRow
from tui.tables.column import Sort, Span, clicked_sort, next_sort, select_columns, sorted_rows
from tui.text.names import natural_key
from tui.text.sanitize import sanitize
from tui.text.units import age, bytes_iec, counted
from tui.widgets.background import run_in_background
from tui.widgets.charts.line_chart import LineChart
from tui.widgets.row_table import RowTable
from tui.widgets.status_line import StatusLine
from tui.widgets.text_panel import WrappedText

COLUMNS = select_columns(
    CHECKPOINT_COLUMNS, "name marks step reward loss evaluation written kind size sync base"
)


def facts_by_key(run: RunSnapshot) -> dict[str, CheckpointFacts]:
    """Return the facts of checkpoints by name; a number makes repeated names unique."""
    facts_of_keys: dict[str, CheckpointFacts] = {}
    for fact in facts_of_run(run):
        key, copy_number = fact.name, 1
        while key in facts_of_keys:
            copy_number += 1
            key = f"{fact.name}\0{copy_number}"
        facts_of_keys[key] = fact
    return facts_of_keys


LOADING_TEXT = "Loading checkpoints…"
MANY_CHECKPOINTS = 500
"""From this number on, facts are computed in a thread, and at most every five seconds."""


class CheckpointPane(Vertical):
    """A summary line, the table, and the loss curve; marks and sort order survive updates."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._table = RowTable(COLUMNS, lambda row: row.key, sizes_by_content=True, id="checkpoint-table")
        self._run: RunSnapshot | None = None
        self._facts: dict[str, CheckpointFacts] = {}
        """Facts by key, in natural order, which rows with equal sort values keep."""
        self._marked_keys: list[str] = []
        self._sort: Sort = ("written", True)
        self._curve_chart: ChartData | None = None
        """The chart below the table, cached until the rows change: the cursor moves more often."""
        self._filled_at: datetime | None = None
        """Time of the snapshot with which the table was last filled; None if it was not filled yet."""
        self._facts_inputs: tuple[object, ...] = ()
        """The data from which the facts were computed; facts are computed again only if it changes."""
        self._initial_key: str | None = None
        """Key of the row on which the pane put the cursor; on another row, the user has moved the cursor."""

    def compose(self) -> ComposeResult:
        yield StatusLine(id="checkpoint-summary")
        yield self._table
        yield WrappedText(LOADING_TEXT, id="no-checkpoints")
        yield LineChart(id="checkpoint-chart")

    @property
    def chosen_checkpoint(self) -> CheckpointFacts | None:
        row = self._table.cursor_row
        return row.facts if row is not None else None

    def show_run(self, run: RunSnapshot) -> None:
        previous, self._run = self._run, run
        self.query_one(StatusLine).display = bool(run.checkpoints)
        placeholder = self.query_one("#no-checkpoints", WrappedText)
        placeholder.display = not run.checkpoints
        if not run.checkpoints:
            placeholder.update(_no_checkpoints_text(run))
        progress = run.progress
        loss_series = (progress.loss_by_step, progress.eval_loss_series) if progress is not None else ((), ())
        missing_steps = unread_steps(progress, whole=run.log_read) if progress is not None else ()
        facts_inputs = (
            run.checkpoints,
            *loss_series,
            missing_steps,
            run.kept_losses,
            run.faults,
            run.log_read,
        )
        # update ages, and facts of many checkpoints, only every five seconds
        is_due = self._filled_at is None or run.at - self._filled_at >= timedelta(seconds=5)
        is_new = previous is None or previous.checkpoints != run.checkpoints
        if facts_inputs != self._facts_inputs and len(run.checkpoints or ()) < MANY_CHECKPOINTS:
            self._facts_inputs = facts_inputs
            self._set_facts(facts_by_key(run))
        elif facts_inputs != self._facts_inputs and (is_new or is_due):
            self._facts_inputs, self._filled_at = facts_inputs, run.at
            run_in_background(
                self, partial(self._compute_facts, run, facts_inputs), "checkpoints", group="judge"
            )
        elif is_due:
            self._curve_chart = None
            self._fill_table()
        self._show_curve()

    async def _compute_facts(self, run: RunSnapshot, facts_inputs: tuple[object, ...]) -> None:
        """Compute the facts of many checkpoints in a thread, so that keys do not wait for it."""
        facts = await asyncio.to_thread(facts_by_key, run)
        if self._facts_inputs is facts_inputs:  # else newer facts are being computed or shown
            self._set_facts(facts)
            self._show_curve()

    def _set_facts(self, facts: dict[str, CheckpointFacts]) -> None:
        has_same_keys = self._facts.keys() == facts.keys()  # sorting thousands of keys again would be slow
        ordered_keys = self._facts if has_same_keys else sorted(facts, key=natural_key)
        self._facts = {key: facts[key] for key in ordered_keys}
        self._marked_keys = [key for key in self._marked_keys if key in facts]
        self._curve_chart = None
        self._fill_table()

    @on(RowTable.Highlighted)
    def _show_curve(self) -> None:
        """Show the loss or reward by step below the table, with a cursor at the selected checkpoint."""
        run, fact, chart = self._run, self.chosen_checkpoint, self.query_one(LineChart)
        free_lines = max(self.size.height - len(self._facts) - 2, self.size.height * 0.4)
        progress = run.progress if run is not None and run.checkpoints is not None else None
        has_line = progress is not None and (fact is not None or progress.loss is not None)
        has_curve = has_line and free_lines >= 7
        self._table.styles.height = len(self._facts) + 1 if has_curve else None
        if has_curve and not self.has_class("-with-curve"):
            self.call_after_refresh(self._show_curve)  # run again once the chart has been laid out
        self.set_class(has_curve, "-with-curve")
        if run is not None and has_curve and chart.is_on_screen:
            if self._curve_chart is None:
                self._curve_chart = run_charts(run, ChartView(x_axis="step"))[0].finished
            chart.show(
                self._curve_chart.series, replace(self._curve_chart.spec, cursor=fact.step if fact else None)
            )

    def on_resize(self) -> None:
        self._show_curve()

    def _fill_table(self) -> None:
        table, run = self._table, self._run
        if run is None:
            return
        self._filled_at = run.at
        is_cursor_unmoved = table.cursor_key == self._initial_key
        table.sort_mark = self._sort
        marked_keys = frozenset(self._marked_keys)
        unsorted_rows = [
            CheckpointRow(key, fact, run.at, key in marked_keys) for key, fact in self._facts.items()
        ]
        rows = sorted_rows(COLUMNS, unsorted_rows, self._sort)
        table.set_rows(rows)
        # Until the user moves the cursor, put it on the best checkpoint, else the newest, but only while the
        # tab is hidden.
        if is_cursor_unmoved and rows and not self.is_on_screen:
            table.move_to(next((row.key for row in rows if row.facts.is_best), rows[0].key))
        if is_cursor_unmoved:
            self._initial_key = table.cursor_key
        self._show_summary(run)

    def _show_summary(self, run: RunSnapshot) -> None:
        all_facts = list(self._facts.values())
        size = bytes_iec(sum(fact.checkpoint.size_bytes or 0 for fact in all_facts))
        count_text = counted(len(all_facts), "checkpoint")
        facts: list[list[Span]] = [[(count_text, "strong"), (f" {size}", "plain")]]
        if self._marked_keys:
            facts.append([(f"✓ {len(self._marked_keys)} marked", "good")])
        uploading_count = sum(fact.sync == "uploading" for fact in all_facts)
        if uploading_count:
            facts.append([(f"↑ {uploading_count} uploading", "caution")])
        faulty_count = sum(fact.fault is not None for fact in all_facts)
        if faulty_count:
            facts.append([(f"✗ {faulty_count} after the loss diverged", "bad")])
        if run.progress is not None and run.progress.loss_by_step and not run.log_read:
            facts.append([("reading the log to check them…", "muted")])
        best = next((fact for fact in all_facts if fact.is_best and fact.score), None)
        if best is not None and best.score is not None:
            facts.append([("★ best ", "accent"), (f"{sanitize(best.name)}, {best.score.words}", "plain")])
        newest = next((fact for fact in all_facts if fact.is_newest), None)
        if newest is not None:
            facts.append([("newest ", "key"), (sanitize(newest.name), "plain")])
        self.query_one(StatusLine).set_facts(facts)

    # User actions

    @property
    def _job(self) -> TrainingJob:
        assert self._run is not None  # without a run, there is no checkpoint to act on
        return self._run.job

    @on(RowTable.HeadingPressed)
    def _heading_pressed(self, message: RowTable.HeadingPressed) -> None:
        self._sort_by(clicked_sort(COLUMNS, self._sort, message.column_id))

    def action_sort_checkpoints(self) -> None:
        self._sort_by(next_sort(COLUMNS, self._sort, self._table.visible_column_widths))

    def action_reverse_checkpoints(self) -> None:
        column_id, descending = self._sort
        self._sort_by((column_id, not descending))

    def _sort_by(self, sort: Sort) -> None:
        self._sort = sort
        self._fill_table()

    def action_mark_checkpoint(self) -> None:
        key = self._table.cursor_key
        if key is None:
            return
        if key in self._marked_keys:
            self._marked_keys.remove(key)
        else:
            self._marked_keys.append(key)
        self._fill_table()
        self._table.action_cursor_by(1)

    def clear_marks(self) -> bool:
        """Unmark all checkpoints; return False if none was marked."""
        had_marks = bool(self._marked_keys)
        self._marked_keys.clear()
        if had_marks:
            self._fill_table()
        return had_marks

    def _require_checkpoint(self) -> CheckpointFacts | None:
        """Return the checkpoint under the cursor; if there is none, notify the user and return None."""
        checkpoint = self.chosen_checkpoint
        if checkpoint is None:
            self.notify("No checkpoints yet.")
        return checkpoint

    @property
    def marked_checkpoints(self) -> tuple[CheckpointFacts, ...]:
        """The marked checkpoints, in the order in which they were marked."""
        return tuple(self._facts[key] for key in self._marked_keys)

    @property
    def names_to_deploy(self) -> tuple[str, ...]:
        """Names of the marked checkpoints, else of the checkpoint that the user moved the cursor to."""
        checkpoint = self.chosen_checkpoint
        has_moved = checkpoint is not None and self._table.cursor_key != self._initial_key
        selected = self.marked_checkpoints or ((checkpoint,) if checkpoint is not None and has_moved else ())
        return tuple(dict.fromkeys(fact.name for fact in selected))

    @on(RowTable.Selected)
    def action_open_checkpoint(self) -> None:
        if (checkpoint := self._require_checkpoint()) is not None:
            self.open_files(checkpoint.checkpoint)

    def open_files(self, checkpoint: Checkpoint) -> None:
        from tui.screens.files.screen import FilesPage

        self.post_message(OpenPage(FilesPage(self._job, checkpoint)))

    def action_download_checkpoint(self) -> None:
        checkpoint = self._require_checkpoint()
        if checkpoint is None:
            return
        selected = self.marked_checkpoints or (checkpoint,)
        sizes = [fact.checkpoint.size_bytes for fact in selected]
        size = sum(size for size in sizes if size is not None) if any(sizes) else None
        names = tuple(dict.fromkeys(fact.name for fact in selected))
        self.post_message(messages.DownloadRequested(DownloadRequest(self._job, names, size_bytes=size)))

    def action_compare_checkpoints(self) -> None:
        compared, checkpoint = self.marked_checkpoints, self.chosen_checkpoint
        if len(compared) == 1 and checkpoint is not None and checkpoint != compared[0]:
            compared = (*compared, checkpoint)
        if len(compared) != 2:
            mark_key = key_for_widget(self, "checkpoints.mark_checkpoint")
            compare_key = key_for_widget(self, "checkpoints.compare_checkpoints")
            self.notify(f"Mark two checkpoints with {mark_key}, then press {compare_key} to compare.")
            return
        from tui.screens.differences import CompareCheckpointsPage

        left, right = sorted(compared, key=lambda fact: (fact.step is None, fact.step or 0))
        self.post_message(OpenPage(CompareCheckpointsPage(self._job, left, right)))

    def action_copy_load_config(self) -> None:
        if (checkpoint := self._require_checkpoint()) is not None:
            snippet = resume_snippet(self._job.id, checkpoint.name)
            self.post_message(
                messages.CopyRequested(
                    snippet, "the LoadCheckpointConfig for config.py", keeps_line_breaks=True
                )
            )


def _no_checkpoints_text(run: RunSnapshot) -> str:
    """Return the text for a run without checkpoints; it mentions a checkpoint that only the log reports."""
    if run.checkpoints is None:
        return LOADING_TEXT if run.checkpoints_recorded else "The checkpoints were not recorded."
    last = last_checkpoint(run)
    if last is None or last.at is None:
        return (
            "No checkpoints.\n\nFiles that the job writes to $BT_CHECKPOINT_DIR appear here"
            " if its config enables checkpointing."
        )
    age_text = age((run.at - last.at).total_seconds())
    return (
        f"No checkpoints.\n\nThe log mentioned {sanitize(last.name)} {age_text} ago, but it isn't here:"
        " not uploaded yet, or not written to $BT_CHECKPOINT_DIR."
    )
