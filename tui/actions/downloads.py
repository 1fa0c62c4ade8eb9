"""Actions of the list of downloads."""

from __future__ import annotations

from tui.actions.action import Action, Scope

ACTIONS: tuple[Action, ...] = (
    Action(
        "cancel_download",
        Scope.DOWNLOADS,
        "x",
        "cancel",
        "Cancel the download; partial files are kept, so it can resume.",
        in_footer=True,
    ),
    Action(
        "retry_download",
        Scope.DOWNLOADS,
        "t",
        "resume",
        "Resume a canceled or failed download.",
        in_footer=True,
    ),
    Action("copy_folder", Scope.DOWNLOADS, "y", "copy folder", "Copy the folder's path.", in_footer=True),
    Action("clear_finished", Scope.DOWNLOADS, "c", "clear", "Clear finished downloads."),
)
