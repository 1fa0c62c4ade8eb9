"""A question over a screen that is answered once, however often its answer is given."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Generic, TypeVar

from textual.await_complete import AwaitComplete
from textual.reactive import var
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Input

from tui.actions import Scope, actions_of
from tui.actions.keymap import key_for, rebound
from tui.analysis.connection import Connection
from tui.analysis.transfers import Transfers
from tui.system.process import look_through_everything

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


class AppScreen(Screen[None]):
    """A screen of its own; the app hands it the connection's state, and the downloads'.

    ``SCOPES`` are those whose actions it owns, beside ``Scope.SCREEN``, which all own. A screen with tabs
    overrides ``scopes`` to name those that work now; keys of different tabs may then mean different things.
    """

    SCOPES: ClassVar[tuple[Scope, ...]] = ()
    ASKS_FOR: ClassVar[frozenset[str]] = frozenset()
    """What it shows and leaves to the app to say when it is old, by ``tui.analysis.connection``'s words."""
    _key_changes: Mapping[str, str] = MappingProxyType({})

    connection: var[Connection] = var(Connection())
    downloads: var[Transfers] = var(Transfers())
    snoozed: var[frozenset[tuple[str, str]]] = var(frozenset[tuple[str, str]]())
    """Findings that nobody wants to hear of for a while: a job's id and the finding's key."""

    def validate_connection(self, connection: Connection) -> Connection:
        """Nobody wants to hear here that something is old which another screen shows."""
        return connection.seen_by(self.ASKS_FOR)

    def on_unmount(self) -> None:
        """What this screen held is no longer used."""
        look_through_everything()

    def change_keys(self, changes: Mapping[str, str]) -> None:
        """Give actions other keys, by their ids; before the screen is shown."""
        self._bindings = rebound(self._bindings, changes)
        self._key_changes = changes

    def key_for(self, action_id: str) -> str:
        """The key of the action ``scope.id`` as it is now, written for people."""
        return key_for(action_id, self._key_changes)

    def key_before(self, action_id: str) -> str:
        """The same, to stand right before what was typed: ``/llama``, but ``f7 llama``."""
        key = self.key_for(action_id)
        return key if len(key) == 1 and not key.isalnum() else f"{key} "

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes whose actions work now."""
        return self.SCOPES

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Refuse the actions of scopes that do not work now, so that a key reaches the one that does.

        In a field the keys that open one are letters.
        """
        own = [one for one in actions_of(*self.SCOPES) if one.id == action]
        if isinstance(self.focused, Input) and any(one.opens_field for one in own):
            return False
        return not own or any(one.scope in self.scopes for one in own)

    def type_into(self, field: Input) -> None:
        """Give the field the keyboard now: ``focus`` of a widget waits a turn, and loses what is typed."""
        self.set_focus(field)


def key_on(widget: Widget, action_id: str) -> str:
    """The key of an action as the screen of the widget has it, written for people."""
    screen = widget.screen
    return screen.key_for(action_id) if isinstance(screen, AppScreen) else key_for(action_id, {})
