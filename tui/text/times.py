"""Format times for people and programs, and parse times as users type them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from time import localtime

from tui.text.units import SECONDS_PER_UNIT

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)  # not api_client.clock.EPOCH: that module imports asyncio

DATE_AND_TIME = "%Y-%m-%d %H:%M:%S"
DATE_AND_MINUTE = "%Y-%m-%d %H:%M"
DATE = "%Y-%m-%d"
MONTH_DAY_AND_TIME = "%m-%d %H:%M:%S"
TIME_OF_DAY = "%H:%M:%S"
HOUR_AND_MINUTE = "%H:%M"


def moment_at(time_ns: int, timezone: tzinfo | None = None) -> datetime | None:
    """Convert epoch nanoseconds to a datetime, local by default; None if ``datetime`` cannot represent it."""
    try:
        return (_EPOCH + timedelta(microseconds=time_ns // 1_000)).astimezone(timezone)
    except (OverflowError, ValueError, OSError):
        return None


def time_key(moment: datetime | None) -> float:
    """Return a sort key (epoch seconds) that puts None first."""
    return moment.timestamp() if moment else 0.0


def local_time(moment: datetime | None, pattern: str = DATE_AND_TIME) -> str:
    """Format a time in the local time zone; return an empty string for None."""
    return moment.astimezone().strftime(pattern) if moment else ""


def compact_time(moment: datetime | None, now: datetime | None, pattern: str = TIME_OF_DAY) -> str:
    """Format a local time with ``pattern`` if it is on the day of ``now``, else with month, day and time."""
    is_today = local_time(moment, DATE) == local_time(now, DATE)
    return local_time(moment, pattern if is_today else MONTH_DAY_AND_TIME)


def stamp_text(time_ns: int, timezone: tzinfo | None = None) -> str:
    """Format epoch nanoseconds as date and time with milliseconds, followed by Z if ``timezone`` is UTC.

    A time out of the range of ``datetime`` is formatted as its number of nanoseconds.
    """
    moment = moment_at(time_ns, timezone)
    if moment is None:
        return str(time_ns)
    text = f"{moment:{DATE_AND_TIME}}.{moment.microsecond // 1000:03}"
    return f"{text}Z" if timezone is UTC else text


def iso_time(moment: datetime | float) -> str:
    """Format a datetime or epoch seconds as UTC in ISO 8601, with milliseconds unless they are zero."""
    if not isinstance(moment, datetime):
        moment = datetime.fromtimestamp(moment, UTC)
    return _iso(moment, "milliseconds" if moment.microsecond else "seconds")


def iso_time_of_ns(time_ns: int) -> str | None:
    """Format epoch nanoseconds as UTC in ISO 8601 with microseconds; None if out of datetime's range."""
    moment = moment_at(time_ns, UTC)
    return None if moment is None else _iso(moment, "microseconds")


def local_stamp(stamp: str) -> str:
    """Format a server's timestamp as local time; return it unchanged if it is invalid."""
    try:
        moment = datetime.fromisoformat(stamp)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        # localtime accepts years that astimezone rejects, and is five times as fast.
        year, month, day, hour, minute, second = localtime((moment - _EPOCH).total_seconds())[:6]
        return f"{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"
    except (ValueError, OverflowError, OSError):
        return stamp


def _iso(moment: datetime, precision: str) -> str:
    return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


_DURATION = re.compile(r"(?:\d{1,6}(?:\.\d{1,3})?[smhdw] ?){1,5}")
_NUMBER_AND_UNIT = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
_TIME_OF_DAY = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?(Z?)", re.IGNORECASE)
_NAMED_TIMES = {"now": "newest", "end": "newest", "last": "newest", "start": "oldest", "begin": "oldest"}
"""The field of ``LogTimes`` for each word that users can type as a time."""

TIME_EXAMPLES = "12:30 · 2026-11-21 12:30 · -15m · +1h · 15m ago · 1h20m (from the start)"
"""Examples of input for ``parse_time``, shown as a hint while the user types a time."""


@dataclass(frozen=True, slots=True)
class LogTimes:
    """The times that typed times are relative to; all timezone-aware.

    Attributes:
        oldest: Start of the run or of its log; ``1h`` means one hour after it.
        newest: End of the log; ``1h ago`` means one hour before it.
        current: Time of the current log line; ``+1h`` means one hour after it.
        timezone: Time zone of typed dates and times that name none; None for the local time zone.
    """

    oldest: datetime
    newest: datetime
    current: datetime
    timezone: tzinfo | None = None


def parse_time(typed: str, times: LogTimes) -> datetime:
    """Parse a typed time to a timezone-aware datetime. Raises ValueError with a reason if it is invalid.

    A time of day without a date means the latest such time that is not after the end of the log; so does a
    date without a year.
    """
    text = " ".join(typed.split())
    if not text:
        raise ValueError("enter a time")
    try:
        return _parse_time(text, times)
    except OverflowError:
        raise ValueError(f"date out of range: {text[:40]}") from None


def _parse_time(text: str, times: LogTimes) -> datetime:
    if text.lower() in _NAMED_TIMES:
        return times.newest if _NAMED_TIMES[text.lower()] == "newest" else times.oldest
    if text[0] in "+-" and _DURATION.fullmatch(text[1:].strip()):
        offset = parse_duration(text[1:])
        return times.current + offset if text[0] == "+" else times.current - offset
    span = text.removesuffix(" ago")
    if _DURATION.fullmatch(span):
        return times.newest - parse_duration(span) if span != text else times.oldest + parse_duration(span)
    time_match = _TIME_OF_DAY.fullmatch(text)
    if time_match is not None:
        return _latest_time_of_day(time_match, times)
    return _parse_date(text, times)


def parse_duration(text: str) -> timedelta:
    """Parse a duration: ``1h20m`` → 80 minutes. Raises ValueError if it is invalid."""
    text = text.strip()
    if not _DURATION.fullmatch(text):
        raise ValueError(f"not a duration: {text[:40]}")
    values = _NUMBER_AND_UNIT.findall(text)
    return timedelta(seconds=sum(float(number) * SECONDS_PER_UNIT[unit] for number, unit in values))


def _aware_time(day: date, time_match: re.Match[str] | None, timezone: tzinfo | None) -> datetime:
    """Return a time of day (a match of ``_TIME_OF_DAY``; None for midnight) on a day."""
    hour, minute, second = (
        (int(digits or 0) for digits in time_match.groups()[:3]) if time_match else (0, 0, 0)
    )
    naive = datetime(day.year, day.month, day.day, hour, minute, second)  # noqa: DTZ001 - made aware below
    if time_match is not None and time_match[4]:
        return naive.replace(tzinfo=UTC)
    return naive.astimezone() if timezone is None else naive.replace(tzinfo=timezone)


def _latest_time_of_day(time_match: re.Match[str], times: LogTimes) -> datetime:
    try:
        last_day = _last_day(time_match, times)
        return _latest_time((last_day, last_day - timedelta(days=1)), time_match, times)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"no such time: {time_match[0]}") from error


def _last_day(time_match: re.Match[str] | None, times: LogTimes) -> date:
    """Return the date of the log's end, in the time zone of the typed time."""
    return times.newest.astimezone(UTC if time_match is not None and time_match[4] else times.timezone).date()


def _latest_time(days: Iterable[date], time_match: re.Match[str] | None, times: LogTimes) -> datetime:
    """Return the latest time on one of the ``days`` (newest first) that is not after the end of the log."""
    for day in days:
        moment = _aware_time(day, time_match, times.timezone)
        if moment <= times.newest:
            return moment
    raise ValueError


def _anniversaries(month: int, day: int, last_year: int) -> Iterator[date]:
    """Yield this date in ``last_year`` and before, newest first, for nine years.

    February 29 may be eight years ago: 1900 had none.
    """
    for year in range(last_year, last_year - 9, -1):
        with suppress(ValueError):
            yield date(year, month, day)


def _parse_date(text: str, times: LogTimes) -> datetime:
    match = re.fullmatch(r"(?:(\d{4})-)?(\d{1,2})-(\d{1,2})(?:[ T]+(\S.*))?", text)
    time_match = _TIME_OF_DAY.fullmatch(match[4]) if match is not None and match[4] else None
    if match is not None and (match[4] is None or time_match is not None):
        month, day = int(match[2]), int(match[3])
        try:
            if match[1]:
                return _aware_time(date(int(match[1]), month, day), time_match, times.timezone)
            return _latest_time(
                _anniversaries(month, day, _last_day(time_match, times).year), time_match, times
            )
        except (ValueError, OverflowError) as error:
            raise ValueError(f"no such date: {text[:40]}") from error
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"not a time: {text[:40]} (2h, 12:30 and 2026-11-21 are)") from None
    if moment.tzinfo is not None:
        return moment
    return moment.astimezone() if times.timezone is None else moment.replace(tzinfo=times.timezone)
