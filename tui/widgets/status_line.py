"""A status line: short facts side by side, the most important first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual import events, on
from textual.geometry import Size
from textual.widget import Widget

from tui.tables.column import Span
from tui.text.sanitize import MAX_WRAPPED_LENGTH, clip
from tui.widgets.text_panel import join_rows, wrapped_rows
from tui.widgets.tones import tone_styles

SEPARATOR = " · "
FACT_KEY = "fact"
"""Metadata key of the styles of a fact's text: its index, from which a click finds the fact."""
WAY_BACK_KEY = "way back"
"""Metadata key of styles: True for the fact with "‹", which goes back. (``@click`` would underline it.)"""


class StatusLine(Widget):
    """Facts in a row, the most important first; facts that don't fit are dropped from the end.

    The first ``priority_count`` facts are never dropped. They take several rows if the stylesheet allows that
    height; else the first fact is cut.
    """

    DEFAULT_CSS = """
    StatusLine { height: auto; max-height: 1; width: 1fr; }
    """

    def __init__(self, *, id: str | None = None, separator: str = SEPARATOR, priority_count: int = 1) -> None:
        super().__init__(id=id)
        self._priority_count = priority_count
        self._facts: tuple[tuple[Span, ...], ...] = ()
        self._separator = separator

    def set_facts(self, facts: Sequence[Sequence[Span]], priority_count: int | None = None) -> None:
        """Show these facts, each a sequence of spans that is only broken if it is longer than a row."""
        new_facts = tuple(
            tuple((text[:MAX_WRAPPED_LENGTH], tone) for text, tone in fact) for fact in facts if fact
        )
        priority_count = self._priority_count if priority_count is None else priority_count
        if new_facts != self._facts or priority_count != self._priority_count:
            previous_rows = self._rows_needed(self.size.width)
            self._facts, self._priority_count = new_facts, priority_count
            self.refresh(layout=self._rows_needed(self.size.width) != previous_rows)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return self._rows_needed(width)

    @on(events.Click)
    async def _go_back(self, event: events.Click) -> None:
        if event.style.meta.get(WAY_BACK_KEY):
            await self.run_action("screen.back")

    def _rows_needed(self, width: int) -> int:
        facts = self._facts[: self._priority_count]
        line = self._separator.join("".join(text for text, _ in fact) for fact in facts)
        if cell_len(line) <= width:
            return 1
        texts = [_text(fact, {}) for fact in facts]
        return len(self._rows(texts, Text(self._separator), width))

    def render(self) -> Text:
        width, height = self.size
        tones = tone_styles(self.app)
        texts = [_text(fact, tones) for fact in (self._cut(width) if height == 1 else self._facts)]
        for number, text in enumerate(texts):
            text.apply_meta({FACT_KEY: number, WAY_BACK_KEY: text.plain.startswith("‹ ")})
        separator = Text(self._separator, tones["muted"])
        rows = self._rows(texts[: self._priority_count], separator, width)
        for text in texts[self._priority_count :]:
            if len(rows) <= height and rows[-1].cell_len + separator.cell_len + text.cell_len <= width:
                rows[-1] = Text.assemble(rows[-1], separator, text)
        return join_rows(rows, width, height)

    def _rows(self, texts: Sequence[Text], separator: Text, width: int) -> list[Text]:
        """Distribute the facts over rows; a fact is only broken if it is longer than a row."""
        rows = wrapped_rows(texts[0], width) if texts else [Text()]
        for text in texts[1:]:
            line = Text.assemble(rows[-1], separator, text)
            if line.cell_len > width >= text.cell_len:
                rows.append(text)
            else:
                rows[-1:] = wrapped_rows(line, width)
        return rows

    def _cut(self, width: int) -> Sequence[Sequence[Span]]:
        """Return the facts; if the priority facts do not fit into ``width``, the end of the first is cut."""
        priority_facts = self._facts[: self._priority_count]
        if len(priority_facts) < 2 or not priority_facts[0]:
            return self._facts
        widths = [sum(cell_len(text) for text, _ in fact) for fact in priority_facts]
        excess_cells = sum(widths) + cell_len(self._separator) * (len(priority_facts) - 1) - width
        text, tone = priority_facts[0][-1]
        if excess_cells <= 0 or cell_len(text) - excess_cells < 8:
            return self._facts
        cut_text = clip(text, cell_len(text) - excess_cells)
        return ((*priority_facts[0][:-1], (cut_text, tone)), *self._facts[1:])


def _text(fact: Sequence[Span], tones: Mapping[str, Style]) -> Text:
    return Text.assemble(*((text, tones.get(tone, Style.null())) for text, tone in fact))
