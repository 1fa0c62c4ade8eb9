"""On the files of a checkpoint."""

from __future__ import annotations

from tui.actions.action import Action, Scope

ACTIONS: tuple[Action, ...] = (
    Action(
        "open_node",
        Scope.FILES,
        "enter",
        "open",
        "Open or close the directory under the cursor; show the file over the whole screen.",
    ),
    Action(
        "open_below",
        Scope.FILES,
        "asterisk",
        "open all",
        "Open every directory below the cursor; close them when all are open.",
    ),
    Action(
        "mark",
        Scope.FILES,
        "space",
        "mark",
        "Mark the file or directory, to download several.",
        in_footer=True,
    ),
    Action(
        "download",
        Scope.FILES,
        "D",
        "download",
        "Download what is marked; without marks, what is under the cursor.",
        in_footer=True,
    ),
    Action(
        "filter",
        Scope.FILES,
        "slash",
        "filter",
        "Show only paths with a text, or that fit a pattern such as *.json.",
        in_footer=True,
        opens_field=True,
    ),
    Action("sort", Scope.FILES, "S", "sort", "Sort by the next column: name, size, time, type."),
    Action("reverse_sort", Scope.FILES, "V", "reverse", "Turn the order of the sort around."),
    Action(
        "toggle_preview", Scope.FILES, "p", "preview", "Show or hide what is in the file.", in_footer=True
    ),
    Action("copy_path", Scope.FILES, "y", "copy path", "Copy the path under the cursor."),
)
