"""A question that names its object; "no" has the focus."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button

from tui.screens.base import Question
from tui.text.sanitize import inert_lines
from tui.widgets.text_panel import WrappedText


class ConfirmScreen(Question[bool]):
    """Answers True only to an explicit yes."""

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
        """The question, what follows from a yes, and two buttons."""
        with Vertical(id="box"):
            yield WrappedText(inert_lines(self._question), id="question")
            yield WrappedText(inert_lines(self._consequence), id="consequence")
            with Horizontal(id="buttons"):
                yield Button(f"{self._yes} (y)", variant="error", id="yes", compact=True)
                yield Button(f"{self._no} (n)", id="no", compact=True)

    def on_mount(self) -> None:
        """A stray enter must do no harm."""
        self.query_one("#no", Button).focus()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, answer: bool) -> None:
        """Leave with that answer."""
        self.dismiss(answer)
