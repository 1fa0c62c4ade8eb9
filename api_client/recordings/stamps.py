"""Times in recordings: nanoseconds since the epoch as digits, or ISO 8601, from 1970 to 2199.

Zero is a time that was never set.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from api_client.clock import EPOCH, epoch_ns
from api_client.models.base import moment_of_text

NS_PER_US = 1_000
LATEST = datetime(2200, 1, 1, tzinfo=UTC)


@lru_cache(4096)
def _moment_of(text: str) -> datetime | None:
    moment = moment_of_text(text)
    return moment if moment is not None and EPOCH < moment < LATEST else None


LATEST_NS = epoch_ns(LATEST)
MAX_RUN = timedelta(days=3_660)
"""Maximum time from the beginning of a recording to its end, most of which would be empty."""
MAX_RUN_NS = MAX_RUN // timedelta(microseconds=1) * NS_PER_US


def clamped_moment(time_ns: int) -> datetime:
    """Return the time as a datetime, at most ``LATEST``."""
    return EPOCH + timedelta(microseconds=min(max(time_ns, 0), LATEST_NS) // NS_PER_US)


def stamp_of(value: Any) -> int | None:
    """Return the time in ns, from digits or ISO 8601 (without a timezone: UTC); None for anything else."""
    if not isinstance(value, str) or len(value) > 40:
        return None
    if value.isascii() and value.isdigit():
        return time_ns if 0 < (time_ns := int(value)) < LATEST_NS else None
    moment = _moment_of(value)
    return None if moment is None else epoch_ns(moment)
