"""The log of a run: one line that says what is shown, and the view."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Literal

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, Static

from api_client.streams.records import LogLine
from tui.feeds.run_log import LogPart
from tui.insight.natural import natural_key
from tui.insight.text import inert
from tui.insight.units import count
from tui.widgets.line import FactLine
from tui.widgets.log_view.messages import FollowChanged, MatchChanged, UnseenChanged
from tui.widgets.log_view.view import LogView
from tui.widgets.tones import Span

NANOSECONDS = 1_000_000_000
FieldPurpose = Literal["find", "filter"]
PLACEHOLDERS: dict[FieldPurpose, str] = {
    "find": "find in the log; n and N go to the next match",
    "filter": "show only lines that contain…",
}


class LogPane(Vertical):
    """All nodes' lines in one time order; knows which node and which text is shown alone."""

    DEFAULT_CSS = """
    LogPane {
        & > #log-bar { height: 1; padding: 0 1; color: $text-muted; }
        & > #log-field { display: none; background: $panel; padding: 0 1; }
        & > #log-field.-open { display: block; }
        & > LogView { height: 1fr; margin-left: 1; }
        & > #no-log { height: 1fr; content-align: center middle; color: $text-muted; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._node_names: tuple[str, ...] = ()
        self._node: str | None = None
        self._filter = ""
        self._match = ""
        self._needle = ""
        self._origin: datetime | None = None
        self._purpose: FieldPurpose = "find"
        self._ended = False

    def compose(self) -> ComposeResult:
        """What is shown, the text to look for, and the lines."""
        yield FactLine(id="log-bar")
        yield Input(id="log-field", compact=True)
        yield LogView(id="log-view")
        yield Static("Reading the log…", id="no-log")

    def on_mount(self) -> None:
        """Nothing has come yet."""
        self._show_bar()

    @property
    def view(self) -> LogView:
        """The lines."""
        return self.query_one(LogView)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes known, from metrics and from the log itself."""
        return self._node_names

    def set_origin(self, begin: datetime | None) -> None:
        """Elapsed times count from there."""
        if begin is not None and begin != self._origin:
            self._origin = begin
            self.view.set_origin(int(begin.timestamp() * NANOSECONDS))

    def set_nodes(self, names: Collection[str]) -> None:
        """Learn of nodes, from the metrics or from the lines themselves."""
        if not set(names) <= set(self._node_names):
            self._node_names = tuple(sorted({*self._node_names, *names}, key=natural_key))

    def take(self, part: LogPart) -> None:
        """Show one more part."""
        view = self.view
        if part.restarted:
            view.clear()
            self._ended = False
        elif part.older:
            view.prepend(part.entries)
        else:
            view.append(part.entries)
        self._ended = self._ended or part.ended
        self.set_nodes({line.replica for line in part.entries if isinstance(line, LogLine) and line.replica})
        self._show_bar()

    def show_node(self, node: str | None) -> None:
        """One node alone, or all."""
        self._node = node
        self.view.set_visible_nodes(None if node is None else {node})
        self._show_bar()

    def toggle_follow(self) -> None:
        """Follow the end, or stay."""
        self.view.follow = not self.view.follow

    def toggle_wrap(self) -> None:
        """Wrap long lines, or cut them."""
        self.view.wrap = not self.view.wrap

    def next_time_mode(self) -> None:
        """Another way to show times."""
        self.view.action_next_time_mode()

    def focus_view(self) -> None:
        """Keys go to the lines."""
        self.view.focus()

    def open_field(self, purpose: FieldPurpose) -> None:
        """Type a text to look for, or one that all lines shown must contain."""
        self._purpose = purpose
        field = self.query_one("#log-field", Input)
        field.placeholder = PLACEHOLDERS[purpose]
        field.value = self._filter if purpose == "filter" else ""
        field.add_class("-open")
        field.focus()

    def submit(self) -> None:
        """The text is complete: look for it, or keep the filter; keys go to the lines again."""
        field = self.query_one("#log-field", Input)
        field.remove_class("-open")
        self.focus_view()
        if self._purpose == "find" and field.value:
            self._needle = field.value
            self.view.find(field.value, backwards=True)

    def leave(self) -> bool:
        """Close the field, else forget what was found, else drop the filter; whether there was any of it."""
        field = self.query_one("#log-field", Input)
        was_open = field.has_class("-open")
        field.remove_class("-open")
        self.focus_view()
        if was_open and self._purpose == "find":
            return True
        if self._match:
            self._match = ""
            self.view.find("")
            self._show_bar()
            return True
        had_filter = bool(self._filter)
        self._set_filter("")
        return was_open or had_filter

    @on(Input.Changed, "#log-field")
    def _typed(self, event: Input.Changed) -> None:
        if self._purpose == "filter":
            self._set_filter(event.value)

    def _set_filter(self, text: str) -> None:
        self._filter = text
        self.view.set_filter(text)
        self._show_bar()

    @on(MatchChanged)
    def _searched(self, message: MatchChanged) -> None:
        if not message.text:
            return
        self._match = f"/{self._needle}" if message.entry is not None else f"/{self._needle}: not found"
        self._show_bar()

    @on(FollowChanged)
    @on(UnseenChanged)
    def _view_moved(self) -> None:
        self._show_bar()

    def _show_bar(self) -> None:
        view = self.view
        empty = view.line_count == 0
        self.query_one("#no-log", Static).display = empty
        view.display = not empty
        if empty:
            self.query_one("#no-log", Static).update(
                "The job has ended without a line of log." if self._ended else "No log lines yet."
            )
        nodes: list[Span] = [("Log ", "title"), (inert(self._node) if self._node else "all nodes", "plain")]
        follow: list[Span] = [("following", "good")] if view.follow else [("paused", "warn")]
        if self._ended:
            follow = [("complete", "muted")]
        if not view.follow and view.unseen:
            follow.append((f" ↓ {count(view.unseen)} new", "accent"))
        facts = [nodes, follow, [(f"{count(view.line_count)} lines", "muted")]]
        if self._filter:
            facts.append([("only ", "muted"), (self._filter, "accent")])
        if self._match:
            facts.append([(self._match, "accent")])
        self.query_one("#log-bar", FactLine).set_facts(facts)
