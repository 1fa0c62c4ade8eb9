"""Actions of the whole app, and of every screen but the job screen."""

from __future__ import annotations

from tui.actions.action import Action, Scope

GLOBAL_ACTIONS: tuple[Action, ...] = (
    Action("back", Scope.SCREEN, "escape", "back", "Clear the filter, then go back."),
    Action("refresh", Scope.SCREEN, "r", "refresh", "Refresh now."),
    Action("command_palette", Scope.APP, "colon,ctrl+p", "commands", "Search jobs and actions."),
    Action("show_downloads", Scope.APP, "T", "downloads", "Downloads and their progress."),
    Action("go_back", Scope.APP, "alt+left,backspace", "go back", "Go back, as in a browser."),
    Action("go_forward", Scope.APP, "alt+right,F", "go forward", "Go forward, as in a browser."),
    Action("switch_project", Scope.APP, "0", "team or project", "Switch team or project, or show all."),
    Action("switch_remote", Scope.APP, "U", "remote", "Switch remote."),
    Action("help", Scope.APP, "question_mark", "help", "Keyboard shortcuts.", in_footer=True),
    Action("quit", Scope.APP, "q", "quit", "Quit. Jobs keep running.", in_footer=True),
)


HOME_ACTIONS: tuple[Action, ...] = (
    Action(
        "open_job",
        Scope.HOME,
        "enter",
        "open",
        "Open the job: failed jobs on Logs, the last one as you left it.",
    ),
    Action(
        "filter",
        Scope.HOME,
        "slash",
        "filter",
        "Filter jobs, e.g. llama status:running gpu:h100 age<2d.",
        in_footer=True,
        opens_field=True,
    ),
    Action("sort", Scope.HOME, "S", "sort", "Sort by the next column (or click a heading).", in_footer=True),
    Action("reverse_sort", Scope.HOME, "V", "reverse", "Reverse sort order."),
    Action(
        "new_job",
        Scope.HOME,
        "n",
        "new",
        "Submit a new job from a config file.",
        in_footer=True,
        dangerous=True,
    ),
    Action("toggle_projects", Scope.HOME, "p", "projects", "Show or hide the project list."),
    Action("open_cache", Scope.HOME, "C", "cache", "Browse the cache of the selected project or job."),
    Action("deploy", Scope.HOME, "d", "deploy", "Deploy checkpoints of the selected job.", dangerous=True),
    Action(
        "stop_job",
        Scope.HOME,
        "s",
        "stop",
        "Stop the marked jobs, or the selected one.",
        in_footer=True,
        dangerous=True,
    ),
    Action(
        "recreate_job",
        Scope.HOME,
        "R",
        "run again",
        "Run the marked jobs again, or the selected one.",
        dangerous=True,
    ),
    Action(
        "delete_job",
        Scope.HOME,
        "X,delete",
        "delete",
        "Delete the marked ended jobs, or the selected one.",
        dangerous=True,
    ),
    Action("mark", Scope.HOME, "space", "mark", "Mark the job for bulk actions."),
    Action("bookmark", Scope.HOME, "B", "bookmark", "Toggle a bookmark (filter with is:bookmarked)."),
    Action(
        "compare",
        Scope.HOME,
        "c",
        "compare",
        "Compare the marked jobs, or a marked job with the selected one.",
    ),
    Action("open_capacity", Scope.HOME, "Q", "capacity", "Show GPU capacity and the queue."),
    Action("export", Scope.HOME, "E", "export", "Export the listed jobs as CSV or JSON."),
    Action("snooze", Scope.HOME, "z", "snooze", "Snooze this job's alerts; press again to undo."),
    Action("copy_id", Scope.HOME, "y", "copy id", "Copy the job id."),
    Action("open_browser", Scope.HOME, "o", "browser", "Open the job in the browser."),
)


CACHE_ACTIONS: tuple[Action, ...] = (
    Action("open_node", Scope.CACHE, "enter", "open", "Expand or collapse the directory."),
    Action(
        "open_below",
        Scope.CACHE,
        "asterisk",
        "expand all",
        "Expand everything below; if all is expanded, collapse it.",
    ),
    Action(
        "filter",
        Scope.CACHE,
        "slash",
        "filter",
        "Filter paths by text or a pattern, e.g. *.safetensors.",
        in_footer=True,
        opens_field=True,
    ),
    Action(
        "sort", Scope.CACHE, "S", "sort", "Sort by the next column: size, name, time, type.", in_footer=True
    ),
    Action("reverse_sort", Scope.CACHE, "V", "reverse", "Reverse sort order."),
    Action("copy_path", Scope.CACHE, "y", "copy path", "Copy the path.", in_footer=True),
)


CAPACITY_ACTIONS: tuple[Action, ...] = (
    Action("open_job", Scope.CAPACITY, "enter", "open", "Open the job."),
    Action(
        "other_table", Scope.CAPACITY, "tab", "GPUs/jobs", "Switch between GPUs and jobs.", in_footer=True
    ),
    Action(
        "every_type",
        Scope.CAPACITY,
        "a",
        "all types",
        "Show jobs of the selected GPU type, or of all types.",
        in_footer=True,
    ),
    Action(
        "export", Scope.CAPACITY, "E", "export", "Export limits and queue as CSV or JSON.", in_footer=True
    ),
)


_WHERE = Scope.COMPARE

COMPARE_ACTIONS: tuple[Action, ...] = (
    Action(
        "x_axis", _WHERE, "x", "x axis", "Cycle the x axis: step, time since start, clock.", in_footer=True
    ),
    Action("next_chart", _WHERE, "m", "chart", "Next chart: loss, eval loss, throughput.", in_footer=True),
    Action(
        "layout", _WHERE, "v", "layout", "Cycle the layout: charts and table, charts, table.", in_footer=True
    ),
    Action("smoothing", _WHERE, "M", "smooth", "Increase smoothing; after the maximum, turn it off."),
    Action("log_scale", _WHERE, "L", "log scale", "Toggle log scale."),
    Action("zoom_in", _WHERE, "minus", "zoom in", "Zoom in (or mouse wheel)."),
    Action("zoom_out", _WHERE, "plus,equals_sign", "zoom out", "Zoom out."),
    Action("pan_back", _WHERE, "less_than_sign,comma", "earlier", "Pan left (or drag)."),
    Action("pan_on", _WHERE, "greater_than_sign,full_stop", "later", "Pan right."),
    Action("next_base", _WHERE, "b", "baseline", "Use the next job as the baseline.", in_footer=True),
    Action(
        "only_differing", _WHERE, "d", "diffs only", "Show only the rows that differ, or all.", in_footer=True
    ),
    Action("export", _WHERE, "E", "export", "Export the table or the curves as CSV or JSON.", in_footer=True),
)


DEPLOY_ACTIONS: tuple[Action, ...] = (
    Action("next", Scope.DEPLOY, "ctrl+s", "next", "Next step.", in_footer=True),
    Action(
        "previous", Scope.DEPLOY, "ctrl+b", "previous", "Previous step (answers are kept).", in_footer=True
    ),
    Action("copy", Scope.DEPLOY, "ctrl+y", "copy", "Copy the config, or the code that calls the model."),
)


DOWNLOAD_ACTIONS: tuple[Action, ...] = (
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


FILE_ACTIONS: tuple[Action, ...] = (
    Action(
        "open_node",
        Scope.FILES,
        "enter",
        "open",
        "Expand or collapse the directory; open the file full screen.",
    ),
    Action(
        "open_below",
        Scope.FILES,
        "asterisk",
        "expand all",
        "Expand everything below; if all is expanded, collapse it.",
    ),
    Action("mark", Scope.FILES, "space", "mark", "Mark the file or directory for download.", in_footer=True),
    Action(
        "download",
        Scope.FILES,
        "D",
        "download",
        "Download what is marked, or the selected entry.",
        in_footer=True,
    ),
    Action(
        "filter",
        Scope.FILES,
        "slash",
        "filter",
        "Filter paths by text or a pattern, e.g. *.json.",
        in_footer=True,
        opens_field=True,
    ),
    Action("sort", Scope.FILES, "S", "sort", "Sort by the next column: name, size, time, type."),
    Action("reverse_sort", Scope.FILES, "V", "reverse", "Reverse sort order."),
    Action("toggle_preview", Scope.FILES, "p", "preview", "Show or hide the preview.", in_footer=True),
    Action("copy_path", Scope.FILES, "y", "copy path", "Copy the path."),
)


SUBMIT_ACTIONS: tuple[Action, ...] = (
    Action("submit", Scope.SUBMIT, "ctrl+s", "submit", "Submit this job.", in_footer=True, dangerous=True),
)
