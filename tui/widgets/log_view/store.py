"""The lines a log view holds: bounded, in time order, cheap to add to at both ends."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from api_client.streams.records import LogEntry, stamp_ns

DEFAULT_MAX_LINES = 200_000

_DROP_SHARE = 16  # a full store drops a sixteenth at once: dropping moves the whole list


class LogStore:
    """A bounded list of log entries.

    It keeps references to the entries it is given and nothing else a line, so that a line costs a list
    slot beyond itself. When it is full, the oldest sixteenth goes at once; `dropped` counts them.
    """

    def __init__(self, max_lines: int = DEFAULT_MAX_LINES) -> None:
        if max_lines < 1:
            raise ValueError("a log store needs room for one line at least")
        self.max_lines = max_lines
        self.entries: list[LogEntry] = []
        self.dropped = 0

    def __len__(self) -> int:
        return len(self.entries)

    def append(self, batch: Sequence[LogEntry]) -> list[LogEntry]:
        """Add newer entries at the end; returns those that belong before the end instead.

        These are late lines and whatever is older than the newest entry held: give them to `insert`.
        """
        entries = self.entries
        newest = stamp_ns(entries[-1]) if entries else None
        if newest is not None and batch and stamp_ns(batch[0]) < newest:
            # The batch begins in the past: only its part from `newest` on goes to the end.
            late = [entry for entry in batch if stamp_ns(entry) < newest]
            entries.extend(entry for entry in batch if stamp_ns(entry) >= newest)
            return late
        entries.extend(batch)
        return []

    def insert(self, late: Sequence[LogEntry]) -> None:
        """Put entries where their time belongs, after entries of the same time."""
        entries = self.entries
        index = bisect_right(entries, min(map(stamp_ns, late)), key=stamp_ns)
        # The sort is stable, and quick as both parts are nearly in order.
        entries[index:] = sorted([*entries[index:], *late], key=stamp_ns)

    def prepend(self, older: Sequence[LogEntry]) -> int:
        """Add older entries (ascending) before all others; returns how many of them, the newest, had room."""
        accepted = min(len(older), self.max_lines - len(self.entries))
        if accepted > 0:
            self.entries[0:0] = older[len(older) - accepted :]
        return max(0, accepted)

    def trim(self) -> list[LogEntry]:
        """Drop the oldest entries when there are too many; returns what was dropped."""
        if len(self.entries) <= self.max_lines:
            return []
        keep = max(1, self.max_lines - self.max_lines // _DROP_SHARE)
        cut = len(self.entries) - keep
        gone = self.entries[:cut]
        del self.entries[:cut]
        self.dropped += cut
        return gone

    def clear(self) -> None:
        """Forget everything."""
        self.entries.clear()
        self.dropped = 0
