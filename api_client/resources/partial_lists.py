"""Lists of which a caller may accept the readable part.

A list with a record that cannot be read is an error, unless the caller takes note of such records: what is
decided by a list needs all of it; what is shown is better incomplete than missing.
"""

from __future__ import annotations

from collections.abc import Callable
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


class ListReader(Generic[T]):
    """Requests the list of a route, and reads it record by record if it cannot be read as a whole."""

    def __init__(self, route: Route[list[T]]) -> None:
        self._route = route
        self._in_part: Route[PartialList[T]] = route.read_by(self)

    async def read(
        self, transport: Transport, *ids: str, unreadable: list[str] | None, **options: Any
    ) -> list[T]:
        """Return the list; the reasons why records were left out are added to ``unreadable``.

        A list without any record that can be read is an InvalidAnswer.
        """
        if unreadable is None:
            return await transport.request(self._route, *ids, **options)
        part = await transport.request(self._in_part, *ids, **options)
        unreadable += part.unreadable
        return part.records

    def validate_json(self, data: bytes, /) -> PartialList[T]:
        """Raises ValidationError if no record can be read."""
        return self._validate(lambda adapter: adapter.validate_json(data))

    def validate_python(self, value: Any, /) -> PartialList[T]:
        """Raises ValidationError if no record can be read."""
        return self._validate(lambda adapter: adapter.validate_python(value))

    def _validate(self, read_by: Callable[[Adapter[Any]], Any]) -> PartialList[T]:
        part = PartialList[T]([], [])
        try:
            return PartialList(read_by(self._route.adapter), [])
        except ValidationError as error:
            why_not_whole = error
        for value in read_by(replace(cast("Route[Any]", self._route), kind=list[Any]).adapter):
            try:
                part.records.append(self._record.validate_python(value))
            except ValidationError as error:
                part.unreadable.append(describe(error, "the record"))
        if not part.records:
            raise why_not_whole
        return part

    @cached_property
    def _record(self) -> TypeAdapter[T]:
        return TypeAdapter(get_args(self._route.kind)[0])
