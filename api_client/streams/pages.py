"""Fetch single pages of a log, retrying failures, and sort and check the lines of each.

A page that keeps failing while others work raises ``PageRefused``, so that one bad range does not stop the
stream.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from math import inf
from operator import attrgetter, le
from typing import Literal

from api_client.clock import Clock
from api_client.errors import (
    BadRequest,
    ErrorAnswer,
    InvalidAnswer,
    RequestError,
    ServerFault,
    TimedOut,
)
from api_client.http.retry import ENDLESS, retrying
from api_client.models.logs import MS_PER_S, NS_PER_MS, NS_PER_S, FetchPage, LogLine, LogRecord

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def stamp_ns_of(value: str | None) -> int | None:
    """Parse epoch nanoseconds (a string of digits, the API's form) or an ISO time; None for anything else.

    An ISO time without a timezone is UTC. Digits beyond microseconds are kept.
    """
    if value is None:
        return None
    try:
        return int(value)
    except ValueError:
        return _of_iso_time(value)


def _of_iso_time(text: str) -> int | None:
    head, dot, tail = text.partition(".")
    digits = tail[: len(tail) - len(tail.lstrip("0123456789"))] if dot else ""
    try:
        moment = datetime.fromisoformat(head + tail[len(digits) :])
    except ValueError:
        return None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    seconds = (aware - _EPOCH) // timedelta(seconds=1)
    return seconds * NS_PER_S + (int(digits[:9].ljust(9, "0")) if digits else 0)


Direction = Literal["asc", "desc"]

MAX_PAGE_LINES = 1000
"""Maximum number of lines that the API returns at once (API facts, 2.2)."""

MAX_TRIES = 4
TRIES_AFTER_FAILURES = 2
"""A time range that was just refused is retried less often the next time."""

UNDATED_REMEMBERED = 4096

MAY_BE_FUTURE_MS = 15 * 60 * MS_PER_S
"""Times this long before our current time, or later, may be in the server's future if its clock is off."""

_by_stamp = attrgetter("timestamp_ns")
_new_line = LogLine._make


class PageRefused(Exception):
    """The server keeps failing on this page, though it may answer others; the message says how."""


@dataclass(frozen=True, slots=True)
class Page:
    """Page of a log: its lines inside the time range, ascending; lines beyond the bounds were dropped.

    ``is_full`` if the server may have more, ``is_in_order`` if it returned them sorted. ``next_ms_count``
    is the number of lines in the millisecond after the range, from a server whose end bound is inclusive.
    ``characters`` is the amount of text.
    """

    lines: list[LogLine]
    is_full: bool
    is_in_order: bool
    next_ms_count: int = 0
    characters: int = 0

    @property
    def has_next_ms(self) -> bool:
        """True if the page had lines of the millisecond after the time range."""
        return self.next_ms_count > 0


class PageSource:
    """Fetches pages of one log, one at a time.

    Transient errors are retried; a page that keeps failing while others work raises PageRefused. Lines
    with equal timestamps keep the server's order. A line with an invalid timestamp is kept: it is placed
    at the edge of the range where the reading starts (the start when ascending), once however often it is
    returned. If a server refuses ranges that end in its future, it is queried without an end.
    """

    def __init__(self, fetch: FetchPage, *, clock: Clock, limit: int = MAX_PAGE_LINES) -> None:
        self.limit = limit
        self._fetch = fetch
        self._clock = clock
        self._tries = MAX_TRIES
        self._undated: OrderedDict[tuple[object, ...], None] = OrderedDict()
        self.longest_page = 0
        self._has_answered = False
        self._refused_ahead_ms: float = inf

    async def page(
        self, start_ms: int, end_ms: int, direction: Direction, limit: int, *, until_ms: int | None = None
    ) -> Page:
        """Fetch the lines ``start_ms <= t < end_ms`` of one page, even if the server includes the end bound.

        ``until_ms`` keeps lines up to another end than the one sent. Raises PageRefused and permanent
        RequestErrors.
        """
        records = await self._records(start_ms, end_ms, direction, limit)
        start_ns = start_ms * NS_PER_MS
        end_ns = (end_ms if until_ms is None else until_ms) * NS_PER_MS
        lines = self._parsed(records, start_ns if direction == "asc" else end_ns - 1)
        if direction == "desc":
            lines.reverse()
        is_in_order = all(map(le, map(_by_stamp, lines), islice(map(_by_stamp, lines), 1, None)))
        if not is_in_order:
            lines.sort(key=_by_stamp)
        is_full = len(records) >= limit
        characters = sum([len(line.message) for line in lines])
        if not lines or (lines[0].timestamp_ns >= start_ns and lines[-1].timestamp_ns < end_ns):
            return Page(lines, is_full, is_in_order, characters=characters)
        inside = [line for line in lines if start_ns <= line.timestamp_ns < end_ns]
        next_ms_ns = end_ns + NS_PER_MS
        next_ms_count = sum(end_ns <= line.timestamp_ns < next_ms_ns for line in lines)
        return Page(inside, is_full, is_in_order, next_ms_count, characters)

    async def newest_stamp_ns(self, start_ms: int, end_ms: int) -> int | None:
        """Return the timestamp of the newest line in the range; None if it is empty or the server refuses."""
        try:
            page = await self.page(start_ms, end_ms, "desc", 1)
        except PageRefused:
            return None
        return page.lines[-1].timestamp_ns if page.lines else None

    async def is_answered_elsewhere(self) -> bool:
        """Return True if the server answers a page far from any line: then only one page is at fault."""
        try:
            await self._fetch(start_ms=0, end_ms=1, direction="asc", limit=1)
        except RequestError as error:
            return isinstance(error, ErrorAnswer) and not error.retryable
        return True

    async def _records(self, start_ms: int, end_ms: int, direction: Direction, limit: int) -> list[LogRecord]:
        failures: list[RequestError] = []

        async def answer() -> list[LogRecord]:
            if len(failures) >= self._tries:
                self._tries = TRIES_AFTER_FAILURES
                raise PageRefused(str(failures[-1])) from failures[-1]
            try:
                return await self._answer(start_ms, end_ms, direction, limit)
            except RequestError as error:
                if _is_page_specific(error):
                    failures.append(error)
                raise

        records = await retrying(answer, ENDLESS, sleep=self._clock.sleep)
        self._tries = MAX_TRIES
        return records

    async def _answer(self, start_ms: int, end_ms: int, direction: Direction, limit: int) -> list[LogRecord]:
        """Send one request, and one without an end if the server refuses an end in its future."""
        call = partial(self._fetch, start_ms=start_ms, direction=direction, limit=limit)
        now_ms = int(self._clock.now().timestamp() * MS_PER_S)
        records: list[LogRecord] | None = None
        refusal: BadRequest | None = None
        if end_ms - now_ms < self._refused_ahead_ms:
            try:
                records = await call(end_ms=end_ms)
            except BadRequest as error:
                if end_ms < now_ms - MAY_BE_FUTURE_MS:
                    raise
                refusal = error
        if records is None:
            try:
                records = await call(end_ms=None)
            except BadRequest as error:
                if not self._has_answered or start_ms < now_ms - MAY_BE_FUTURE_MS:
                    raise (refusal or error) from None
                return []  # the whole time range is in the server's future
            self._refused_ahead_ms = min(self._refused_ahead_ms, end_ms - now_ms)
        self._has_answered = True
        self.longest_page = max(self.longest_page, len(records))
        return records

    def _parsed(self, records: list[LogRecord], undated_ns: int) -> list[LogLine]:
        lines = []
        for record in records:
            stamp = stamp_ns_of(record.get("timestamp"))
            if stamp is None:
                if self._is_known_undated(record):
                    continue
                stamp = undated_ns
            lines.append(
                _new_line(
                    (
                        stamp,
                        record.get("message", ""),
                        record.get("replica"),
                        record.get("level"),
                        record.get("request_id"),
                        False,
                    )
                )
            )
        return lines

    def _is_known_undated(self, record: LogRecord) -> bool:
        names = ("timestamp", "message", "replica", "request_id")
        key = tuple([record.get(name) for name in names])
        if key in self._undated:
            return True
        self._undated[key] = None
        if len(self._undated) > UNDATED_REMEMBERED:
            self._undated.popitem(last=False)
        return False


def _is_page_specific(error: RequestError) -> bool:
    """Return True for errors that a page's content may cause: server faults, unreadable answers, timeouts."""
    return isinstance(error, ServerFault | InvalidAnswer | TimedOut)
