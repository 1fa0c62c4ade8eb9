"""On the log of a run: the tabs Live and Logs."""

from __future__ import annotations

from tui.actions.action import Action, Scope

LOGS = Scope.LOGS

ACTIONS: tuple[Action, ...] = (
    Action(
        "toggle_follow",
        LOGS,
        "f",
        "follow",
        "Follow the end of the log, or stay where you are.",
        in_footer=True,
    ),
    Action(
        "find_in_log",
        LOGS,
        "slash",
        "find",
        "Find a text or an expression in the log.",
        in_footer=True,
        opens_field=True,
    ),
    Action("next_match", LOGS, "n", "next match", "The next line that matches."),
    Action("previous_match", LOGS, "N", "previous match", "The previous line that matches."),
    Action(
        "filter_log",
        LOGS,
        "ampersand",
        "filter",
        "Show only lines that match, or that do not.",
        opens_field=True,
    ),
    Action(
        "next_level",
        LOGS,
        "l",
        "level",
        "Show all lines, or only INFO, WARNING or ERROR and worse.",
    ),
    Action("first_error", LOGS, "e", "first error", "Go to the first error of all nodes."),
    Action("next_error", LOGS, "x", "next error", "The next error."),
    Action("previous_error", LOGS, "X", "previous error", "The previous error."),
    Action("hide_node", LOGS, "h", "hide node", "Hide the node of the line under the cursor."),
    Action("show_all_nodes", LOGS, "H", "all nodes", "Show the lines of all nodes again."),
    Action("split_log", LOGS, "vertical_line", "split", "The nodes side by side, or one log again."),
    Action("next_column", LOGS, "full_stop", "next column", "Side by side: keys go to the next node."),
    Action("previous_column", LOGS, "comma", "previous column", "Side by side: to the node before."),
    Action(
        "go_to_time",
        LOGS,
        "at",
        "go to time",
        "Go to a time: 12:30, a date, -15m, 1h20m from the start.",
        opens_field=True,
    ),
    Action("minute_back", LOGS, "left_curly_bracket", "−1 min", "A minute back."),
    Action("minute_on", LOGS, "right_curly_bracket", "+1 min", "A minute on."),
    Action("hour_back", LOGS, "left_parenthesis", "−1 h", "An hour back."),
    Action("hour_on", LOGS, "right_parenthesis", "+1 h", "An hour on."),
    Action("shorter_log", LOGS, "v", "span", "Show only the last 24 h, 6 h, 1 h, 15 min, 5 min, or all."),
    Action("longer_log", LOGS, "V", "longer span", "The span of the log shown, the other way round."),
    Action("next_time_mode", LOGS, "t", "time", "Log times local, UTC, as age, since the start, or off."),
    Action("toggle_wrap", LOGS, "w", "wrap", "Wrap long log lines, or cut them; ← and → shift them."),
    Action(
        "toggle_fold", LOGS, "enter", "open line", "Open or close a fold; spread out JSON; read a gap again."
    ),
    Action("toggle_tracebacks", LOGS, "S", "tracebacks", "Fold tracebacks, or show all their lines."),
    Action(
        "toggle_progress", LOGS, "P", "progress bars", "Progress bars by their last state, or all states."
    ),
    Action("toggle_repeats", LOGS, "D", "repeats", "Fold the same line of many ranks, or show each."),
    Action(
        "toggle_bookmark", LOGS, "b", "bookmark", "Set or take away a bookmark on the line under the cursor."
    ),
    Action("next_bookmark", LOGS, "apostrophe", "next bookmark", "The next bookmark."),
    Action("previous_bookmark", LOGS, "quotation_mark", "previous bookmark", "The previous bookmark."),
    Action("extend_down", LOGS, "shift+down", "select down", "Select lines downwards; the mouse does too."),
    Action("extend_up", LOGS, "shift+up", "select up", "Select lines upwards."),
    Action("copy_lines", LOGS, "Y", "copy lines", "Copy the line under the cursor, or the selected lines."),
    Action(
        "save_log",
        LOGS,
        "W",
        "save log",
        "Save the lines shown, or the whole log, to a file.",
        opens_field=True,
    ),
    Action("page_log", LOGS, "O", "pager", "Open the lines shown in $PAGER."),
    Action("edit_log", LOGS, "I", "editor", "Open the lines shown in $EDITOR."),
    Action("oldest_line", LOGS, "g", "oldest line", "Go to the oldest line."),
    Action("newest_line", LOGS, "G", "newest line", "Go to the newest line, and follow."),
)
