"""Actions of the job screen, on any tab."""

from __future__ import annotations

from tui.actions.action import Action, Scope

ACTIONS: tuple[Action, ...] = (
    Action("show_live", Scope.JOB, "1", "Live", "Overview: nodes, charts and the end of the log."),
    Action("show_logs", Scope.JOB, "2", "Logs", "Show the log full screen."),
    Action("show_metrics", Scope.JOB, "3", "Metrics", "Show the charts full screen."),
    Action("show_checkpoints", Scope.JOB, "4", "Checkpoints", "Show the job's checkpoints."),
    Action("show_details", Scope.JOB, "5", "Details", "Show job details and history."),
    Action("next_tab", Scope.JOB, "tab", "next tab", "Next tab."),
    Action("previous_tab", Scope.JOB, "shift+tab", "previous tab", "Previous tab."),
    Action(
        "next_node",
        Scope.JOB,
        "right_square_bracket",
        "node",
        "Show only the next node; after the last, show all.",
        in_footer=True,
    ),
    Action(
        "previous_node", Scope.JOB, "left_square_bracket", "previous node", "Show only the previous node."
    ),
    Action(
        "deploy", Scope.JOB, "d", "deploy", "Deploy this job's checkpoints.", in_footer=True, dangerous=True
    ),
    Action("stop_job", Scope.JOB, "s", "stop", "Stop this job.", in_footer=True, dangerous=True),
    Action("recreate_job", Scope.JOB, "R", "run again", "Run this job again.", dangerous=True),
    Action("open_cache", Scope.JOB, "C", "cache", "Browse the project's cache."),
    Action(
        "download_source",
        Scope.JOB,
        "A",
        "source",
        "Download the job's source code.",
    ),
    Action("compare", Scope.JOB, "c", "compare", "Compare with the previous job in this project."),
    Action("export", Scope.JOB, "E", "export", "Export the chart data as CSV or JSON."),
    Action(
        "snooze",
        Scope.JOB,
        "z",
        "snooze",
        "Snooze this job's alerts; press again to undo.",
    ),
    Action("bookmark", Scope.JOB, "B", "bookmark", "Toggle a bookmark (a star on Home)."),
    Action("copy_id", Scope.JOB, "y", "copy id", "Copy the job id."),
    Action("open_browser", Scope.JOB, "o", "browser", "Open the job in the browser."),
)
