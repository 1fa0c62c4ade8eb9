"""How a person left the job screen: what the next one begins with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tui.screens.job.chart_view import FIRST_SPAN, PRESETS
from tui.screens.job.log_ways import LogWays
from tui.widgets.log_view.gutter import TIME_MODES

TAB_IDS = ("live", "logs", "metrics", "checkpoints", "details")
_SPANS_S = tuple(preset.total_seconds() for preset in PRESETS)
_SWITCHES = ("wrap", "collapse_progress", "fold_tracebacks")


@dataclass(frozen=True, slots=True)
class JobLayout:
    """Tab, length of the charts in seconds, what the matrix shows, and the log's ways."""

    tab: str = TAB_IDS[0]
    span_s: float = FIRST_SPAN.total_seconds()
    memory_in_matrix: bool = False
    log: LogWays = field(default_factory=LogWays)

    def recalled(self, found: Mapping[str, Any], settled: frozenset[str] = frozenset()) -> JobLayout:
        """The layout, changed by what was remembered; what makes no sense is ignored.

        ``settled`` names the ways of the log that were set on purpose: these stay. A least level is not
        remembered: lines that are silently missing would mislead.
        """
        tab, span_s = found.get("tab"), found.get("span_s")
        ways = {name: found[name] for name in _SWITCHES if isinstance(found.get(name), bool)}
        if found.get("time") in TIME_MODES:
            ways["time"] = found["time"]
        return replace(
            self,
            tab=tab if tab in TAB_IDS else self.tab,
            span_s=span_s if span_s in _SPANS_S else self.span_s,
            memory_in_matrix=found.get("memory_in_matrix") is True,
            log=replace(self.log, **{name: way for name, way in ways.items() if name not in settled}),
        )

    def as_data(self) -> dict[str, Any]:
        """What to remember, as JSON has it."""
        return {
            "tab": self.tab,
            "span_s": self.span_s,
            "memory_in_matrix": self.memory_in_matrix,
            "time": self.log.time,
            **{name: getattr(self.log, name) for name in _SWITCHES},
        }
