"""Turn the table of actions into textual's bindings."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from tui.actions import Scope, actions_of

KEY_SIGNS = {
    "slash": "/",
    "ampersand": "&",
    "question_mark": "?",
    "colon": ":",
    "plus": "+",
    "equals_sign": "=",
    "minus": "-",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "left_curly_bracket": "{",
    "right_curly_bracket": "}",
    "left_parenthesis": "(",
    "right_parenthesis": ")",
    "vertical_line": "|",
    "apostrophe": "'",
    "quotation_mark": '"',
    "at": "@",
    "full_stop": ".",
    "comma": ",",
    "escape": "esc",
    "shift+up": "⇧↑",
    "shift+down": "⇧↓",
    "left": "←",
    "right": "→",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "up": "↑",
    "down": "↓",
    "shift+left": "⇧←",
    "shift+right": "⇧→",
    "shift+tab": "⇧tab",
    "ctrl+p": "^p",
    "ctrl+s": "^s",
    "ctrl+b": "^b",
    "ctrl+y": "^y",
    "ctrl+o": "^o",
}


def key_sign(key: str) -> str:
    """How a key is written for people: ``slash`` → ``/``."""
    return KEY_SIGNS.get(key, key)


def key_signs(keys: str) -> str:
    """All keys of an action, written for people: ``plus,equals_sign`` → ``+ =``."""
    return " ".join(key_sign(key) for key in keys.split(","))


def bindings_of(*scopes: Scope) -> list[BindingType]:
    """The bindings of these scopes, in that order; the id of each lets a configuration remap it."""
    return [
        Binding(
            action.keys,
            action.id,
            action.label,
            show=action.in_footer,
            key_display=key_sign(action.keys.split(",")[0]),
            tooltip=action.help,
            id=f"{action.scope}.{action.id}",
        )
        for scope in scopes
        for action in actions_of(scope)
    ]
