"""On Home."""

from __future__ import annotations

from tui.actions.action import Action, Scope

ACTIONS: tuple[Action, ...] = (
    Action(
        "open_job",
        Scope.HOME,
        "enter",
        "open",
        "Open the job: on Live, a failed one on its log; the last one again as it was left.",
    ),
    Action(
        "filter",
        Scope.HOME,
        "slash",
        "filter",
        "Filter the jobs, as in: llama status:running gpu:h100 age<2d.",
        in_footer=True,
        opens_field=True,
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
    Action(
        "new_job",
        Scope.HOME,
        "n",
        "new",
        "Submit a new job from a config file.",
        in_footer=True,
        dangerous=True,
    ),
    Action("toggle_projects", Scope.HOME, "p", "projects", "Show or hide the list of projects."),
    Action(
        "open_cache",
        Scope.HOME,
        "C",
        "cache",
        "The cache of the project that is chosen, or of the job under the cursor.",
    ),
    Action(
        "deploy",
        Scope.HOME,
        "d",
        "deploy",
        "Deploy checkpoints of the job under the cursor.",
        dangerous=True,
    ),
    Action(
        "stop_job",
        Scope.HOME,
        "s",
        "stop",
        "Stop the marked jobs, or the one under the cursor.",
        in_footer=True,
        dangerous=True,
    ),
    Action(
        "recreate_job",
        Scope.HOME,
        "R",
        "run again",
        "Start new jobs like the marked ones, or like the one under the cursor.",
        dangerous=True,
    ),
    Action(
        "delete_job",
        Scope.HOME,
        "X,delete",
        "delete",
        "Delete the marked jobs that have ended, or the one under the cursor.",
        dangerous=True,
    ),
    Action(
        "mark", Scope.HOME, "space", "mark", "Mark the job under the cursor, for what is done to several."
    ),
    Action(
        "bookmark", Scope.HOME, "B", "bookmark", "Bookmark the job, or no longer; is:bookmarked finds them."
    ),
    Action(
        "compare",
        Scope.HOME,
        "c",
        "compare",
        "Compare the marked jobs; a single marked one with the one under the cursor.",
    ),
    Action("open_capacity", Scope.HOME, "Q", "capacity", "How many GPUs there are, and who waits for them."),
    Action("export", Scope.HOME, "E", "export", "Save the jobs that are shown as CSV or JSON."),
    Action(
        "snooze",
        Scope.HOME,
        "z",
        "snooze",
        "Say nothing for a while of what is wrong with the job; again, say it again.",
    ),
    Action("copy_id", Scope.HOME, "y", "copy id", "Copy the id of the job under the cursor."),
    Action("open_browser", Scope.HOME, "o", "browser", "Open the job under the cursor in the browser."),
)
