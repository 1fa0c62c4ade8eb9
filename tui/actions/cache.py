"""Actions of the cache screen."""

from __future__ import annotations

from tui.actions.action import Action, Scope

ACTIONS: tuple[Action, ...] = (
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
