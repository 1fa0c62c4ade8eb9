"""Log entries as lines of text or of JSON."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from api_client.streams.records import LogEntry, LogGap, LogLine
from tui.commands.output import Output, ascii_json
from tui.insight.text import inert

NS_PER_S = 1_000_000_000
NS_PER_US = 1_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TEXT_TIME_FORMAT = "%Y-%m-%d %H:%M:%S.%f"
MICROSECOND_DIGITS_DROPPED = 3
NO_REPLICA = "-"
TONE_OF_LEVEL = {"ERROR": "bad", "WARNING": "caution", "DEBUG": "muted"}


def ndjson_line(entry: LogEntry) -> str:
    """One entry as one line of JSON, ended.

    A line has ``timestamp`` (ns since the epoch, as a string), ``time`` (the same in ISO, UTC), ``replica``,
    ``level`` and ``message``, and ``"late": true`` if it came after lines younger than itself. A stretch
    that could not be read has ``gap`` with ``start``, ``end`` and ``reason``.
    """
    document: dict[str, Any]
    if isinstance(entry, LogGap):
        start, end = iso_time(entry.start_ns), iso_time(entry.end_ns)
        document = {"gap": {"start": start, "end": end, "reason": entry.reason}}
    else:
        document = {
            "timestamp": str(entry.timestamp_ns),
            "time": iso_time(entry.timestamp_ns),
            "replica": entry.replica,
            "level": entry.level,
            "message": entry.message,
        }
        if entry.late:
            document["late"] = True
    return ascii_json(document) + "\n"


class TextLines:
    """Entries as text: local time, node, message; continuation lines are indented under the first."""

    def __init__(self, output: Output) -> None:
        self._paint = output.paint
        self._replica_width = 0

    def render(self, entry: LogEntry) -> str:
        """One entry, every line ended and inert."""
        if isinstance(entry, LogGap):
            return self._gap(entry)
        return self._line(entry)

    def _gap(self, gap: LogGap) -> str:
        text = f"-- gap {_local(gap.start_ns)} to {_local(gap.end_ns)}: {inert(gap.reason)} --"
        return self._paint(text, "caution") + "\n"

    def _line(self, line: LogLine) -> str:
        replica = inert(line.replica or NO_REPLICA)
        self._replica_width = max(self._replica_width, len(replica))
        stamp = _local(line.timestamp_ns)
        first, *rest = line.message.rstrip("\n").split("\n")
        tone = TONE_OF_LEVEL.get((line.level or "").upper())
        head = f"{self._paint(stamp, 'muted')}  {self._paint(replica.ljust(self._replica_width), 'name')}  "
        if not rest:
            return f"{head}{self._paint(inert(first), tone)}\n"
        indent = " " * (len(stamp) + self._replica_width + 4)
        texts = [f"{head}{self._paint(inert(first), tone)}\n"]
        texts.extend(f"{indent}{self._paint(inert(text), tone)}\n" for text in rest)
        return "".join(texts)


def iso_time(timestamp_ns: int) -> str | None:
    """UTC with microseconds; None for a stamp outside of what a calendar holds."""
    moment = _moment(timestamp_ns)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z") if moment else None


def _local(timestamp_ns: int) -> str:
    """Local time with milliseconds; the bare number where no calendar has it."""
    moment = _moment(timestamp_ns)
    if moment is None:
        return str(timestamp_ns)
    return moment.astimezone().strftime(TEXT_TIME_FORMAT)[:-MICROSECOND_DIGITS_DROPPED]


def _moment(timestamp_ns: int) -> datetime | None:
    try:
        return EPOCH + timedelta(microseconds=timestamp_ns // NS_PER_US)
    except OverflowError:
        return None
