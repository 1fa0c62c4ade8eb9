"""Lists of which a caller may accept the readable part.

A list with a record that cannot be read is an error, unless the caller takes note of such records: what is
decided by a list needs all of it; what is shown is better incomplete than missing.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar, cast, get_args

from pydantic import TypeAdapter, ValidationError

from api_client.http.decoding import describe
from api_client.http.transport import Transport
from api_client.routes import Adapter, Route

T = TypeVar("T")


class PartialList(NamedTuple, Generic[T]):
    """The records of a list that can be read, and for each of the others the reason why it cannot."""

    records: list[T]
    unreadable: list[str]


class _PartialAdapter(Generic[T]):
    """Reads a list record by record if it cannot be read as a whole; without any record it is an error."""

    def __init__(self, route: Route[list[T]]) -> None:
        self._whole = route.adapter
        self._values: Adapter[list[object]] = replace(cast("Route[Any]", route), kind=list[object]).adapter
        self._record: TypeAdapter[T] = TypeAdapter(get_args(route.kind)[0])

    def validate_json(self, data: bytes, /) -> PartialList[T]:
        try:
            return PartialList(self._whole.validate_json(data), [])
        except ValidationError as error:
            return self._readable(self._values.validate_json(data), error)

    def validate_python(self, value: Any, /) -> PartialList[T]:
        try:
            return PartialList(self._whole.validate_python(value), [])
        except ValidationError as error:
            return self._readable(self._values.validate_python(value), error)

    def _readable(self, values: list[object], why_not_whole: ValidationError) -> PartialList[T]:
        found = PartialList[T]([], [])
        for value in values:
            try:
                found.records.append(self._record.validate_python(value))
            except ValidationError as error:
                found.unreadable.append(describe(error, "the record"))
        if not found.records:
            raise why_not_whole
        return found


class ListReader(Generic[T]):
    """Requests the list of a route."""

    def __init__(self, route: Route[list[T]]) -> None:
        self._route = route

    @cached_property
    def _in_part(self) -> Route[PartialList[T]]:
        return self._route.read_by(_PartialAdapter(self._route))

    async def read(
        self, transport: Transport, *ids: str, unreadable: list[str] | None, **options: Any
    ) -> list[T]:
        """Return the list; the reasons why records were left out are added to ``unreadable``."""
        if unreadable is None:
            return await transport.request(self._route, *ids, **options)
        found = await transport.request(self._in_part, *ids, **options)
        unreadable += found.unreadable
        return found.records
