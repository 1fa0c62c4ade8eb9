"""On every screen, and in the whole app."""

from __future__ import annotations

from tui.actions.action import Action, Scope

ACTIONS: tuple[Action, ...] = (
    Action("back", Scope.SCREEN, "escape", "back", "One step out: of the filter, then of the screen."),
    Action("refresh", Scope.SCREEN, "r", "refresh", "Ask the server now."),
    Action("command_palette", Scope.APP, "colon,ctrl+p", "commands", "Find any action by its name."),
    Action("show_downloads", Scope.APP, "T", "downloads", "What is being downloaded, and how far it is."),
    Action("go_back", Scope.APP, "alt+left,backspace", "go back", "The screen before, as in a browser."),
    Action(
        "go_forward", Scope.APP, "alt+right,F", "go forward", "Forward again to the screen gone back from."
    ),
    Action(
        "switch_project",
        Scope.APP,
        "0",
        "team, project",
        "Go to a team or a project: its jobs alone; or back to all.",
    ),
    Action("switch_remote", Scope.APP, "U", "remote", "Go to another remote of environment and files."),
    Action("help", Scope.APP, "question_mark", "help", "The keys that work here.", in_footer=True),
    Action("quit", Scope.APP, "q", "quit", "Leave. Jobs go on without it.", in_footer=True),
)
