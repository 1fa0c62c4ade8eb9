"""The input field for a filter."""

from __future__ import annotations

from textual.widgets import Input


class FilterField(Input):
    """An input field that is visible only while it is used.

    `open` shows it, and `close` hides it. With ``stays_open``, `close` hides it only while it has no text,
    and it closes when it loses the focus.
    """

    DEFAULT_CSS = """
    FilterField {
        display: none; background: $panel;
        &.-textual-compact { padding: 0 1; }
        &.-open { display: block; }
    }
    """

    def __init__(self, hint: str, *, id: str = "filter", stays_open: bool = False) -> None:
        super().__init__(placeholder=hint, id=id, compact=True)
        self._stays_open = stays_open

    @property
    def is_open(self) -> bool:
        return self.has_class("-open")

    def open(self) -> None:
        self.add_class("-open")
        self.screen.set_focus(self)  # immediately: focus() defers and would lose typed keys

    def close(self) -> None:
        self.set_class(self._stays_open and bool(self.value), "-open")

    def on_blur(self) -> None:
        if self._stays_open:
            self.close()

    def clear_text(self) -> bool:
        """Clear and hide the field; return False if it was empty and hidden."""
        was_used = self.is_open or bool(self.value)
        self.value = ""
        self.remove_class("-open")
        return was_used
