"""A list of answers to choose one of."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import OptionList


class ChoiceList(OptionList):
    """Textual's list, by the keys of every list here as well, and with enter among the hints."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select", "choose"),
        Binding("j", "cursor_down", show=False),
        Binding("k", "cursor_up", show=False),
        Binding("g", "first", show=False),
        Binding("G", "last", show=False),
    ]

    def on_mount(self) -> None:
        """Begin with a cursor."""
        if self.highlighted is None:
            self.action_first()
