"""Ids and timestamps in the platform's formats."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta

ID_ALPHABET = "0123456789bcdfghjkmnpqrstvwxyz"
ID_LENGTH = 8

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NS_PER_US = 1_000


def new_id() -> str:
    """Return a new id: short, lowercase, alphanumeric.

    There are 30^8 of them, so collisions are negligible.
    """
    return "".join(secrets.choice(ID_ALPHABET) for _ in range(ID_LENGTH))


def epoch_ns(moment: datetime) -> int:
    """Convert to nanoseconds since the epoch, exact to the microsecond."""
    return (moment - _EPOCH) // timedelta(microseconds=1) * _NS_PER_US


def moment_at(stamp_ns: int) -> datetime:
    """Convert nanoseconds since the epoch to an aware UTC datetime, truncated to microseconds."""
    return _EPOCH + timedelta(microseconds=stamp_ns // _NS_PER_US)
