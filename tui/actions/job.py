"""On the job screen, whatever its tab."""

from __future__ import annotations

from tui.actions.action import Action, Scope

ACTIONS: tuple[Action, ...] = (
    Action("show_live", Scope.JOB, "1", "Live", "Nodes, charts and the end of the log together."),
    Action("show_logs", Scope.JOB, "2", "Logs", "The log over the whole screen."),
    Action("show_metrics", Scope.JOB, "3", "Metrics", "The charts over the whole screen."),
    Action("show_checkpoints", Scope.JOB, "4", "Checkpoints", "The checkpoints that the job has written."),
    Action(
        "show_details", Scope.JOB, "5", "Details", "Everything the API says about the job, and its history."
    ),
    Action("next_tab", Scope.JOB, "tab", "next tab", "The next tab."),
    Action("previous_tab", Scope.JOB, "shift+tab", "previous tab", "The previous tab."),
    Action(
        "next_node",
        Scope.JOB,
        "right_square_bracket",
        "node",
        "The next node alone; then all.",
        in_footer=True,
    ),
    Action("previous_node", Scope.JOB, "left_square_bracket", "previous node", "The previous node alone."),
    Action(
        "deploy", Scope.JOB, "d", "deploy", "Deploy this job's checkpoints.", in_footer=True, dangerous=True
    ),
    Action("stop_job", Scope.JOB, "s", "stop", "Stop this job.", in_footer=True, dangerous=True),
    Action("recreate_job", Scope.JOB, "R", "run again", "Start a new job like this one.", dangerous=True),
    Action("open_cache", Scope.JOB, "C", "cache", "The cache of the job's project."),
    Action(
        "download_source",
        Scope.JOB,
        "A",
        "source",
        "Download the source code that the job was submitted with.",
    ),
    Action(
        "compare", Scope.JOB, "c", "compare", "Compare this job with the one before it in the same project."
    ),
    Action("export", Scope.JOB, "E", "export", "Save the samples of the charts shown as CSV or JSON."),
    Action(
        "snooze",
        Scope.JOB,
        "z",
        "snooze",
        "Say nothing for a while of what is wrong with the job; again, say it again.",
    ),
    Action(
        "bookmark", Scope.JOB, "B", "bookmark", "Bookmark this job, or no longer; Home shows it by a star."
    ),
    Action("copy_id", Scope.JOB, "y", "copy id", "Copy the job's id."),
    Action("open_browser", Scope.JOB, "o", "browser", "Open the job in the browser."),
)
