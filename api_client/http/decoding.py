"""Decode the body of a response into models.

The fast path passes the bytes directly to pydantic's JSON parser. Some servers send JSON that a strict parser
rejects (broken UTF-8, lone surrogates, raw control characters inside strings, all of which occur in log
lines). In that case a tolerant parser reads it again and puts U+FFFD in place of invalid characters.

Values are counted before they are parsed: two bytes of JSON can become a model of a kilobyte.

A list with an invalid record is an error, unless the caller collects errors of single records
(``without_unreadable``): a decision needs the whole list, but a screen can show the valid records.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar, cast, get_args

from pydantic import TypeAdapter, ValidationError

from api_client.routes import Adapter, Route

T = TypeVar("T")
MAX_DEPTH = 100  # maximum nesting of a response; the documented responses have less than ten levels
_VALUE = re.compile(
    rb'(?:[^",{\[]++|"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z))*+(?:([,{\[])|\Z)',
    re.DOTALL,
)
"""Matches everything up to the next bracket or comma outside of strings; each match precedes a value."""


class ResponseLimit(NamedTuple):
    """Maximum size of a decompressed response, in bytes and in JSON values."""

    bytes: int
    values: int


USUAL_LIMIT = ResponseLimit(16 * 1024 * 1024, 400_000)
"""Limit for pages, and for lists that the API does not page: 10,000 jobs have 250,000 values."""

LARGE_LIMIT = ResponseLimit(64 * 1024 * 1024, 900_000)
"""Limit for metrics (300,000 samples) and caches (150,000 files)."""


class NotDecodable(ValueError):
    """The bytes are not JSON, or not of the expected structure. The message quotes no values."""


class TooManyValues(NotDecodable):
    """The JSON has more values than the limit allows."""


def decode(content: bytes, adapter: Adapter[T], max_values: int = USUAL_LIMIT.values) -> T:
    """Parse and validate a response. Raises NotDecodable, also for more than ``max_values`` values."""
    _check_value_count(content, max_values)
    for parse in (adapter.validate_json, lambda _: adapter.validate_python(read_json(content, max_values))):
        try:
            return parse(content)
        except ValidationError as error:
            reason = describe(error, "the response")
            if error.error_count() > 1 or error.errors()[0]["type"] != "json_invalid":
                break
    raise NotDecodable(reason)


def _check_value_count(content: bytes, max_values: int) -> None:
    """Raise TooManyValues if the document has more values, including nested, empty and invalid values."""
    # The upper bound also counts characters inside strings, but it is quick and usually low enough.
    upper_bound = sum(map(content.count, (b",", b"{", b"[")))
    if upper_bound > max_values and any(
        match[1] for match in islice(_VALUE.finditer(content), max_values, None)
    ):
        raise TooManyValues(f"over {max_values:,} values")


def read_json(content: bytes, max_values: int = LARGE_LIMIT.values) -> Any:
    """Parse any JSON tolerantly. Raises NotDecodable, also for more than ``max_values`` values."""
    _check_value_count(content, max_values)
    try:
        value = json.loads(content.decode("utf-8-sig", errors="replace"), strict=False)
        return _replace_surrogates(value, 0)
    except RecursionError:
        reason = "nested too deeply"
    except ValueError as error:
        # Report only the position: the rest of the message may quote the document.
        position = error.pos if isinstance(error, json.JSONDecodeError) else None
        reason = "not JSON" if position is None else f"not JSON at character {position}"
    raise NotDecodable(reason)


def describe(error: ValidationError, document: str) -> str:
    """Describe the first error, without input values, which may be secrets; ``document`` is its name."""
    if error.error_count() > 1000:  # error.errors() would build a list of all errors
        return f"{document}: {error.error_count():,} values are invalid"
    first_error = error.errors(include_url=False, include_context=False, include_input=False)[0]
    location = ".".join(str(key) for key in first_error["loc"])[:200]  # field names are chosen by the server
    return f"{location or document}: {first_error['msg']}"


def _replace_surrogates(value: Any, depth: int) -> Any:
    """Replace lone surrogates with U+FFFD. Raises RecursionError beyond ``MAX_DEPTH``."""
    if depth > MAX_DEPTH:
        raise RecursionError
    if isinstance(value, str):
        return _replace_surrogates_in_text(value)
    if isinstance(value, list):
        return [_replace_surrogates(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {
            _replace_surrogates_in_text(name): _replace_surrogates(item, depth + 1)
            for name, item in value.items()
        }
    return value


def _replace_surrogates_in_text(text: str) -> str:
    # Encoding as UTF-16 joins surrogate pairs that arrived as two escapes and lets lone ones be replaced.
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


Reasons = list[str]  # for each invalid record, why it is invalid


def without_unreadable(route: Route[list[T]], unreadable: Reasons | None) -> Route[list[T]]:
    """Return the route with a reader that leaves out invalid records and adds the reasons to ``unreadable``.

    If no record is valid, or ``unreadable`` is None and any record is invalid, the response is an
    InvalidAnswer.
    """
    return route if unreadable is None else route.with_reader(_PartialReader(route, unreadable))


@dataclass(frozen=True)
class _PartialReader(Generic[T]):
    route: Route[list[T]]
    unreadable: Reasons

    def validate_json(self, data: bytes, /) -> list[T]:
        return self._read(lambda adapter: adapter.validate_json(data))

    def validate_python(self, value: Any, /) -> list[T]:
        return self._read(lambda adapter: adapter.validate_python(value))

    def _read(self, read_by: Callable[[Adapter[Any]], Any]) -> list[T]:
        """Read the list as a whole or, if that fails, record by record."""
        try:
            whole: list[T] = read_by(self.route.adapter)
            return whole
        except ValidationError as error:
            whole_error = error
        record: TypeAdapter[T] = TypeAdapter(get_args(self.route.kind)[0])
        records, reasons = [], []
        for value in read_by(replace(cast("Route[Any]", self.route), kind=list[Any]).adapter):
            try:
                records.append(record.validate_python(value))
            except ValidationError as error:
                reasons.append(describe(error, "the record"))
        if not records:
            raise whole_error
        self.unreadable.extend(reasons)
        return records
