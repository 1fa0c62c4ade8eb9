"""Where runs are compared."""

from __future__ import annotations

from tui.actions.action import Action, Scope

_WHERE = Scope.COMPARE

ACTIONS: tuple[Action, ...] = (
    Action(
        "x_axis", _WHERE, "x", "x axis", "Curves by step, by time since each start, by clock.", in_footer=True
    ),
    Action(
        "next_chart", _WHERE, "m", "chart", "The next chart: loss, eval loss, throughput.", in_footer=True
    ),
    Action(
        "layout",
        _WHERE,
        "v",
        "layout",
        "Charts and table, the charts alone, the table alone.",
        in_footer=True,
    ),
    Action(
        "smoothing", _WHERE, "M", "smooth", "Smoother lines over the faint ones; after the smoothest, none."
    ),
    Action("log_scale", _WHERE, "L", "log scale", "Logarithmic values, or plain ones."),
    Action("zoom_in", _WHERE, "minus", "closer", "A shorter part of the x axis; the wheel does it too."),
    Action("zoom_out", _WHERE, "plus,equals_sign", "wider", "A longer part of it."),
    Action(
        "pan_back", _WHERE, "less_than_sign,comma", "earlier", "Half a window back; dragging does it too."
    ),
    Action("pan_on", _WHERE, "greater_than_sign,full_stop", "later", "Half a window on."),
    Action("next_base", _WHERE, "b", "base", "Compare with the next job: it comes first.", in_footer=True),
    Action(
        "only_differing",
        _WHERE,
        "d",
        "differing",
        "Only the lines that differ, or all of them.",
        in_footer=True,
    ),
    Action("export", _WHERE, "E", "export", "Save the table, or the curves, as CSV or JSON.", in_footer=True),
)
