"""What a tree of files tells its screen."""

from __future__ import annotations

from textual.message import Message
from textual.widget import Widget


class TreeMessage(Message):
    """Something that happened in a tree."""

    def __init__(self, view: Widget) -> None:
        super().__init__()
        self.view = view

    @property
    def control(self) -> Widget:
        """The tree."""
        return self.view


class Highlighted(TreeMessage):
    """The cursor is on another node."""

    def can_replace(self, message: Message) -> bool:
        """Only the newest counts."""
        return isinstance(message, Highlighted) and message.view is self.view


class FileChosen(TreeMessage):
    """Enter or a click on the file under the cursor."""


class Arranged(TreeMessage):
    """Other rows are shown: after a filter, a sort, or newer files."""


class MarksChanged(TreeMessage):
    """Other nodes are marked."""
