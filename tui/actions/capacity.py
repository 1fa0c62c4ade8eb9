"""On the capacity screen."""

from __future__ import annotations

from tui.actions.action import Action, Scope

ACTIONS: tuple[Action, ...] = (
    Action("open_job", Scope.CAPACITY, "enter", "open", "Open the job under the cursor."),
    Action("other_table", Scope.CAPACITY, "tab", "jobs", "Between the GPUs and the jobs.", in_footer=True),
    Action(
        "every_type",
        Scope.CAPACITY,
        "a",
        "all types",
        "Jobs of the GPU type under the cursor, or of all types.",
        in_footer=True,
    ),
    Action("export", Scope.CAPACITY, "E", "export", "Save limits and queue as CSV or JSON.", in_footer=True),
)
