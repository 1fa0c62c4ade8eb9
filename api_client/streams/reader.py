"""Read a time range of a log page by page, including milliseconds with more lines than a page.

Bounds are in milliseconds, so such a millisecond cannot be paged through. It can be read from both ends,
though: its oldest page and its newest page. If the two overlap, nothing is missing. If an overlap cannot be
proven, a gap is reported, even if it may turn out to be empty: two full pages that only touch, or share one
timestamp, do not show what is between them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from operator import attrgetter

from api_client.errors import BadRequest
from api_client.models.logs import MS_PER_S, NS_PER_MS, LogEntry, LogGap, LogLine, gap_with_lines
from api_client.streams.pages import Page, PageRefused, PageSource

TOO_MANY = "the API can't return more lines of one millisecond"
TOO_MANY_ALIKE = "the API can't return more lines of one timestamp"

MAX_WINDOW_MS = (7 * 24 - 1) * 3600 * MS_PER_S
"""Longest range to request: one hour less than the API's 7 days, as a server may move the end itself."""

PIECES = 8
MAX_REFUSALS = 3
"""The smallest part of a range is given up after this many refusals."""

LONGEST_REASON = 200

Window = tuple[int, int]
_Step = tuple[list[LogEntry], Window | None]

_by_stamp = attrgetter("timestamp_ns")


class RangeReader:
    """Reads ``start_ms <= t < end_ms`` in batches of whole milliseconds.

    Each batch is ascending; batches go forward in time, or backward if ``newest_first``. The ranges in
    ``skip`` (ascending, in ms) are left out. A poll trusts that a page is complete if one of that size was
    before; if a server has a limit below ours, the next polls find what it misses. A range that the server
    cannot answer, while it answers others, is narrowed down and ends as a LogGap.
    """

    def __init__(
        self,
        pages: PageSource,
        start_ms: int,
        end_ms: int,
        *,
        newest_first: bool = False,
        is_poll: bool = False,
        skip: Iterable[Window] = (),
    ) -> None:
        self.page_count = 0
        self._pages = pages
        self.start_ms = start_ms
        self.end_ms = end_ms
        self._newest_first = newest_first
        self._is_poll = is_poll
        self._todo = windows(start_ms, end_ms, skip)
        if not newest_first:
            self._todo.reverse()
        self._gap: LogGap | None = None
        self._smallest_ms = 1
        self._refusals = 0
        self._unproven_lines = 0

    @property
    def is_done(self) -> bool:
        """True if nothing is left to read."""
        return not self._todo and self._gap is None

    @property
    def position_ms(self) -> int:
        """Position of the reader: everything before it was read, or from it on when reading backward."""
        if self._newest_first:
            return self._todo[-1][1] if self._todo else self.start_ms
        return self._todo[-1][0] if self._todo else self.end_ms

    async def next_batch(self) -> list[LogEntry]:
        """Return the next entries; empty only at the end. Raises permanent RequestErrors."""
        step = self._step_backwards if self._newest_first else self._step_forwards
        while self._todo:
            try:
                entries, rest = await step(*self._todo[-1])
            except PageRefused as refused:
                await self._narrow(str(refused))
                continue
            self._todo.pop()
            self._refusals = 0
            if rest is not None and rest[0] < rest[1]:
                self._todo.append(rest)
            if entries:
                self._smallest_ms = 1
                return self._with_gap(entries)
        return self._with_gap([])

    async def _step_forwards(self, start_ms: int, end_ms: int) -> _Step:
        self.page_count += 1
        page = await self._pages.page(start_ms, end_ms, "asc")
        lines = page.lines
        last_ms = lines[-1].timestamp_ns // NS_PER_MS if lines else start_ms
        self._note(page, has_only_the_seam=last_ms == start_ms)
        is_trusted = self._is_poll and page.is_proven
        if not lines or not page.has_more or page.has_next_ms or is_trusted:
            return list(lines), None
        if last_ms == start_ms:
            return await self._millisecond(start_ms, page), (start_ms + 1, end_ms)
        cut = bisect_left(lines, last_ms * NS_PER_MS, key=_by_stamp)
        return list(lines[:cut]), (last_ms, end_ms)

    async def _step_backwards(self, start_ms: int, end_ms: int) -> _Step:
        self.page_count += 1
        page = await self._pages.page(start_ms, end_ms, "desc")
        lines = page.lines
        first_ms = lines[0].timestamp_ns // NS_PER_MS if lines else end_ms - 1
        self._note(page, has_only_the_seam=first_ms == end_ms - 1)
        if not page.has_more or not (lines or page.is_full or page.has_next_ms):
            return list(lines), None
        if first_ms == end_ms - 1:
            self.page_count += 1
            oldest = await self._pages.page(first_ms, end_ms, "asc")
            return await self._millisecond(first_ms, oldest), (start_ms, first_ms)
        cut = bisect_left(lines, (first_ms + 1) * NS_PER_MS, key=_by_stamp)
        return list(lines[cut:]), (start_ms, first_ms + 1)

    def _note(self, page: Page, *, has_only_the_seam: bool) -> None:
        """Record that the page before this one was complete, if this one has no other lines."""
        if has_only_the_seam and page.count < self._unproven_lines:
            self._pages.proven_lines = max(self._pages.proven_lines, self._unproven_lines)
        self._unproven_lines = page.count if page.has_more and not page.is_full else 0

    async def _millisecond(self, ms: int, oldest: Page) -> list[LogEntry]:
        """Read one millisecond completely; it may hold more than its oldest page."""
        if not oldest.has_more or oldest.has_next_ms:
            return list(oldest.lines)
        self.page_count += 1
        newest = await self._pages.page(ms, ms + 1, "desc")
        if newest.has_next_ms and newest.has_more:
            newest = await self._exclude_end_millisecond(ms, newest)
        if not newest.has_more:
            return list(newest.lines)
        if not newest.is_full and Counter(oldest.lines) <= Counter(newest.lines):
            self._pages.proven_lines = max(self._pages.proven_lines, newest.count)
            return list(newest.lines)
        return merge_pages(oldest.lines, newest.lines, (ms + 1) * NS_PER_MS)

    async def _exclude_end_millisecond(self, ms: int, newest: Page) -> Page:
        """Read the newest page of ``ms`` again, for a server whose inclusive end bound added later lines."""
        self.page_count += 1
        try:
            narrower = await self._pages.page(ms, ms, "desc", until_ms=ms + 1)
        except BadRequest:
            return newest
        return narrower if len(narrower.lines) > len(newest.lines) else newest

    async def _narrow(self, reason: str) -> None:
        """Handle a refusal: split the range, finally give up its smallest part."""
        if not await self._pages.is_answered_elsewhere():
            return
        start_ms, end_ms = self._todo.pop()
        if end_ms - start_ms > self._smallest_ms:
            pieces = _pieces(start_ms, end_ms)
            self._todo += pieces if self._newest_first else reversed(pieces)
            return
        self._refusals += 1
        if self._refusals < MAX_REFUSALS and self._gap is None:
            self._todo.append((start_ms, end_ms))
            return
        self._record_gap(start_ms, end_ms, reason)
        # A long range of refusals must not cost one request per millisecond: give up exponentially larger
        # parts until lines are read again.
        self._smallest_ms *= PIECES

    def _record_gap(self, start_ms: int, end_ms: int, reason: str) -> None:
        start_ns, end_ns = start_ms * NS_PER_MS, end_ms * NS_PER_MS
        if self._gap is not None:
            start_ns, end_ns = min(start_ns, self._gap.start_ns), max(end_ns, self._gap.end_ns)
        self._gap = LogGap(start_ns, end_ns, f"the server can't answer: {reason}"[:LONGEST_REASON])

    def _with_gap(self, entries: list[LogEntry]) -> list[LogEntry]:
        gap, self._gap = self._gap, None
        if gap is None:
            return entries
        return [*entries, gap] if self._newest_first else [gap, *entries]


def merge_pages(oldest: list[LogLine], newest: list[LogLine], end_ns: int) -> list[LogEntry]:
    """Combine the oldest and the newest page of a millisecond (which ends at ``end_ns``)."""
    if not oldest or not newest:
        start_ns = oldest[-1].timestamp_ns if oldest else end_ns - NS_PER_MS
        return [*oldest, gap_with_lines(start_ns, end_ns, TOO_MANY, oldest or newest), *newest]
    last, first = oldest[-1].timestamp_ns, newest[0].timestamp_ns
    if first < last:
        # Everything before `last` is on the oldest page, everything after `first` on the newest.
        before = [line for line in oldest if line.timestamp_ns < last]
        return [*before, *(line for line in newest if line.timestamp_ns >= last)]
    if first > last:
        return [*oldest, gap_with_lines(last, first, TOO_MANY, oldest), *newest]
    tied = [line for line in newest if line.timestamp_ns == first]
    known = Counter(oldest)
    lines = list(oldest)
    for line in tied:
        if known[line]:
            known[line] -= 1
        else:
            lines.append(line)
    hidden = gap_with_lines(first, first + 1, TOO_MANY_ALIKE, lines)
    return [*lines, hidden, *newest[len(tied) :]]


def windows(start_ms: int, end_ms: int, skip: Iterable[Window] = ()) -> list[Window]:
    """Split a range into ascending ranges that the API accepts, without those in ``skip`` (ascending)."""
    found = []
    for skip_start, skip_end in [*skip, (end_ms, end_ms)]:
        stop = min(skip_start, end_ms)
        while start_ms < stop:
            found.append((start_ms, min(start_ms + MAX_WINDOW_MS, stop)))
            start_ms = found[-1][1]
        start_ms = max(start_ms, skip_end)
    return found


def _pieces(start_ms: int, end_ms: int) -> list[Window]:
    width = max(1, -(-(end_ms - start_ms) // PIECES))
    starts = range(start_ms, end_ms, width)
    return [(start, min(start + width, end_ms)) for start in starts]
