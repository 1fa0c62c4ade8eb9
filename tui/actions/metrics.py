"""Actions of the Metrics tab, in addition to those of charts."""

from __future__ import annotations

from tui.actions.action import Action, Scope

_WHERE = Scope.METRICS

ACTIONS: tuple[Action, ...] = (
    Action(
        "chart_layout",
        _WHERE,
        "v",
        "layout",
        "Cycle the layout: all charts, one large, one per row.",
        in_footer=True,
    ),
    Action(
        "nodes",
        _WHERE,
        "n",
        "nodes",
        "Show every GPU of every node, or the charts.",
        in_footer=True,
    ),
    Action(
        "cursor_left",
        _WHERE,
        "left",
        "readout",
        "Move the readout one column left.",
        in_footer=True,
    ),
    Action("cursor_right", _WHERE, "right", "readout right", "Move the readout one column right."),
    Action("cursor_far_left", _WHERE, "shift+left", "readout 10 left", "Move the readout ten columns left."),
    Action(
        "cursor_far_right", _WHERE, "shift+right", "readout 10 right", "Move the readout ten columns right."
    ),
    Action("pan_back", _WHERE, "less_than_sign,comma", "earlier", "Pan left (or drag)."),
    Action("pan_on", _WHERE, "greater_than_sign,full_stop", "later", "Pan right."),
    Action("first_time", _WHERE, "g,home", "start", "Go to the start of the run."),
    Action("newest_time", _WHERE, "G,end", "newest", "Go to the newest samples and follow."),
    Action("next_series", _WHERE, "down,j", "next series", "Select the next series and draw it on top."),
    Action("previous_series", _WHERE, "up,k", "previous series", "Select the previous series."),
    Action(
        "toggle_series",
        _WHERE,
        "space",
        "hide/show",
        "Hide or show the selected series (or click its name).",
    ),
    Action("only_series", _WHERE, "i", "solo", "Solo the selected series; press again to show all."),
    Action("all_series", _WHERE, "a", "all series", "Show all series."),
    Action(
        "smoothing",
        _WHERE,
        "M",
        "smooth",
        "Increase smoothing; after the maximum, turn it off.",
    ),
    Action("log_scale", _WHERE, "L", "log scale", "Toggle log scale on charts without a fixed range."),
    Action("x_axis", _WHERE, "x", "x axis", "Cycle the x axis: time ago, clock, time since start, step."),
    Action("sort_nodes", _WHERE, "S", "sort nodes", "Sort outlier nodes first, or by rank."),
    Action("node_history", _WHERE, "H", "history", "Show nodes over time, one row each, or current values."),
)
