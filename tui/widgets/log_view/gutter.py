"""The parts of a log line's gutter: time, label of the node, sign of the level."""

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
"""How the gutter shows times.

``clock``: local time of day; ``utc``: time of day in UTC; ``relative``: age; ``elapsed``: time since the
job's start, or since the first line; ``off``: no times.
"""

TIME_MODES: tuple[TimeMode, ...] = ("clock", "utc", "relative", "elapsed", "off")
CLOCK_MODES = ("clock", "utc")
"""Time modes that show a time of day."""
DATE_CELLS = len("11-21 ")
"""Cells of the date before a time of day, shown if visible lines are of several days."""
TIME_CELLS: dict[TimeMode, int] = {"clock": 8, "utc": 9, "relative": 4, "elapsed": 8, "off": 0}

_LABEL_CELLS = 6

LEVEL_SIGNS: dict[str, str] = {"CRITICAL": "C", "ERROR": "E", "WARNING": "W", "DEBUG": "D"}
"""Sign of each level; lines of level INFO or without a level have no sign."""


class NodeLabels:
    """Short labels and stable colors for replicas.

    A replica named like node-3 has the label "n3", and its number selects its color. The label of any other
    replica is the beginning of its name, and a hash of the name selects its color. If another replica has
    the same label, a longer beginning of the name is used, followed by a number if necessary.
    """

    def __init__(self) -> None:
        self._labels: dict[str, tuple[str, int]] = {}
        self._used_labels = {""}  # an empty label means that a line has no replica
        self.width = 0

    def get(self, replica: str | None) -> tuple[str, int]:
        """Return the label of a replica and its index in ``SERIES``; assign them at the first call."""
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
        longer_label = clip(sanitize(replica), 2 * _LABEL_CELLS)
        numbered_labels = (f"{longer_label}·{number}" for number in count(len(self._used_labels)))
        candidates = chain((label, longer_label), numbered_labels)
        label = next(candidate for candidate in candidates if candidate not in self._used_labels)
        self._used_labels.add(label)
        return label, color


class TimeColumn:
    """Formats the times in the gutter, in the mode that the user chose."""

    def __init__(self, now_s: Callable[[], float], timezone: tzinfo | None = None) -> None:
        self.mode: TimeMode = "clock"
        self.origin_ns: int | None = None
        """Epoch time that elapsed times count from: the job's start, or the first line."""
        self.shows_dates = False
        """True if the date precedes each time of day, because visible lines are of several days."""
        self._now_s = now_s
        self._timezone = timezone

    @property
    def cells(self) -> int:
        return TIME_CELLS[self.mode] + (DATE_CELLS if self.shows_dates and self.mode in CLOCK_MODES else 0)

    def update_date_visibility(self, first_ns: int, last_ns: int) -> None:
        """Show dates if those of the first visible line and of the newest line differ."""
        self.shows_dates = self._date(first_ns) != self._date(last_ns)

    def _date(self, time_ns: int) -> str:
        return self._format(time_ns, "%m-%d ", "--".ljust(DATE_CELLS))

    def _format(self, time_ns: int, pattern: str, fallback: str) -> str:
        """Format a time, local unless the mode is ``utc``; return ``fallback`` if it is out of range."""
        moment = moment_at(time_ns, UTC if self.mode == "utc" else self._timezone)
        return f"{moment:{pattern}}" if moment else fallback

    def date_unless_today(self, time_ns: int) -> str:
        """Return the date of a time; an empty string if it is today."""
        date = self._format(time_ns, "%Y-%m-%d", "")
        today = self._format(int(self._now_s() * NS_PER_S), "%Y-%m-%d", "")
        return "" if date == today else date

    def text(self, time_ns: int) -> str:
        """Return a time as the mode shows it, padded to the width of the column."""
        return self._unpadded(time_ns).rjust(self.cells)

    def clock(self, time_ns: int) -> str:
        """Return the time of day; dashes if the time is out of range."""
        return self._format(time_ns, f"{TIME_OF_DAY}{'Z' * (self.mode == 'utc')}", "--:--:--")

    def _unpadded(self, time_ns: int) -> str:
        if self.mode in CLOCK_MODES:
            return (self._date(time_ns) if self.shows_dates else "") + self.clock(time_ns)
        if self.mode == "relative":
            return age(self._now_s() - time_ns / NS_PER_S)[: TIME_CELLS["relative"]]
        if self.mode == "elapsed":
            seconds = (time_ns - (self.origin_ns or 0)) // NS_PER_S
            sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
            minutes, second = divmod(seconds, 60)
            hours, minute = divmod(minutes, 60)
            return f"{sign}{hours}:{minute:02}:{second:02}"
        return ""
