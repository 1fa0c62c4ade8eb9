"""The key of a stored line, and the attributes that many lines share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from api_client.models.logs import LogEntry, LogGap, LogLine, stamp_ns
from tui.analysis.logs.levels import RANKS, level_of

ERROR_RANK = RANKS["ERROR"]


class LineKey(NamedTuple):
    """Identifies a line for as long as it is stored. Keys sort as the lines do; none ever changes.

    Attributes:
        serial: Order of arrival among all lines; lines prepended from history count down.
    """

    time_ns: int
    serial: int


@dataclass(frozen=True, slots=True)
class LineAttributes:
    """Attributes shared by many lines.

    Attributes:
        level: Level as sent by the server.
        shown_level: The server's level normalized, else the detected one; empty for none.
    """

    replica: str | None
    level: str | None
    late: bool
    shown_level: str

    @property
    def rank(self) -> int:
        return RANKS[self.shown_level]


Attributes = LineAttributes | LogGap
AttributeKey = tuple[str | None, str | None, bool, str] | LogGap


class Columns(NamedTuple):
    """Lines as columns: times, codes of an ``AttributeTable``, messages, and the few request IDs by index."""

    stamps: Sequence[int]
    codes: Sequence[int]
    texts: Sequence[str]
    request_ids: dict[int, str]

    def part(self, low: int, high: int) -> Columns:
        if low == 0 and high >= len(self.stamps):
            return self
        ids = {at - low: value for at, value in self.request_ids.items() if low <= at < high}
        return Columns(self.stamps[low:high], self.codes[low:high], self.texts[low:high], ids)


class AttributeTable:
    """Two-way mapping between codes and shared attributes or gap markers."""

    def __init__(self) -> None:
        self.attributes: list[Attributes] = []
        self.error_codes: set[int] = set()
        self.gap_codes: set[int] = set()
        self._codes: dict[AttributeKey, int] = {}

    def columns(self, entries: Sequence[LogEntry]) -> Columns:
        keys: list[AttributeKey] = [
            (entry.replica, entry.level, entry.late, level_of(entry.message, entry.level))
            if isinstance(entry, LogLine)
            else entry
            for entry in entries
        ]
        ids = {
            at: entry.request_id
            for at, entry in enumerate(entries)
            if isinstance(entry, LogLine) and entry.request_id is not None
        }
        texts = [entry.message if isinstance(entry, LogLine) else "" for entry in entries]
        return Columns(list(map(stamp_ns, entries)), list(map(self.code, keys)), texts, ids)

    def code(self, key: AttributeKey) -> int:
        code = self._codes.get(key)
        if code is None:
            code = self._codes[key] = len(self.attributes)
            attributes = key if isinstance(key, LogGap) else LineAttributes(*key)
            self.attributes.append(attributes)
            if isinstance(attributes, LogGap):
                self.gap_codes.add(code)
            elif attributes.rank >= ERROR_RANK:
                self.error_codes.add(code)
        return code
