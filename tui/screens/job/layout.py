"""The tabs of the job screen, and how it opens: as it was left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.text import Text
from textual import events
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from api_client.models import JobStatus, TrainingJob
from tui.actions import JOB_TABS
from tui.settings.loading import Loaded
from tui.settings.remembered import JobState
from tui.widgets.log_view.gutter import TIME_MODES
from tui.widgets.log_view.options import LogOptions


class TabStrip(Widget):
    """Tabs on a single line; Textual's own take two."""

    DEFAULT_CSS = """
    TabStrip {
        height: 1;
        width: 1fr;
        color: $text-muted;
        & > .tab-strip--active { color: $primary; text-style: bold underline; }
        & > .tab-strip--key { color: $text-muted; }
    }
    """
    COMPONENT_CLASSES = {"tab-strip--active", "tab-strip--key"}

    active: reactive[str] = reactive("")

    @dataclass
    class Chosen(Message):
        """A tab was clicked."""

        tab_id: str

    def __init__(self, tabs: Sequence[tuple[str, str, str]], *, id: str | None = None) -> None:
        """Create a strip of tabs; each of ``tabs`` is (id, key, label)."""
        super().__init__(id=id)
        self._tabs = tuple(tabs)
        self._edges: list[tuple[int, int, str]] = []

    def render(self) -> Text:
        active = self.get_component_rich_style("tab-strip--active", partial=True)
        key_style = self.get_component_rich_style("tab-strip--key", partial=True)
        narrow = sum(len(label) + 5 for _, _, label in self._tabs) > self.size.width
        line = Text(no_wrap=True, overflow="ellipsis", end="")
        self._edges = []
        for tab_id, key, label in self._tabs:
            start = line.cell_len
            line.append(" ")
            if not narrow:
                line.append(f"{key} ", key_style)
            line.append(label, active if tab_id == self.active else "")
            line.append(" " if narrow else "  ")
            self._edges.append((start, line.cell_len, tab_id))
        return line

    def on_click(self, event: events.Click) -> None:
        for start, end, tab_id in self._edges:
            if start <= event.x < end:
                self.post_message(self.Chosen(tab_id))


TAB_IDS = tuple(JOB_TABS)
_FIRST_TABS: dict[str, str] = {JobStatus.FAILED: "logs", JobStatus.DEPLOY_FAILED: "details"}
"""Failed jobs open on the tab that explains why: the log, or the status history if the job never started."""
SWITCHES = ("wrap", "collapse_progress", "fold_tracebacks")
"""The options of a log that are remembered, besides the way it shows times."""


def first_tab(kept: JobState, job: TrainingJob) -> str:
    """Return the tab to open: the last one of the same job, else one that suits the job's status."""
    if job.id == kept.job_id and kept.tab in TAB_IDS:
        return kept.tab
    return _FIRST_TABS.get(job.current_status, TAB_IDS[0])


def log_options(settings: Loaded, kept: JobState) -> LogOptions:
    """Return the options with which a log opens: as they were left, except for explicit settings.

    A minimum level is not restored: lines missing silently would be misleading.
    """
    options = settings.configuration.logs
    log = LogOptions(
        time=options.time,
        wrap=options.wrap,
        min_level=options.min_level,
        collapse_progress=options.collapse_progress,
        fold_tracebacks=options.fold_tracebacks,
        max_lines=options.max_lines_in_memory,
    )
    left: dict[str, Any] = {name: getattr(kept, name) for name in SWITCHES}
    left["time"] = kept.time if kept.time in TIME_MODES else None
    return replace(
        log,
        **{
            name: value
            for name, value in left.items()
            if value is not None and not settings.is_given(f"logs.{name}")
        },
    )
