"""Help screen: all keys of the screen below, from the action table; a click on a key runs its action."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.console import Group
from rich.style import Style
from rich.table import Table
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from tui.actions.keymap import key_labels, keys_of
from tui.actions.table import SCOPE_TITLES, Action, ActionFlag, Scope, actions_of
from tui.analysis.run.finding import SEVERITIES, SIGNS
from tui.screens.filter_field import FilterField
from tui.widgets.tones import tone_styles

HEADINGS = {**SCOPE_TITLES, Scope.SCREEN: "On every screen", Scope.APP: "Everywhere"}
LESS_COMMON = "Less common"
WIDE_CELLS = 166
"""From this width on, the sections are in two columns."""
NAVIGATION_KEYS = (
    ("↑ ↓  j k", "Move one line."),
    ("^d ^u", "Move half a page; ^f ^b or page down/up move a whole page."),
    ("g  G", "Go to the start or the end."),
    ("mouse", "Click to select, again to open; click headings to sort; scroll."),
)
SEVERITY_SIGNS = ((" ".join(SIGNS[severity] for severity in SEVERITIES), "Critical, warning, info."),)

Row = tuple[str, str, str]
"""The keys, what they do, and the action that a click runs (empty for none)."""


class HelpScreen(ModalScreen[None]):
    """The keys of the screen below; a click on a key runs its action; esc, q or ? closes the help."""

    CSS_PATH = "help.tcss"
    AUTO_FOCUS = "#keys"
    HORIZONTAL_BREAKPOINTS = [(0, "-normal"), (WIDE_CELLS, "-wide")]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "close", show=False),
        Binding("q,question_mark", "app.pop_screen", "close", show=False),
        Binding("slash", "find", "find", show=False),
        Binding("j", "scroll(1)", show=False),
        Binding("k", "scroll(-1)", show=False),
        Binding("ctrl+d", "scroll_pages(0.5)", show=False),
        Binding("ctrl+u", "scroll_pages(-0.5)", show=False),
        Binding("ctrl+f,space", "scroll_pages(1)", show=False),
        Binding("ctrl+b", "scroll_pages(-1)", show=False),
        Binding("g", "scroll_to_end(False)", show=False),
        Binding("G", "scroll_to_end(True)", show=False),
    ]

    def __init__(
        self, scopes: Sequence[Scope], user_keys: Mapping[str, str] | None = None, *, read_only: bool = False
    ) -> None:
        super().__init__()
        self._read_only = read_only
        self._scopes = tuple(scopes)
        self._user_keys = user_keys or {}

    def compose(self) -> ComposeResult:
        with Vertical(id="box") as box:
            box.border_title, box.border_subtitle = (
                "Keyboard shortcuts",
                "/ searches · a click on a key runs it · esc closes",
            )
            yield FilterField("key or words", id="find")
            with VerticalScroll(id="keys"):
                shortcuts = Static(self._shortcuts(""), id="shortcuts")
                shortcuts.auto_links = False  # everything can be clicked: don't underline it all
                yield shortcuts

    def _shortcuts(self, query: str) -> Group | Table:
        """Return the sections with the shortcuts whose keys or descriptions match the query."""
        sections: dict[str, list[Row]] = {HEADINGS[scope]: [] for scope in self._scopes}
        sections |= {
            "Navigation": [(*words, "") for words in NAVIGATION_KEYS],
            "Problems": [(*words, "") for words in SEVERITY_SIGNS],
            LESS_COMMON: [],
        }
        for action in actions_of(*self._scopes):
            title = LESS_COMMON if ActionFlag.RARE in action.flags else HEADINGS[action.scope]
            sections[title].append(self._row(action))
        groups: list[tuple[int, Group]] = []
        for title, rows in sections.items():
            matching_rows = [row for row in rows if _matches(row, query.strip())]
            if matching_rows:
                heading = Text(title, tone_styles(self.app)["heading"])
                groups.append((len(matching_rows) + 2, Group(Text(), heading, self._table(matching_rows))))
        if not groups:
            return Group(Text(), Text("No matching shortcuts."))
        return (
            _side_by_side(groups) if self.size.width >= WIDE_CELLS else Group(*(group for _, group in groups))
        )

    def _row(self, action: Action) -> Row:
        keys = key_labels(keys_of(action, self._user_keys))
        return keys, action.sentence(read_only=self._read_only), action.call

    def _table(self, rows: Sequence[Row]) -> Table:
        tones = tone_styles(self.app)
        table = Table.grid(padding=(0, 2))
        table.add_column(width=9, no_wrap=True, style=tones["key"])
        table.add_column(ratio=1)
        for keys, sentence, call in rows:
            link = Style(meta={"@click": f"screen.act({call!r})"} if call else {})
            table.add_row(Text(keys, link), Text(sentence, link))
        return table

    @on(FilterField.Changed)
    @on(events.Resize)
    def _show_shortcuts(self) -> None:
        if self.query("#shortcuts"):  # does not exist before the screen is composed, nor after it is closed
            query = self.query_one(FilterField).value
            self.query_one("#shortcuts", Static).update(self._shortcuts(query))

    @on(FilterField.Submitted)
    def _search_submitted(self) -> None:
        self.set_focus(self.query_one("#keys"))

    def on_click(self, event: events.Click) -> None:
        """Close if the click is outside the box, as the palette does."""
        if self.get_widget_at(*event.screen_offset)[0] is self and self.app.screen is self:
            self.app.pop_screen()

    def action_act(self, call: str) -> None:
        """Close the help, then run the action on the screen below."""
        self.app.pop_screen()
        self.app.call_later(self.app.run_action, call)

    def action_find(self) -> None:
        self.query_one(FilterField).open()

    def action_back(self) -> None:
        """Close the search if it is open, else close the help."""
        if self.query_one(FilterField).clear_text():
            self.set_focus(self.query_one("#keys"))
        else:
            self.app.pop_screen()

    def action_scroll_pages(self, pages: float) -> None:
        keys = self.query_one("#keys", VerticalScroll)
        keys.scroll_relative(y=int(pages * max(2, keys.size.height - 1)), animate=False)

    def action_scroll_to_end(self, last: bool) -> None:
        keys = self.query_one("#keys", VerticalScroll)
        (keys.scroll_end if last else keys.scroll_home)(animate=False)

    def action_scroll(self, lines: int) -> None:
        self.query_one("#keys", VerticalScroll).scroll_relative(y=lines, animate=False)


def _side_by_side(groups: Sequence[tuple[int, Group]]) -> Table:
    """Arrange groups in two columns of about the same height; each comes with its number of lines."""
    columns: tuple[list[Group], list[Group]] = ([], [])
    half_line_count, placed_line_count = sum(line_count for line_count, _ in groups) / 2, 0
    for line_count, group in groups:
        columns[placed_line_count + line_count / 2 > half_line_count].append(group)
        placed_line_count += line_count
    table = Table.grid(padding=(0, 2), expand=True)
    for _ in columns:
        table.add_column(ratio=1)
    table.add_row(*(Group(*column) for column in columns))
    return table


def _matches(row: Row, query: str) -> bool:
    keys, sentence, _ = row
    query_words = query.casefold().split()
    return query in keys.split() or all(word in sentence.casefold() for word in query_words)
