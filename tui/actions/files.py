"""Actions of the files of a checkpoint."""

from __future__ import annotations

from tui.actions.action import Action, Scope

ACTIONS: tuple[Action, ...] = (
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
    Action(
        "mark",
        Scope.FILES,
        "space",
        "mark",
        "Mark the file or directory for download.",
        in_footer=True,
    ),
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
