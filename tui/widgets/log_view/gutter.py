"""What stands before a line: its time, its node, its level."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from typing import Literal
from zlib import crc32

from tui.text.sanitize import cell_width, clip, inert
from tui.text.units import age
from tui.widgets.tones import SERIES_COLOURS

TimeMode = Literal["clock", "utc", "relative", "elapsed", "off"]
"""`clock`: HH:MM:SS local; `utc`: the same in UTC; `relative`: age; `elapsed`: time since the first line;
`off`: nothing."""

TIME_MODES: tuple[TimeMode, ...] = ("clock", "utc", "relative", "elapsed", "off")
CLOCKS = ("clock", "utc")
"""The modes that tell a time of day."""
DAY_CELLS = len("11-21 ")
"""Before a time of day, in a log of several days: month and day."""
TIME_CELLS: dict[TimeMode, int] = {"clock": 8, "utc": 9, "relative": 4, "elapsed": 8, "off": 0}

NS_PER_S = 1_000_000_000
_LABEL_CELLS = 6
_TRAILING_NUMBER = re.compile(r"(?:^|[^0-9])([0-9]{1,4})$")

LEVEL_SIGNS: dict[str, str] = {"CRITICAL": "C", "ERROR": "E", "WARNING": "W", "DEBUG": "D"}
"""What stands for a level; ordinary output has none."""


class NodeLabels:
    """Short names and steady colours for replicas.

    A replica that ends in a number is "n" and that number, and takes its colour from it; another keeps
    the beginning of its name and takes a colour from the name. Two that would share a label keep more
    of their names.
    """

    def __init__(self) -> None:
        self._labels: dict[str, tuple[str, int]] = {}
        self._taken: set[str] = set()
        self.width = 0
        """Cells of the longest label so far."""

    def get(self, replica: str | None) -> tuple[str, int]:
        """Label and colour number of a replica; an empty label for none."""
        if replica is None:
            return "", 0
        known = self._labels.get(replica)
        if known is None:
            known = self._labels[replica] = self._name(replica)
            self.width = max(self.width, cell_width(known[0]))
        return known

    def _name(self, replica: str) -> tuple[str, int]:
        match = _TRAILING_NUMBER.search(replica)
        if match:
            colour = int(match[1]) % SERIES_COLOURS
            label = f"n{int(match[1])}"
        else:
            colour = crc32(replica.encode("utf-8", "surrogatepass")) % SERIES_COLOURS
            label = clip(inert(replica), _LABEL_CELLS)
        if label in self._taken:
            label = clip(inert(replica), 2 * _LABEL_CELLS)
        self._taken.add(label)
        return label, colour


class TimeColumn:
    """Turns a line's time into the text of the first column."""

    def __init__(self, now_s: Callable[[], float], timezone: tzinfo | None = None) -> None:
        self.mode: TimeMode = "clock"
        self.origin_ns: int | None = None
        """Where elapsed time begins: the job's start, or the first line."""
        self.shows_days = False
        """Whether a time of day alone would leave open which day it was."""
        self._now_s = now_s
        self._timezone = timezone

    @property
    def cells(self) -> int:
        """How wide the column is."""
        return TIME_CELLS[self.mode] + (DAY_CELLS if self.shows_days and self.mode in CLOCKS else 0)

    def learn_span(self, first_ns: int, last_ns: int) -> bool:
        """The log held goes from then to then; returns whether times are shown differently for that."""
        shown_before = self.shows_days
        self.shows_days = self._day(first_ns) != self._day(last_ns)
        return self.shows_days != shown_before

    def _day(self, time_ns: int) -> str:
        try:
            zone = UTC if self.mode == "utc" else self._timezone
            return datetime.fromtimestamp(time_ns // NS_PER_S, zone).strftime("%m-%d ")
        except (OverflowError, ValueError, OSError):
            return "--" + " " * (DAY_CELLS - 2)

    def only_day(self, first_ns: int, last_ns: int) -> str:
        """The day of a log that is of one day alone, which is not today; else nothing needs to be said."""
        first, last, today = map(self._date, (first_ns, last_ns, int(self._now_s() * NS_PER_S)))
        return first if first == last != today else ""

    def _date(self, time_ns: int) -> str:
        try:
            zone = UTC if self.mode == "utc" else self._timezone
            return datetime.fromtimestamp(time_ns // NS_PER_S, zone).strftime("%Y-%m-%d")
        except (OverflowError, ValueError, OSError):
            return ""

    def text(self, time_ns: int) -> str:
        """The time, padded to the column's width."""
        return self._plain(time_ns).rjust(self.cells)

    def clock(self, time_ns: int) -> str:
        """Time of day, local unless the mode says UTC; dashes for a time that no calendar has."""
        timezone, sign = (UTC, "Z") if self.mode == "utc" else (self._timezone, "")
        try:
            return datetime.fromtimestamp(time_ns // NS_PER_S, timezone).strftime("%H:%M:%S") + sign
        except (OverflowError, ValueError, OSError):
            return "--:--:--"

    def _plain(self, time_ns: int) -> str:
        if self.mode in CLOCKS:
            return (self._day(time_ns) if self.shows_days else "") + self.clock(time_ns)
        if self.mode == "relative":
            return age(self._now_s() - time_ns / NS_PER_S)[: TIME_CELLS["relative"]]
        if self.mode == "elapsed":
            seconds = (time_ns - (self.origin_ns or 0)) // NS_PER_S
            sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
            minutes, second = divmod(seconds, 60)
            hours, minute = divmod(minutes, 60)
            return f"{sign}{hours}:{minute:02}:{second:02}"
        return ""
