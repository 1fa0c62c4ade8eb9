"""Parse long lists that are requested repeatedly: items with unchanged text are not parsed again.

Ten thousand jobs are 6 MB and half a second of parsing; only a handful differ from one answer to the
next. An unchanged item is the same object as before, so that widgets can detect changes with ``is``.

Parsing item by item takes more than twice as long as parsing the whole list, so the first answer is
parsed whole: most programs ask once. The second one is parsed item by item, and the third and later ones
are faster.
"""

from __future__ import annotations

import re
from json import JSONDecoder
from typing import Any, Generic, TypeVar, cast
from weakref import WeakValueDictionary

from pydantic import TypeAdapter, ValidationError

Answer = TypeVar("Answer")

LARGE_BYTES = 128 * 1024
"""Smaller answers are parsed whole, which is faster than comparing each item."""

_SPACE = re.compile(r"\s*")


class ItemCache(Generic[Answer]):
    """Parses ``{field: [items]}`` as ``whole`` does, reusing items as long as anyone holds them.

    It implements the part of TypeAdapter's interface that decoding an answer needs.
    """

    def __init__(self, whole: TypeAdapter[Answer], field: str, item: TypeAdapter[Any]) -> None:
        self._whole = whole
        self._field = field
        self._item = item
        self._known: WeakValueDictionary[int, Any] = WeakValueDictionary()
        self._was_asked = False

    def validate_json(self, content: bytes) -> Answer:
        """Parse an answer. Raises ValidationError."""
        if len(content) < LARGE_BYTES:
            return self._whole.validate_json(content)
        if self._was_asked:
            try:
                items = self._read(content.decode())
            except (ValueError, RecursionError):  # malformed in some way: let the whole-list parser decide
                items = None
            if items is not None:
                return cast("Answer", {self._field: items})
        self._was_asked = True
        return self._whole.validate_json(content)

    def validate_python(self, value: Any) -> Answer:
        """Validate parsed JSON. Raises ValidationError."""
        return self._whole.validate_python(value)

    def _read(self, text: str) -> list[Any] | None:
        """Return the items; None unless the field exists once as a list.

        Raises ValueError, RecursionError.
        """
        decoder = JSONDecoder()
        found: list[Any] | None = None
        place = _after_space(text, 0)
        if text[place : place + 1] != "{":
            return None
        while True:
            name, place = decoder.raw_decode(text, _after_space(text, place + 1))
            place = _after_space(text, place)
            if not isinstance(name, str) or text[place : place + 1] != ":":
                return None
            place = _after_space(text, place + 1)
            if name != self._field:
                _, place = decoder.raw_decode(text, place)
            elif found is not None or text[place : place + 1] != "[":
                return None
            else:
                found, place = self._items(decoder, text, place)
            place = _after_space(text, place)
            if text[place : place + 1] == "}":
                return found if _after_space(text, place + 1) == len(text) else None
            if text[place : place + 1] != ",":
                return None

    def _items(self, decoder: JSONDecoder, text: str, place: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        place = _after_space(text, place + 1)
        if text[place] == "]":
            return items, place + 1
        while True:
            _, end = decoder.raw_decode(text, place)
            items.append(self._cached_or_parsed(text[place:end]))
            place = end if text[end : end + 1] in ",]" else _after_space(text, end)
            mark = text[place : place + 1]
            if mark == "]":
                return items, place + 1
            if mark != ",":
                raise ValueError("missing comma or end of list after an item")
            place = _after_space(text, place + 1)

    def _cached_or_parsed(self, text: str) -> Any:
        key = hash(text)  # 64 bits with a random seed per process, so collisions cannot be forced
        known = self._known.get(key)
        if known is None:
            try:
                known = self._item.validate_json(text)
            except ValidationError as error:
                raise ValueError("an item does not have the expected shape") from error
            self._known[key] = known
        return known


def _after_space(text: str, place: int) -> int:
    following = text[place : place + 1]
    if following and following not in " \t\r\n":
        return place
    match = _SPACE.match(text, place)
    return match.end() if match is not None else place
