"""On the charts of a run: the tabs Live and Metrics."""

from __future__ import annotations

from tui.actions.action import Action, Scope

ACTIONS: tuple[Action, ...] = (
    Action("next_chart", Scope.CHARTS, "m", "chart", "The next chart.", in_footer=True),
    Action(
        "next_span",
        Scope.CHARTS,
        "plus,equals_sign",
        "longer",
        "Charts over a longer time; the wheel does it too.",
    ),
    Action("previous_span", Scope.CHARTS, "minus", "shorter", "Charts over a shorter time."),
    Action(
        "pick_node",
        Scope.CHARTS,
        "p",
        "pick node",
        "The arrows walk over the nodes and enter goes into one; again, or esc, back.",
    ),
    Action(
        "matrix_metric", Scope.CHARTS, "u", "util/mem", "The node × GPU cells show utilisation, or memory."
    ),
)
