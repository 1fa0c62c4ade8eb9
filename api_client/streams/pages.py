"""Fetch single pages of a log, retrying failures, and sort and check the lines of each.

A page that keeps failing while others work raises ``PageRefused``, so that one bad range does not stop the
stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

from api_client.clock import Clock
from api_client.errors import ErrorAnswer, InvalidAnswer, RequestError, ServerFault, TimedOut
from api_client.http.retry import ENDLESS, retrying
from api_client.models.logs import NS_PER_MS, FetchPage, LogGap, LogLine, LogsPage

Direction = Literal["asc", "desc"]

MAX_PAGE_LINES = 1000  # maximum number of lines that the API returns at once
BIG_TEXT_CHARACTERS = 256 * 1024  # a page with this much text may have been truncated because of its size
TRIES = 3  # a page is refused after this many errors that may be caused by its content

_by_stamp = attrgetter("timestamp_ns")
_new_line = LogLine._make


class PageRefused(Exception):
    """The server keeps failing on this page, though it may answer others; the message says how."""


@dataclass(frozen=True, slots=True)
class Page:
    """Page of a log: its lines inside the time range, ascending; lines beyond the bounds were dropped.

    ``count`` is the number of all lines. ``has_more`` if the server may have more of the range; in that
    case, ``is_proven`` if a page of that size was complete before. ``has_next_ms`` if there were lines of
    the millisecond after the range, from a server whose end bound is inclusive.
    """

    lines: list[LogLine]
    count: int
    has_more: bool
    is_proven: bool
    has_next_ms: bool = False

    @property
    def is_full(self) -> bool:
        """True if the page has as many lines as the API returns at once."""
        return self.count >= MAX_PAGE_LINES


class PageSource:
    """Fetches pages of one log, one at a time.

    Transient errors are retried; a page that keeps failing while others work raises PageRefused. A page
    that is not full may still have been truncated, by a limit of the server, if no page was longer so far.
    ``proven_lines`` is the size of the longest page that was seen to be complete. Lines with equal
    timestamps keep the server's order.
    """

    def __init__(self, fetch: FetchPage, *, clock: Clock) -> None:
        self._fetch = fetch
        self._clock = clock
        self._longest_page = 0
        self.proven_lines = 0
        self.is_complete = False
        """True if the last answer said that no line will be added to the log."""
        self.recorded_gaps: set[LogGap] = set()
        """Gaps of a recording, in the ranges read so far."""

    async def page(
        self,
        start_ms: int,
        end_ms: int,
        direction: Direction,
        *,
        limit: int | None = None,
        until_ms: int | None = None,
    ) -> Page:
        """Fetch the lines ``start_ms <= t < end_ms`` of one page, even if the server includes the end bound.

        ``until_ms`` keeps lines up to another end than the one sent. Raises PageRefused and permanent
        RequestErrors.
        """
        failures: list[RequestError] = []

        async def fetch_once() -> list[LogLine]:
            if len(failures) >= TRIES:
                raise PageRefused(str(failures[-1])) from failures[-1]
            try:
                answer = await self._fetch(
                    start_ms=start_ms, end_ms=end_ms, direction=direction, limit=limit or MAX_PAGE_LINES
                )
            except (ServerFault, InvalidAnswer, TimedOut) as error:
                failures.append(error)
                raise
            lines = _parse(answer)
            self.is_complete = answer.get("complete", False)
            self.recorded_gaps |= {LogGap(**gap) for gap in answer.get("gaps", ())}
            return lines

        lines = await retrying(fetch_once, ENDLESS, sleep=self._clock.sleep)
        if direction == "desc":
            lines.reverse()
        lines.sort(key=_by_stamp)
        start_ns, end_ns = start_ms * NS_PER_MS, (end_ms if until_ms is None else until_ms) * NS_PER_MS
        return self._checked(lines, start_ns, end_ns)

    def _checked(self, lines: list[LogLine], start_ns: int, end_ns: int) -> Page:
        count = len(lines)
        is_big = sum([len(line.message) for line in lines]) >= BIG_TEXT_CHARACTERS
        has_more = is_big or (count > 0 and count >= min(self._longest_page, MAX_PAGE_LINES))
        is_proven = not is_big and count <= self.proven_lines
        self._longest_page = max(self._longest_page, count)
        if not lines or (lines[0].timestamp_ns >= start_ns and lines[-1].timestamp_ns < end_ns):
            return Page(lines, count, has_more, is_proven)
        inside = [line for line in lines if start_ns <= line.timestamp_ns < end_ns]
        has_next_ms = any(end_ns <= line.timestamp_ns < end_ns + NS_PER_MS for line in lines)
        if not inside and not has_next_ms and count >= MAX_PAGE_LINES:
            raise PageRefused("it returns lines of other times only")
        return Page(inside, count, has_more, is_proven, has_next_ms)

    async def newest_stamp_ns(self, start_ms: int, end_ms: int) -> int | None:
        """Return the timestamp of the newest line in the range; None if it is empty or the server refuses."""
        try:
            page = await self.page(start_ms, end_ms, "desc", limit=1)
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


def _parse(page: LogsPage) -> list[LogLine]:
    """Parse the records of a page.

    A timestamp that is not epoch nanoseconds raises PageRefused at once: the same page again has it, too.
    """
    try:
        return [
            _new_line(
                (
                    int(record["timestamp"]),
                    record.get("message", ""),
                    record.get("replica"),
                    record.get("level"),
                    record.get("request_id"),
                    False,
                )
            )
            for record in page["logs"] or ()
        ]
    except (KeyError, ValueError):
        raise PageRefused("a log line has no valid timestamp") from None
