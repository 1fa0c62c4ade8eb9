"""Read a time range of a log page by page, including milliseconds with more lines than a page.

Bounds are in milliseconds, so such a millisecond cannot be paged through. It can be read from both ends,
though: its oldest page and its newest page. If the two overlap, nothing is missing. If an overlap cannot be
proven, a gap is reported, even if it may turn out to be empty: two full pages that only touch do not show
what is between them.

Lines with equal timestamps are the difficult case. If the pages share only one line, others with its
timestamp may be hidden behind it: a server that does not reverse the order of equal timestamps for the other
direction returns the same lines from either end, and two identical lines cannot be told apart.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from operator import attrgetter
from typing import TypeAlias

from api_client.errors import BadRequest
from api_client.models.logs import MS_PER_S, NS_PER_MS, LogEntry, LogGap, LogLine, gap_with_lines
from api_client.streams.pages import Page, PageRefused, PageSource

TOO_MANY = "the API can't return more lines of one millisecond"
TOO_MANY_ALIKE = "the API can't return more lines of one timestamp"

MIN_OVERLAP_LINES = 2
"""Minimum overlap of the pages in lines; a shorter one may be a coincidence."""

_Key: TypeAlias = tuple[str, str | None, str | None, str | None]


def merge_pages(
    oldest: list[LogLine], newest: list[LogLine], end_ns: int, *, are_in_order: bool = True
) -> list[LogEntry]:
    """Combine the oldest and the newest full page of a millisecond (which ends at ``end_ns``).

    Both are ascending; with ``are_in_order``, lines with equal timestamps are in the server's order.
    """
    if not newest:
        return [*oldest, gap_with_lines(oldest[-1].timestamp_ns, end_ns, TOO_MANY, oldest)]
    last = oldest[-1].timestamp_ns
    first = newest[0].timestamp_ns
    if first < last:
        # Everything before `last` is on the oldest page, everything after `first` on the newest.
        before = [line for line in oldest if line.timestamp_ns < last]
        return [*before, *(line for line in newest if line.timestamp_ns >= last)]
    if first > last:
        return [*oldest, gap_with_lines(last, first, TOO_MANY, oldest), *newest]
    return _merge_inside_one_timestamp(oldest, newest, first, are_in_order)


def _merge_inside_one_timestamp(
    oldest: list[LogLine], newest: list[LogLine], stamp: int, are_in_order: bool
) -> list[LogEntry]:
    tail = [_key(line) for line in oldest if line.timestamp_ns == stamp]
    head = [_key(line) for line in newest if line.timestamp_ns == stamp]
    shared = _shared_run(tail, head) if are_in_order else 0
    if shared:
        return [*oldest, *newest[shared:]]
    known = Counter(tail)
    entries = list(oldest)
    for line, key in zip(newest, head, strict=False):
        if known[key]:
            known[key] -= 1
        else:
            entries.append(line)
    hidden = gap_with_lines(stamp, stamp + 1, TOO_MANY_ALIKE, entries)
    return [*entries, hidden, *newest[len(head) :]]


def _shared_run(tail: list[_Key], head: list[_Key]) -> int:
    """Return how many lines end one list and begin the other; 0 if that is uncertain.

    A line that is unique in both lists shows where they would overlap; then the whole overlap must match,
    and no other line may be in both. An overlap of at least ``MIN_OVERLAP_LINES`` lines is not a
    coincidence: a server that does not reverse the order of equal timestamps, or has none, would have to
    return them like that by accident.
    """
    in_tail = Counter(tail)
    in_head = Counter(head)
    positions = {key: index for index, key in enumerate(tail) if in_tail[key] == 1}
    for index, key in enumerate(head):
        if in_head[key] == 1 and key in positions:
            length = len(tail) - positions[key] + index
            if (
                not MIN_OVERLAP_LINES <= length <= min(len(tail), len(head))
                or tail[-length:] != head[:length]
            ):
                return 0
            return length if set(tail[:-length]).isdisjoint(head[length:]) else 0
    return 0


def _key(line: LogLine) -> _Key:
    return (line.message, line.replica, line.level, line.request_id)


MAX_WINDOW_MS = (7 * 24 - 1) * 3600 * MS_PER_S
"""Longest range to request: one hour less than the API's 7 days, as a server may move the end itself."""

SMALLEST_LIMIT = 50
"""A refused page is requested with fewer lines, down to this, before its time range is split."""

LIMIT_DIVISOR = 4
SMALL_PAGE_DIVISOR = 4
"""A page of less than a quarter of its limit is small: a server's own limit has not truncated it."""

CUT_PAGE_DIVISOR = 10
"""Few servers truncate pages to less than a tenth of the limit, unless by their size in bytes."""

MIN_CUT_PAGE_LINES = 10
"""A page below a tenth may be truncated only if it has a round number of lines, and at least this many."""

BIG_TEXT_CHARACTERS = 256 * 1024
"""A page with this much text may have been truncated because of its size."""

PIECES = 8
MAX_SMALLEST_REFUSALS = 3
LONGEST_REASON = 200

Window = tuple[int, int]
_Step = tuple[list[LogEntry], Window | None]

_by_stamp = attrgetter("timestamp_ns")


class RangeReader:
    """Reads ``start_ms <= t < end_ms`` in batches of whole milliseconds.

    Each batch is ascending; batches go forward in time, or backward if ``newest_first``. The ranges in
    ``skip`` (ascending, in ms) are left out. A page that is not full ends its range if it is a small one.
    With ``confirm`` it does so only if another request from its last line also returns at most a small
    page, so that a truncated page loses nothing, and new lines that keep arriving do not delay the end.
    If the reader ``may_miss`` lines, a larger page ends the range too, unless none of that server's was
    longer. A range that the server cannot answer, while it answers others, is narrowed down and ends as a
    LogGap.
    """

    def __init__(
        self,
        pages: PageSource,
        start_ms: int,
        end_ms: int,
        *,
        newest_first: bool = False,
        confirm: bool = True,
        may_miss: bool = False,
        skip: Iterable[Window] = (),
    ) -> None:
        self.page_count = 0
        self._pages = pages
        self.start_ms = start_ms
        self.end_ms = end_ms
        self._newest_first = newest_first
        self._confirm = confirm
        self._may_miss = may_miss
        self._todo = windows(start_ms, end_ms, skip)
        if not newest_first:
            self._todo.reverse()
        self._limit = pages.limit
        self._has_confirmed = not confirm
        self._gap: LogGap | None = None
        self._smallest_ms = 1
        self._refusals_of_the_smallest = 0

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
        while self._todo:
            start_ms, end_ms = self._todo.pop()
            try:
                entries, rest = await self._step(start_ms, end_ms)
            except PageRefused as refused:
                self._todo.append((start_ms, end_ms))
                await self._narrow(str(refused))
                continue
            except BaseException:
                self._todo.append((start_ms, end_ms))
                raise
            self._limit = min(self._pages.limit, self._limit * 2)
            self._refusals_of_the_smallest = 0
            if rest is not None and rest[0] < rest[1]:
                self._todo.append(rest)
            if entries:
                self._smallest_ms = 1
                return self._with_gap(entries)
        return self._with_gap([])

    async def _step(self, start_ms: int, end_ms: int) -> _Step:
        self.page_count += 1
        if self._newest_first:
            return await self._step_backwards(start_ms, end_ms)
        return await self._step_forwards(start_ms, end_ms)

    async def _step_forwards(self, start_ms: int, end_ms: int) -> _Step:
        page = await self._pages.page(start_ms, end_ms, "asc", self._limit)
        lines = page.lines
        if not lines or (page.is_full and page.has_next_ms):
            return list(lines), None
        last_ms = lines[-1].timestamp_ns // NS_PER_MS
        if last_ms == start_ms and self._may_be_cut(page):
            return await self._millisecond(start_ms, page, oldest=page), (start_ms + 1, end_ms)
        if self._is_last(page, last_ms == start_ms):
            return list(lines), None
        cut = bisect_left(lines, last_ms * NS_PER_MS, key=_by_stamp)
        return list(lines[:cut]), (last_ms, end_ms)

    async def _step_backwards(self, start_ms: int, end_ms: int) -> _Step:
        page = await self._pages.page(start_ms, end_ms, "desc", self._limit)
        lines = page.lines
        if not lines and not (page.is_full or (page.has_next_ms and self._is_long(page))):
            return [], None
        first_ms = lines[0].timestamp_ns // NS_PER_MS if lines else end_ms - 1
        if first_ms == end_ms - 1 and self._is_long(page):
            return await self._millisecond(first_ms, page), (start_ms, first_ms)
        if self._is_last(page, first_ms == end_ms - 1):
            return list(lines), None
        cut = bisect_left(lines, (first_ms + 1) * NS_PER_MS, key=_by_stamp)
        return list(lines[cut:]), (start_ms, first_ms + 1)

    def _is_last(self, page: Page, is_only_the_seam: bool) -> bool:
        if page.is_full:
            self._has_confirmed = not self._confirm
            return False
        if is_only_the_seam or (self._has_confirmed and self._is_small(page)):
            self._has_confirmed = not self._confirm
            return True
        self._has_confirmed = True
        return False

    def _is_small(self, page: Page) -> bool:
        """Return True if the page is so short that the server is unlikely to have truncated it."""
        count = len(page.lines) + page.next_ms_count
        is_long = count >= self._limit // SMALL_PAGE_DIVISOR and not self._may_miss
        if is_long or page.characters >= BIG_TEXT_CHARACTERS:
            return False
        if count < self._pages.longest_page:
            return True
        return count < self._limit // CUT_PAGE_DIVISOR and not _is_a_servers_limit(count)

    def _is_long(self, page: Page) -> bool:
        """Return True if the server may have more than this page."""
        return page.is_full or not self._is_small(page)

    def _may_be_cut(self, page: Page) -> bool:
        """Return True if the server may have more of the millisecond that this ascending page ends in."""
        return page.is_full or not (page.has_next_ms or self._is_small(page))

    async def _millisecond(self, ms: int, seen: Page, *, oldest: Page | None = None) -> list[LogEntry]:
        """Read one millisecond completely; according to the page ``seen``, it may hold more than a page.

        ``oldest`` is that page, if it begins the millisecond.
        """
        limit = self._pages.limit if seen.is_full else self._limit
        if oldest is None or self._limit < limit:
            self.page_count += 1
            oldest = await self._pages.page(ms, ms + 1, "asc", limit)
        if oldest.has_next_ms or not self._may_be_cut(oldest):
            return list(oldest.lines)
        self.page_count += 1
        newest = await self._pages.page(ms, ms + 1, "desc", limit)
        if newest.has_next_ms and self._is_long(newest):
            newest = await self._exclude_end_millisecond(ms, newest)
        if not newest.is_full and Counter(oldest.lines) <= Counter(newest.lines):
            return list(newest.lines)
        if not oldest.lines:
            return list(newest.lines)
        are_in_order = oldest.is_in_order and newest.is_in_order
        return merge_pages(oldest.lines, newest.lines, (ms + 1) * NS_PER_MS, are_in_order=are_in_order)

    async def _exclude_end_millisecond(self, ms: int, newest: Page) -> Page:
        """Read the newest page of ``ms`` again, for a server whose inclusive end bound added later lines."""
        self.page_count += 1
        try:
            narrower = await self._pages.page(ms, ms, "desc", self._pages.limit, until_ms=ms + 1)
        except BadRequest:
            return newest
        return narrower if len(narrower.lines) > len(newest.lines) else newest

    async def _narrow(self, reason: str) -> None:
        """Handle a refusal: request fewer lines, then split the range, finally give up its smallest part."""
        if not await self._pages.is_answered_elsewhere():
            return
        if self._limit > SMALLEST_LIMIT:
            self._limit = max(SMALLEST_LIMIT, self._limit // LIMIT_DIVISOR)
            return
        start_ms, end_ms = self._todo[-1]
        if end_ms - start_ms > self._smallest_ms:
            self._todo.pop()
            pieces = _pieces(start_ms, end_ms)
            self._todo += pieces if self._newest_first else reversed(pieces)
            return
        self._refusals_of_the_smallest += 1
        if self._refusals_of_the_smallest < MAX_SMALLEST_REFUSALS and self._gap is None:
            return
        self._todo.pop()
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


def _is_a_servers_limit(count: int) -> bool:
    """Return True if this number is likely to be a configured page limit."""
    is_power_of_two = not count & (count - 1)
    return count >= MIN_CUT_PAGE_LINES and (count % 10 == 0 or count % 25 == 0 or is_power_of_two)


def _pieces(start_ms: int, end_ms: int) -> list[Window]:
    width = max(1, -(-(end_ms - start_ms) // PIECES))
    starts = range(start_ms, end_ms, width)
    return [(start, min(start + width, end_ms)) for start in starts]
