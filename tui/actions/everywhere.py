"""Actions of every screen, and of the whole app."""

from __future__ import annotations

from tui.actions.action import Action, Scope

ACTIONS: tuple[Action, ...] = (
    Action("back", Scope.SCREEN, "escape", "back", "Clear the filter, then go back."),
    Action("refresh", Scope.SCREEN, "r", "refresh", "Refresh now."),
    Action("command_palette", Scope.APP, "colon,ctrl+p", "commands", "Search jobs and actions."),
    Action("show_downloads", Scope.APP, "T", "downloads", "Downloads and their progress."),
    Action("go_back", Scope.APP, "alt+left,backspace", "go back", "Go back, as in a browser."),
    Action("go_forward", Scope.APP, "alt+right,F", "go forward", "Go forward, as in a browser."),
    Action(
        "switch_project",
        Scope.APP,
        "0",
        "team or project",
        "Switch team or project, or show all.",
    ),
    Action("switch_remote", Scope.APP, "U", "remote", "Switch remote."),
    Action("help", Scope.APP, "question_mark", "help", "Keyboard shortcuts.", in_footer=True),
    Action("quit", Scope.APP, "q", "quit", "Quit. Jobs keep running.", in_footer=True),
)
