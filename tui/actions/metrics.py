"""On the tab Metrics, beside those of the charts."""

from __future__ import annotations

from tui.actions.action import Action, Scope

_WHERE = Scope.METRICS

ACTIONS: tuple[Action, ...] = (
    Action("chart_layout", _WHERE, "v", "layout", "All charts, one large, or one a line.", in_footer=True),
    Action(
        "nodes",
        _WHERE,
        "n",
        "nodes",
        "Every GPU of all nodes over the whole tab, or the charts again.",
        in_footer=True,
    ),
    Action(
        "cursor_left",
        _WHERE,
        "left",
        "read",
        "Read the values of all charts a column earlier.",
        in_footer=True,
    ),
    Action("cursor_right", _WHERE, "right", "read later", "Read them a column later."),
    Action("cursor_far_left", _WHERE, "shift+left", "read far back", "Read them ten columns earlier."),
    Action("cursor_far_right", _WHERE, "shift+right", "read far on", "Read them ten columns later."),
    Action(
        "pan_back", _WHERE, "less_than_sign,comma", "earlier", "Half a window earlier; dragging does it too."
    ),
    Action("pan_on", _WHERE, "greater_than_sign,full_stop", "later", "Half a window later."),
    Action("first_time", _WHERE, "g,home", "begin", "The beginning of the run."),
    Action("newest_time", _WHERE, "G,end", "now", "The newest samples, and follow them."),
    Action(
        "next_series", _WHERE, "down,j", "next line", "Bring the next line of the first chart to the top."
    ),
    Action("previous_series", _WHERE, "up,k", "previous line", "Bring the line before to the top."),
    Action(
        "toggle_series",
        _WHERE,
        "space",
        "on/off",
        "Switch the chosen line off, or on; a click on its name too.",
    ),
    Action("only_series", _WHERE, "i", "only it", "Switch off all lines but the chosen one; again, on."),
    Action("all_series", _WHERE, "a", "all lines", "Switch all lines on."),
    Action(
        "smoothing",
        _WHERE,
        "M",
        "smooth",
        "Smoother lines over the faint samples; after the smoothest, none.",
    ),
    Action("log_scale", _WHERE, "L", "log scale", "Logarithmic values, where they have no fixed range."),
    Action("x_axis", _WHERE, "x", "x axis", "The x axis as time back, clock, time since the start, or step."),
    Action("sort_nodes", _WHERE, "S", "sort nodes", "The nodes that stand out first, or in their order."),
    Action("node_history", _WHERE, "H", "history", "The nodes over time, a row each, or now."),
)
