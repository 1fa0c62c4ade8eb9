"""On the cache of a project."""

from __future__ import annotations

from tui.actions.action import Action, Scope

ACTIONS: tuple[Action, ...] = (
    Action("open_node", Scope.CACHE, "enter", "open", "Open or close the directory under the cursor."),
    Action(
        "open_below",
        Scope.CACHE,
        "asterisk",
        "open all",
        "Open every directory below the cursor; close them when all are open.",
    ),
    Action(
        "filter",
        Scope.CACHE,
        "slash",
        "filter",
        "Show only paths with a text, or that fit a pattern such as *.safetensors.",
        in_footer=True,
        opens_field=True,
    ),
    Action(
        "sort", Scope.CACHE, "S", "sort", "Sort by the next column: size, name, time, type.", in_footer=True
    ),
    Action("reverse_sort", Scope.CACHE, "V", "reverse", "Turn the order of the sort around."),
    Action("copy_path", Scope.CACHE, "y", "copy path", "Copy the path under the cursor.", in_footer=True),
)
