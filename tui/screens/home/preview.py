"""The preview below Home's list: loss, findings and last log lines of the job under the cursor."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content

from tui.analysis.fleet.snapshot import JobRow, progress_words
from tui.analysis.progress.metrics import headline_series
from tui.analysis.run.finding import SIGNS, TONES, Severity
from tui.analysis.series import EMPTY
from tui.tables.column import Span
from tui.text.sanitize import sanitize
from tui.text.times import HOUR_AND_MINUTE, compact_time
from tui.text.units import money, number
from tui.widgets.charts.line_chart import LineChart
from tui.widgets.charts.spec import ChartSpec, Mark, Tone
from tui.widgets.text_panel import TextPanel, break_line, hanging_indent

MARK_TONES: dict[Severity, Tone] = {"critical": "bad", "warning": "caution", "info": "good"}


class JobPreviewPane(Horizontal):
    """Shows data that Home's row of a job already has; sends no requests."""

    _job_and_project_names = ("", "")
    """Names of the job and its project, shown in the border."""
    _last_lines: Sequence[str] = ()

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._text, self._log = TextPanel(id="preview-text"), TextPanel(id="preview-log")

    def compose(self) -> ComposeResult:
        yield LineChart(id="preview-loss")
        with Vertical():
            for panel in (self._text, self._log):
                panel.can_focus = False
                yield panel

    def show(self, row: JobRow, now: datetime, keys: Sequence[Span]) -> None:
        """Show a row as of the time ``now``; ``keys`` are the shortcuts that fit the job's state."""
        # setting a title, even to the same text, repaints the whole pane
        if (row.name, row.project) != self._job_and_project_names:
            self._job_and_project_names = row.name, row.project
            # A str would be parsed as markup.
            self.border_title = Content(row.name)
            self.border_subtitle = Content(row.project)
        progress = row.preview.progress
        title, values = headline_series(progress) if progress is not None else ("", EMPTY)
        chart = self.query_one(LineChart)
        chart.display = bool(values) and not self.screen.has_class("-slim")
        if values:
            marks = tuple(
                Mark(finding.since.timestamp(), SIGNS[finding.severity], MARK_TONES[finding.severity])
                for finding in row.findings
                if finding.since is not None
            )
            spec = ChartSpec(
                title=f"{title}{_coverage_note(row)}",
                start=values.times[0],
                end=max(values.times[0] + 1, values.times[-1], *(mark.at for mark in marks)),
                unit=number,
                x_axis="clock",
                marks=marks,
            )
            chart.show((values,), spec)
        lines = [*_status_lines(row, now), keys]
        if lines != self._text.lines:
            self._text.set_lines(lines)
        self._last_lines = row.preview.last_lines
        self.call_after_refresh(self._show_log)

    def _show_log(self) -> None:
        """Show the newest log lines that fit without being cut."""
        cells, free_rows = self._log.scrollable_content_region.size
        if not cells or not self._log.is_attached:  # before the layout, or after the pane was closed
            return
        lines: list[Sequence[Span]] = []
        for line in reversed(self._last_lines):
            free_rows -= len(break_line(line, cells, hanging_indent(line, cells)))
            if free_rows < 0 and lines:
                break
            lines.insert(0, [(line, "muted")])
        if lines != self._log.lines:
            self._log.set_lines(lines)


def _coverage_note(row: JobRow) -> str:
    """Return a note if the curve covers only the end of the run, because logs are read backwards."""
    return "" if row.preview.log_read else ", still reading" if row.running else ", end of run"


def _status_lines(row: JobRow, now: datetime) -> list[Sequence[Span]]:
    """Return the findings with their start and cost; without findings, the row's note, progress or status."""
    lines: list[Sequence[Span]] = []
    for finding in row.findings:
        sign = (f"{SIGNS[finding.severity]} ", TONES[finding.severity])
        since = f", since {compact_time(finding.since, now, HOUR_AND_MINUTE)}" if finding.since else ""
        lines.append([sign, (sanitize(finding.text), "plain"), (since, "muted")])
    if row.lost_usd >= 1:
        rate = f", {money(row.wasted_usd_per_hour)} an hour"
        # without cents, which would change at every update
        lines.append([(f"  ≈${row.lost_usd:,.0f} lost so far{rate}", "strong")])
    if not row.findings:
        status_text = "reading the log…" if row.running and not row.judged else row.status.word
        progress_text = progress_words(row) if row.running else ""
        description = sanitize(row.job.error_message or "") or row.note or progress_text or status_text
        lines.append([(description, "plain"), (f"  {row.saved}", "muted")])
    return lines
