"""On the list of downloads."""

from __future__ import annotations

from tui.actions.action import Action, Scope

ACTIONS: tuple[Action, ...] = (
    Action(
        "cancel_download",
        Scope.DOWNLOADS,
        "x",
        "cancel",
        "Stop the download under the cursor; what has arrived is kept, and it can resume.",
        in_footer=True,
    ),
    Action(
        "retry_download",
        Scope.DOWNLOADS,
        "t",
        "try again",
        "Go on with a download that was stopped or has failed; what has arrived is not fetched again.",
        in_footer=True,
    ),
    Action(
        "copy_folder", Scope.DOWNLOADS, "y", "copy folder", "Copy the path of the folder.", in_footer=True
    ),
    Action("clear_finished", Scope.DOWNLOADS, "c", "clear", "Take what has ended off the list."),
)
