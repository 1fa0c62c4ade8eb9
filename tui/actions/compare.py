"""Actions of the compare screen."""

from __future__ import annotations

from tui.actions.action import Action, Scope

_WHERE = Scope.COMPARE

ACTIONS: tuple[Action, ...] = (
    Action(
        "x_axis", _WHERE, "x", "x axis", "Cycle the x axis: step, time since start, clock.", in_footer=True
    ),
    Action("next_chart", _WHERE, "m", "chart", "Next chart: loss, eval loss, throughput.", in_footer=True),
    Action(
        "layout",
        _WHERE,
        "v",
        "layout",
        "Cycle the layout: charts and table, charts, table.",
        in_footer=True,
    ),
    Action("smoothing", _WHERE, "M", "smooth", "Increase smoothing; after the maximum, turn it off."),
    Action("log_scale", _WHERE, "L", "log scale", "Toggle log scale."),
    Action("zoom_in", _WHERE, "minus", "zoom in", "Zoom in (or mouse wheel)."),
    Action("zoom_out", _WHERE, "plus,equals_sign", "zoom out", "Zoom out."),
    Action("pan_back", _WHERE, "less_than_sign,comma", "earlier", "Pan left (or drag)."),
    Action("pan_on", _WHERE, "greater_than_sign,full_stop", "later", "Pan right."),
    Action("next_base", _WHERE, "b", "baseline", "Use the next job as the baseline.", in_footer=True),
    Action(
        "only_differing",
        _WHERE,
        "d",
        "diffs only",
        "Show only the rows that differ, or all.",
        in_footer=True,
    ),
    Action("export", _WHERE, "E", "export", "Export the table or the curves as CSV or JSON.", in_footer=True),
)
