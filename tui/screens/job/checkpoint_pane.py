"""The tab of a run's checkpoints: which there are, which is the newest, which the best."""

from __future__ import annotations

from datetime import datetime, timedelta

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from tui.insight.checkpoints.facts import CheckpointFacts, facts_of_run
from tui.insight.checkpoints.last import last_checkpoint
from tui.insight.run.snapshot import RunSnapshot
from tui.insight.text import inert
from tui.insight.units import age, bytes_iec, count
from tui.screens.job.checkpoint_rows import CHECKPOINT_COLUMNS, ORDERS, CheckpointRow, keyed, rows_of
from tui.widgets.line import FactLine
from tui.widgets.row_table import RowTable
from tui.widgets.tones import Span
from tui.widgets.wrapped_text import WrappedText

LOADING = "Loading checkpoints…"
NONE_YET = (
    "No checkpoints.\n\nWhat the job writes below $BT_CHECKPOINT_DIR appears here,"
    " if checkpointing is enabled in its config."
)
AGES_GO_ON = timedelta(seconds=5)
"""Ages are told anew this often: thousands of rows need not be made every second."""
CHECKPOINTS_A_SECOND = 500
"""While the log is being read, losses come many times a second: so few rows are made anew for them."""


class CheckpointPane(Vertical):
    """A summary line and the table; keeps marks and order through refreshes."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._facts: dict[str, CheckpointFacts] = {}
        self._marked: list[str] = []
        self._reads = False
        """Whether the log is still read that they are judged by."""
        self._order = ORDERS[0]
        self._now: datetime | None = None
        self._made_of: tuple[object, ...] = ()
        self._made_at: datetime | None = None
        self._left_on: str | None = None
        """Where the cursor is as long as nobody moves it."""

    def compose(self) -> ComposeResult:
        """The summary, the table, and what to say without checkpoints."""
        yield FactLine(id="checkpoint-summary")
        yield RowTable(CHECKPOINT_COLUMNS, lambda row: row.key, id="checkpoint-table")
        yield WrappedText(LOADING, id="no-checkpoints")

    @property
    def _table(self) -> RowTable[CheckpointRow]:
        return self.query_one("#checkpoint-table", RowTable)

    @property
    def chosen(self) -> CheckpointFacts | None:
        """The checkpoint under the cursor."""
        row = self._table.cursor_row
        return row.facts if row is not None else None

    @property
    def marked(self) -> tuple[CheckpointFacts, ...]:
        """The marked checkpoints, in the order in which they were marked."""
        return tuple(self._facts[key] for key in self._marked)

    def show_run(self, run: RunSnapshot) -> None:
        """Show the run's checkpoints; does nothing that is not seen or not new."""
        empty = self.query_one("#no-checkpoints", WrappedText)
        self.query_one(FactLine).display = bool(run.checkpoints)
        empty.display = not run.checkpoints
        if not run.checkpoints:
            empty.update(LOADING if run.checkpoints is None else _none(run))
        told = run.progress
        losses = (told.loss_by_step, told.eval_loss_series) if told is not None else ((), ())
        made_of = (run.checkpoints, *losses, run.kept_losses, run.faults, run.log_read)
        is_new = len(self._made_of) != len(made_of) or any(
            one is not other and one != other for one, other in zip(made_of, self._made_of, strict=True)
        )
        is_new = is_new and not self._awaits_more(run)
        if is_new:
            self._made_of, self._made_at = made_of, run.at
            self._facts = keyed(facts_of_run(run))
            self._reads = told is not None and bool(told.loss_by_step) and not run.log_read
            self._marked = [key for key in self._marked if key in self._facts]
        if is_new or self._now is None or run.at - self._now >= AGES_GO_ON:
            self._now = run.at
            self._fill()

    def _awaits_more(self, run: RunSnapshot) -> bool:
        """Whether nothing but the losses is new, of many checkpoints, and newer ones will follow."""
        if not self._made_of or self._made_of[0] != run.checkpoints or self._made_at is None:
            return False
        follows = not run.log_read or not run.job.is_finished
        calm_s = len(run.checkpoints or ()) / CHECKPOINTS_A_SECOND
        return follows and calm_s > 1 and (run.at - self._made_at).total_seconds() < calm_s

    def _fill(self) -> None:
        if self._now is None:
            return
        table = self._table
        unmoved = table.cursor_key == self._left_on
        table.sort_mark = self._order
        rows = rows_of(self._facts, self._order, frozenset(self._marked), self._now)
        table.set_rows(rows)
        # Who comes here finds the cursor on the newest, not on the one that was the first to be written; but
        # it goes to another one only while nobody sees it.
        if unmoved and rows and not self.is_on_screen:
            table.move_to(rows[0].key)
        if unmoved:
            self._left_on = table.cursor_key
        self._show_summary()

    def _show_summary(self) -> None:
        all_facts = list(self._facts.values())
        size = sum(one.checkpoint.size_bytes or 0 for one in all_facts)
        number = len(all_facts)
        facts: list[list[Span]] = [
            [
                (f"{count(number)} checkpoint{'' if number == 1 else 's'}", "strong"),
                (f" {bytes_iec(size)}", "plain"),
            ]
        ]
        if self._marked:
            facts.append([(f"✓ {len(self._marked)} marked", "good")])
        uploading = sum(one.sync == "uploading" for one in all_facts)
        if uploading:
            facts.append([(f"↑ {uploading} uploading", "caution")])
        faulty = sum(one.fault is not None for one in all_facts)
        if faulty:
            facts.append([(f"✗ {faulty} after the loss broke", "bad")])
        if self._reads:
            facts.append([("reading the log to judge them…", "muted")])
        best = next((one for one in all_facts if one.is_best and one.score), None)
        if best is not None and best.score is not None:
            facts.append([("★ best ", "accent"), (f"{inert(best.name)}, {best.score.words}", "plain")])
        newest = next((one for one in all_facts if one.is_newest), None)
        if newest is not None:
            facts.append([("newest ", "key"), (inert(newest.name), "plain")])
        self.query_one(FactLine).set_facts(facts)

    # What people do here

    @on(RowTable.HeadingPressed)
    def _heading_pressed(self, message: RowTable.HeadingPressed) -> None:
        message.stop()
        firsts = dict(ORDERS)
        if message.column_id == self._order[0]:
            self.reverse()
        elif message.column_id in firsts:
            self._set_order((message.column_id, firsts[message.column_id]))

    def next_order(self) -> None:
        """Sort by the next column that is shown."""
        shown = self._table.columns_shown
        orders = [order for order in ORDERS if order[0] in shown]
        columns = [column for column, _ in orders]
        place = columns.index(self._order[0]) if self._order[0] in columns else -1
        self._set_order(orders[(place + 1) % len(orders)])

    def reverse(self) -> None:
        """The same order the other way round."""
        self._set_order((self._order[0], not self._order[1]))

    def _set_order(self, order: tuple[str, bool]) -> None:
        self._order = order
        self._fill()

    def toggle_mark(self) -> None:
        """Mark the checkpoint under the cursor, or no longer; and go on to the next."""
        key = self._table.cursor_key
        if key is None:
            return
        if key in self._marked:
            self._marked.remove(key)
        else:
            self._marked.append(key)
        self._fill()
        self._table.action_cursor_by(1)

    def clear_marks(self) -> bool:
        """Mark nothing; whether anything was."""
        had = bool(self._marked)
        self._marked.clear()
        if had:
            self._fill()
        return had


def _none(run: RunSnapshot) -> str:
    """What to say without checkpoints; the log may tell of one that nobody lists."""
    told = last_checkpoint(run)
    if told is None or told.at is None:
        return NONE_YET
    ago = age((run.at - told.at).total_seconds())
    return (
        f"No checkpoints.\n\nThe log tells of {inert(told.name)} {ago} ago, but it is not here:"
        " not uploaded yet, or not written below $BT_CHECKPOINT_DIR."
    )
