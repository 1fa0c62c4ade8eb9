"""Actions of charts (the Live and Metrics tabs)."""

from __future__ import annotations

from tui.actions.action import Action, Scope

ACTIONS: tuple[Action, ...] = (
    Action("next_chart", Scope.CHARTS, "m", "chart", "Next chart.", in_footer=True),
    Action(
        "next_span",
        Scope.CHARTS,
        "plus,equals_sign",
        "zoom out",
        "Zoom out (or mouse wheel).",
    ),
    Action("previous_span", Scope.CHARTS, "minus", "zoom in", "Zoom in."),
    Action(
        "pick_node",
        Scope.CHARTS,
        "p",
        "pick node",
        "Pick a node with the arrow keys and enter; p or esc to leave.",
    ),
    Action(
        "matrix_metric",
        Scope.CHARTS,
        "u",
        "util/mem",
        "Show GPU utilization or memory in the node × GPU matrix.",
    ),
)
