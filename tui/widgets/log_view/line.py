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
        self._codes: dict[tuple[str | None, str | None, bool, str] | LogGap, int] = {}

    def columns(self, entries: Sequence[LogEntry]) -> Columns:
        lines = [entry for entry in entries if isinstance(entry, LogLine)]
        keys = [(line.replica, line.level, line.late, level_of(line.message, line.level)) for line in lines]
        codes_by_key = self._codes
        for key in set(keys):
            if key not in codes_by_key:
                self._learn(LineAttributes(*key), key)
        codes = [codes_by_key[key] for key in keys]
        texts = [line.message for line in lines]
        if len(lines) < len(entries):
            for at, entry in enumerate(entries):
                if isinstance(entry, LogGap):
                    codes.insert(at, self.gap_code(entry))
                    texts.insert(at, "")
        ids = {
            at: entry.request_id
            for at, entry in enumerate(entries)
            if isinstance(entry, LogLine) and entry.request_id is not None
        }
        return Columns([stamp_ns(entry) for entry in entries], codes, texts, ids)

    def gap_code(self, gap: LogGap) -> int:
        code = self._codes.get(gap)
        return self._learn(gap, gap) if code is None else code

    def _learn(self, attributes: Attributes, key: tuple[str | None, str | None, bool, str] | LogGap) -> int:
        code = self._codes[key] = len(self.attributes)
        self.attributes.append(attributes)
        if isinstance(attributes, LogGap):
            self.gap_codes.add(code)
        elif attributes.rank >= ERROR_RANK:
            self.error_codes.add(code)
        return code
