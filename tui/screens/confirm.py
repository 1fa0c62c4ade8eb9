"""A confirmation dialog that names its object and focuses "no"."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button

from tui.screens.base import Question
from tui.text.sanitize import sanitize_multiline
from tui.widgets.text_panel import WrappedText


class ConfirmScreen(Question[bool]):
    """A confirmation dialog; the result is True only after an explicit yes."""

    CSS_PATH = "confirm.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes", show=False),
        Binding("n,escape,q", "answer(False)", "no", show=False),
        Binding("left,right,tab", "app.focus_next", "other", show=False),
    ]

    def __init__(self, question: str, consequence: str, yes: str, no: str = "Cancel") -> None:
        super().__init__()
        self._question = question
        self._consequence = consequence
        self._yes = yes
        self._no = no

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield WrappedText(sanitize_multiline(self._question), id="question")
            yield WrappedText(sanitize_multiline(self._consequence), id="consequence")
            with Horizontal(id="buttons"):
                yield Button(f"{self._yes} (y)", variant="error", id="yes", compact=True)
                yield Button(f"{self._no} (n)", id="no", compact=True)

    def on_mount(self) -> None:
        """Focus the safe choice, so that an accidental Enter does no harm."""
        self.query_one("#no", Button).focus()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)
