"""Lists of which a caller may accept the readable part.

A list with a record that cannot be read is an error, unless the caller takes note of such records: what is
decided by a list needs all of it; what is shown is better incomplete than missing.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from api_client.http.transport import Transport
from api_client.models.base import answer_with_list, answer_with_readable

T = TypeVar("T")


class ListReader(Generic[T]):
    """Requests lists of ``kind`` that are in the field ``name`` of an answer."""

    def __init__(self, name: str, kind: type[T]) -> None:
        self._whole = answer_with_list(name, kind)
        self._readable = answer_with_readable(name, kind)

    async def read(
        self, transport: Transport, method: str, path: str, unreadable: list[str] | None, **options: Any
    ) -> list[T]:
        """Return the list; the reasons why records were left out are added to ``unreadable``."""
        if unreadable is None:
            return await transport.request(method, path, self._whole, **options)
        found = await transport.request(method, path, self._readable, **options)
        unreadable += found.unreadable
        return found.records
