"""Whether keys that a person gives to actions exist, and mean one thing only wherever they work."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from tui.actions import ACTIONS, SCOPE_TITLES, Action, Scope, actions_of

JOB_TABS: tuple[tuple[Scope, ...], ...] = (
    (Scope.LOGS, Scope.CHARTS),
    (Scope.LOGS,),
    (Scope.CHARTS, Scope.METRICS),
    (Scope.CHECKPOINTS,),
    (),
)
"""What works on each tab of the job screen, beside what works on all; a test compares it with the screen."""

EVERYWHERE = (Scope.SCREEN, Scope.APP)
MOVING = frozenset({"up", "down", "j", "k", "pageup", "pagedown", "ctrl+c"})
"""Keys that lists and logs need for themselves."""

_MODIFIERS = re.compile(r"(?:(?:ctrl|shift|alt|super|hyper|meta)\+)*")
_NAMED = frozenset({"enter", "escape", "tab", "space", "backspace", "delete", "insert", "home", "end"}) | {
    f"f{number}" for number in range(1, 25)
}
_NAMED |= {"pageup", "pagedown", "up", "down", "left", "right"}
_OTHER_NAMES = {"slash", "backslash", "plus", "minus", "at", "underscore", "circumflex_accent"}
_TEXTUAL_NAMES = {
    "solidus": "slash",
    "reverse_solidus": "backslash",
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "plus_sign": "plus",
    "low_line": "underscore",
}
"""Where textual's name of a character is not its Unicode name."""


def action_ids() -> list[str]:
    """Every action as ``scope.id``."""
    return [f"{action.scope}.{action.id}" for action in ACTIONS]


def key_name(key: str) -> str | None:
    """Textual's name of a key as people write it (``?`` → ``question_mark``); None if there is none."""
    modifiers = _MODIFIERS.match(key)
    prefix = modifiers.group() if modifiers else ""
    name = key[len(prefix) :]
    if len(name) == 1:
        if not name.isprintable() or name == " ":
            return None
        if name.isalnum():
            return prefix + name
        full = unicodedata.name(name, "").lower().replace("-", "_").replace(" ", "_")
        return prefix + _TEXTUAL_NAMES.get(full, full) if full else None
    if name in _NAMED or name in _OTHER_NAMES:
        return key
    try:
        unicodedata.lookup(name.replace("_", " "))
    except KeyError:
        return None
    return key


def key_names(keys: str) -> list[str | None]:
    """The keys of a list separated by commas; a comma itself is ``comma``."""
    return [key_name(key.strip()) for key in keys.split(",")]


def changed_keys(keys: Mapping[str, str]) -> dict[str, str]:
    """By action id, the keys as textual names them, separated by commas. Expects keys without problems."""
    return {action: ",".join(filter(None, key_names(wanted))) for action, wanted in keys.items()}


def key_problems(keys: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What is wrong with them: the id of the action, and why in words."""
    known = action_ids()
    for action_id, wanted in keys.items():
        if action_id not in known:
            yield action_id, f"no such action: {action_id}{nearest(action_id, known)}"
            return
        for key, name in zip(wanted.split(","), key_names(wanted), strict=True):
            if name is None:
                yield (
                    action_id,
                    f"no such key: {key.strip() or '(nothing)'}; write x, ctrl+x, f5 or ?",
                )
                return
            if name in MOVING:
                yield action_id, f"{key.strip()} is for moving about, or ends the program"
                return
    yield from _conflicts(changed_keys(keys))


def nearest(word: str, known: list[str]) -> str:
    """``; did you mean …?`` where something known is near, else nothing."""
    found = get_close_matches(word, known, n=1)
    return f"; did you mean {found[0]}?" if found else ""


def _conflicts(changed: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Keys that would mean two things where both work; a changed action is the one to blame."""
    told: set[frozenset[str]] = set()
    for scopes in _together():
        taken: dict[str, str] = {}
        for action in actions_of(*scopes):
            own = f"{action.scope}.{action.id}"
            for key in changed.get(own, action.keys).split(","):
                other = taken.setdefault(key, own)
                pair = frozenset({own, other})
                if other == own or pair in told or not pair & changed.keys():
                    continue
                told.add(pair)
                blamed = own if own in changed else other
                rival = other if blamed == own else own
                yield blamed, f"{key} is also {_words(rival)} ({rival}): one key cannot do both"


def _words(action_id: str) -> str:
    action = _by_id()[action_id]
    return f"“{action.label}” on {SCOPE_TITLES[action.scope]}"


def _by_id() -> dict[str, Action]:
    return {f"{action.scope}.{action.id}": action for action in ACTIONS}


def _together() -> Iterator[tuple[Scope, ...]]:
    """Scopes whose actions work at the same time."""
    on_job = {Scope.JOB, *(scope for tab in JOB_TABS for scope in tab)}
    for scope in Scope:
        if scope not in on_job and scope not in EVERYWHERE:
            yield (scope, *EVERYWHERE)
    for tab in JOB_TABS:
        yield (Scope.JOB, *tab, *EVERYWHERE)
