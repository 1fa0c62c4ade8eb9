"""The time bar of a recording: the length of the run, the current time, and marks to jump to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from rich.text import Text
from textual import events
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget

from tui.screens.base import AppScreen
from tui.text.sanitize import clip, sanitize
from tui.text.units import duration
from tui.widgets.background import run_in_background
from tui.widgets.tones import tone_styles

if TYPE_CHECKING:
    from tui.readers.recorded_index import Moment, MomentKind
    from tui.readers.recorded_runs import RecordedRun

SPEEDS = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
"""Speeds of playing, relative to the recorded run."""
READ_DELAY_S = 0.15
"""Of several quick seeks, such as a drag, the first is read at once, and the last after this delay."""
MARKS: dict[MomentKind, tuple[str, str]] = {
    "checkpoint": ("◆", "good"),
    "finding": ("▲", "warn"),
    "error": ("×", "bad"),
}
"""Sign and tone by kind of moment; if moments share a cell, the kind that comes last here is drawn."""


class TimeBar(Widget):
    """The time bar; a click or a drag seeks to the time at the pointer."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "TimeBar { height: 1; background: $surface; }"

    class SeekRequested(Message):
        """The user chose another time of the recording; the screen must read its data."""

    def __init__(self, run: RecordedRun, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._run = run
        self._moments: Sequence[Moment] = ()
        self._track = (0, 1)
        """First cell and width of the track, the line that stands for the run."""
        self._shown_at = run.begin
        self._is_dragging = False
        self._read_timer: Timer | None = None
        # the longest of these steps that fits at least 50 times into the run
        steps = (timedelta(seconds=seconds) for seconds in (3600, 600, 60))
        min_step = timedelta(seconds=10)
        self._step_length = next((step for step in steps if step * 50 <= run.end - run.begin), min_step)

    def on_mount(self) -> None:
        self.set_interval(0.5, self._repaint)
        run_in_background(self, self._find_moments, "time bar", group="moments")

    @property
    def _is_playing(self) -> bool:
        return self._run.clock.is_playing and self._run.at < self._run.end

    def _repaint(self) -> None:
        self._update_key_label()
        if self._shown_at != self._run.at:
            self.refresh()

    def _update_key_label(self) -> None:
        if isinstance(self.screen, AppScreen):
            self.screen.temporary_labels = {"play": "pause"} if self._is_playing else {}

    async def _find_moments(self) -> None:
        async for moments in self._run.moments():
            self._moments = moments
            self.refresh()

    # Seeking

    def action_step(self, step: int) -> None:
        self._run.seek(self._run.at + step * self._step_length)
        self._show_and_read()

    def _show_and_read(self) -> None:
        self.refresh()
        if self._read_timer is None:
            self.post_message(self.SeekRequested())
        else:
            self._read_timer.stop()
        self._read_timer = self.set_timer(
            READ_DELAY_S, partial(self._end_of_seeking, self._read_timer is not None)
        )

    def _end_of_seeking(self, has_unread_seek: bool) -> None:
        self._read_timer = None
        if has_unread_seek:
            self.post_message(self.SeekRequested())

    def action_go_to_mark(self, step: int) -> None:
        at = self._run.at
        candidates = [moment for moment in self._moments if (moment.at > at if step > 0 else moment.at < at)]
        if candidates:
            self._run.seek(candidates[0 if step > 0 else -1].at)
            self._show_and_read()
        else:
            self.notify("No later mark." if step > 0 else "No earlier mark.")

    # Playing

    def action_play(self) -> None:
        run = self._run
        if self._is_playing:
            run.clock.pause()
        else:
            if run.at >= run.end:
                run.seek(run.begin)
                self._show_and_read()
            run.clock.play()
        self._update_key_label()
        self.refresh()

    def action_change_speed(self, step: int) -> None:
        clock = self._run.clock
        candidates = [speed for speed in SPEEDS if (speed - clock.speed) * step > 0]
        if candidates:
            clock.speed = candidates[0 if step > 0 else -1]
            self.refresh()
        else:
            self.notify("This is the highest speed." if step > 0 else "This is the lowest speed.")

    # The mouse

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._is_dragging = True
        self.capture_mouse()
        self._seek_to_cell(event.x)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._is_dragging:
            self._seek_to_cell(event.x)

    def on_mouse_up(self) -> None:
        self._is_dragging = False
        self.release_mouse()

    def _seek_to_cell(self, x: int) -> None:
        first_cell, cells = self._track
        fraction = min(max((x - first_cell) / max(1, cells - 1), 0.0), 1.0)
        self._run.seek(self._run.begin + fraction * (self._run.end - self._run.begin))
        self._show_and_read()

    # Painting

    def render(self) -> Text:
        run, styles = self._run, tone_styles(self.app)
        self._shown_at = run.at
        sign = "▶" if self._is_playing else "‖"
        prefix = f" {sign} {run.clock.speed:g}× "
        shown_s, length_s = ((time - run.begin).total_seconds() for time in (run.at, run.end))
        suffix = f" {duration(shown_s)} of {duration(length_s)} "
        current_moment = next((moment for moment in reversed(self._moments) if moment.at == run.at), None)
        cells = max(self.size.width - len(prefix) - len(suffix), 10)
        moment_note = Text()
        if current_moment is not None:
            mark, tone = MARKS[current_moment.kind]
            moment_text = clip(sanitize(current_moment.text), min(40, cells // 3))
            moment_note = Text(f"· {mark} {moment_text} ", styles[tone])
            cells -= moment_note.cell_len
        self._track = (len(prefix), cells)
        line = Text(prefix, no_wrap=True, end="")
        for sign, style in self._track_cells(cells, shown_s, length_s):
            line.append(sign, styles[style])
        return line.append(suffix).append_text(moment_note)

    def _track_cells(self, cells: int, shown_s: float, length_s: float) -> list[tuple[str, str]]:
        """Return the sign and tone of each cell of the track."""

        def cell(seconds: float) -> int:
            return min(max(round(seconds / (length_s or 1.0) * (cells - 1)), 0), cells - 1)

        shown_cell = cell(shown_s)
        row = [("━", "accent") if index < shown_cell else ("─", "muted") for index in range(cells)]
        for kind, mark in MARKS.items():
            for moment in self._moments:
                if moment.kind == kind:
                    row[cell((moment.at - self._run.begin).total_seconds())] = mark
        row[shown_cell] = ("┃", "strong")
        return row
