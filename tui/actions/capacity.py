"""Actions of the capacity screen."""

from __future__ import annotations

from tui.actions.action import Action, Scope

ACTIONS: tuple[Action, ...] = (
    Action("open_job", Scope.CAPACITY, "enter", "open", "Open the job."),
    Action(
        "other_table", Scope.CAPACITY, "tab", "GPUs/jobs", "Switch between GPUs and jobs.", in_footer=True
    ),
    Action(
        "every_type",
        Scope.CAPACITY,
        "a",
        "all types",
        "Show jobs of the selected GPU type, or of all types.",
        in_footer=True,
    ),
    Action(
        "export", Scope.CAPACITY, "E", "export", "Export limits and queue as CSV or JSON.", in_footer=True
    ),
)
