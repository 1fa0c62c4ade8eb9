"""What lines share, kept once: node, level, lateness. Gap markers are words of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from api_client.streams.records import LogEntry, LogGap, LogLine, stamp_ns
from tui.insight.log_levels import RANKS, level_of

ERROR_RANK = RANKS["ERROR"]


@dataclass(frozen=True, slots=True)
class LineFacts:
    """What many lines have in common.

    Attributes:
        replica: the node's name.
        level: the level as the server gave it.
        late: whether the lines came after younger ones.
        shown_level: the server's level in our words, else the detected one; empty for none.
    """

    replica: str | None
    level: str | None
    late: bool
    shown_level: str

    @property
    def rank(self) -> int:
        """How grave, see ``log_levels.RANKS``."""
        return RANKS[self.shown_level]


Word = LineFacts | LogGap
Columns = tuple[list[int], list[int], list[str], list[str | None] | None]
"""Stamps, codes, messages and request ids (None when no line has one)."""


class Vocabulary:
    """Numbers for facts and gaps, and back."""

    def __init__(self) -> None:
        self.words: list[Word] = []
        self.error_codes: set[int] = set()
        """Codes of lines that tell an error."""
        self.gap_codes: set[int] = set()
        """Codes of gap markers."""
        self._codes: dict[tuple[str | None, str | None, bool, str] | LogGap, int] = {}

    def columns(self, entries: Sequence[LogEntry]) -> Columns:
        """Entries as columns."""
        known = self._codes
        codes: list[int] = []
        texts: list[str] = []
        has_ids = False
        for entry in entries:
            if isinstance(entry, LogLine):
                message, level = entry.message, entry.level
                key = (entry.replica, level, entry.late, level_of(message, level))
                code = known.get(key)
                codes.append(self._learn(LineFacts(*key), key) if code is None else code)
                texts.append(message)
                has_ids = has_ids or entry.request_id is not None
            else:
                codes.append(self.gap_code(entry))
                texts.append("")
        ids = [getattr(entry, "request_id", None) for entry in entries] if has_ids else None
        return list(map(stamp_ns, entries)), codes, texts, ids

    def gap_code(self, gap: LogGap) -> int:
        """The number of a gap marker."""
        code = self._codes.get(gap)
        return self._learn(gap, gap) if code is None else code

    def _learn(self, word: Word, key: tuple[str | None, str | None, bool, str] | LogGap) -> int:
        code = self._codes[key] = len(self.words)
        self.words.append(word)
        if isinstance(word, LogGap):
            self.gap_codes.add(code)
        elif word.rank >= ERROR_RANK:
            self.error_codes.add(code)
        return code
