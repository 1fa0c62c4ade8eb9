"""All actions of the dashboard, by scope, in the order in which help and documentation show them.

Footer, help screen, command palette and docs/keys.md read this table, so they cannot disagree. An action is
carried out by the method ``action_<id>`` of the screen, pane or app that has its scope, unless
``IMPLEMENTATIONS`` has an entry for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Flag, StrEnum, auto
from functools import cache


class Scope(StrEnum):
    """A place where an action works. Help, palette and docs/keys.md use this order."""

    HOME = "home"
    JOB = "job"  # the job screen, on any tab
    LOGS = "logs"  # the log of a run: the Live and Logs tabs
    CHARTS = "charts"  # the charts of a run: the Live and Metrics tabs
    METRICS = "metrics"  # the tab Metrics only
    CHECKPOINTS = "checkpoints"  # the Checkpoints tab
    STATUS = "status"  # the tabs without a log: Metrics, Checkpoints, Details
    RECORDING = "recording"  # the job screen of a recording (bt-tui open)
    FILES = "files"  # the files of a checkpoint
    CACHE = "cache"  # the cache of a project
    DOWNLOADS = "downloads"
    COMPARE = "compare"
    CAPACITY = "capacity"
    WHY = "why"
    SUBMIT = "submit"
    DEPLOY = "deploy"
    SCREEN = "screen"  # every screen, each with its own behavior
    APP = "app"  # the same on every screen


SCOPE_TITLES = {scope: scope.capitalize() for scope in Scope} | {
    Scope.LOGS: "Log",
    Scope.STATUS: "Metrics, Checkpoints, Details",
    Scope.SCREEN: "Every screen",
}
"""Headings of the scopes in the help screen and in docs/keys.md."""

JOB_TABS: dict[str, tuple[Scope, ...]] = {
    "live": (Scope.LOGS, Scope.CHARTS),
    "logs": (Scope.LOGS,),
    "metrics": (Scope.CHARTS, Scope.METRICS, Scope.STATUS),
    "checkpoints": (Scope.CHECKPOINTS, Scope.STATUS),
    "details": (Scope.STATUS,),
}
"""The tabs of the job screen, with the scopes that are active on each tab besides ``Scope.JOB``."""

READ_ONLY_NOTE = "Off: read-only."
"""Appended to the help of a dangerous action in a read-only dashboard."""


class ActionFlag(Flag):
    """A special property of an action."""

    FOOTER = auto()
    """The footer shows the action if there is room."""
    DANGEROUS = auto()
    """The action changes something on the server: it asks for confirmation, and is off if read-only."""
    FIELD = auto()
    """The action opens an input field; all keys typed after the action's key go to the field."""
    RARE = auto()
    """Help lists the action under "Less common": few users need it, or it reverses another action."""


NO_FLAGS = ActionFlag(0)


@dataclass(frozen=True, slots=True)
class Action:
    """Something the user can do by a key, in the palette, or by a click in the help.

    ``keys`` are Textual key names, separated by commas. ``label`` is the text in the footer and the palette;
    ``help`` is one short sentence. ``implementation`` is the action's entry in ``IMPLEMENTATIONS``; empty if
    there is none, because a method ``action_<id>`` carries out the action.
    """

    scope: Scope
    id: str
    keys: str
    label: str
    help: str
    flags: ActionFlag = NO_FLAGS
    implementation: str = ""

    @property
    def call(self) -> str:
        """The argument for Textual's ``run_action`` that runs the action, such as ``screen.stop_job``."""
        return f"{'app' if self.scope is Scope.APP else 'screen'}.{self.id}"

    def sentence(self, *, read_only: bool) -> str:
        """Return the help text, with a note if the dashboard is read-only and the action is off."""
        return (
            f"{self.help} {READ_ONLY_NOTE}" if read_only and ActionFlag.DANGEROUS in self.flags else self.help
        )


FOOTER, DANGEROUS, FIELD, RARE = ActionFlag.FOOTER, ActionFlag.DANGEROUS, ActionFlag.FIELD, ActionFlag.RARE

CHART_CALLS = {
    "zoom_in": "zoom(1)",
    "zoom_out": "zoom(-1)",
    "log_scale": "toggle_in_view('log_scale')",
    "band": "toggle_in_view('draws_lines')",
    "cursor_left": "move_cursor(-1)",
    "cursor_right": "move_cursor(1)",
    "cursor_far_left": "move_cursor(-10)",
    "cursor_far_right": "move_cursor(10)",
    "pan_back": "pan(-0.5)",
    "pan_forward": "pan(0.5)",
}
"""Implementations of chart actions: ``move_cursor`` takes columns, ``pan`` a fraction of the time range."""

ActionRow = tuple[str, str, str, str] | tuple[str, str, str, str, ActionFlag]
"""An ``Action`` without its scope: ``id``, ``keys``, ``label``, ``help`` and, if any, ``flags``."""

ROWS: dict[Scope, tuple[ActionRow, ...]] = {
    Scope.HOME: (
        (
            "open_job",
            "enter",
            "open",
            "Open the job; a failed job opens on Logs, the last opened job as you left it.",
        ),
        (
            "filter",
            "slash",
            "filter",
            "Filter jobs, e.g. llama status:running gpu:h100 age<2d.",
            FOOTER | FIELD,
        ),
        (
            "next_alarmed",
            "exclamation_mark",
            "attention",
            "Go to the next job that needs attention, worst first.",
            FOOTER,
        ),
        ("sort", "S", "sort", "Sort by the next column (or click a heading).", FOOTER),
        ("reverse_sort", "V", "reverse", "Reverse sort order.", RARE),
        (
            "new_job",
            "n",
            "new",
            "Submit a new job from a config or a starter project.",
            FOOTER | DANGEROUS,
        ),
        ("toggle_projects", "p", "projects", "Show or hide the project list.", RARE),
        ("open_cache", "C", "cache", "Browse the cache of the selected project or job."),
        ("deploy", "d", "deploy", "Deploy checkpoints of the selected job.", DANGEROUS),
        ("stop_job", "s", "stop", "Stop the marked jobs, or the selected one.", FOOTER | DANGEROUS),
        (
            "recreate_job",
            "R",
            "run again",
            "Run the marked jobs again, or the selected one.",
            FOOTER | DANGEROUS,
        ),
        (
            "delete_job",
            "X,delete",
            "delete",
            "Delete the marked ended jobs, or the selected job or project.",
            DANGEROUS,
        ),
        ("mark", "space", "mark", "Mark the job for bulk actions."),
        ("bookmark", "B", "bookmark", "Toggle a bookmark (filter with is:bookmarked)."),
        ("compare", "c", "compare", "Compare the marked jobs, or a marked job with the selected one."),
        ("open_capacity", "Q", "capacity", "Show GPU capacity and the queue."),
        ("export", "E", "export", "Export the listed jobs as CSV or JSON.", RARE),
        ("snooze", "z", "snooze", "Snooze this job's alerts; press again to undo."),
        ("copy_id", "y", "copy id", "Copy the job id."),
        ("copy_status", "Y", "copy status", "Copy the status of the marked jobs, or the selected one."),
        ("open_browser", "o", "browser", "Open the job in the browser."),
    ),
    Scope.JOB: (
        ("show_live", "1", "Live", "Show the overview: nodes, charts and the end of the log."),
        ("show_logs", "2", "Logs", "Show the log full screen."),
        ("show_metrics", "3", "Metrics", "Show the charts full screen."),
        ("show_checkpoints", "4", "Checkpoints", "Show the job's checkpoints."),
        ("show_details", "5", "Details", "Show job details and history."),
        ("next_tab", "tab", "next tab", "Next tab."),
        ("previous_tab", "shift+tab", "previous tab", "Previous tab.", RARE),
        (
            "next_node",
            "right_square_bracket",
            "node",
            "Show only the next node; after the last, show all.",
            FOOTER,
        ),
        ("previous_node", "left_square_bracket", "previous node", "Show only the previous node.", RARE),
        ("why", "exclamation_mark", "why", "Explain the findings of this job (or click one).", FOOTER),
        ("deploy", "d", "deploy", "Deploy this job's checkpoints.", FOOTER | DANGEROUS),
        ("stop_job", "s", "stop", "Stop this job.", FOOTER | DANGEROUS),
        ("recreate_job", "R", "run again", "Run this job again.", FOOTER | DANGEROUS),
        (
            "resume",
            "K",
            "resume",
            "Copy the command that resumes the job from its newest checkpoint.",
            FOOTER,
        ),
        ("open_cache", "C", "cache", "Browse the project's cache."),
        ("record", "ctrl+r", "record", "Record the run to a file; press again to stop."),
        ("download_source", "A", "source", "Download the job's source code."),
        ("compare", "c", "compare", "Compare with the previous job in this project."),
        ("export", "E", "export", "Export the chart data as CSV or JSON.", RARE),
        ("snooze", "z", "snooze", "Snooze this job's alerts; press again to undo."),
        ("bookmark", "B", "bookmark", "Toggle a bookmark (a star on Home)."),
        (
            "copy_id",
            "y",
            "copy id",
            "Copy the job id; on Checkpoints the address bt://project@job/checkpoint.",
        ),
        ("open_browser", "o", "browser", "Open the job in the browser."),
    ),
    Scope.LOGS: (
        ("toggle_follow", "f", "follow", "Follow new lines, or stop following.", FOOTER),
        ("find_in_log", "slash", "find", "Search the log for text or a regular expression.", FOOTER | FIELD),
        ("next_match", "n", "next match", "Next match.", FOOTER),
        ("previous_match", "N", "previous match", "Previous match."),
        ("filter_log", "ampersand", "filter", "Show only lines that match, or that don't.", FIELD),
        ("next_level", "l", "level", "Cycle the minimum level: all, INFO, WARNING, ERROR."),
        ("first_error", "e", "first error", "Jump to the first error on any node."),
        ("next_error", "x", "next error", "Next error."),
        ("previous_error", "X", "previous error", "Previous error."),
        ("hide_node", "h", "hide node", "Hide the node that logged this line."),
        ("show_all_nodes", "H", "all nodes", "Show all nodes again."),
        ("split_log", "vertical_line", "split", "Show nodes side by side, or in one log."),
        ("next_column", "full_stop", "next column", "Side by side: focus the next node."),
        ("previous_column", "comma", "previous column", "Side by side: focus the previous node.", RARE),
        ("go_to_time", "at", "go to time", "Go to a time: 12:30, a date, -15m, 1h20m from start.", FIELD),
        ("minute_back", "left_curly_bracket", "−1 min", "Back one minute.", RARE),
        ("minute_forward", "right_curly_bracket", "+1 min", "Forward one minute.", RARE),
        ("hour_back", "left_parenthesis", "−1 h", "Back one hour.", RARE),
        ("hour_forward", "right_parenthesis", "+1 h", "Forward one hour.", RARE),
        ("shorter_log", "v", "time range", "Cycle the time range: run, 24 h, 6 h, 1 h, 15 min, 5 min."),
        ("longer_log", "V", "time range, reverse", "Cycle the time range in reverse.", RARE),
        ("next_time_mode", "t", "time", "Cycle timestamps: local, UTC, age, since the start, off."),
        ("toggle_wrap", "w", "wrap", "Wrap or truncate long lines; ← and → scroll sideways."),
        ("toggle_fold", "enter", "expand", "Expand or collapse a fold or JSON; retry a gap."),
        ("toggle_tracebacks", "S", "tracebacks", "Fold or expand tracebacks.", RARE),
        ("toggle_progress", "P", "progress", "Show only the latest state of progress bars, or all.", RARE),
        ("toggle_repeats", "D", "repeats", "Fold or expand lines repeated by many ranks.", RARE),
        ("toggle_bookmark", "b", "bookmark", "Toggle a bookmark on this line."),
        ("next_bookmark", "apostrophe", "next bookmark", "Next bookmark."),
        ("previous_bookmark", "quotation_mark", "previous bookmark", "Previous bookmark.", RARE),
        ("extend_down", "shift+down", "select down", "Extend the selection down (or drag)."),
        ("extend_up", "shift+up", "select up", "Extend the selection up.", RARE),
        ("copy_lines", "Y", "copy lines", "Copy this line, or the selected lines."),
        ("save_log", "W", "save log", "Save the shown lines or the whole log to a file.", FIELD),
        ("page_log", "O", "pager", "Open the shown lines in $PAGER.", RARE),
        ("edit_log", "I", "editor", "Open the shown lines in $EDITOR.", RARE),
        ("oldest_line", "g", "oldest line", "Go to the oldest line."),
        ("newest_line", "G", "newest line", "Go to the newest line and follow."),
    ),
    Scope.CHARTS: (
        ("next_chart", "m", "chart", "Next chart.", FOOTER),
        ("zoom_in", "plus,equals_sign", "zoom in", "Show the next shorter time range (or mouse wheel)."),
        ("zoom_out", "minus", "zoom out", "Show a longer time range, up to the whole run."),
        ("pick_node", "p", "pick node", "Pick a node with the arrow keys and enter; p or esc to leave."),
        ("matrix_metric", "u", "util/mem", "Show GPU utilization or memory in the node × GPU matrix."),
    ),
    Scope.METRICS: (
        ("zoom_chart", "enter", "zoom", "Show only the front chart, or all charts again."),
        (
            "filter_charts",
            "slash",
            "filter",
            "Show only charts with these words in their names, such as rew.",
            FOOTER | FIELD,
        ),
        ("pin", "P", "pin", "Pin the front chart: it comes first, and Live shows it, too.", FOOTER),
        ("chart_layout", "v", "layout", "Cycle the layout: all charts, one large, one per row.", FOOTER),
        ("nodes", "n", "nodes", "Show every GPU of every node, or the charts.", FOOTER),
        ("cursor_left", "left", "readout", "Move the readout one column left.", FOOTER),
        ("cursor_right", "right", "readout right", "Move the readout one column right.", RARE),
        ("cursor_far_left", "shift+left", "readout 10 left", "Move the readout ten columns left.", RARE),
        ("cursor_far_right", "shift+right", "readout 10 right", "Move the readout ten columns right.", RARE),
        ("pan_back", "less_than_sign,comma", "earlier", "Pan left (or drag)."),
        ("pan_forward", "greater_than_sign,full_stop", "later", "Pan right."),
        ("first_time", "g,home", "start", "Go to the start of the run."),
        ("newest_time", "G,end", "newest", "Go to the newest samples and follow."),
        ("next_series", "down,j", "next series", "Select the next series and draw it on top."),
        ("previous_series", "up,k", "previous series", "Select the previous series.", RARE),
        ("toggle_series", "space", "hide/show", "Hide or show the selected series (or click its name)."),
        ("only_series", "i", "solo", "Solo the selected series; press again to show all."),
        ("all_series", "a", "all series", "Show all series."),
        ("smoothing", "M", "smooth", "Increase smoothing; after the maximum, turn it off."),
        ("band", "b", "band", "Draw nodes as a band with outliers, or one line each."),
        ("log_scale", "L", "log scale", "Toggle log scale on charts without a fixed range."),
        ("x_axis", "x", "x axis", "Cycle the x axis: time ago, clock, time since start, step."),
        ("sort_nodes", "S", "sort nodes", "Sort nodes with problems first, or by rank."),
        ("node_history", "H", "history", "Show nodes over time, one row each, or current values."),
    ),
    Scope.CHECKPOINTS: (
        ("open_checkpoint", "enter", "files", "Browse the checkpoint's files."),
        (
            "download_checkpoint",
            "D",
            "download",
            "Download the marked checkpoints, or the selected one.",
            FOOTER,
        ),
        ("mark_checkpoint", "space", "mark", "Mark the checkpoint for comparing or downloading."),
        (
            "compare_checkpoints",
            "equals_sign",
            "compare",
            "Compare two marked checkpoints: size, files, step, adapter config.",
            FOOTER,
        ),
        (
            "copy_load_config",
            "L",
            "resume from",
            "Copy the LoadCheckpointConfig that resumes training from this checkpoint.",
        ),
        ("sort_checkpoints", "S", "sort", "Sort by the next column (or click a heading)."),
        ("reverse_checkpoints", "V", "reverse", "Reverse sort order.", RARE),
    ),
    Scope.STATUS: (("copy_status", "Y", "copy status", "Copy the job's status as Markdown."),),
    Scope.RECORDING: (
        ("play", "semicolon", "play", "Play or pause the recording; at its end, play it again.", FOOTER),
        ("step_back", "ctrl+left", "back", "Step back in time (or click or drag on the time bar).", FOOTER),
        ("step_forward", "ctrl+right", "forward", "Step forward in time.", FOOTER),
        ("next_mark", "9", "next mark", "Go to the next checkpoint, error or finding.", FOOTER),
        ("previous_mark", "8", "previous mark", "Go to the previous checkpoint, error or finding."),
        ("faster", "7", "faster", "Play faster."),
        ("slower", "6", "slower", "Play slower."),
    ),
    Scope.FILES: (
        ("open_node", "enter", "open", "Expand or collapse the directory; open the file full screen."),
        ("open_below", "asterisk", "expand all", "Expand everything below; if all is expanded, collapse it."),
        ("mark", "space", "mark", "Mark the file or directory for download.", FOOTER),
        ("download", "D", "download", "Download the marked files, or the selected entry.", FOOTER),
        ("filter", "slash", "filter", "Filter paths by text or a pattern, e.g. *.json.", FOOTER | FIELD),
        ("sort", "S", "sort", "Sort by the next column: name, size, time, type."),
        ("reverse_sort", "V", "reverse", "Reverse sort order.", RARE),
        ("toggle_preview", "p", "preview", "Show or hide the preview.", FOOTER),
        ("copy_path", "y", "copy path", "Copy the path."),
    ),
    Scope.CACHE: (
        ("open_node", "enter", "open", "Expand or collapse the directory."),
        ("open_below", "asterisk", "expand all", "Expand everything below; if all is expanded, collapse it."),
        (
            "filter",
            "slash",
            "filter",
            "Filter paths by text or a pattern, e.g. *.safetensors.",
            FOOTER | FIELD,
        ),
        ("sort", "S", "sort", "Sort by the next column: size, name, time, type.", FOOTER),
        ("reverse_sort", "V", "reverse", "Reverse sort order.", RARE),
        ("copy_path", "y", "copy path", "Copy the path.", FOOTER),
        ("delete", "X,D", "delete", "Show how to delete or copy files: the API only lists them.", RARE),
    ),
    Scope.DOWNLOADS: (
        (
            "cancel_download",
            "x",
            "cancel",
            "Cancel the download; partial files are kept, so it can resume.",
            FOOTER,
        ),
        ("retry_download", "t", "resume", "Resume a canceled or failed download.", FOOTER),
        ("copy_folder", "y", "copy folder", "Copy the folder's path.", FOOTER),
        ("clear_finished", "c", "clear", "Clear finished downloads."),
    ),
    Scope.COMPARE: (
        ("x_axis", "x", "x axis", "Cycle the x axis: step, time since start, clock.", FOOTER),
        ("next_chart", "m", "chart", "Next chart: loss, eval loss, throughput, shared metrics.", FOOTER),
        (
            "filter_charts",
            "slash",
            "filter",
            "Show only charts with these words in their names, such as rew.",
            FOOTER | FIELD,
        ),
        ("layout", "v", "layout", "Cycle the layout: charts and table, charts, table.", FOOTER),
        ("smoothing", "M", "smooth", "Increase smoothing; after the maximum, turn it off."),
        ("log_scale", "L", "log scale", "Toggle log scale."),
        ("zoom_in", "plus,equals_sign", "zoom in", "Show the next shorter range (or mouse wheel)."),
        ("zoom_out", "minus", "zoom out", "Show a longer range, up to the whole run."),
        ("cursor_left", "left", "readout", "Move the readout one column left.", FOOTER),
        ("cursor_right", "right", "readout right", "Move the readout one column right.", RARE),
        ("cursor_far_left", "shift+left", "readout 10 left", "Move the readout ten columns left.", RARE),
        ("cursor_far_right", "shift+right", "readout 10 right", "Move the readout ten columns right.", RARE),
        ("pan_back", "less_than_sign,comma", "earlier", "Pan left (or drag)."),
        ("pan_forward", "greater_than_sign,full_stop", "later", "Pan right."),
        ("next_base", "b", "baseline", "Use the next job as the baseline.", FOOTER),
        ("only_differing", "d", "diffs only", "Show only the rows that differ, or all.", FOOTER),
        ("code", "C", "code", "Show what differs between the first two jobs in code and settings.", FOOTER),
        ("export", "E", "export", "Export the table or the curves as CSV or JSON.", FOOTER),
    ),
    Scope.CAPACITY: (
        ("open_job", "enter", "open", "Open the job."),
        ("other_table", "tab", "GPUs/jobs", "Switch between GPUs and jobs.", FOOTER),
        ("every_type", "a", "by type", "Show jobs of the selected GPU type, or of all types.", FOOTER),
        ("export", "E", "export", "Export limits and queue as CSV or JSON.", RARE),
    ),
    Scope.WHY: (
        ("next_problem", "exclamation_mark,n", "next problem", "Explain the next problem.", FOOTER),
        ("show_log", "enter", "show log", "Open the log where the problem began."),
        ("stop_job", "s", "stop", "Stop the job, now or after its next checkpoint.", DANGEROUS),
        ("resume", "K", "resume", "Copy the command that resumes the job from its newest checkpoint."),
        ("copy_markdown", "Y", "copy", "Copy the explanation as Markdown, for a chat or an issue."),
    ),
    Scope.SUBMIT: (("submit", "ctrl+s", "submit", "Submit this job.", FOOTER | DANGEROUS),),
    Scope.DEPLOY: (
        ("next", "ctrl+s", "next", "Next step.", FOOTER),
        ("previous", "ctrl+b", "previous", "Previous step (answers are kept).", FOOTER),
        ("copy", "ctrl+y", "copy", "Copy the config, or the code that calls the model."),
        (
            "promote",
            "p",
            "promote",
            "Make this deployment the production deployment of its model.",
            FOOTER | DANGEROUS,
        ),
        (
            "deactivate",
            "x",
            "deactivate",
            "Stop the deployment until it is activated again.",
            FOOTER | DANGEROUS,
        ),
        ("activate", "a", "activate", "Start the inactive deployment again.", FOOTER | DANGEROUS),
        ("retry", "t", "retry", "Start the failed deployment again.", FOOTER | DANGEROUS),
    ),
    Scope.SCREEN: (
        ("back", "escape", "back", "Clear the filter, marks, readout or sorting; if none is set, go back."),
        ("refresh", "r", "refresh", "Refresh now."),
    ),
    Scope.APP: (
        ("show_downloads", "T", "downloads", "Show downloads and their progress."),
        ("go_back", "alt+left,backspace", "go back", "Go back, as in a browser."),
        ("go_forward", "alt+right,F", "go forward", "Go forward, as in a browser.", RARE),
        ("switch_project", "0", "team or project", "Switch team or project, or show all."),
        ("switch_remote", "U", "remote", "Switch remote."),
        ("help", "question_mark", "help", "Show keyboard shortcuts.", FOOTER),
        ("quit", "q", "quit", "Quit. Jobs keep running, except in the demo.", FOOTER),
        ("command_palette", "colon,ctrl+p", "commands", "Search jobs and actions.", FOOTER),
    ),
}

IMPLEMENTATIONS = {
    Scope.HOME: {
        "new_job": "submit.SubmitPage",
        "stop_job": "change_jobs('stop')",
        "recreate_job": "change_jobs('recreate')",
        "bookmark": "messages.BookmarkRequested",
        "open_capacity": "capacity.CapacityPage",
        "open_browser": "messages.BrowserRequested",
    },
    Scope.JOB: {
        **{f"show_{tab}": f"show_tab('{tab}')" for tab in JOB_TABS},
        "next_tab": "step_tab(1)",
        "previous_tab": "step_tab(-1)",
        "next_node": "step_node(1)",
        "previous_node": "step_node(-1)",
        "stop_job": "change_job('stop')",
        "recreate_job": "change_job('recreate')",
        "record": "messages.RecordRequested",
        "bookmark": "messages.BookmarkRequested",
        "open_browser": "messages.BrowserRequested",
    },
    Scope.LOGS: {
        "next_match": "go_to_match(1)",
        "previous_match": "go_to_match(-1)",
        "next_error": "go_to_error(1)",
        "previous_error": "go_to_error(-1)",
        "next_bookmark": "go_to_bookmark(1)",
        "previous_bookmark": "go_to_bookmark(-1)",
        "extend_down": "extend(1)",
        "extend_up": "extend(-1)",
        "next_column": "focus_column(1)",
        "previous_column": "focus_column(-1)",
        "minute_back": "jump(-60)",
        "minute_forward": "jump(60)",
        "hour_back": "jump(-3600)",
        "hour_forward": "jump(3600)",
        "shorter_log": "next_length(1)",
        "longer_log": "next_length(-1)",
        "toggle_wrap": "toggle_option('wrap')",
        "toggle_tracebacks": "toggle_option('fold_tracebacks')",
        "toggle_progress": "toggle_option('collapse_progress')",
        "toggle_repeats": "toggle_option('fold_repeats')",
        "page_log": "open_outside('pager')",
        "edit_log": "open_outside('editor')",
    },
    Scope.CHARTS: {
        **CHART_CALLS,
        "matrix_metric": "toggle_in_matrix('memory')",
    },
    Scope.METRICS: {
        **CHART_CALLS,
        "next_series": "select_series(1)",
        "previous_series": "select_series(-1)",
        "sort_nodes": "toggle_in_matrix('worst_first')",
        "node_history": "toggle_in_matrix('over_time')",
    },
    Scope.RECORDING: {
        "step_back": "step(-1)",
        "step_forward": "step(1)",
        "next_mark": "go_to_mark(1)",
        "previous_mark": "go_to_mark(-1)",
        "faster": "change_speed(1)",
        "slower": "change_speed(-1)",
    },
    Scope.COMPARE: CHART_CALLS,
    Scope.DEPLOY: {verb: f"change('{verb}')" for verb in ("promote", "deactivate", "activate", "retry")},
}
"""Implementations of actions that have no method of their own.

``module.Class`` is a class in ``tui.screens``: a page to open or, if it has fields, a message about the
screen's job to post. Anything else is a call such as ``change_jobs('stop')``: the screen's method with this
name after ``action_``.
"""

ACTIONS = tuple(
    replace(Action(scope, *row), implementation=IMPLEMENTATIONS.get(scope, {}).get(row[0], ""))
    for scope, rows in ROWS.items()
    for row in rows
)


@cache
def actions_of(*scopes: Scope) -> tuple[Action, ...]:
    return tuple(action for action in ACTIONS if action.scope in scopes)


@cache
def actions_named(action_id: str, *scopes: Scope) -> tuple[Action, ...]:
    """Return the actions of these scopes that have this id.

    Cached, because Textual checks the actions of all bindings whenever the focus changes.
    """
    return tuple(action for action in actions_of(*scopes) if action.id == action_id)
