"""Times in recordings: nanoseconds since the epoch as digits, or ISO 8601."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NS_PER_US = 1_000
MAX_DIGITS = 19
LATEST_NS = 253_402_300_799 * 10**9


@lru_cache(4096)
def moment_of(text: str) -> datetime | None:
    """Parse ISO 8601; None if it is not. A time without a timezone is UTC."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def ns_of(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1) * NS_PER_US


def moment_at(time_ns: int) -> datetime:
    return EPOCH + timedelta(microseconds=min(max(time_ns, 0), LATEST_NS) // NS_PER_US)


def stamp_of(value: Any) -> int | None:
    """Return the time in ns, from digits or ISO 8601; None for anything else."""
    if not isinstance(value, str) or len(value) > 40:
        return None
    if value.isascii() and value.isdigit():
        return int(value) if len(value) <= MAX_DIGITS else None
    moment = moment_of(value)
    return None if moment is None else max(0, ns_of(moment))
