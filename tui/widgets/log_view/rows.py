"""Which of the held entries are shown, kept up to date as entries come, go and are filtered."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from api_client.streams.records import LogEntry, LogLine, stamp_ns
from tui.widgets.log_view.store import LogStore

_SLICE_LINES = 2048


@dataclass(frozen=True, slots=True)
class LineFilter:
    """What to show. Gap markers always pass: that something is missing is never hidden.

    Attributes:
        nodes: replica names to show, or None for all.
        text: shows only lines that hold it, whatever the case; empty for all.
    """

    nodes: frozenset[str | None] | None = None
    text: str = ""

    def __bool__(self) -> bool:
        return self.nodes is not None or bool(self.text)

    def select(self, entries: Sequence[LogEntry]) -> list[LogEntry]:
        """The entries that pass, in their order."""
        nodes, needle = self.nodes, self.text.lower()
        if nodes is not None:
            entries = [entry for entry in entries if not isinstance(entry, LogLine) or entry.replica in nodes]
        if needle:
            entries = [
                entry
                for entry in entries
                if not isinstance(entry, LogLine) or needle in entry.message.lower()
            ]
        return list(entries)


class VisibleRows:
    """The entries that pass the filter, newest first made visible.

    Without a filter `rows` is the store's own list. With one it is a list of its own, and a new filter
    works through the store backwards in slices (`build`), so that what was logged last is seen at once
    and nothing waits for a large store. Positions that a caller holds are corrected by what the
    changing methods return.
    """

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self._filter = LineFilter()
        self._pending = 0  # entries of the store, from its beginning, that the filter has not seen yet
        self.rows: list[LogEntry] = store.entries

    @property
    def filter(self) -> LineFilter:
        """The filter in force."""
        return self._filter

    @property
    def is_complete(self) -> bool:
        """Whether the filter has seen every entry."""
        return self._pending == 0

    def set_filter(self, wanted: LineFilter) -> None:
        """Begin with another filter; call `build` until it is complete."""
        self._filter = wanted
        if wanted:
            self.rows = []
            self._pending = len(self._store)
        else:
            self.rows = self._store.entries
            self._pending = 0

    def build(self, goes_on: Callable[[], bool]) -> int:
        """Filter older entries, a slice at a time, while `goes_on` says so; returns rows added in front."""
        added = 0
        while self._pending:
            begin = max(0, self._pending - _SLICE_LINES)
            found = self._filter.select(self._store.entries[begin : self._pending])
            self._pending = begin
            self.rows[0:0] = found
            added += len(found)
            if not goes_on():
                break
        return added

    def append(self, batch: Sequence[LogEntry]) -> tuple[int, list[LogEntry]]:
        """Take newer entries; returns how many rows came at the end, and the entries that are late."""
        before = len(self._store)
        late = self._store.append(batch)
        if not self._filter:
            return len(self._store) - before, late
        found = self._filter.select(self._store.entries[before:])
        self.rows.extend(found)
        return len(found), late

    def insert(self, late: Sequence[LogEntry]) -> list[int]:
        """Put late entries in their places; returns the former indices of the rows before which they came.

        The indices are ascending; an index appears as often as entries came before that row.
        """
        if not self._filter:
            places = [bisect_right(self.rows, stamp_ns(entry), key=stamp_ns) for entry in late]
            self._store.insert(late)
            return sorted(places)
        boundary = stamp_ns(self._store.entries[self._pending - 1]) if self._pending else None
        self._store.insert(late)
        if boundary is not None:
            # Late entries among those that are still to be filtered will be seen with them.
            waiting = [entry for entry in late if stamp_ns(entry) < boundary]
            self._pending += len(waiting)
            late = [entry for entry in late if stamp_ns(entry) >= boundary]
        found = self._filter.select(late)
        if not found:
            return []
        places = sorted(bisect_right(self.rows, stamp_ns(entry), key=stamp_ns) for entry in found)
        start = places[0]
        self.rows[start:] = sorted([*self.rows[start:], *found], key=stamp_ns)
        return places

    def prepend(self, older: Sequence[LogEntry]) -> tuple[int, int]:
        """Take older entries; returns how many had room, and how many rows came in front at once."""
        accepted = self._store.prepend(older)
        if not accepted:
            return 0, 0
        if not self._filter:
            return accepted, accepted
        self._pending += accepted  # filtered by `build` like everything older
        return accepted, 0

    def trim(self) -> int:
        """Drop what is too much; returns how many rows went from the front."""
        gone = self._store.trim()
        if not gone:
            return 0
        if not self._filter:
            return len(gone)
        seen = gone[self._pending :]
        self._pending = max(0, self._pending - len(gone))
        cut = len(self._filter.select(seen))
        del self.rows[:cut]
        return cut

    def clear(self) -> None:
        """Forget all entries; the filter stays."""
        self._store.clear()
        self._pending = 0
        if self._filter:
            self.rows = []

    def index_at(self, time_ns: int) -> int:
        """The first row at or after a time."""
        return bisect_left(self.rows, time_ns, key=stamp_ns)
