"""Base classes of all definitions: strict validation, and errors that list the allowed values.

The official SDK has two kinds of classes: most are strict and reject unknown fields, some
(accelerators, weights, checkpoints to deploy) are lax and keep unknown fields. Both validate assignments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from enum import Enum
from typing import Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

FROM_SDK = "written by the official SDK"
"""Validation context of definitions from the official SDK: fields of a newer SDK are kept and sent."""


class TextEnum(str, Enum):  # noqa: UP042 -- str() gives "Accelerator.H100" in the official SDK, so here too
    """Enumeration whose members equal their values."""


class StrictDefinition(BaseModel):
    """Base class that rejects unknown fields, and values that are not of exactly the field's type: ``"4"``.

    In the validation context ``FROM_SDK``, unknown fields are kept.
    """

    model_config = ConfigDict(strict=True, extra="allow", validate_assignment=True)

    @model_validator(mode="wrap")
    @classmethod
    def _refuse_unknown_fields(
        cls, values: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo
    ) -> Self:
        if isinstance(values, dict) and info.context != FROM_SDK:
            cls._check_names(values)
        return handler(values)

    @classmethod
    def _check_names(cls, values: dict[str, Any]) -> None:
        unknown = [name for name in values if name not in cls.model_fields]
        if unknown:
            details = [_unknown_field_error(cls, name, values[name]) for name in unknown]
            raise ValidationError.from_exception_data(cls.__name__, details)

    def __setattr__(self, name: str, value: Any) -> None:
        """Assign a field. Raises ValidationError for an unknown field."""
        if not name.startswith("_"):
            self._check_names({name: value})
        super().__setattr__(name, value)


class OpenDefinition(BaseModel):
    """Base class that converts values if it is safe (``"4"`` is 4) and keeps unknown fields."""

    model_config = ConfigDict(extra="allow", validate_assignment=True)


def unknown_fields(
    value: Any, definition_class: type[BaseModel] = BaseModel, prefix: str = ""
) -> Iterator[str]:
    """Yield the paths of fields that are set but not defined, such as ``weights.0.sources``.

    Only definitions that are instances of ``definition_class`` are searched.
    """
    if isinstance(value, BaseModel):
        extra_fields = (value.model_extra if isinstance(value, definition_class) else None) or {}
        yield from (f"{prefix}{name}" for name, field in extra_fields.items() if field is not None)
        for name in type(value).model_fields:
            yield from unknown_fields(getattr(value, name), definition_class, f"{prefix}{name}.")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from unknown_fields(item, definition_class, f"{prefix}{index}.")


def members_only(enumeration: type[Enum]) -> BeforeValidator:
    """Return a validator that accepts only members of an enumeration, and whose error lists them.

    As in the official SDK, the member is required, not its value: ``trigger="on_startup"`` is rejected. JSON
    has no enumeration members, so values are accepted in JSON.
    """
    members = ", ".join(f"{enumeration.__name__}.{member.name}" for member in enumeration)

    def check(value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, enumeration) or info.mode == "json":
            return value
        raise PydanticCustomError("not_a_member", "Input should be one of {members}", {"members": members})

    return BeforeValidator(check)


def check_auth_fields(definition: BaseModel, method: TextEnum, fields: Mapping[Any, tuple[str, ...]]) -> None:
    """Raise ValueError unless exactly the fields of the authentication method ``method`` are set."""
    required = fields[method]
    missing = [name for name in required if not getattr(definition, name)]
    if missing:
        raise ValueError(f"{', '.join(missing)} must be provided when auth_method is {method.value}")
    superfluous = [
        name
        for names in fields.values()
        for name in names
        if name not in required and getattr(definition, name)
    ]
    if superfluous:
        raise ValueError(f"{', '.join(superfluous)} cannot be specified when auth_method is {method.value}")


def _unknown_field_error(cls: type[BaseModel], name: Any, value: Any) -> InitErrorDetails:
    fields = list(cls.model_fields)
    similar = get_close_matches(str(name), fields, n=1)
    hint = f"; did you mean {similar[0]!r}?" if similar else ""
    problem = PydanticCustomError(
        "unknown_field",
        "{name} has no such field{hint} Its fields are: {fields}",
        {"name": cls.__name__, "hint": hint or ".", "fields": ", ".join(fields)},
    )
    return InitErrorDetails(type=problem, loc=(str(name),), input=value)
