"""A line or two of toned text that fits itself to the width: the stuff of headers and status lines."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.widget import Widget

from tui.insight.text import clip
from tui.widgets.tones import Span, tone_styles

SEPARATOR = " · "
LEAST_CELLS = 8
"""A first fact is not cut shorter than this."""


class FactLine(Widget):
    """Facts side by side, the most important first; what does not fit is left out, last first.

    With ``essential`` facts, the first one is cut so far that all of those fit.
    """

    DEFAULT_CSS = """
    FactLine { height: 1; width: 1fr; }
    """

    def __init__(self, *, id: str | None = None, separator: str = SEPARATOR, essential: int = 1) -> None:
        super().__init__(id=id)
        self._essential = essential
        self._facts: tuple[tuple[Span, ...], ...] = ()
        self._separator = separator

    def set_facts(self, facts: Sequence[Sequence[Span]]) -> None:
        """Show these facts; each is a run of spans that stays together."""
        new = tuple(tuple(fact) for fact in facts if fact)
        if new != self._facts:
            self._facts = new
            self.refresh()

    def render(self) -> Text:
        """The facts that fit."""
        tones = tone_styles(self.app)
        room = self.size.width
        line = Text(no_wrap=True, overflow="ellipsis", end="")
        used = 0
        for fact in self._cut(room):
            needed = sum(cell_len(text) for text, _ in fact) + (cell_len(self._separator) if used else 0)
            if used and used + needed > room:
                continue
            if used:
                line.append(self._separator, tones["muted"])
            for text, tone in fact:
                line.append(text, tones.get(tone, Style.null()))
            used += needed
        return line

    def _cut(self, room: int) -> Sequence[Sequence[Span]]:
        """The facts, the last span of the first one shortened if the essential ones would not fit."""
        essential = self._facts[: self._essential]
        if len(essential) < 2 or not essential[0]:
            return self._facts
        widths = [sum(cell_len(text) for text, _ in fact) for fact in essential]
        excess = sum(widths) + cell_len(self._separator) * (len(essential) - 1) - room
        text, tone = essential[0][-1]
        if excess <= 0 or cell_len(text) - excess < LEAST_CELLS:
            return self._facts
        shorter = clip(text, cell_len(text) - excess)
        return ((*essential[0][:-1], (shorter, tone)), *self._facts[1:])
