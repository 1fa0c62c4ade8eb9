"""Filters and display options of a log view."""

from __future__ import annotations

from dataclasses import dataclass

from tui.analysis.logs.levels import LogLevel
from tui.analysis.logs.pattern import LogPattern
from tui.widgets.log_view.gutter import TimeMode

DEFAULT_MAX_LINES = 1_000_000


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Filters and display options of a log; the default shows every line.

    Gap markers pass every filter except the time range, so that the user sees where lines are missing.

    Attributes:
        collapse_progress: True to show the lines of a progress bar as one row with its last state.
        nodes: Show only lines of these nodes (None for lines without a node); None shows all nodes.
        hidden: Nodes whose lines are not shown.
        invert: True to show the lines that do not match ``pattern``, instead of those that match.
        fold_tracebacks: True to show a traceback as one row with its exception.
        fold_repeats: True to show a banner repeated by many ranks as one row.
        min_level: Lowest level to show; lines without a level count as ``INFO``.
        since_ns: Show only lines logged at or after this time, epoch nanoseconds.
        until_ns: Show only lines logged before this time.
        max_lines: Maximum number of lines in memory; the oldest are dropped beyond it.
    """

    time: TimeMode = "clock"
    wrap: bool = False
    collapse_progress: bool = True
    fold_tracebacks: bool = True
    fold_repeats: bool = True
    nodes: frozenset[str | None] | None = None
    hidden: frozenset[str | None] = frozenset()
    min_level: LogLevel | None = None
    pattern: LogPattern | None = None
    invert: bool = False
    since_ns: int | None = None
    until_ns: int | None = None
    max_lines: int = DEFAULT_MAX_LINES

    @property
    def filters(self) -> tuple[object, ...]:
        """The options that decide which lines pass the filter, for comparing two ``LogOptions``."""
        return (
            *(self.nodes, self.hidden, self.min_level, self.since_ns, self.until_ns),
            *((self.pattern, self.invert) if self.pattern else ()),
        )

    @property
    def has_filter(self) -> bool:
        return self.filters != LogOptions().filters

    @property
    def folds(self) -> tuple[bool, bool, bool]:
        """Whether tracebacks, progress bars and repeated lines are folded, in this order."""
        return self.fold_tracebacks, self.collapse_progress, self.fold_repeats
