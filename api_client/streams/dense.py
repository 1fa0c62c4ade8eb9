"""A millisecond that holds more lines than a page.

Bounds are in milliseconds, so such a millisecond cannot be paged through; but it can be read from both
ends: its oldest page and its newest page. Where the two meet, nothing is missing. Where that cannot be
shown, a gap says so, even if it may turn out to be empty: of two whole pages that only touch, nobody can say
what was between them.

Lines of one stamp are the trouble. Where the pages share one line alone, others of its stamp may hide behind
it: a server that does not turn the order of equal stamps round for the other direction answers the same ones
from either end, and of two identical lines nobody can say that they are one.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

from api_client.streams.records import LogEntry, LogLine, gap_holding

TOO_MANY = "the API cannot answer more lines of one millisecond"
TOO_MANY_ALIKE = "the API cannot answer more lines of one timestamp"

SHORTEST_PROOF = 2
"""Fewer lines in common, at the end of one page and the start of the other, may be so by chance."""

_Key: TypeAlias = tuple[str, str | None, str | None, str | None]


def meet(
    oldest: list[LogLine], newest: list[LogLine], end_ns: int, *, are_in_order: bool = True
) -> list[LogEntry]:
    """All entries of a millisecond (which ends at ``end_ns``) from its oldest and its newest full page.

    Both are ascending, lines of one stamp in the server's order, if ``are_in_order``.
    """
    if not newest:
        return [*oldest, gap_holding(oldest[-1].timestamp_ns, end_ns, TOO_MANY, oldest)]
    last = oldest[-1].timestamp_ns
    first = newest[0].timestamp_ns
    if first < last:
        # Everything before `last` is on the oldest page, everything after `first` on the newest.
        before = [line for line in oldest if line.timestamp_ns < last]
        return [*before, *(line for line in newest if line.timestamp_ns >= last)]
    if first > last:
        return [*oldest, gap_holding(last, first, TOO_MANY, oldest), *newest]
    return _meet_inside_one_stamp(oldest, newest, first, are_in_order)


def _meet_inside_one_stamp(
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
    hidden = gap_holding(stamp, stamp + 1, TOO_MANY_ALIKE, entries)
    return [*entries, hidden, *newest[len(head) :]]


def _shared_run(tail: list[_Key], head: list[_Key]) -> int:
    """How many lines end the one list and begin the other; 0 if that cannot be said for certain.

    A line that is unique in both lists shows where they would overlap; then all of the overlap must agree
    and nothing else may be in both. That is no chance if it is ``SHORTEST_PROOF`` lines long; a server that
    does not turn the order of equal stamps round, or has none, would have to answer them so by accident.
    """
    in_tail = Counter(tail)
    in_head = Counter(head)
    positions = {key: index for index, key in enumerate(tail) if in_tail[key] == 1}
    for index, key in enumerate(head):
        if in_head[key] == 1 and key in positions:
            length = len(tail) - positions[key] + index
            if not SHORTEST_PROOF <= length <= min(len(tail), len(head)) or tail[-length:] != head[:length]:
                return 0
            return length if set(tail[:-length]).isdisjoint(head[length:]) else 0
    return 0


def _key(line: LogLine) -> _Key:
    return (line.message, line.replica, line.level, line.request_id)
