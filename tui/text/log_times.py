"""Write log entries as text or JSON, and parse times as users type them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any

from api_client.models.logs import LogEntry, LogGap, LogLine
from tui.text.sanitize import sanitize, sanitize_multiline

_NS_PER_US = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def record_of(entry: LogEntry) -> dict[str, Any]:
    """Return the fields of an entry.

    ``timestamp`` (ns since the epoch, as a string), ``time`` (ISO, UTC), ``replica``, ``level``,
    ``message``. A late line also has ``"late": true``. An unreadable time range is a ``gap`` with
    ``start``, ``end`` and ``reason``.
    """
    if isinstance(entry, LogGap):
        # Round outward: the gap may be a nanosecond long.
        end_ns = -(-entry.end_ns // _NS_PER_US) * _NS_PER_US
        start, end = iso_time(entry.start_ns), iso_time(end_ns)
        return {"gap": {"start": start, "end": end, "reason": entry.reason}}
    document: dict[str, Any] = {
        "timestamp": str(entry.timestamp_ns),
        "time": iso_time(entry.timestamp_ns),
        "replica": entry.replica,
        "level": entry.level,
        "message": entry.message,
    }
    if entry.late:
        document["late"] = True
    return document


def iso_time(time_ns: int) -> str | None:
    """Format a time as UTC with microseconds; None if it is outside the range of ``datetime``."""
    try:
        moment = _EPOCH + timedelta(microseconds=time_ns // _NS_PER_US)
    except OverflowError:
        return None
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


_NO_NODE = "-"


def written(entry: LogEntry, timezone: tzinfo | None = None) -> str:
    """Format an entry as ``2026-11-21 12:04:31.123  node-0  ERROR  message``.

    Further lines of a message follow indented. Times are local, or in the given time zone. The server's
    control sequences are removed.
    """
    if isinstance(entry, LogGap):
        begin, end = stamp_text(entry.start_ns, timezone), stamp_text(entry.end_ns, timezone)
        return f"-- gap {begin} to {end}: {sanitize(entry.reason)} --"
    first, *rest = entry.message.rstrip("\r\n").split("\n")
    level = f"{sanitize(entry.level)}  " if entry.level else ""
    stamp, node = stamp_text(entry.timestamp_ns, timezone), sanitize(entry.replica or _NO_NODE)
    return "\n".join(
        (f"{stamp}  {node}  {level}{sanitize(first)}", *(f"    {sanitize(row)}" for row in rest))
    )


def message_text(entry: LogEntry) -> str:
    """Return an entry's message without time and node, sanitized, for pasting elsewhere."""
    return sanitize_multiline(entry.message) if isinstance(entry, LogLine) else written(entry)


def stamp_text(time_ns: int, timezone: tzinfo | None = None) -> str:
    """Format a time with milliseconds, with a Z for UTC; the bare number if it is out of range."""
    try:
        moment = (_EPOCH + timedelta(microseconds=time_ns // _NS_PER_US)).astimezone(timezone)
    except (OverflowError, ValueError):
        return str(time_ns)
    text = f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03}"
    return f"{text}Z" if timezone is UTC else text


_UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_SPAN = re.compile(r"(?:\d{1,6}(?:\.\d{1,3})?[smhdw] ?){1,5}")
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?(Z?)", re.IGNORECASE)
_DATE = re.compile(r"(?:(\d{4})-)?(\d{1,2})-(\d{1,2})(?:[ T]+(\S.*))?")
_ENDS = {"now": "newest", "end": "newest", "last": "newest", "start": "oldest", "begin": "oldest"}

EXAMPLES = "12:30 · 2026-11-21 12:30 · -15m · +1h · 15m ago · 1h20m (from the start)"
"""Examples of valid input, shown as a hint."""


@dataclass(frozen=True, slots=True)
class LogTimes:
    """The reference points of typed times; all timezone-aware.

    Attributes:
        oldest: the start of the run, or of its log.
        newest: the end of the log.
        here: the time of the current line.
        timezone: time zone of times and dates given without one; None for the local one.
    """

    oldest: datetime
    newest: datetime
    here: datetime
    timezone: tzinfo | None = None


def moment_of(typed: str, times: LogTimes) -> datetime:
    """Parse a typed time to a timezone-aware datetime. Raises ValueError with a reason if it is invalid.

    A time of day without a date is the last such time before the end of the log.
    """
    text = " ".join(typed.split())
    if not text:
        raise ValueError("enter a time")
    try:
        return _moment_of(text, times)
    except OverflowError:
        raise ValueError(f"date out of range: {text[:40]}") from None


def _moment_of(text: str, times: LogTimes) -> datetime:
    if text.lower() in _ENDS:
        return times.newest if _ENDS[text.lower()] == "newest" else times.oldest
    if text[0] in "+-" and _SPAN.fullmatch(text[1:].strip()):
        way = span_of(text[1:])
        return times.here + way if text[0] == "+" else times.here - way
    ago = text.removesuffix(" ago")
    if _SPAN.fullmatch(ago):
        return times.newest - span_of(ago) if ago != text else times.oldest + span_of(ago)
    clock = _CLOCK.fullmatch(text)
    if clock is not None:
        return _time_of_day(clock, times)
    return _on_a_date(text, times)


def span_of(text: str) -> timedelta:
    """Parse a duration: ``1h20m`` → 80 minutes. Raises ValueError if it is invalid."""
    text = text.strip()
    if not _SPAN.fullmatch(text):
        raise ValueError(f"not a duration: {text[:40]}")
    return timedelta(seconds=sum(float(value) * _UNIT_S[unit] for value, unit in _PART.findall(text)))


def _aware(day: date, clock: re.Match[str] | None, timezone: tzinfo | None) -> datetime:
    hour, minute, second = (int(part or 0) for part in clock.groups()[:3]) if clock else (0, 0, 0)
    naive = datetime(day.year, day.month, day.day, hour, minute, second)  # noqa: DTZ001 - made aware below
    if clock is not None and clock[4]:
        return naive.replace(tzinfo=UTC)
    return naive.astimezone() if timezone is None else naive.replace(tzinfo=timezone)


def _time_of_day(clock: re.Match[str], times: LogTimes) -> datetime:
    zone = UTC if clock[4] else times.timezone
    try:
        day = times.newest.astimezone(zone).date()
        moment = _aware(day, clock, zone)
        return moment if moment <= times.newest else _aware(day - timedelta(days=1), clock, zone)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"no such time: {clock[0]}") from error


def _on_a_date(text: str, times: LogTimes) -> datetime:
    found = _DATE.fullmatch(text)
    clock = _CLOCK.fullmatch(found[4]) if found is not None and found[4] else None
    if found is not None and (found[4] is None or clock is not None):
        year = int(found[1]) if found[1] else times.newest.astimezone(times.timezone).year
        try:
            return _aware(date(year, int(found[2]), int(found[3])), clock, times.timezone)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"no such date: {text[:40]}") from error
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"not a time: {text[:40]}") from None
    if moment.tzinfo is not None:
        return moment
    return moment.astimezone() if times.timezone is None else moment.replace(tzinfo=times.timezone)
