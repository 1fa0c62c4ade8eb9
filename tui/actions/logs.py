"""Actions of the log (the Live and Logs tabs)."""

from __future__ import annotations

from tui.actions.action import Action, Scope

LOGS = Scope.LOGS

ACTIONS: tuple[Action, ...] = (
    Action(
        "toggle_follow",
        LOGS,
        "f",
        "follow",
        "Follow new lines, or stop following.",
        in_footer=True,
    ),
    Action(
        "find_in_log",
        LOGS,
        "slash",
        "find",
        "Search the log for text or a regular expression.",
        in_footer=True,
        opens_field=True,
    ),
    Action("next_match", LOGS, "n", "next match", "Next match."),
    Action("previous_match", LOGS, "N", "previous match", "Previous match."),
    Action(
        "filter_log",
        LOGS,
        "ampersand",
        "filter",
        "Show only lines that match, or that don't.",
        opens_field=True,
    ),
    Action(
        "next_level",
        LOGS,
        "l",
        "level",
        "Cycle the minimum level: all, INFO, WARNING, ERROR.",
    ),
    Action("first_error", LOGS, "e", "first error", "Jump to the first error on any node."),
    Action("next_error", LOGS, "x", "next error", "Next error."),
    Action("previous_error", LOGS, "X", "previous error", "Previous error."),
    Action("hide_node", LOGS, "h", "hide node", "Hide the node that logged this line."),
    Action("show_all_nodes", LOGS, "H", "all nodes", "Show all nodes again."),
    Action("split_log", LOGS, "vertical_line", "split", "Show nodes side by side, or in one log."),
    Action("next_column", LOGS, "full_stop", "next column", "Side by side: focus the next node."),
    Action("previous_column", LOGS, "comma", "previous column", "Side by side: focus the previous node."),
    Action(
        "go_to_time",
        LOGS,
        "at",
        "go to time",
        "Go to a time: 12:30, a date, -15m (ago), 1h20m (from the start).",
        opens_field=True,
    ),
    Action("minute_back", LOGS, "left_curly_bracket", "−1 min", "Back one minute."),
    Action("minute_on", LOGS, "right_curly_bracket", "+1 min", "Forward one minute."),
    Action("hour_back", LOGS, "left_parenthesis", "−1 h", "Back one hour."),
    Action("hour_on", LOGS, "right_parenthesis", "+1 h", "Forward one hour."),
    Action(
        "shorter_log", LOGS, "v", "time range", "Cycle the time range: all, 24 h, 6 h, 1 h, 15 min, 5 min."
    ),
    Action("longer_log", LOGS, "V", "time range, reverse", "Cycle the time range in reverse."),
    Action("next_time_mode", LOGS, "t", "time", "Cycle timestamps: local, UTC, age, since the start, off."),
    Action("toggle_wrap", LOGS, "w", "wrap", "Wrap or truncate long lines; ← and → scroll sideways."),
    Action("toggle_fold", LOGS, "enter", "expand", "Expand or collapse a fold or JSON; retry a gap."),
    Action("toggle_tracebacks", LOGS, "S", "tracebacks", "Fold or expand tracebacks."),
    Action(
        "toggle_progress", LOGS, "P", "progress bars", "Show only the latest state of progress bars, or all."
    ),
    Action("toggle_repeats", LOGS, "D", "repeats", "Fold or expand lines repeated by many ranks."),
    Action("toggle_bookmark", LOGS, "b", "bookmark", "Toggle a bookmark on this line."),
    Action("next_bookmark", LOGS, "apostrophe", "next bookmark", "Next bookmark."),
    Action("previous_bookmark", LOGS, "quotation_mark", "previous bookmark", "Previous bookmark."),
    Action("extend_down", LOGS, "shift+down", "select down", "Extend the selection down (or drag)."),
    Action("extend_up", LOGS, "shift+up", "select up", "Extend the selection up."),
    Action("copy_lines", LOGS, "Y", "copy lines", "Copy this line, or the selected lines."),
    Action(
        "save_log",
        LOGS,
        "W",
        "save log",
        "Save the shown lines or the whole log to a file.",
        opens_field=True,
    ),
    Action("page_log", LOGS, "O", "pager", "Open the shown lines in $PAGER."),
    Action("edit_log", LOGS, "I", "editor", "Open the shown lines in $EDITOR."),
    Action("oldest_line", LOGS, "g", "oldest line", "Go to the oldest line."),
    Action("newest_line", LOGS, "G", "newest line", "Go to the newest line and follow."),
)
