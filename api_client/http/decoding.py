"""Decode the bytes of an answer to models.

The fast path passes the bytes directly to pydantic's JSON parser. Some servers send JSON that a strict parser
rejects (broken UTF-8, lone surrogates, raw control characters inside strings, all of which occur in log
lines). In that case a tolerant parser reads it again and puts U+FFFD in place of invalid characters.

Bytes are counted before they are parsed: a few bytes can become a model of a kilobyte.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from api_client.routes import Adapter

T = TypeVar("T")
MAX_DEPTH = 100  # maximum nesting of an answer; the published answers have less than ten levels
MAX_LISTED_ERRORS = 1000
MAX_PLACE_LENGTH = 200  # in a message: names of the server are parts of it
_JSON_INVALID = "json_invalid"
_VALUE = re.compile(
    rb'(?:[^",{\[]++|"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z))*+(?:([,{\[])|\Z)',
    re.DOTALL,
)
"""Everything up to the next value, which follows a bracket or a comma outside of texts."""


class AnswerLimit(NamedTuple):
    """Maximum size of an unpacked answer, in bytes and in values."""

    bytes: int
    values: int


USUAL = AnswerLimit(16 * 1024 * 1024, 400_000)
"""A page, or a list that the API does not page: 10,000 jobs have 250,000 values."""

LARGE = AnswerLimit(64 * 1024 * 1024, 900_000)
"""Metrics and caches: 300,000 samples, or 150,000 files."""
RESPONSE = "the response"


class NotDecodable(ValueError):
    """The bytes are not JSON, or not of the expected structure. The message quotes no values."""


class TooManyValues(NotDecodable):
    """The bytes have more values than are accepted."""


def decode(content: bytes, adapter: Adapter[T], max_values: int = USUAL.values) -> T:
    """Parse and validate an answer. Raises NotDecodable, also for more than ``max_values`` values."""
    _check_value_count(content, max_values)
    for read in (adapter.validate_json, lambda _: adapter.validate_python(read_json(content, max_values))):
        try:
            return read(content)
        except ValidationError as error:
            reason = describe(error, RESPONSE)
            if error.error_count() > 1 or error.errors()[0]["type"] != _JSON_INVALID:
                break
    raise NotDecodable(reason)


def _check_value_count(content: bytes, max_values: int) -> None:
    """Raise TooManyValues if the document has more values, nested, empty and invalid ones included."""
    at_most = sum(
        map(content.count, (b",", b"{", b"["))
    )  # those in texts included: quick, and usually enough
    if at_most > max_values and any(match[1] for match in islice(_VALUE.finditer(content), max_values, None)):
        raise TooManyValues(f"over {max_values:,} values")


def read_json(content: bytes, max_values: int = LARGE.values) -> Any:
    """Parse any JSON tolerantly. Raises NotDecodable, also for more than ``max_values`` values."""
    _check_value_count(content, max_values)
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


def describe(error: ValidationError, whole: str) -> str:
    """Describe the first finding without input values, which may be secrets; ``whole`` is what was read."""
    if error.error_count() > MAX_LISTED_ERRORS:  # pydantic builds the list of all of them
        return f"{whole}: {error.error_count():,} values are invalid"
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"])[:MAX_PLACE_LENGTH]
    return f"{place or whole}: {first['msg']}"


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
