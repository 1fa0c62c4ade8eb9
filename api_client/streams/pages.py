"""Pages of a log: fetched with patience, parsed, in order, and without what was not asked for."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from itertools import islice
from operator import attrgetter, le
from typing import Literal

from api_client.clock import Clock
from api_client.errors import ErrorAnswer, InvalidAnswer, RequestError, ServerFault, TimedOut
from api_client.models.logs import LogRecord
from api_client.streams.patience import may_pass, wait_s
from api_client.streams.records import NS_PER_MS, FetchPage, LogLine

Direction = Literal["asc", "desc"]

MAX_PAGE_LINES = 1000
"""The most lines the API answers at once (API facts, 2.2)."""

TRIES = 4
TRIES_IN_TROUBLE = 2
"""A window that was just refused is not worth as long a wait a second time."""

UNDATED_REMEMBERED = 4096

_by_stamp = attrgetter("timestamp_ns")


class PageRefused(Exception):
    """The server keeps failing on this page, though it may answer others; the message says how."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its lines inside the window, ascending; lines beyond the bounds were dropped.

    ``is_full`` when the server may have more, ``is_in_order`` when it answered them sorted. ``has_next_ms``
    tells of lines in the millisecond after the window, from a server that counts the end bound in.
    """

    lines: list[LogLine]
    is_full: bool
    is_in_order: bool
    has_next_ms: bool = False


class PageSource:
    """Fetches pages of one log, one at a time.

    Errors that may pass are waited out; a page that alone keeps failing raises PageRefused. Lines of one
    stamp keep the server's order. A line whose stamp is no number is kept: it stands at the edge of the
    window that the reading comes from (its start when ascending), once however often it is answered.
    """

    def __init__(self, fetch: FetchPage, *, clock: Clock, limit: int = MAX_PAGE_LINES) -> None:
        self.limit = limit
        self._fetch = fetch
        self._clock = clock
        self._tries = TRIES
        self._undated: OrderedDict[tuple[object, ...], None] = OrderedDict()

    async def page(
        self, start_ms: int, end_ms: int, direction: Direction, limit: int, *, until_ms: int | None = None
    ) -> Page:
        """The lines ``start_ms <= t < end_ms`` of one page, whichever way the server reads the end bound.

        ``until_ms`` asks for another end than the one sent. Raises PageRefused, and RequestErrors that
        will not pass.
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
        if not lines or (lines[0].timestamp_ns >= start_ns and lines[-1].timestamp_ns < end_ns):
            return Page(lines, is_full, is_in_order)
        inside = [line for line in lines if start_ns <= line.timestamp_ns < end_ns]
        next_ms_ns = end_ns + NS_PER_MS
        has_next_ms = any(end_ns <= line.timestamp_ns < next_ms_ns for line in lines)
        return Page(inside, is_full, is_in_order, has_next_ms)

    async def newest_stamp_ns(self, start_ms: int, end_ms: int) -> int | None:
        """The stamp of the newest line of a window, None if it is empty or the server refuses."""
        try:
            page = await self.page(start_ms, end_ms, "desc", 1)
        except PageRefused:
            return None
        return page.lines[-1].timestamp_ns if page.lines else None

    async def is_answered_elsewhere(self) -> bool:
        """Whether the server answers a page far away from any line: a fault is then one page's alone."""
        try:
            await self._fetch(start_ms=0, end_ms=1, direction="asc", limit=1)
        except RequestError as error:
            return isinstance(error, ErrorAnswer) and not error.retryable
        return True

    async def _records(self, start_ms: int, end_ms: int, direction: Direction, limit: int) -> list[LogRecord]:
        call = partial(self._fetch, start_ms=start_ms, end_ms=end_ms, direction=direction, limit=limit)
        failures = 0
        refusals = 0
        while True:
            try:
                records = await call()
            except RequestError as error:
                if not may_pass(error):
                    raise
                failures += 1
                refusals += _blames_the_page(error)
                await self._clock.sleep(wait_s(failures, error))
                if refusals >= self._tries:
                    self._tries = TRIES_IN_TROUBLE
                    raise PageRefused(str(error)) from error
            else:
                self._tries = TRIES
                return records

    def _parsed(self, records: list[LogRecord], undated_ns: int) -> list[LogLine]:
        lines = []
        for record in records:
            try:
                stamp = int(record["timestamp"])
            except ValueError:
                if self._is_known_undated(record):
                    continue
                stamp = undated_ns
            lines.append(
                LogLine(
                    stamp,
                    record["message"],
                    record.get("replica"),
                    record.get("level"),
                    record.get("request_id"),
                )
            )
        return lines

    def _is_known_undated(self, record: LogRecord) -> bool:
        key = (record["timestamp"], record["message"], record.get("replica"), record.get("request_id"))
        if key in self._undated:
            return True
        self._undated[key] = None
        if len(self._undated) > UNDATED_REMEMBERED:
            self._undated.popitem(last=False)
        return False


def _blames_the_page(error: RequestError) -> bool:
    """Errors that one page's content may cause: the server's own, unreadable answers, and slowness."""
    return isinstance(error, ServerFault | InvalidAnswer | TimedOut)
