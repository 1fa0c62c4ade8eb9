"""Base classes and field types of all models: tolerant of unknown fields, nulls and odd timestamps.

Only what identifies an object is required, so that newer servers do not break the client.
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
    """Part of an answer that may be megabytes long, parsed directly from the bytes.

    Like ``ApiModel``, but a null is accepted only if the field's own type accepts it: a Python validator
    that runs before a field first turns everything below into Python objects, at three times the cost.
    """

    model_config = ConfigDict(extra="allow", defer_build=True, frozen=True, protected_namespaces=())


class ApiModel(LargeApiModel):
    """Answer of the API, parsed tolerantly.

    Unknown fields are kept (and dumped again), unknown enum values are accepted because enums are plain
    strings here, and only what identifies an object is required, so that newer servers do not break the
    client.
    """

    @model_validator(mode="before")
    @classmethod
    def _null_is_missing(cls, data: Any) -> Any:
        """Replace null by the default of fields that have one, whatever the schema promises."""
        if isinstance(data, dict) and None in data.values():
            model_fields = cls.model_fields
            return {
                name: value for name, value in data.items() if value is not None or name not in model_fields
            }
        return data


FIRST_MOMENT, LAST_MOMENT = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
"""Times outside of this range are invalid, so that all arithmetic with times is safe."""


def _in_utc(moment: datetime) -> datetime:
    """Treat a timestamp without a timezone as UTC (every documented timestamp has one)."""
    with suppress(OverflowError):  # the first and the last day may not exist in UTC
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        if FIRST_MOMENT <= moment < LAST_MOMENT:
            return moment
    raise ValueError(f"not between {FIRST_MOMENT.year} and {LAST_MOMENT.year}")


UtcDatetime = Annotated[datetime, AfterValidator(_in_utc)]  # timezone-aware datetime, converted to UTC


def _in_utc_or_unset(moment: datetime | None) -> datetime | None:
    if moment is None or moment.replace(tzinfo=UTC) == datetime(1, 1, 1, tzinfo=UTC):
        return None
    return _in_utc(moment)


OptionalDatetime = Annotated[datetime | None, AfterValidator(_in_utc_or_unset)]
"""``UtcDatetime`` or None, as which null and Go's zero time (``0001-01-01T00:00:00Z``) are read."""

Day = Annotated[date, Field(ge=FIRST_MOMENT.date(), lt=LAST_MOMENT.date())]

Integer = Annotated[int, Field(ge=-(2**63), lt=2**63)]

Number = Annotated[float, Field(ge=-(2.0**63), le=2.0**63, allow_inf_nan=False)]

EpochMs = Annotated[int, Field(ge=0, lt=int(LAST_MOMENT.timestamp()) * 1000)]

NodeCount = Annotated[int, Field(ge=0, le=10_000)]
"""Number of nodes of a job, limited so that listing them is safe; no cluster has as many."""


STRICT_TEXT: CoreSchema = core_schema.str_schema(strict=True)
UTC_TIME: CoreSchema = core_schema.datetime_schema(tz_constraint=0, ge=FIRST_MOMENT, lt=LAST_MOMENT)


@dataclass(frozen=True, eq=False)
class FastPath:
    """Validates usual values without calling Python; only others go through ``read``."""

    usual: CoreSchema
    read: Callable[[Any], object]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        other = core_schema.no_info_before_validator_function(self.read, handler(source))
        return core_schema.union_schema([self.usual, other], mode="left_to_right")


@dataclass(frozen=True, eq=False)
class OrNull:
    """Validates null as an empty value without leaving pydantic's JSON parser."""

    empty: type[list[Any]] | type[dict[str, Any]]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            self._known, core_schema.nullable_schema(handler(source))
        )

    def _known(self, value: Any) -> Any:
        return self.empty() if value is None else value


@dataclass(frozen=True, eq=False)
class UpTo:
    """Validates a list until its first wrong item, or until it has more than ``max_length``, and no further.

    Each wrong item would be kept as an error, and there may be a million.
    """

    max_length: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        (items,) = get_args(source)
        return core_schema.list_schema(
            handler.generate_schema(items), fail_fast=True, max_length=self.max_length
        )


PAGE = UpTo(20_000)
"""Pages, and lists that the API does not page: twice as many jobs as any organization is known to have."""

TolerantList = Annotated[list[T], PAGE, OrNull(list)]
"""List that some servers may send as null."""


class _OrWrong:
    """Validates any wrong value of a mapping as ``_WRONG``, since each would be kept as an error."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        wrong = core_schema.no_info_plain_validator_function(lambda _value: _WRONG)
        return core_schema.union_schema([handler(source), wrong], mode="left_to_right")


def _without_wrong_values(values: dict[str, T]) -> dict[str, T]:
    if any(value is _WRONG for value in values.values()):
        raise ValueError("a value is invalid")
    return values


_WRONG = object()

TolerantDict = Annotated[
    dict[str, Annotated[T, _OrWrong()]], AfterValidator(_without_wrong_values), OrNull(dict)
]
"""Mapping that some servers may send as null."""


@dataclass(frozen=True, eq=False)
class Inside:
    """Validates an object as the value of one field, which must be present; the others are not read."""

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
