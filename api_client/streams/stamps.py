"""The stamp of a log record, as servers may write it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from api_client.streams.records import NS_PER_S

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def stamp_ns_of(value: str | None) -> int | None:
    """Epoch nanoseconds: the API's way (a string of digits), or an ISO time; None for anything else.

    An ISO time without a zone is UTC. Digits beyond microseconds are kept.
    """
    if value is None:
        return None
    try:
        return int(value)
    except ValueError:
        return _of_iso_time(value)


def _of_iso_time(text: str) -> int | None:
    head, dot, tail = text.partition(".")
    digits = tail[: len(tail) - len(tail.lstrip("0123456789"))] if dot else ""
    try:
        moment = datetime.fromisoformat(head + tail[len(digits) :])
    except ValueError:
        return None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    seconds = (aware - _EPOCH) // timedelta(seconds=1)
    return seconds * NS_PER_S + (int(digits[:9].ljust(9, "0")) if digits else 0)
