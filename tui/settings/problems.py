"""Describe problems with settings and configured keys, with a suggestion for misspelled names.

Configured keys must exist, and have a single meaning wherever they work.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, get_type_hints

from tui.actions.table import ACTIONS, JOB_TABS, SCOPE_TITLES, Scope, actions_of

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

EVERYWHERE = (Scope.SCREEN, Scope.APP)

_NAMED = frozenset({"enter", "escape", "tab", "space", "backspace", "delete", "insert", "home", "end"}) | {
    f"f{number}" for number in range(1, 25)
}
_NAMED |= {"pageup", "pagedown", "up", "down", "left", "right"}
_NAMED |= {"slash", "backslash", "plus", "minus", "at", "underscore", "circumflex_accent"}
_TEXTUAL_NAMES = {
    "solidus": "slash",
    "reverse_solidus": "backslash",
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "plus_sign": "plus",
    "low_line": "underscore",
}
"""Characters whose textual name differs from their Unicode name."""


def key_name(key: str) -> str | None:
    """Return textual's name of a key as users write it (``?`` → ``question_mark``); None if unknown."""
    modifiers = re.match(r"(?:(?:ctrl|shift|alt|super|hyper|meta)\+)*", key)
    prefix = modifiers.group() if modifiers else ""
    name = key[len(prefix) :]
    if len(name) == 1:
        if not name.isprintable() or name == " ":
            return None
        if name.isalnum():
            return prefix + name
        full = unicodedata.name(name, "").lower().replace("-", "_").replace(" ", "_")
        return prefix + _TEXTUAL_NAMES.get(full, full) if full else None
    if name in _NAMED:
        return key
    try:
        unicodedata.lookup(name.replace("_", " "))
    except KeyError:
        return None
    return key


def key_names(keys: str) -> list[str | None]:
    """Split a comma-separated list of keys into textual names; a comma itself is ``comma``."""
    return [key_name(key.strip()) for key in keys.split(",")]


def changed_keys(keys: Mapping[str, str]) -> dict[str, str]:
    """Return comma-separated textual key names by action id. The keys must be free of problems."""
    return {action: ",".join(filter(None, key_names(key))) for action, key in keys.items()}


def key_problems(keys: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield every problem of custom keys, with the action id; the values may be of any type."""
    existing = [f"{action.scope}.{action.id}" for action in ACTIONS]
    changed = {}
    for action_id, key in keys.items():
        problem = (
            _key_problem(key) if action_id in existing else f"no such action{nearest(action_id, existing)}"
        )
        if problem:
            yield action_id, problem
        # The keys of an action that has a problem are unknown: they conflict with none.
        changed[action_id] = "" if problem else str(key)
    yield from _conflicts(changed_keys(changed))


def _key_problem(wanted: object) -> str:
    if not isinstance(wanted, str):
        return "must be a quoted string"
    for key, name in zip(wanted.split(","), key_names(wanted), strict=True):
        if name is None:
            return f"no such key: {key.strip() or '(nothing)'}; write x, ctrl+x, f5 or ?"
        if name in {"up", "down", "j", "k", "pageup", "pagedown", "ctrl+c"}:
            return f"{key.strip()} is reserved for navigation or quitting"
    return ""


def nearest(word: str, known: Sequence[str]) -> str:
    matches = get_close_matches(word, known, n=1)
    return f"; did you mean {matches[0]}?" if matches else ""


def _conflicts(changed: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield keys with two meanings in the same place; the changed action is reported."""
    reported: set[frozenset[str]] = set()
    for scopes in _together():
        taken: dict[str, str] = {}
        for action in actions_of(*scopes):
            own = f"{action.scope}.{action.id}"
            for key in filter(None, changed.get(own, action.keys).split(",")):
                other = taken.setdefault(key, own)
                pair = frozenset({own, other})
                if other == own or pair in reported or not pair & changed.keys():
                    continue
                reported.add(pair)
                blamed = own if own in changed else other
                rival = other if blamed == own else own
                yield blamed, f"{key} is also used for {_words(rival)} ({rival})"


def _words(action_id: str) -> str:
    action = next(candidate for candidate in ACTIONS if f"{candidate.scope}.{candidate.id}" == action_id)
    return f"“{action.label}” on {SCOPE_TITLES[action.scope]}"


def _together() -> Iterator[tuple[Scope, ...]]:
    on_job = {Scope.JOB, Scope.RECORDING, *(scope for tab in JOB_TABS.values() for scope in tab)}
    for scope in Scope:
        if scope not in on_job and scope not in EVERYWHERE:
            yield (scope, *EVERYWHERE)
    for tab in JOB_TABS.values():
        yield (Scope.JOB, Scope.RECORDING, *tab, *EVERYWHERE)


_ADVICE = {
    "bool_type": "must be true or false",
    "string_type": "must be a quoted string",
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "list_type": "must be a list: [ … ]",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "dataclass_type": "must be a table",
    "missing": "is missing",
    "json_invalid": "settings are nested too deeply",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem. ``where`` is ``FILE:LINE`` or the name of a variable, ``setting`` is dotted."""

    where: str
    setting: str
    why: str

    def __str__(self) -> str:
        named = f"{self.setting}: " if self.setting else ""
        return f"{self.where}: {named}{self.why}"


def name_of(error: ErrorDetails) -> str:
    """Return the dotted name of the setting that an error is about."""
    return ".".join(str(part) for part in error["loc"] if part != "[key]")


def advice_on(error: ErrorDetails, model: type) -> str:
    """Say what is wrong, and what to write instead."""
    if error["type"] in {"extra_forbidden", "unexpected_keyword_argument"}:
        return f"no such setting{_nearest(error['loc'], model)}"
    if error["type"] == "literal_error":
        expected = str(error.get("ctx", {}).get("expected", ""))
        value = error.get("input")
        near = nearest(str(value), [word.strip("' ") for word in expected.replace(" or ", ", ").split(", ")])
        return f"must be one of {expected}{near}"
    advice = _ADVICE.get(error["type"])
    if advice is not None:
        return advice
    message = error["msg"].removeprefix("Value error, ")
    return message.replace("Input should be", "must be")


def _nearest(path: tuple[str | int, ...], model: type) -> str:
    """Suggest the closest name in the same table, else the table that has a setting with that name."""
    *outer, name = path
    siblings = names_below(model, [str(part) for part in outer if isinstance(part, str)])
    near = nearest(str(name), siblings)
    if near:
        return near
    for section, kind in fields_of(model).items():
        if str(name) in fields_of(kind):
            return f"; it belongs in [{section}]"
    return f"; use one of {', '.join(siblings)}" if siblings else ""


def fields_of(kind: Any) -> dict[str, Any]:
    """Return the types of a table's settings by name; empty if it is none, or has free keys."""
    return get_type_hints(kind) if is_dataclass(kind) else {}


def names_below(model: type, path: Sequence[str]) -> list[str]:
    kind: Any = model
    for part in path:
        kind = fields_of(kind).get(part)
        kind = next((member for member in getattr(kind, "__args__", ()) if fields_of(member)), kind)
    return list(fields_of(kind))


def as_lines(problems: Iterable[Problem]) -> str:
    return "\n".join(map(str, problems))
