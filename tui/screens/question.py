"""A question over a screen that is answered once, however often its answer is given."""

from __future__ import annotations

from typing import Generic, TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen

Answer = TypeVar("Answer")


class Question(ModalScreen[Answer], Generic[Answer]):
    """A modal screen whose ``dismiss`` closes itself alone.

    Keys typed ahead (enter twice) reach a field or a button before the first of them is dealt with. Textual
    would close whatever is on top by the second, the last screen among them, which ends the app.
    """

    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        """Close with this answer; nothing, if this is not the screen on top (any more)."""
        if self.app.screen is not self:
            return AwaitComplete()
        return super().dismiss(result)
