"""Convert the table of actions, with the user's own keys, into Textual's bindings."""

from __future__ import annotations

from collections.abc import Mapping

from textual.binding import Binding, BindingsMap, BindingType
from textual.keys import format_key

from tui.actions.table import Action, ActionFlag, Scope, actions_of


def key_sign(key: str) -> str:
    """Return the display text of a key: ``slash`` → ``/``, ``ctrl+p`` → ``^p``, ``shift+up`` → ``⇧↑``."""
    *modifiers, name = key.split("+")
    sign = name if name in ("enter", "delete", "pageup", "pagedown") else format_key(name)
    return "".join({"ctrl": "^", "shift": "⇧"}.get(modifier, f"{modifier}+") for modifier in modifiers) + sign


def key_signs(keys: str) -> str:
    """Return the display text of all keys of an action: ``plus,equals_sign`` → ``+ =``."""
    return " ".join(key_sign(key) for key in keys.split(","))


def keys_of(action: Action, changes: Mapping[str, str]) -> str:
    """Return the keys of an action; ``changes`` maps ``scope.id`` to other keys (Textual names)."""
    return changes.get(f"{action.scope}.{action.id}", action.keys)


def key_for(action_id: str, changes: Mapping[str, str]) -> str:
    """Return the display text of the first key of the action ``scope.id``, after ``changes``."""
    scope, _, name = action_id.partition(".")
    for action in actions_of(Scope(scope)):
        if action.id == name:
            return key_signs(keys_of(action, changes)).split(" ")[0]
    raise KeyError(action_id)


def rebound(bindings: BindingsMap, changes: Mapping[str, str]) -> BindingsMap:
    """Return the bindings with the changed keys; all others stay.

    Textual's own keymap would remove a new key from every other action, including those of other tabs.
    """
    keys: dict[str, list[Binding]] = {}
    moved: dict[str, Binding] = {}
    for key, bound in bindings.key_to_bindings.items():
        for binding in bound:
            if binding.id is not None and binding.id in changes:
                moved.setdefault(binding.id, binding)
            else:
                keys.setdefault(key, []).append(binding)
    for action_id, binding in moved.items():
        new_keys = changes[action_id].split(",")
        for key in new_keys:
            keys.setdefault(key, []).append(binding.with_key(key, key_display=key_sign(new_keys[0])))
    return BindingsMap.from_keys(keys)


def bindings_of(*scopes: Scope) -> list[BindingType]:
    """Return the bindings of these scopes, in order; each has an id for remapping by the configuration."""
    return [
        Binding(
            action.keys,
            action.id,
            action.label,
            show=ActionFlag.FOOTER in action.flags,
            # A priority binding runs before the next key is handled, so that it reaches the opened field.
            priority=ActionFlag.FIELD in action.flags,
            key_display=key_sign(action.keys.split(",")[0]),
            tooltip=action.help,
            id=f"{action.scope}.{action.id}",
        )
        for scope in scopes
        for action in actions_of(scope)
    ]
