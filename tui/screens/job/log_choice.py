"""What the reader has chosen to see of a log, and how that is said in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from tui.insight.logs.levels import LogLevel
from tui.insight.logs.pattern import LogPattern
from tui.insight.text import clip, inert
from tui.widgets.tones import Span

LEVEL_STOPS: tuple[LogLevel | None, ...] = (None, "INFO", "WARNING", "ERROR")
"""Least levels to go through; None shows all lines."""

SPANS: tuple[timedelta | None, ...] = (
    None,
    timedelta(days=1),
    timedelta(hours=6),
    timedelta(hours=1),
    timedelta(minutes=15),
    timedelta(minutes=5),
)
SPAN_WORDS = ("all", "24 h", "6 h", "1 h", "15 min", "5 min")
"""How far back the log is shown, from its end."""

CONTEXT_STOPS = (0, 1, 3, 10)
"""Lines of context around those that match."""

_PATTERN_CELLS = 120


@dataclass(frozen=True, slots=True)
class LogChoice:
    """What is shown; the default is everything.

    Attributes:
        node: the one node shown, or None for all.
        hidden: nodes that are not.
        min_level: the least grave lines that are shown.
        pattern: what lines must match, if anything.
        invert: they must not match it.
        context_lines: so many lines around those that match are shown too.
        span: only the last so much of the log: a position in ``SPANS``.
    """

    node: str | None = None
    hidden: frozenset[str] = frozenset()
    min_level: LogLevel | None = None
    pattern: LogPattern | None = None
    invert: bool = False
    context_lines: int = 0
    span: int = 0

    def with_next_level(self) -> LogChoice:
        """The next least level; after the last, all lines."""
        stop = (LEVEL_STOPS.index(self.min_level) + 1) % len(LEVEL_STOPS)
        return replace(self, min_level=LEVEL_STOPS[stop])

    def with_next_span(self, by: int) -> LogChoice:
        """A shorter span, or a longer one."""
        return replace(self, span=(self.span + by) % len(SPANS))

    def loosened(self) -> LogChoice | None:
        """One restriction less, the latest kind first; None when there is none (the node is not its own)."""
        if self.pattern:
            return replace(self, pattern=None, invert=False, context_lines=0)
        if self.min_level is not None:
            return replace(self, min_level=None)
        if self.span:
            return replace(self, span=0)
        return replace(self, hidden=frozenset()) if self.hidden else None

    def words(self) -> list[list[Span]]:
        """Each restriction, in words."""
        facts: list[list[Span]] = []
        if self.pattern:
            facts.append(
                [("without " if self.invert else "only ", "muted"), (pattern_words(self.pattern), "accent")]
            )
            if self.context_lines:
                facts[-1].append((f" ±{self.context_lines}", "accent"))
        if self.min_level is not None:
            facts.append([(f"≥ {self.min_level}", "accent")])
        if self.hidden:
            facts.append([(f"hidden {_names(self.hidden)}", "accent")])
        if self.span:
            facts.append([(f"last {SPAN_WORDS[self.span]}", "accent")])
        return facts


def pattern_words(pattern: LogPattern) -> str:
    """A pattern as it is told: an expression between slashes."""
    text = clip(inert(pattern.text), _PATTERN_CELLS)
    if pattern.regex:
        text = f"/{text}/"
    return text if pattern.case is None else f"{text} ({'Aa' if pattern.case else 'aa'})"


def _names(nodes: Iterable[str]) -> str:
    names = sorted(nodes)
    return clip(inert(names[0]), _PATTERN_CELLS) if len(names) == 1 else f"{len(names)} nodes"
