"""Help screen: all keys of the screen below, generated from the action table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from tui.actions import SCOPE_TITLES, Action, Scope, actions_of
from tui.actions.keymap import key_signs, keys_of
from tui.widgets.tones import tone_styles

HEADINGS = {**SCOPE_TITLES, Scope.SCREEN: "On every screen", Scope.APP: "Everywhere"}
MOVING = (
    ("↑ ↓  j k", "Move one line; page up and down, ^u ^d or ^b ^f move one page."),
    ("g  G", "Go to the start or the end."),
    ("mouse", "Click to select, again to open; scroll; click headings to sort."),
)


class HelpScreen(ModalScreen[None]):
    """The keys that work on the current screen; esc, q or ? closes it."""

    CSS_PATH = "help.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "app.pop_screen", "close", show=False),
        Binding("j", "scroll(1)", show=False),
        Binding("k", "scroll(-1)", show=False),
    ]

    def __init__(
        self, scopes: Sequence[Scope], changes: Mapping[str, str] | None = None, *, read_only: bool = False
    ) -> None:
        super().__init__()
        self._read_only = read_only
        self._scopes = tuple(scopes)
        self._changes = changes or {}

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield Static(Text("Keyboard shortcuts"), id="title")
            with VerticalScroll(id="keys"):
                for scope in filter(actions_of, self._scopes):
                    yield Static(Text(HEADINGS[scope]), classes="heading")
                    yield Static(self._table([self._row(action) for action in actions_of(scope)]))
                yield Static(Text("Navigation"), classes="heading")
                yield Static(self._table(MOVING))
            yield Static(Text("esc closes"), id="hint")

    def _row(self, action: Action) -> tuple[str, str]:
        return key_signs(keys_of(action, self._changes)), action.sentence(read_only=self._read_only)

    def _table(self, rows: Sequence[tuple[str, str]]) -> Table:
        tones = tone_styles(self.app)
        table = Table.grid(padding=(0, 2))
        table.add_column(width=9, no_wrap=True, style=tones["key"])
        table.add_column(ratio=1)
        for keys, sentence in rows:
            table.add_row(Text(keys), Text(sentence))
        return table

    def action_scroll(self, lines: int) -> None:
        self.query_one("#keys", VerticalScroll).scroll_relative(y=lines, animate=False)
