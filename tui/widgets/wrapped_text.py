"""Text that decides something: it takes the rows it needs, and shows where there are too few."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.geometry import Size
from textual.widget import Widget

from tui.widgets.line_breaks import break_line

MOST_OF_SCREEN = 0.4
"""A longer text is cut: what it is about has to be seen beside it."""


def wrapped_rows(text: Text, cells: int) -> list[Text]:
    """Break every line of a text into rows of at most so many cells, between words where possible.

    The rows after the first are indented like it.
    """
    rows = []
    for line in text.split("\n", allow_blank=True):
        indent = min(len(line.plain) - len(line.plain.lstrip(" ")), cells // 2)
        first, *others = break_line(line.plain, max(1, cells), indent)
        rows += [line[slice(*first)], *(Text.assemble(" " * indent, line[slice(*row)]) for row in others)]
    return rows


def in_rows(rows: Sequence[Text], cells: int, most: int) -> Text:
    """Join the rows; where there are more than ``most``, an ellipsis ends the last that is shown."""
    shown = list(rows[:most])
    if len(rows) > most > 0:
        shown[-1] = Text(" ").join(rows[most - 1 :])
        shown[-1].truncate(cells, overflow="ellipsis")
    return Text("\n", no_wrap=True, end="").join(shown)


class WrappedText(Widget):
    """Inert text in as many rows as it needs, up to ``MOST_OF_SCREEN``.

    A reason, an error or a question belongs in here: Textual's Static cuts what does not fit without a sign.
    """

    DEFAULT_CSS = "WrappedText { width: 1fr; height: auto; }"

    def __init__(
        self,
        text: str | Text = "",
        *,
        scrolls: bool = False,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        """``scrolls`` says that it stands in a container that scrolls: it is never cut."""
        super().__init__(id=id, classes=classes)
        self._scrolls = scrolls
        self._text = text if isinstance(text, Text) else Text(text)

    @property
    def text(self) -> Text:
        """The whole text."""
        return self._text

    def update(self, text: str | Text) -> None:
        """Show another text."""
        new = text if isinstance(text, Text) else Text(text)
        if new != self._text or new.spans != self._text.spans:
            self._text = new
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the number of rows that the text needs at this width."""
        rows = len(wrapped_rows(self.text, width)) if self.text else 0
        return rows if self._scrolls else min(rows, max(1, int(viewport.height * MOST_OF_SCREEN)))

    def render(self) -> Text:
        """Return the text in the rows that there are."""
        width, height = self.size
        return in_rows(wrapped_rows(self.text, width), width, height)
