"""What all answers of the API have in common."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, model_validator

T = TypeVar("T")


class ApiModel(BaseModel):
    """An answer of the API, read tolerantly.

    Unknown fields are kept (and dumped again), unknown enum values survive because enums are plain
    strings here, and only what identifies an object is required: a newer server never breaks us.
    """

    model_config = ConfigDict(extra="allow", defer_build=True, frozen=True, protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _null_is_missing(cls, data: Any) -> Any:
        """A null where we know of a default means the default, whatever the schema promised."""
        if isinstance(data, dict) and None in data.values():
            known = cls.model_fields
            return {name: value for name, value in data.items() if value is not None or name not in known}
        return data


def _in_utc(moment: datetime) -> datetime:
    """A stamp without zone is taken as UTC (every documented stamp carries one)."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _empty_if_null(value: Any) -> Any:
    return [] if value is None else value


def _empty_mapping_if_null(value: Any) -> Any:
    return {} if value is None else value


UtcDatetime = Annotated[datetime, AfterValidator(_in_utc)]
"""An aware datetime, converted to UTC."""

TolerantList = Annotated[list[T], BeforeValidator(_empty_if_null)]
"""A list that some server may send as null."""

TolerantDict = Annotated[dict[str, T], BeforeValidator(_empty_mapping_if_null)]
"""A mapping that some server may send as null."""
