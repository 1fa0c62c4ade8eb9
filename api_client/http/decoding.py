"""Decode the bytes of an answer to models.

The fast path passes the bytes directly to pydantic's JSON parser. Some servers send JSON that a strict parser
rejects (broken UTF-8, lone surrogates, raw control characters inside strings, all of which occur in log
lines). In that case a tolerant parser reads it again and puts U+FFFD in place of invalid characters.

Bytes are counted before they are parsed: a few bytes can become a model of a kilobyte.

A list with a record that cannot be read is an error, unless the caller takes note of such records: what is
decided by a list needs all of it; what is shown is better incomplete than missing.
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
MAX_DEPTH = 100  # maximum nesting of an answer; the published answers have less than ten levels
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
            reason = describe(error, "the response")
            if error.error_count() > 1 or error.errors()[0]["type"] != "json_invalid":
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
    if error.error_count() > 1000:  # pydantic builds the list of all of them
        return f"{whole}: {error.error_count():,} values are invalid"
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    location = ".".join(str(part) for part in first["loc"])[:200]  # it has names of the server
    return f"{location or whole}: {first['msg']}"


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


Reasons = list[str]  # why each of some records cannot be read


def in_part(route: Route[list[T]], unreadable: Reasons | None) -> Route[list[T]]:
    """Return the route with lists that lack records that cannot be read; the reasons go to ``unreadable``.

    A list without any record that can be read is still an InvalidAnswer, and without ``unreadable`` so is one
    that lacks any.
    """
    return route if unreadable is None else route.read_by(_PartialReader(route, unreadable))


@dataclass(frozen=True)
class _PartialReader(Generic[T]):
    route: Route[list[T]]
    unreadable: Reasons

    def validate_json(self, data: bytes, /) -> list[T]:
        return self._read(lambda adapter: adapter.validate_json(data))

    def validate_python(self, value: Any, /) -> list[T]:
        return self._read(lambda adapter: adapter.validate_python(value))

    def _read(self, read_by: Callable[[Adapter[Any]], Any]) -> list[T]:
        """Read the list, record by record if it cannot be read as a whole."""
        try:
            whole: list[T] = read_by(self.route.adapter)
            return whole
        except ValidationError as error:
            why_not_whole = error
        record: TypeAdapter[T] = TypeAdapter(get_args(self.route.kind)[0])
        records, reasons = [], []
        for value in read_by(replace(cast("Route[Any]", self.route), kind=list[Any]).adapter):
            try:
                records.append(record.validate_python(value))
            except ValidationError as error:
                reasons.append(describe(error, "the record"))
        if not records:
            raise why_not_whole
        self.unreadable.extend(reasons)
        return records
