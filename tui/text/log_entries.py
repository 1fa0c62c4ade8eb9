"""Format log entries as text or as fields for JSON."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

from api_client.models.logs import LogEntry, LogGap, LogLine
from tui.text.sanitize import sanitize, sanitize_multiline, sanitize_whole
from tui.text.times import iso_time_of_ns, stamp_text

NO_NODE = "-"
"""Text shown instead of a node name for log lines without a node."""


def entry_fields(entry: LogEntry) -> dict[str, Any]:
    """Return the fields of an entry for JSON.

    A line has ``timestamp`` (ns since the epoch, as a string), ``time`` (ISO 8601, UTC), ``replica``,
    ``level`` and ``message``; a late line also ``"late": true``. A time range that could not be read has
    only ``gap``, with ``start``, ``end`` and ``reason``.
    """
    if isinstance(entry, LogGap):
        # Round the end up to a microsecond: the gap may be only a nanosecond long.
        start, end = iso_time_of_ns(entry.start_ns), iso_time_of_ns(entry.end_ns + 999)
        return {"gap": {"start": start, "end": end, "reason": entry.reason}}
    document: dict[str, Any] = {
        "timestamp": str(entry.timestamp_ns),
        "time": iso_time_of_ns(entry.timestamp_ns),
        "replica": entry.replica,
        "level": entry.level,
        "message": entry.message,
    }
    if entry.late:
        document["late"] = True
    return document


def entry_text(entry: LogEntry, timezone: tzinfo | None = None) -> str:
    """Format an entry as ``2026-11-21 12:04:31.123  node-0  ERROR  message``.

    The second and later lines of a message are indented. Times are local unless ``timezone`` is given. The
    text is sanitized.
    """
    if isinstance(entry, LogGap):
        begin, end = stamp_text(entry.start_ns, timezone), stamp_text(entry.end_ns, timezone)
        return f"-- gap {begin} to {end}: {sanitize(entry.reason)} --"
    first_line, *other_lines = entry.message.rstrip("\r\n").split("\n")
    level = f"{sanitize(entry.level)}  " if entry.level else ""
    stamp, node = stamp_text(entry.timestamp_ns, timezone), sanitize(entry.replica or NO_NODE)
    indented = (f"    {sanitize_whole(line)}" for line in other_lines)
    return "\n".join((f"{stamp}  {node}  {level}{sanitize_whole(first_line)}", *indented))


def message_text(entry: LogEntry) -> str:
    """Return the sanitized message of a line, without time and node; a gap as in ``entry_text``."""
    return sanitize_multiline(entry.message) if isinstance(entry, LogLine) else entry_text(entry)
