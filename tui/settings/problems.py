"""Describe problems with settings and configured keys, with a suggestion for misspelled names.

Configured keys must exist, and must not have two meanings in the same place.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, get_type_hints

from tui.actions.table import ACTIONS, JOB_TABS, SCOPE_TITLES, Scope, actions_of

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

SCOPES_ACTIVE_EVERYWHERE = (Scope.SCREEN, Scope.APP)

_KEY_NAMES = frozenset(
    {"enter", "escape", "tab", "space", "backspace", "delete", "insert", "home", "end"}
) | {f"f{number}" for number in range(1, 25)}
_KEY_NAMES |= {"pageup", "pagedown", "up", "down", "left", "right"}
_KEY_NAMES |= {"slash", "backslash", "plus", "minus", "at", "underscore", "circumflex_accent"}
_TEXTUAL_NAMES = {
    "solidus": "slash",
    "reverse_solidus": "backslash",
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "plus_sign": "plus",
    "low_line": "underscore",
}
"""Textual's name of each character whose Unicode name is different, by Unicode name."""


def key_name(key: str) -> str | None:
    """Return Textual's name of a key that users write as ``?`` (→ ``question_mark``); None if unknown."""
    modifiers = re.match(r"(?:(?:ctrl|shift|alt|super|hyper|meta)\+)*", key)
    prefix = modifiers.group() if modifiers else ""
    name = key[len(prefix) :]
    if len(name) == 1:
        if not name.isprintable() or name == " ":
            return None
        if name.isalnum():
            return prefix + name
        unicode_name = unicodedata.name(name, "").lower().replace("-", "_").replace(" ", "_")
        return prefix + _TEXTUAL_NAMES.get(unicode_name, unicode_name) if unicode_name else None
    if name in _KEY_NAMES:
        return key
    try:
        unicodedata.lookup(name.replace("_", " "))
    except KeyError:
        return None
    return key


def key_names(keys: str) -> list[str | None]:
    """Split comma-separated keys, and return Textual's name of each; the comma key is written ``comma``."""
    return [key_name(key.strip()) for key in keys.split(",")]


def changed_keys(keys: Mapping[str, str]) -> dict[str, str]:
    """Return, by action id, comma-separated key names of Textual. The keys must have no ``key_problems``."""
    return {action: ",".join(filter(None, key_names(key))) for action, key in keys.items()}


def key_problems(keys: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield every problem of custom keys, with the action id; the values may be of any type."""
    action_ids = [f"{action.scope}.{action.id}" for action in ACTIONS]
    valid_keys = {}
    for action_id, key in keys.items():
        problem = (
            _key_problem(key)
            if action_id in action_ids
            else f"no such action{suggestion(action_id, action_ids)}"
        )
        if problem:
            yield action_id, problem
        # An action with a problem gets no key here: a conflict would be a second problem.
        valid_keys[action_id] = "" if problem else str(key)
    yield from _conflicts(changed_keys(valid_keys))


def _key_problem(keys: object) -> str:
    if not isinstance(keys, str):
        return "must be a quoted string"
    for key, name in zip(keys.split(","), key_names(keys), strict=True):
        if name is None:
            return f"no such key: {key.strip() or '(nothing)'}; write x, ctrl+x, f5 or ?"
        if name in {"up", "down", "j", "k", "pageup", "pagedown", "ctrl+c"}:
            return f"{key.strip()} is reserved for navigation or quitting"
    return ""


def suggestion(word: str, known_words: Sequence[str]) -> str:
    matches = get_close_matches(word, known_words, n=1)
    return f"; did you mean {matches[0]}?" if matches else ""


def _conflicts(changed: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield keys that have two meanings in the same place, with the action whose keys the user changed."""
    reported_pairs: set[frozenset[str]] = set()
    for scopes in _scopes_active_together():
        action_of_key: dict[str, str] = {}
        for action in actions_of(*scopes):
            action_name = f"{action.scope}.{action.id}"
            for key in filter(None, changed.get(action_name, action.keys).split(",")):
                other_name = action_of_key.setdefault(key, action_name)
                name_pair = frozenset({action_name, other_name})
                if other_name == action_name or name_pair in reported_pairs or not name_pair & changed.keys():
                    continue
                reported_pairs.add(name_pair)
                reported_name = action_name if action_name in changed else other_name
                rival_name = other_name if reported_name == action_name else action_name
                yield reported_name, f"{key} is also used for {_action_text(rival_name)} ({rival_name})"


def _action_text(action_id: str) -> str:
    action = next(candidate for candidate in ACTIONS if f"{candidate.scope}.{candidate.id}" == action_id)
    return f"“{action.label}” on {SCOPE_TITLES[action.scope]}"


def _scopes_active_together() -> Iterator[tuple[Scope, ...]]:
    job_scopes = {Scope.JOB, Scope.RECORDING, *(scope for tab in JOB_TABS.values() for scope in tab)}
    for scope in Scope:
        if scope not in job_scopes and scope not in SCOPES_ACTIVE_EVERYWHERE:
            yield (scope, *SCOPES_ACTIVE_EVERYWHERE)
    for tab in JOB_TABS.values():
        yield (Scope.JOB, Scope.RECORDING, *tab, *SCOPES_ACTIVE_EVERYWHERE)


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
    """A problem with a setting. ``location`` is ``FILE:LINE`` or a variable, ``setting`` a dotted name."""

    location: str
    setting: str
    reason: str

    def __str__(self) -> str:
        setting_prefix = f"{self.setting}: " if self.setting else ""
        return f"{self.location}: {setting_prefix}{self.reason}"


def name_of(error: ErrorDetails) -> str:
    """Return the dotted name of the setting that caused a validation error."""
    return ".".join(str(name) for name in error["loc"] if name != "[key]")


def advice_on(error: ErrorDetails, model: type) -> str:
    """Return what is wrong with a value, and what to write instead."""
    if error["type"] in {"extra_forbidden", "unexpected_keyword_argument"}:
        return f"no such setting{_suggest_setting(error['loc'], model)}"
    if error["type"] == "literal_error":
        expected_values = str(error.get("ctx", {}).get("expected", ""))
        value = error.get("input")
        hint = suggestion(
            str(value), [word.strip("' ") for word in expected_values.replace(" or ", ", ").split(", ")]
        )
        return f"must be one of {expected_values}{hint}"
    advice = _ADVICE.get(error["type"])
    if advice is not None:
        return advice
    message = error["msg"].removeprefix("Value error, ")
    return message.replace("Input should be", "must be")


def _suggest_setting(path: tuple[str | int, ...], model: type) -> str:
    """Return a hint: the closest name in the same table, else the table that has a setting of this name."""
    *outer, name = path
    siblings = names_below(model, [str(table) for table in outer if isinstance(table, str)])
    hint = suggestion(str(name), siblings)
    if hint:
        return hint
    for section, kind in fields_of(model).items():
        if str(name) in fields_of(kind):
            return f"; it belongs in [{section}]"
    return f"; use one of {', '.join(siblings)}" if siblings else ""


def fields_of(kind: Any) -> dict[str, Any]:
    """Return the types of a settings class by field name; empty if ``kind`` is not a settings class."""
    return get_type_hints(kind) if is_dataclass(kind) else {}


def names_below(model: type, path: Sequence[str]) -> list[str]:
    kind: Any = model
    for name in path:
        kind = fields_of(kind).get(name)
        kind = next((member for member in getattr(kind, "__args__", ()) if fields_of(member)), kind)
    return list(fields_of(kind))
