"""Actions of the job screen: on every tab, and on the tabs Logs, Metrics and Checkpoints."""

from __future__ import annotations

from tui.actions.action import Action, Scope

JOB_ACTIONS: tuple[Action, ...] = (
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
    Action("download_source", Scope.JOB, "A", "source", "Download the job's source code."),
    Action("compare", Scope.JOB, "c", "compare", "Compare with the previous job in this project."),
    Action("export", Scope.JOB, "E", "export", "Export the chart data as CSV or JSON."),
    Action("snooze", Scope.JOB, "z", "snooze", "Snooze this job's alerts; press again to undo."),
    Action("bookmark", Scope.JOB, "B", "bookmark", "Toggle a bookmark (a star on Home)."),
    Action("copy_id", Scope.JOB, "y", "copy id", "Copy the job id."),
    Action("open_browser", Scope.JOB, "o", "browser", "Open the job in the browser."),
)


LOGS = Scope.LOGS

LOG_ACTIONS: tuple[Action, ...] = (
    Action("toggle_follow", LOGS, "f", "follow", "Follow new lines, or stop following.", in_footer=True),
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
    Action("next_level", LOGS, "l", "level", "Cycle the minimum level: all, INFO, WARNING, ERROR."),
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
        "Go to a time: 12:30, a date, -15m, 1h20m from start.",
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


CHART_ACTIONS: tuple[Action, ...] = (
    Action("next_chart", Scope.CHARTS, "m", "chart", "Next chart.", in_footer=True),
    Action("next_span", Scope.CHARTS, "plus,equals_sign", "zoom out", "Zoom out (or mouse wheel)."),
    Action("previous_span", Scope.CHARTS, "minus", "zoom in", "Zoom in."),
    Action(
        "pick_node",
        Scope.CHARTS,
        "p",
        "pick node",
        "Pick a node with the arrow keys and enter; p or esc to leave.",
    ),
    Action(
        "matrix_metric",
        Scope.CHARTS,
        "u",
        "util/mem",
        "Show GPU utilization or memory in the node × GPU matrix.",
    ),
)


_WHERE = Scope.METRICS

METRICS_ACTIONS: tuple[Action, ...] = (
    Action(
        "chart_layout",
        _WHERE,
        "v",
        "layout",
        "Cycle the layout: all charts, one large, one per row.",
        in_footer=True,
    ),
    Action("nodes", _WHERE, "n", "nodes", "Show every GPU of every node, or the charts.", in_footer=True),
    Action("cursor_left", _WHERE, "left", "readout", "Move the readout one column left.", in_footer=True),
    Action("cursor_right", _WHERE, "right", "readout right", "Move the readout one column right."),
    Action("cursor_far_left", _WHERE, "shift+left", "readout 10 left", "Move the readout ten columns left."),
    Action(
        "cursor_far_right", _WHERE, "shift+right", "readout 10 right", "Move the readout ten columns right."
    ),
    Action("pan_back", _WHERE, "less_than_sign,comma", "earlier", "Pan left (or drag)."),
    Action("pan_on", _WHERE, "greater_than_sign,full_stop", "later", "Pan right."),
    Action("first_time", _WHERE, "g,home", "start", "Go to the start of the run."),
    Action("newest_time", _WHERE, "G,end", "newest", "Go to the newest samples and follow."),
    Action("next_series", _WHERE, "down,j", "next series", "Select the next series and draw it on top."),
    Action("previous_series", _WHERE, "up,k", "previous series", "Select the previous series."),
    Action(
        "toggle_series", _WHERE, "space", "hide/show", "Hide or show the selected series (or click its name)."
    ),
    Action("only_series", _WHERE, "i", "solo", "Solo the selected series; press again to show all."),
    Action("all_series", _WHERE, "a", "all series", "Show all series."),
    Action("smoothing", _WHERE, "M", "smooth", "Increase smoothing; after the maximum, turn it off."),
    Action("log_scale", _WHERE, "L", "log scale", "Toggle log scale on charts without a fixed range."),
    Action("x_axis", _WHERE, "x", "x axis", "Cycle the x axis: time ago, clock, time since start, step."),
    Action("sort_nodes", _WHERE, "S", "sort nodes", "Sort outlier nodes first, or by rank."),
    Action("node_history", _WHERE, "H", "history", "Show nodes over time, one row each, or current values."),
)


CHECKPOINT_ACTIONS: tuple[Action, ...] = (
    Action("open_checkpoint", Scope.CHECKPOINTS, "enter", "files", "Browse the checkpoint's files."),
    Action(
        "download_checkpoint",
        Scope.CHECKPOINTS,
        "D",
        "download",
        "Download the marked checkpoints, or the selected one.",
        in_footer=True,
    ),
    Action(
        "mark_checkpoint",
        Scope.CHECKPOINTS,
        "space",
        "mark",
        "Mark the checkpoint for comparing or downloading.",
    ),
    Action(
        "compare_checkpoints",
        Scope.CHECKPOINTS,
        "equals_sign",
        "compare",
        "Compare two marked checkpoints: size, files, step, adapter config.",
        in_footer=True,
    ),
    Action(
        "copy_load_config",
        Scope.CHECKPOINTS,
        "L",
        "resume from",
        "Copy the LoadCheckpointConfig that resumes training from this checkpoint.",
    ),
    Action(
        "sort_checkpoints",
        Scope.CHECKPOINTS,
        "S",
        "sort",
        "Sort by the next column: created, name, step, size, type.",
    ),
    Action("reverse_checkpoints", Scope.CHECKPOINTS, "V", "reverse", "Reverse sort order."),
)
