"""The gutter of a line: time, node and level."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, tzinfo
from itertools import chain, count
from typing import Literal
from zlib import crc32

from api_client.models.logs import NS_PER_S
from tui.text.sanitize import cell_width, clip, sanitize
from tui.text.times import TIME_OF_DAY, moment_at
from tui.text.units import age
from tui.widgets.tones import SERIES_COLORS

TimeMode = Literal["clock", "utc", "relative", "elapsed", "off"]
"""`clock`: HH:MM:SS local; `utc`: the same in UTC; `relative`: age; `off`: nothing.

`elapsed`: time since the job's start, or since the first line.
"""

TIME_MODES: tuple[TimeMode, ...] = ("clock", "utc", "relative", "elapsed", "off")
CLOCKS = ("clock", "utc")
"""Modes that show a time of day."""
DAY_CELLS = len("11-21 ")
"""Extra width of a time of day with month and day, for a log of several days."""
TIME_CELLS: dict[TimeMode, int] = {"clock": 8, "utc": 9, "relative": 4, "elapsed": 8, "off": 0}

_LABEL_CELLS = 6

LEVEL_SIGNS: dict[str, str] = {"CRITICAL": "C", "ERROR": "E", "WARNING": "W", "DEBUG": "D"}
"""Signs for levels; ordinary output has none."""


class NodeLabels:
    """Short labels and stable colors for replicas.

    A replica whose name ends in a number, as in node-3, is labeled "n" and that number, which also picks
    its color. Any other is labeled by the beginning of its name, which picks its color. If a label is
    taken, a longer part of the name is used, with a number if that is taken, too.
    """

    def __init__(self) -> None:
        self._labels: dict[str, tuple[str, int]] = {}
        self._taken = {""}  # the label of lines without a replica
        self.width = 0

    def get(self, replica: str | None) -> tuple[str, int]:
        if replica is None:
            return "", 0
        label = self._labels.get(replica)
        if label is None:
            label = self._labels[replica] = self._assign_label(replica)
            self.width = max(self.width, cell_width(label[0]))
        return label

    def _assign_label(self, replica: str) -> tuple[str, int]:
        match = re.search(r"(?:^|[^0-9A-Za-z]|node|rank)([0-9]{1,4})$", replica)
        if match:
            color = int(match[1]) % SERIES_COLORS
            label = f"n{int(match[1])}"
        else:
            color = crc32(replica.encode("utf-8", "surrogatepass")) % SERIES_COLORS
            label = clip(sanitize(replica), _LABEL_CELLS)
        longer = clip(sanitize(replica), 2 * _LABEL_CELLS)
        candidates = chain((label, longer), (f"{longer}·{number}" for number in count(len(self._taken))))
        label = next(candidate for candidate in candidates if candidate not in self._taken)
        self._taken.add(label)
        return label, color


class TimeColumn:
    def __init__(self, now_s: Callable[[], float], timezone: tzinfo | None = None) -> None:
        self.mode: TimeMode = "clock"
        self.origin_ns: int | None = None
        """Start of elapsed time: the job's start, or the first line."""
        self.shows_days = False
        """True if times of day need the date to be unambiguous."""
        self._now_s = now_s
        self._timezone = timezone

    @property
    def cells(self) -> int:
        return TIME_CELLS[self.mode] + (DAY_CELLS if self.shows_days and self.mode in CLOCKS else 0)

    def show_days(self, first_ns: int, last_ns: int) -> None:
        """Show the date of each line if the first visible line and the newest one have different dates."""
        self.shows_days = self._date(first_ns) != self._date(last_ns)

    def _date(self, time_ns: int) -> str:
        return self._format(time_ns, "%m-%d ", "--".ljust(DAY_CELLS))

    def _format(self, time_ns: int, pattern: str, unknown: str) -> str:
        """Format a time, local unless the mode is UTC; return ``unknown`` if it is out of range."""
        moment = moment_at(time_ns, UTC if self.mode == "utc" else self._timezone)
        return f"{moment:{pattern}}" if moment else unknown

    def date_unless_today(self, time_ns: int) -> str:
        """Return the date of a time; an empty string for today."""
        times_ns = time_ns, int(self._now_s() * NS_PER_S)
        day, today = (self._format(some_ns, "%Y-%m-%d", "") for some_ns in times_ns)
        return "" if day == today else day

    def text(self, time_ns: int) -> str:
        return self._unpadded(time_ns).rjust(self.cells)

    def clock(self, time_ns: int) -> str:
        """Return the time of day; dashes if the time is out of range."""
        return self._format(time_ns, f"{TIME_OF_DAY}{'Z' * (self.mode == 'utc')}", "--:--:--")

    def _unpadded(self, time_ns: int) -> str:
        if self.mode in CLOCKS:
            return (self._date(time_ns) if self.shows_days else "") + self.clock(time_ns)
        if self.mode == "relative":
            return age(self._now_s() - time_ns / NS_PER_S)[: TIME_CELLS["relative"]]
        if self.mode == "elapsed":
            seconds = (time_ns - (self.origin_ns or 0)) // NS_PER_S
            sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
            minutes, second = divmod(seconds, 60)
            hours, minute = divmod(minutes, 60)
            return f"{sign}{hours}:{minute:02}:{second:02}"
        return ""
