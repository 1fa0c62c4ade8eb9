"""Decode the bytes of an answer to models.

The fast path passes the bytes directly to pydantic's JSON parser. Some servers send JSON that a strict parser
rejects (broken UTF-8, lone surrogates, raw control characters inside strings, all of which occur in log
lines). In that case a tolerant parser reads it again and puts U+FFFD in place of invalid characters.
"""

from __future__ import annotations

import json
from typing import Any, Protocol, TypeVar

from pydantic import ValidationError

T = TypeVar("T")
Read_co = TypeVar("Read_co", covariant=True)
MAX_DEPTH = 100  # maximum nesting of an answer; the published answers have less than ten levels
_JSON_INVALID = "json_invalid"
RESPONSE = "the response"


class Adapter(Protocol[Read_co]):
    """What reads an answer: a ``TypeAdapter``, or an object that reads in its own way."""

    def validate_json(self, data: bytes, /) -> Read_co:
        """Raises ValidationError."""

    def validate_python(self, value: Any, /) -> Read_co:
        """Raises ValidationError."""


class NotDecodable(ValueError):
    """The bytes are not JSON, or not of the expected structure. The message quotes no values."""


def decode(content: bytes, adapter: Adapter[T]) -> T:
    try:
        return adapter.validate_json(content)
    except ValidationError as error:
        reason, is_syntax = describe(error, RESPONSE), error.errors()[0]["type"] == _JSON_INVALID
    if is_syntax:
        return _decode_tolerantly(content, adapter)
    raise NotDecodable(reason)


def read_json(content: bytes) -> Any:
    """Parse any JSON tolerantly. Raises NotDecodable."""
    try:
        value = json.loads(content.decode("utf-8-sig", errors="replace"), strict=False)
        return _scrub(value, 0)
    except RecursionError:
        reason = "nested too deeply"
    except ValueError as error:
        # Only the position: the rest of the message may quote parts of the document.
        position = error.pos if isinstance(error, json.JSONDecodeError) else None
        reason = "not JSON" if position is None else f"not JSON at character {position}"
    raise NotDecodable(reason)


def _decode_tolerantly(content: bytes, adapter: Adapter[T]) -> T:
    value = read_json(content)
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        reason = describe(error, RESPONSE)
    raise NotDecodable(reason)


def describe(error: ValidationError, whole: str) -> str:
    """Describe the first finding without input values, which may be secrets; ``whole`` is what was read."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(str(part) for part in first['loc']) or whole}: {first['msg']}"


def _scrub(value: Any, depth: int) -> Any:
    """Replace lone surrogates with U+FFFD. Raises RecursionError beyond ``MAX_DEPTH``."""
    if depth > MAX_DEPTH:
        raise RecursionError
    if isinstance(value, str):
        return _scrub_text(value)
    if isinstance(value, list):
        return [_scrub(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {_scrub_text(name): _scrub(item, depth + 1) for name, item in value.items()}
    return value


def _scrub_text(text: str) -> str:
    # Encoding as UTF-16 joins surrogate pairs that arrived as two escapes and lets lone ones be replaced.
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
