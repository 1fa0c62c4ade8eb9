"""What is wrong with a configuration, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_UNKNOWN = frozenset({"extra_forbidden", "unexpected_keyword_argument"})
_ADVICE = {
    "bool_type": "must be true or false",
    "string_type": "must be a text in quotes",
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "list_type": "must be a list: [ … ]",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "dataclass_type": "must be a table",
    "missing": "is missing",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. ``where`` is ``FILE:LINE`` or a variable's name, ``setting`` dotted."""

    where: str
    setting: str
    why: str

    def __str__(self) -> str:
        named = f"{self.setting}: " if self.setting else ""
        return f"{self.where}: {named}{self.why}"


def problems_of(
    errors: Iterable[ErrorDetails], model: type[BaseModel], wheres: Sequence[str]
) -> list[Problem]:
    """Each error as a problem; ``wheres`` has the place of each, in order."""
    return [
        Problem(where, ".".join(map(str, path_of(error))), _why(error, model))
        for error, where in zip(errors, wheres, strict=True)
    ]


def path_of(error: ErrorDetails) -> tuple[str | int, ...]:
    """The path of the setting that an error is about."""
    below = error.get("ctx", {}).get("below")
    path = tuple(part for part in error["loc"] if part != "[key]")
    return (*path, below) if below else path


def _why(error: ErrorDetails, model: type[BaseModel]) -> str:
    if error["type"] in _UNKNOWN:
        return f"no such setting{_nearest(path_of(error), model)}"
    if error["type"] == "literal_error":
        expected = str(error.get("ctx", {}).get("expected", ""))
        given = error.get("input")
        near = _near(str(given), [word.strip("' ") for word in expected.replace(" or ", ", ").split(", ")])
        return f"must be one of {expected}{near}"
    advice = _ADVICE.get(error["type"])
    if advice is not None:
        return advice
    message = error["msg"]
    return message.replace("Input should be", "must be")


def _nearest(path: tuple[str | int, ...], model: type[BaseModel]) -> str:
    """The nearest name beside the unknown one; else the table that has a setting of that name."""
    *outer, name = path
    siblings = names_below(model, [str(part) for part in outer if isinstance(part, str)])
    near = _near(str(name), siblings)
    if near:
        return near
    for section, field in model.model_fields.items():
        if str(name) in _names_of(field.annotation):
            return f"; it belongs below [{section}]"
    return f"; there are {', '.join(siblings)}" if siblings else ""


def _near(word: str, known: Iterable[str]) -> str:
    found = get_close_matches(word, list(known), n=1)
    return f"; did you mean {found[0]}?" if found else ""


def names_below(model: type[BaseModel], path: Sequence[str]) -> list[str]:
    """The names of the settings in a table."""
    kind: Any = model
    for part in path:
        field = kind.model_fields.get(part) if hasattr(kind, "model_fields") else None
        if field is None:
            return []
        kind = field.annotation
        for argument in getattr(kind, "__args__", ()):
            if hasattr(argument, "model_fields"):
                kind = argument
    return _names_of(kind)


def _names_of(kind: Any) -> list[str]:
    if hasattr(kind, "model_fields"):
        return list(kind.model_fields)
    if isinstance(kind, type) and is_dataclass(kind):
        return [one.name for one in fields(kind)]
    return []


def as_lines(problems: Iterable[Problem]) -> str:
    """One a line."""
    return "\n".join(map(str, problems))
