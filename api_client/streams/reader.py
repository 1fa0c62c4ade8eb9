"""Read a time range of a log, page by page or in several parts at once.

Bounds are in milliseconds, so a millisecond with more lines than a page cannot be paged through. Only its
oldest page and its newest page can be read. If the two pages overlap, no line is missing. If no overlap can
be proven, a gap is reported, although it may be empty: two full pages that only touch, or share one
timestamp, may have lines between them.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import Counter
from collections.abc import AsyncGenerator, Iterable

from api_client.errors import BadRequest
from api_client.models.logs import MS_PER_S, NS_PER_MS, LogEntry, LogGap, LogLine, gap_with_lines, stamp_ns
from api_client.streams.pages import CheckedPage, PageRefused, PageSource, by_stamp

TOO_MANY = "the API can't return more lines of one millisecond"
MAX_WINDOW_MS = (7 * 24 - 1) * 3600 * MS_PER_S  # the API's 7 days, less an hour: servers may shift the end
SPLIT_COUNT = 8  # number of parts that a refused time range is split into

Window = tuple[int, int]
_Step = tuple[list[LogEntry], Window | None]  # entries of one page, and the part of the window not read


class RangeReader:
    """Reads ``start_ms <= t < end_ms`` in batches of whole milliseconds.

    Each batch is ascending; batches go forward in time, or backward if ``newest_first``. The ranges in
    ``skip`` (ascending, in ms) are left out. With ``is_poll``, a page is assumed to be complete if an earlier
    page of at least its size was complete; if the page was truncated after all, later polls find the missing
    lines. If the server fails on a time range but not on other ranges, the range is split until its parts are
    small; each part that still fails becomes a LogGap.
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
        self._unread_windows = windows(start_ms, end_ms, skip)
        if not newest_first:
            self._unread_windows.reverse()
        self._gap: LogGap | None = None
        self._min_width_ms = 1
        self._refusal_count = 0
        self._unproven_lines = 0

    @property
    def is_done(self) -> bool:
        return not self._unread_windows and self._gap is None

    @property
    def unread(self) -> Window:
        """The part of the range that is still to be read; an empty range when everything has been read."""
        if self._newest_first:
            return (self.start_ms, self._unread_windows[-1][1] if self._unread_windows else self.start_ms)
        return (self._unread_windows[-1][0] if self._unread_windows else self.end_ms, self.end_ms)

    async def next_batch(self) -> list[LogEntry]:
        """Return the next entries; an empty list only at the end. Raises permanent RequestErrors."""
        step = self._step_backwards if self._newest_first else self._step_forwards
        while self._unread_windows:
            window = self._unread_windows[-1]
            try:
                entries, unread = await step(*window)
            except PageRefused as refused:
                await self._handle_refusal(refused)
                continue
            self._unread_windows.pop()
            self._refusal_count = 0
            if self._pages.recorded_gaps:
                entries = self._with_recorded_gaps(entries, window, unread)
            entries = self._with_undated(entries, window)
            if unread is not None and unread[0] < unread[1]:
                self._unread_windows.append(unread)
            if entries:
                self._min_width_ms = 1
                return self._with_gap(entries)
        return self._with_gap([])

    def _with_recorded_gaps(
        self, entries: list[LogEntry], window: Window, unread: Window | None
    ) -> list[LogEntry]:
        """Add the recorded gaps that begin in the window, except in its part ``unread``."""
        start_ms, end_ms = window
        if unread is not None:
            start_ms, end_ms = (unread[1], end_ms) if self._newest_first else (start_ms, unread[0])
        gaps = [gap for gap in self._pages.recorded_gaps if start_ms <= gap.start_ns // NS_PER_MS < end_ms]
        return sorted([*entries, *gaps], key=stamp_ns) if gaps else entries

    def _with_undated(self, entries: list[LogEntry], window: Window) -> list[LogEntry]:
        """Insert the lines without a valid timestamp after the lines that preceded them on their page."""
        start_ns = window[0] * NS_PER_MS
        first_ns, last_ns = (stamp_ns(entries[0]), stamp_ns(entries[-1])) if entries else (start_ns, start_ns)
        undated = self._pages.pop_undated(first_ns, last_ns)
        return sorted([*entries, *undated], key=stamp_ns) if undated else entries

    async def _step_forwards(self, start_ms: int, end_ms: int) -> _Step:
        self.page_count += 1
        page = await self._pages.page(start_ms, end_ms, "asc")
        lines = page.lines
        last_ms = lines[-1].timestamp_ns // NS_PER_MS if lines else start_ms
        self._update_proven_size(page, has_only_boundary_ms=last_ms == start_ms)
        is_trusted = self._is_poll and page.is_proven
        if not lines or not page.has_more or page.has_next_ms or is_trusted:
            return list(lines), None
        if last_ms == start_ms:
            return await self._read_millisecond(start_ms, page), (start_ms + 1, end_ms)
        cut_index = bisect_left(lines, last_ms * NS_PER_MS, key=by_stamp)
        return list(lines[:cut_index]), (last_ms, end_ms)

    async def _step_backwards(self, start_ms: int, end_ms: int) -> _Step:
        self.page_count += 1
        page = await self._pages.page(start_ms, end_ms, "desc")
        lines = page.lines
        first_ms = lines[0].timestamp_ns // NS_PER_MS if lines else end_ms - 1
        self._update_proven_size(page, has_only_boundary_ms=first_ms == end_ms - 1)
        if not page.has_more or not (lines or page.is_full or page.has_next_ms):
            return list(lines), None
        if first_ms == end_ms - 1:
            self.page_count += 1
            oldest = await self._pages.page(first_ms, end_ms, "asc")
            return await self._read_millisecond(first_ms, oldest), (start_ms, first_ms)
        cut_index = bisect_left(lines, (first_ms + 1) * NS_PER_MS, key=by_stamp)
        return list(lines[cut_index:]), (start_ms, first_ms + 1)

    def _update_proven_size(self, page: CheckedPage, *, has_only_boundary_ms: bool) -> None:
        """Record the previous page's size as proven if this page only repeats that page's last millisecond.

        Then no line followed the previous page, so it was complete.
        """
        if has_only_boundary_ms and page.count < self._unproven_lines:
            self._pages.proven_lines = max(self._pages.proven_lines, self._unproven_lines)
        self._unproven_lines = page.count if page.has_more and not page.is_full else 0

    async def _read_millisecond(self, ms: int, oldest: CheckedPage) -> list[LogEntry]:
        """Read one millisecond completely; ``oldest`` is its oldest page."""
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

    async def _exclude_end_millisecond(self, ms: int, newest: CheckedPage) -> CheckedPage:
        """Read the newest page of ``ms`` again; the server's inclusive end bound had added later lines."""
        self.page_count += 1
        try:
            narrower = await self._pages.page(ms, ms, "desc", until_ms=ms + 1)
        except BadRequest:
            return newest
        return narrower if len(narrower.lines) > len(newest.lines) else newest

    async def _handle_refusal(self, refused: PageRefused) -> None:
        """Handle a refusal: split the time range, or record a gap if it is small."""
        if not refused.may_narrow:
            self._record_gap(*self._unread_windows.pop(), str(refused))
            return
        if refused.may_repeat and not await self._pages.can_answer_other_ranges():
            return
        start_ms, end_ms = self._unread_windows.pop()
        if end_ms - start_ms > self._min_width_ms:
            smaller_windows = _split(start_ms, end_ms)
            self._unread_windows += smaller_windows if self._newest_first else reversed(smaller_windows)
            return
        self._refusal_count += 1
        # Retry the smallest part; after three refusals, record it as a gap.
        if refused.may_repeat and self._refusal_count < 3 and self._gap is None:
            self._unread_windows.append((start_ms, end_ms))
            return
        self._record_gap(start_ms, end_ms, str(refused))
        # A long unreadable range must not cost one request per millisecond: while nothing can be read, record
        # gaps for exponentially larger ranges.
        self._min_width_ms *= SPLIT_COUNT

    def _record_gap(self, start_ms: int, end_ms: int, reason: str) -> None:
        start_ns, end_ns = start_ms * NS_PER_MS, end_ms * NS_PER_MS
        if self._gap is not None:
            start_ns, end_ns = min(start_ns, self._gap.start_ns), max(end_ns, self._gap.end_ns)
        self._gap = LogGap(start_ns, end_ns, f"the server can't answer: {reason}"[:200])

    def _with_gap(self, entries: list[LogEntry]) -> list[LogEntry]:
        gap, self._gap = self._gap, None
        if gap is None:
            return entries
        return [*entries, gap] if self._newest_first else [gap, *entries]


def merge_pages(oldest: list[LogLine], newest: list[LogLine], end_ns: int) -> list[LogEntry]:
    """Merge the first and the last page of the millisecond that ends at ``end_ns``.

    Lines that neither page holds become a gap.
    """
    if not oldest or not newest:
        start_ns = oldest[-1].timestamp_ns if oldest else end_ns - NS_PER_MS
        return [*oldest, gap_with_lines(start_ns, end_ns, TOO_MANY, oldest or newest), *newest]
    oldest_page_last_ns, newest_page_first_ns = oldest[-1].timestamp_ns, newest[0].timestamp_ns
    if newest_page_first_ns < oldest_page_last_ns:
        # The pages overlap: the oldest page has all lines before its last, the newest all after its first.
        earlier_lines = [line for line in oldest if line.timestamp_ns < oldest_page_last_ns]
        return [*earlier_lines, *(line for line in newest if line.timestamp_ns >= oldest_page_last_ns)]
    if newest_page_first_ns > oldest_page_last_ns:
        return [*oldest, gap_with_lines(oldest_page_last_ns, newest_page_first_ns, TOO_MANY, oldest), *newest]
    tied_lines = [line for line in newest if line.timestamp_ns == newest_page_first_ns]
    unmatched_counts = Counter(oldest)
    lines = list(oldest)
    for line in tied_lines:
        if unmatched_counts[line]:
            unmatched_counts[line] -= 1
        else:
            lines.append(line)
    gap = gap_with_lines(
        newest_page_first_ns,
        newest_page_first_ns + 1,
        "the API can't return more lines of one timestamp",
        lines,
    )
    return [*lines, gap, *newest[len(tied_lines) :]]


def windows(start_ms: int, end_ms: int, skip: Iterable[Window] = ()) -> list[Window]:
    """Split a range into ascending ranges that the API accepts; leave out the ascending ranges ``skip``."""
    ranges = []
    for skip_start, skip_end in [*skip, (end_ms, end_ms)]:
        stop = min(skip_start, end_ms)
        while start_ms < stop:
            ranges.append((start_ms, min(start_ms + MAX_WINDOW_MS, stop)))
            start_ms = ranges[-1][1]
        start_ms = max(start_ms, skip_end)
    return ranges


def window_of(gap: LogGap) -> Window:
    """Return the time range of a gap, rounded outward to whole milliseconds."""
    return gap.start_ns // NS_PER_MS, -(-gap.end_ns // NS_PER_MS)


def _split(start_ms: int, end_ms: int) -> list[Window]:
    width = max(1, -(-(end_ms - start_ms) // SPLIT_COUNT))
    starts = range(start_ms, end_ms, width)
    return [(start, min(start + width, end_ms)) for start in starts]


PART_PAGES = 2  # intended number of pages per part in read_parts

_Batches = list[list[LogEntry]]


async def read_parts(
    pages: PageSource, start_ms: int, end_ms: int, *, newest_first: bool = False
) -> AsyncGenerator[list[LogEntry], None]:
    """Read ``start_ms <= t < end_ms``, several pages at a time; yield nonempty batches like RangeReader's.

    Reading the pages of a long history one after the other would be slow. The range is split into parts that
    should take about the same number of pages, estimated from the pages read so far, and up to three parts
    are read at once. A part with far more lines than expected is read only in part, and the rest of it is
    split again. Raises permanent RequestErrors.
    """
    parts: list[Window | asyncio.Task[tuple[RangeReader, _Batches]]] = []
    if start_ms < end_ms:
        parts.append((start_ms, end_ms))
    part_width_ms, max_pages = end_ms - start_ms, 1
    try:
        while parts:
            for index in range(3):  # more parts at once are slower, not faster (measured)
                item = parts[index] if index < len(parts) else None
                if isinstance(item, tuple):
                    part, *remaining = _split_off(item, part_width_ms, newest_first=newest_first)
                    reader = RangeReader(pages, *part, newest_first=newest_first)
                    parts[index : index + 1] = [
                        asyncio.create_task(_read_part(reader, max_pages)),
                        *remaining,
                    ]
            task = parts.pop(0)
            assert isinstance(task, asyncio.Task)
            reader, batches = await task
            for batch in batches:
                yield batch
            unread_start_ms, unread_end_ms = reader.unread
            if unread_start_ms < unread_end_ms:
                parts.insert(0, reader.unread)
            read_ms = (reader.end_ms - reader.start_ms) - (unread_end_ms - unread_start_ms)
            part_width_ms = max(read_ms * PART_PAGES // max(reader.page_count, 1), 1)
            max_pages = 2 * PART_PAGES
    finally:
        tasks = [item for item in parts if isinstance(item, asyncio.Task)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _read_part(reader: RangeReader, max_pages: int) -> tuple[RangeReader, _Batches]:
    batches = []
    while not reader.is_done and reader.page_count < max_pages:
        batches.append(await reader.next_batch())
    return reader, [batch for batch in batches if batch]


def _split_off(window: Window, width_ms: int, *, newest_first: bool) -> list[Window]:
    """Split off the part to read first; return the window unsplit if less than half a part would remain."""
    start_ms, end_ms = window
    if end_ms - start_ms <= width_ms * 3 // 2:
        return [window]
    if newest_first:
        return [(end_ms - width_ms, end_ms), (start_ms, end_ms - width_ms)]
    return [(start_ms, start_ms + width_ms), (start_ms + width_ms, end_ms)]
