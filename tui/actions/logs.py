"""On the log of a run: the tabs Live and Logs."""

from __future__ import annotations

from tui.actions.action import Action, Scope

ACTIONS: tuple[Action, ...] = (
    Action(
        "toggle_follow",
        Scope.LOGS,
        "f",
        "follow",
        "Follow the end of the log, or stay where you are.",
        in_footer=True,
    ),
    Action("find_in_log", Scope.LOGS, "slash", "find", "Find a text in the log.", in_footer=True),
    Action("next_match", Scope.LOGS, "n", "next match", "The next line with the text."),
    Action("previous_match", Scope.LOGS, "N", "previous match", "The previous line with the text."),
    Action("filter_log", Scope.LOGS, "ampersand", "filter", "Show only the log lines with a text."),
    Action("toggle_wrap", Scope.LOGS, "w", "wrap", "Wrap long log lines, or cut them."),
    Action("next_time_mode", Scope.LOGS, "t", "time", "Log times as clock, as age, or off."),
)
