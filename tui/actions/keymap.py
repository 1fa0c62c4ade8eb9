"""Key bindings for Textual, made from the table of actions and the keys that the user has set."""

from __future__ import annotations

from collections.abc import Mapping

from textual.binding import Binding, BindingsMap, BindingType
from textual.keys import format_key

from tui.actions.table import Action, ActionFlag, Scope, actions_of


def key_label(key: str) -> str:
    """Return the display text of a key: ``slash`` → ``/``, ``ctrl+p`` → ``^p``, ``shift+up`` → ``⇧↑``."""
    *modifiers, name = key.split("+")
    sign = name if name in ("enter", "delete", "pageup", "pagedown") else format_key(name)
    return "".join({"ctrl": "^", "shift": "⇧"}.get(modifier, f"{modifier}+") for modifier in modifiers) + sign


def key_labels(keys: str) -> str:
    """Return the display text of all keys of an action: ``plus,equals_sign`` → ``+ =``."""
    return " ".join(key_label(key) for key in keys.split(","))


def keys_of(action: Action, user_keys: Mapping[str, str]) -> str:
    """Return the keys of an action (Textual names, separated by commas): the user's, else the default keys.

    ``user_keys`` maps action ids such as ``home.stop_job`` to the keys that the user has set.
    """
    return user_keys.get(f"{action.scope}.{action.id}", action.keys)


def key_for(action_id: str, user_keys: Mapping[str, str]) -> str:
    """Return the display text of an action's first key; ``action_id`` is ``scope.id``: ``home.stop_job``.

    Raises KeyError if there is no such action.
    """
    scope, _, name = action_id.partition(".")
    for action in actions_of(Scope(scope)):
        if action.id == name:
            return key_labels(keys_of(action, user_keys)).split(" ")[0]
    raise KeyError(action_id)


def with_user_keys(bindings: BindingsMap, user_keys: Mapping[str, str]) -> BindingsMap:
    """Return the bindings, with the user's keys for the actions (``scope.id``) in ``user_keys``.

    Textual's own keymap would remove a new key from every other action, including those of other tabs.
    """
    bindings_by_key: dict[str, list[Binding]] = {}
    changed_bindings: dict[str, Binding] = {}
    for key, key_bindings in bindings.key_to_bindings.items():
        for binding in key_bindings:
            if binding.id is not None and binding.id in user_keys:
                changed_bindings.setdefault(binding.id, binding)
            else:
                bindings_by_key.setdefault(key, []).append(binding)
    for action_id, binding in changed_bindings.items():
        new_keys = user_keys[action_id].split(",")
        for key in new_keys:
            new_binding = binding.with_key(key, key_display=key_label(new_keys[0]))
            bindings_by_key.setdefault(key, []).append(new_binding)
    return BindingsMap.from_keys(bindings_by_key)


def bindings_of(*scopes: Scope) -> list[BindingType]:
    """Return Textual bindings for the actions of these scopes, in order; a binding's ID is ``scope.id``."""
    return [
        Binding(
            action.keys,
            action.id,
            action.label,
            show=ActionFlag.FOOTER in action.flags,
            # A priority binding runs before the next key is handled, which then reaches the opened field.
            priority=ActionFlag.FIELD in action.flags,
            key_display=key_label(action.keys.split(",")[0]),
            tooltip=action.help,
            id=f"{action.scope}.{action.id}",
        )
        for scope in scopes
        for action in actions_of(scope)
    ]
