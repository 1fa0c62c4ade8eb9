"""A line or two of toned text that fits itself to the width: the stuff of headers and status lines."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.widget import Widget

from tui.widgets.tones import Span, tone_styles

SEPARATOR = " · "


class FactLine(Widget):
    """Facts side by side, the most important first; what does not fit is left out, last first."""

    DEFAULT_CSS = """
    FactLine { height: 1; width: 1fr; }
    """

    def __init__(self, *, id: str | None = None, separator: str = SEPARATOR) -> None:
        super().__init__(id=id)
        self._facts: tuple[tuple[Span, ...], ...] = ()
        self._separator = separator

    def set_facts(self, facts: Sequence[Sequence[Span]]) -> None:
        """Show these facts; each is a run of spans that stays together."""
        new = tuple(tuple(fact) for fact in facts if fact)
        if new != self._facts:
            self._facts = new
            self.refresh()

    @property
    def plain(self) -> str:
        """All facts as text, whether they fit or not."""
        return self._separator.join("".join(text for text, _ in fact) for fact in self._facts)

    def render(self) -> Text:
        """The facts that fit."""
        tones = tone_styles(self.app)
        room = self.size.width
        line = Text(no_wrap=True, overflow="ellipsis", end="")
        used = 0
        for fact in self._facts:
            needed = sum(cell_len(text) for text, _ in fact) + (cell_len(self._separator) if used else 0)
            if used and used + needed > room:
                continue
            if used:
                line.append(self._separator, tones["muted"])
            for text, tone in fact:
                line.append(text, tones.get(tone, Style.null()))
            used += needed
        return line
