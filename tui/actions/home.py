"""On Home."""

from __future__ import annotations

from tui.actions.action import Action, Scope

ACTIONS: tuple[Action, ...] = (
    Action("open_job", Scope.HOME, "enter", "open", "Open the job under the cursor."),
    Action(
        "filter",
        Scope.HOME,
        "slash",
        "filter",
        "Filter the jobs, as in: llama status:running gpu:h100 age<2d.",
        in_footer=True,
    ),
    Action(
        "sort",
        Scope.HOME,
        "S",
        "sort",
        "Sort by the next column; clicking a heading sorts too.",
        in_footer=True,
    ),
    Action("reverse_sort", Scope.HOME, "V", "reverse", "Turn the order of the sort around."),
    Action("new_job", Scope.HOME, "n", "new", "Submit a new job from a config file.", in_footer=True),
    Action("toggle_projects", Scope.HOME, "p", "projects", "Show or hide the list of projects."),
    Action(
        "open_cache",
        Scope.HOME,
        "C",
        "cache",
        "The cache of the project that is chosen, or of the job under the cursor.",
    ),
    Action("deploy", Scope.HOME, "d", "deploy", "Deploy checkpoints of the job under the cursor."),
    Action(
        "stop_job", Scope.HOME, "s", "stop", "Stop the job under the cursor.", in_footer=True, dangerous=True
    ),
    Action(
        "recreate_job",
        Scope.HOME,
        "R",
        "run again",
        "Start a new job like the one under the cursor.",
        dangerous=True,
    ),
    Action("copy_id", Scope.HOME, "y", "copy id", "Copy the id of the job under the cursor."),
    Action("open_browser", Scope.HOME, "o", "browser", "Open the job under the cursor in the browser."),
)
