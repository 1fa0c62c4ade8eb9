"""Lists of which a caller may accept the readable part.

A list with a record that cannot be read is an error, unless the caller takes note of such records: what is
decided by a list needs all of it; what is shown is better incomplete than missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar, cast, get_args

from pydantic import TypeAdapter, ValidationError

from api_client.http.decoding import describe
from api_client.routes import Adapter, Route

T = TypeVar("T")


def in_part(route: Route[list[T]], unreadable: list[str] | None) -> Route[list[T]]:
    """Return the route with lists that lack records that cannot be read; the reasons go to ``unreadable``.

    A list without any record that can be read is still an InvalidAnswer, and without ``unreadable`` so is one
    that lacks any.
    """
    return route if unreadable is None else route.read_by(_PartialReader(route, unreadable))


class _PartialReader(Generic[T]):
    def __init__(self, route: Route[list[T]], unreadable: list[str]) -> None:
        self._route = route
        self._unreadable = unreadable

    def validate_json(self, data: bytes, /) -> list[T]:
        return self._read(lambda adapter: adapter.validate_json(data))

    def validate_python(self, value: Any, /) -> list[T]:
        return self._read(lambda adapter: adapter.validate_python(value))

    def _read(self, read_by: Callable[[Adapter[Any]], Any]) -> list[T]:
        """Read the list, record by record if it cannot be read as a whole."""
        try:
            whole: list[T] = read_by(self._route.adapter)
            return whole
        except ValidationError as error:
            why_not_whole = error
        record: TypeAdapter[T] = TypeAdapter(get_args(self._route.kind)[0])
        records, reasons = [], []
        for value in read_by(replace(cast("Route[Any]", self._route), kind=list[Any]).adapter):
            try:
                records.append(record.validate_python(value))
            except ValidationError as error:
                reasons.append(describe(error, "the record"))
        if not records:
            raise why_not_whole
        self._unreadable += reasons
        return records
