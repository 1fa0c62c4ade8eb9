"""Format log entries as text or as fields for JSON."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

from api_client.models.logs import LogEntry, LogGap, LogLine
from tui.text.sanitize import sanitize, sanitize_multiline, sanitize_whole
from tui.text.times import iso_time_of_ns, stamp_text

NO_NODE = "-"
"""Shown as the node of lines that name none."""


def record_of(entry: LogEntry) -> dict[str, Any]:
    """Return the fields of an entry for JSON.

    ``timestamp`` (ns since the epoch, as a string), ``time`` (ISO, UTC), ``replica``, ``level``,
    ``message``. A late line also has ``"late": true``. An unreadable time range is a ``gap`` with
    ``start``, ``end`` and ``reason``.
    """
    if isinstance(entry, LogGap):
        # Round outward: the gap may be a nanosecond long.
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
    stamp, node = stamp_text(entry.timestamp_ns, timezone), sanitize(entry.replica or NO_NODE)
    return "\n".join(
        (f"{stamp}  {node}  {level}{sanitize_whole(first)}", *(f"    {sanitize_whole(row)}" for row in rest))
    )


def message_text(entry: LogEntry) -> str:
    """Return an entry's message without time and node, sanitized, for pasting elsewhere."""
    return sanitize_multiline(entry.message) if isinstance(entry, LogLine) else written(entry)
