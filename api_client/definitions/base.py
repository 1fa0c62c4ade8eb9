"""What all definitions share: strictness, and errors that say what is allowed.

The official SDK has two kinds of classes (API facts, 3.1): most are strict and refuse unknown fields, some
(accelerators, weights, checkpoints to deploy) are lax and keep unknown fields. Both check assignments.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from enum import Enum
from typing import Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, PrivateAttr, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

Place = tuple[str | int, ...]
"""The way to a field: names of fields and positions in lists."""


class TextEnum(str, Enum):  # noqa: UP042 -- str() gives "Accelerator.H100" in the official SDK, so here too
    """An enumeration whose members equal their text."""


class StrictDefinition(BaseModel):
    """A class that takes exactly its own fields, each of exactly its own type: ``"4"`` is no number."""

    model_config = ConfigDict(strict=True, extra="forbid", validate_assignment=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_fields(cls, values: Any) -> Any:
        # pydantic would refuse them as well, but without saying which fields there are.
        if isinstance(values, dict):
            unknown = [name for name in values if name not in cls.model_fields]
            if unknown:
                details = [_unknown_field(cls, name, values[name]) for name in unknown]
                raise ValidationError.from_exception_data(cls.__name__, details)
        return values


class SentDefinition(StrictDefinition):
    """A strict class that can carry fields which only a newer SDK knows, from its loading to its sending."""

    _newer_fields: list[tuple[Place, Any]] = PrivateAttr(default_factory=list)

    def keep_newer_field(self, place: Place, value: Any) -> None:
        """Remember a field by its place, for example ``("compute", "zone")``."""
        self._newer_fields.append((place, value))

    def newer_fields(self) -> tuple[tuple[Place, Any], ...]:
        """Places and values, as they came."""
        return tuple(self._newer_fields)


class OpenDefinition(BaseModel):
    """A class that converts what it safely can (``"4"`` is 4) and keeps fields that it does not know."""

    model_config = ConfigDict(extra="allow", validate_assignment=True)


def members_only(enumeration: type[Enum]) -> BeforeValidator:
    """Makes a strict field's error name the members that it takes.

    As in the official SDK the member is wanted, not its value: ``trigger="on_startup"`` is refused. Values
    read from JSON pass, as JSON has no members.
    """
    members = ", ".join(f"{enumeration.__name__}.{member.name}" for member in enumeration)
    return BeforeValidator(_member_check(enumeration, members))


def _member_check(enumeration: type[Enum], members: str) -> Callable[[Any, Any], Any]:
    def check(value: Any, info: Any) -> Any:
        if isinstance(value, enumeration) or info.mode == "json":
            return value
        raise PydanticCustomError("not_a_member", "Input should be one of {members}", {"members": members})

    return check


def _unknown_field(cls: type[BaseModel], name: Any, value: Any) -> InitErrorDetails:
    fields = list(cls.model_fields)
    similar = get_close_matches(str(name), fields, n=1)
    hint = f"; did you mean {similar[0]!r}?" if similar else ""
    problem = PydanticCustomError(
        "unknown_field",
        "{name} has no such field{hint} Its fields are: {fields}",
        {"name": cls.__name__, "hint": hint or ".", "fields": ", ".join(fields)},
    )
    return InitErrorDetails(type=problem, loc=(str(name),), input=value)
