"""Fetch single pages of a log, retry failures, and sort and check the lines of each page.

A page that keeps failing while other pages work raises ``PageRefused``, so that one unreadable time range
does not stop the stream.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

from api_client.clock import Clock
from api_client.errors import AnswerTooLarge, ErrorAnswer, InvalidAnswer, RequestError, ServerFault, TimedOut
from api_client.http.retry import ENDLESS, InvalidStreak, retrying
from api_client.models.base import LAST_MOMENT
from api_client.models.logs import NS_PER_MS, NS_PER_S, FetchPage, LogGap, LogLine, LogsPage

Direction = Literal["asc", "desc"]
LogQuery = dict[str, str | int | list[str] | None]

MAX_PAGE_LINES = 1000  # maximum number of lines that the API returns at once

NO_TIME = -1  # replaces a missing or invalid timestamp

by_stamp = attrgetter("timestamp_ns")

_LAST_NS = int(LAST_MOMENT.timestamp()) * NS_PER_S


def log_query(
    start_ms: int, end_ms: int | None, direction: Direction, limit: int, min_level: str | None = None
) -> LogQuery:
    """Return the query of a logs route."""
    return {
        "start_epoch_millis": start_ms,
        "end_epoch_millis": end_ms,
        "direction": direction,
        "limit": limit,
        "min_level": min_level,
    }


class PageRefused(Exception):
    """The server keeps failing on this page, although other pages may work; the message is the last error.

    ``may_narrow`` is False if a page of a shorter time range would fail, too; ``may_repeat`` is False if the
    same request would fail again.
    """

    def __init__(self, message: str, *, may_narrow: bool = True, may_repeat: bool = True) -> None:
        super().__init__(message)
        self.may_narrow = may_narrow
        self.may_repeat = may_repeat


@dataclass(frozen=True, slots=True)
class CheckedPage:
    """Page of a log: its lines inside the time range, ascending; other lines are dropped."""

    lines: list[LogLine]
    count: int
    """Number of lines before any were dropped."""

    has_more: bool
    """True if the server may have more lines of the range."""

    is_proven: bool
    """True if an earlier page with at least as many lines was complete, so this page is not truncated."""

    has_next_ms: bool = False
    """True if there were lines of the millisecond after the range: the server's end bound is inclusive."""

    @property
    def is_full(self) -> bool:
        """True if the page has as many lines as the API returns at once."""
        return self.count >= MAX_PAGE_LINES


class PageSource:
    """Fetches pages of one log, one at a time.

    Transient errors are retried. A page that is too large, or keeps failing while other pages work,
    raises PageRefused.

    A page that is not full may still be truncated, by a lower limit of the server, until a longer page was
    seen. ``proven_lines`` is the size of the longest page that is known to have been complete. Lines with
    equal timestamps keep the server's order. Lines without a valid timestamp are on no page; ``pop_undated``
    returns them.
    """

    def __init__(self, fetch: FetchPage, *, clock: Clock) -> None:
        self._fetch = fetch
        self.clock = clock
        self._longest_page = 0
        self._invalid_streak = InvalidStreak(clock)
        self.proven_lines = 0
        self.is_log_complete = False
        """True if the last response declared that no line will be added to the log."""
        self._new_undated: list[LogLine] = []
        self._undated_counts: Counter[int] = Counter()
        self.recorded_gaps: set[LogGap] = set()
        """Gaps of a recording within the ranges read so far."""

    async def page(
        self,
        start_ms: int,
        end_ms: int,
        direction: Direction,
        *,
        limit: int | None = None,
        until_ms: int | None = None,
    ) -> CheckedPage:
        """Fetch the lines ``start_ms <= t < end_ms`` of one page, even if the server includes the end bound.

        With ``until_ms``, lines up to that time are kept, although ``end_ms`` is requested. Raises
        PageRefused and permanent RequestErrors.
        """
        failures: list[RequestError] = []
        query = log_query(start_ms, end_ms, direction, limit or MAX_PAGE_LINES)
        start_ns, end_ns = start_ms * NS_PER_MS, (end_ms if until_ms is None else until_ms) * NS_PER_MS

        async def fetch_once() -> list[LogLine]:
            # The page's content may cause the errors, so give up after three errors.
            if len(failures) >= 3:
                raise PageRefused(str(failures[-1])) from failures[-1]
            try:
                page = await self._fetch(query=query)
            except AnswerTooLarge as error:
                raise PageRefused(str(error), may_repeat=False) from error
            except (ServerFault, InvalidAnswer, TimedOut) as error:
                failures.append(error)
                self._invalid_streak.note_error(error)
                raise
            self._invalid_streak.note_valid_response()
            lines = _parse_lines(page)
            self.is_log_complete = page.get("complete", False)
            self.recorded_gaps |= {LogGap(**gap) for gap in page.get("gaps", ())}
            return lines

        lines = await retrying(fetch_once, ENDLESS, sleep=self.clock.sleep)
        if direction == "desc":
            lines.reverse()
        count = len(lines)
        dated = [line for line in lines if line.timestamp_ns != NO_TIME]
        if len(dated) < count:
            self._note_undated(lines, dated[0].timestamp_ns if dated else start_ns)
            if not dated and count >= MAX_PAGE_LINES:
                raise PageRefused("its lines have no valid timestamp", may_narrow=False)
        dated.sort(key=by_stamp)
        return self._check_page(dated, count, start_ns, end_ns)

    def _note_undated(self, page_lines: list[LogLine], previous_ns: int) -> None:
        """Store the new lines without a timestamp, each with the timestamp of the line before it."""
        counts: Counter[int] = Counter()
        for line in page_lines:
            if line.timestamp_ns != NO_TIME:
                previous_ns = line.timestamp_ns
                continue
            fingerprint = hash(line)
            counts[fingerprint] += 1
            if counts[fingerprint] > self._undated_counts[fingerprint]:
                self._undated_counts[fingerprint] += 1
                self._new_undated.append(line._replace(timestamp_ns=previous_ns))
        # A limit, because the hashes of these lines stay in memory as long as the log is read.
        if len(self._undated_counts) > 100_000:
            raise PageRefused("too many lines have no valid timestamp", may_narrow=False)

    def pop_undated(self, first_ns: int, last_ns: int) -> list[LogLine]:
        """Return and clear the new lines without a valid timestamp.

        Each line gets a timestamp within ``first_ns`` … ``last_ns``. Equal lines cannot be told apart, so in
        total, as many copies of a line are returned as the page with the most copies had.
        """
        lines, self._new_undated = self._new_undated, []
        return [line._replace(timestamp_ns=min(max(line.timestamp_ns, first_ns), last_ns)) for line in lines]

    def _check_page(self, lines: list[LogLine], count: int, start_ns: int, end_ns: int) -> CheckedPage:
        # A page with this much text may be truncated because of its size.
        is_large = sum([len(line.message) for line in lines]) >= 256 * 1024
        has_more = is_large or (count > 0 and count >= min(self._longest_page, MAX_PAGE_LINES))
        is_proven = not is_large and count <= self.proven_lines
        self._longest_page = max(self._longest_page, count)
        if not lines or (lines[0].timestamp_ns >= start_ns and lines[-1].timestamp_ns < end_ns):
            return CheckedPage(lines, count, has_more, is_proven)
        lines_in_range = [line for line in lines if start_ns <= line.timestamp_ns < end_ns]
        has_next_ms = any(end_ns <= line.timestamp_ns < end_ns + NS_PER_MS for line in lines)
        if not lines_in_range and not has_next_ms and count >= MAX_PAGE_LINES:
            raise PageRefused("it returns lines of other times only", may_narrow=False)
        return CheckedPage(lines_in_range, count, has_more, is_proven, has_next_ms)

    async def newest_stamp_ns(self, start_ms: int, end_ms: int) -> int | None:
        """Return the timestamp of the newest line in the range; None if it is empty or the server refuses."""
        try:
            page = await self.page(start_ms, end_ms, "desc", limit=1)
        except PageRefused:
            return None
        return page.lines[-1].timestamp_ns if page.lines else None

    async def can_answer_other_ranges(self) -> bool:
        """Return True if the server returns pages of other time ranges, so that only this page fails.

        Raises the error if the server has sent no valid response for a long time: it may not be Baseten.
        """
        try:
            await self._fetch(query=log_query(0, 1, "asc", 1))
        except RequestError as error:
            self._invalid_streak.note_error(error)
            if self._invalid_streak.is_final:
                raise
            return isinstance(error, ErrorAnswer) and not error.retryable
        self._invalid_streak.note_valid_response()
        return True


def _parse_lines(page: LogsPage) -> list[LogLine]:
    return [
        LogLine._make(
            (
                _time_ns(record.get("timestamp", "")),
                record.get("message", ""),
                record.get("replica"),
                record.get("level"),
                record.get("request_id"),
                False,
            )
        )
        for record in page["logs"] or ()
    ]


def _time_ns(text: str) -> int:
    """Return epoch nanoseconds; ``NO_TIME`` if the text is not a number or is outside of the valid times."""
    try:
        time_ns = int(text)
    except ValueError:
        return NO_TIME
    return time_ns if 0 <= time_ns < _LAST_NS else NO_TIME
