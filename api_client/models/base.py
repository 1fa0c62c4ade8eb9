"""Base classes and field types of all models: tolerant of unknown fields, nulls and odd timestamps.

Only fields that identify an object are required, so that newer servers do not break the client.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from operator import itemgetter
from typing import Annotated, Any, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

T = TypeVar("T")


class LargeApiModel(BaseModel):
    """Part of a response that may be megabytes long, parsed directly from the bytes.

    Unlike in ``ApiModel``, null is valid only if the field's type allows it. ``ApiModel`` replaces nulls in a
    Python validator, for which pydantic converts everything below to Python objects first, at three times the
    cost.
    """

    model_config = ConfigDict(extra="allow", defer_build=True, frozen=True, protected_namespaces=())


class ApiModel(LargeApiModel):
    """Response of the API, parsed tolerantly.

    Unknown fields are kept (and dumped again), enums are plain strings, so that unknown values are valid, and
    only fields that identify an object are required: newer servers do not break the client.
    """

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, data: Any) -> Any:
        """Drop nulls, so that the fields' defaults apply, even where the schema promises a value."""
        if isinstance(data, dict) and None in data.values():
            model_fields = cls.model_fields
            return {
                name: value for name, value in data.items() if value is not None or name not in model_fields
            }
        return data


FIRST_MOMENT, LAST_MOMENT = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
"""Times outside of this range are invalid, so that arithmetic with times cannot overflow."""


def _in_utc(moment: datetime) -> datetime:
    """Convert to UTC; a timestamp without a timezone, which the API should never send, counts as UTC."""
    with suppress(OverflowError):  # the first and the last day may not exist in UTC
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        if FIRST_MOMENT <= moment < LAST_MOMENT:
            return moment
    raise ValueError(f"not between {FIRST_MOMENT.year} and {LAST_MOMENT.year}")


UtcDatetime = Annotated[datetime, AfterValidator(_in_utc)]  # timezone-aware, converted to UTC


def _in_utc_or_unset(moment: datetime | None) -> datetime | None:
    if moment is None or moment.replace(tzinfo=UTC) == datetime(1, 1, 1, tzinfo=UTC):
        return None
    return _in_utc(moment)


OptionalDatetime = Annotated[datetime | None, AfterValidator(_in_utc_or_unset)]
"""``UtcDatetime`` or None. Null and Go's zero time (``0001-01-01T00:00:00Z``) are read as None."""

Day = Annotated[date, Field(ge=FIRST_MOMENT.date(), lt=LAST_MOMENT.date())]

Integer = Annotated[int, Field(ge=-(2**63), lt=2**63)]

Number = Annotated[float, Field(ge=-(2.0**63), le=2.0**63, allow_inf_nan=False)]

EpochMs = Annotated[int, Field(ge=0, lt=int(LAST_MOMENT.timestamp()) * 1000)]

NodeCount = Annotated[int, Field(ge=0, le=10_000)]
"""Number of nodes of a job, limited to more than any cluster has, so that it is safe to list the nodes."""


STRICT_TEXT: CoreSchema = core_schema.str_schema(strict=True)
UTC_TIME: CoreSchema = core_schema.datetime_schema(tz_constraint=0, ge=FIRST_MOMENT, lt=LAST_MOMENT)


@dataclass(frozen=True, eq=False)
class FastPath:
    """Validates values of ``common_schema`` in pydantic's core; passes only other values to ``parse_other``.

    Calling the Python function ``parse_other`` for each value would be slow.
    """

    common_schema: CoreSchema
    parse_other: Callable[[Any], object]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        other = core_schema.no_info_before_validator_function(self.parse_other, handler(source))
        return core_schema.union_schema([self.common_schema, other], mode="left_to_right")


@dataclass(frozen=True, eq=False)
class NullAsEmpty:
    """Accepts null as an empty list, dict or model, without leaving pydantic's JSON parser."""

    empty: Callable[[], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            self._empty_if_null, core_schema.nullable_schema(handler(source))
        )

    def _empty_if_null(self, value: Any) -> Any:
        return self.empty() if value is None else value


@dataclass(frozen=True, eq=False)
class MaxItems:
    """Limits the length of a list, and stops validating at its first invalid item.

    pydantic would keep an error for each invalid item, and there may be a million.
    """

    max_length: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        (items,) = get_args(source)
        return core_schema.list_schema(
            handler.generate_schema(items), fail_fast=True, max_length=self.max_length
        )


MAX_PAGE_ITEMS = MaxItems(20_000)
"""Maximum length of pages and unpaged lists: twice the jobs of the largest organization known."""

TolerantList = Annotated[list[T], MAX_PAGE_ITEMS, NullAsEmpty(list)]
"""List that some servers may send as null."""


class _InvalidAsMarker:
    """Replaces each invalid value of a mapping with ``_INVALID``: pydantic would build an error for each."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        invalid = core_schema.no_info_plain_validator_function(lambda _value: _INVALID)
        return core_schema.union_schema([handler(source), invalid], mode="left_to_right")


def _reject_invalid_values(values: dict[str, T]) -> dict[str, T]:
    if any(value is _INVALID for value in values.values()):
        raise ValueError("a value is invalid")
    return values


_INVALID = object()

TolerantDict = Annotated[
    dict[str, Annotated[T, _InvalidAsMarker()]], AfterValidator(_reject_invalid_values), NullAsEmpty(dict)
]
"""Mapping that some servers may send as null."""


@dataclass(frozen=True, eq=False)
class UnwrapField:
    """Replaces an object with the value of its required field ``name``; ignores the other fields."""

    name: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        field = core_schema.typed_dict_field(handler(source))
        envelope = core_schema.typed_dict_schema({self.name: field}, extra_behavior="ignore")
        return core_schema.no_info_after_validator_function(itemgetter(self.name), envelope)


def moment_of_text(text: str) -> datetime | None:
    """Parse a server's time in ISO 8601, UTC if it has no time zone; None if it is invalid."""
    try:
        moment = datetime.fromisoformat(text.strip())
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
