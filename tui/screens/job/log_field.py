"""The input field below the log, for searching, filtering, going to a time, and saving.

Options are toggled by control keys while typing or by clicking them; their state is always visible.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.reactive import var
from textual.widgets import Input, Static

from tui.analysis.logs.pattern import LogPattern
from tui.tables.column import Span
from tui.text.times import TIME_EXAMPLES
from tui.widgets.log_view.options import LogOptions
from tui.widgets.status_line import FACT_KEY, StatusLine

FieldPurpose = Literal["find", "filter", "time", "save"]

PROMPTS: dict[FieldPurpose, tuple[str, str]] = {
    "find": ("/", "find in the log; n/N for next/previous match"),
    "filter": ("&", "show only lines that match"),
    "time": ("@", "go to a time"),
    "save": ("save to", "a path; .ndjson keeps every field"),
}


@dataclass(frozen=True, slots=True)
class FieldSwitches:
    """Options for interpreting the typed text."""

    regex: bool | None = None
    """Whether the text is a regular expression. None: only if it looks like a regular expression, and no line
    contains it literally."""
    case: bool | None = None
    invert: bool = False
    whole_log: bool = False


@dataclass(frozen=True, slots=True)
class Switch:
    """How a field of `FieldSwitches` is shown: its key, its label, and the texts of its values.

    The key steps through the values in their order here.
    """

    key: str
    label: str
    purposes: tuple[FieldPurpose, ...]
    value_texts: Mapping[Any, str]


ON_OFF = {False: "off", True: "on"}
SWITCHES = {
    "regex": Switch(
        "^r", "regex ", ("find", "filter"), {None: "if no text matches", True: "on", False: "off"}
    ),
    "case": Switch("^t", "case ", ("find", "filter"), {None: "smart", True: "Aa", False: "aa"}),
    "invert": Switch("^n", "invert ", ("filter",), ON_OFF),
    "whole_log": Switch("^l", "whole log ", ("save",), ON_OFF),
}


class LogField(Vertical):
    """The input field, visible while the user types; posts the typed text, and shows its errors."""

    DEFAULT_CSS = """
    LogField {
        height: auto; display: none; background: $panel; padding: 0 1;
        &.-open { display: block; }
        & > Horizontal { height: 1; }
        & #log-prompt { width: auto; color: $accent; text-style: bold; padding-right: 1; }
        & #log-input { width: 1fr; background: $panel; padding: 0; }
        & #log-switches { max-height: 30vh; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "switch('regex')", show=False, id="log_field.regex"),
        Binding("ctrl+t", "switch('case')", show=False, id="log_field.case"),
        Binding("ctrl+n", "switch('invert')", show=False, id="log_field.invert"),
        Binding("ctrl+l", "switch('whole_log')", show=False, id="log_field.whole_log"),
        Binding("up", "recall(1)", show=False, id="log_field.earlier"),
        Binding("down", "recall(-1)", show=False, id="log_field.later"),
        # Override the screen's tab keys, so that typing Tab does not switch tabs.
        Binding("tab,shift+tab", "complete", show=False, id="log_field.complete"),
    ]

    switches: var[FieldSwitches] = var(FieldSwitches(), init=False)
    problem: var[str] = var("", init=False)
    """Error in the typed text; shown in place of the options."""

    @dataclass
    class Typed(Message):
        """The typed text or an option has changed."""

        purpose: FieldPurpose

    @dataclass
    class Submitted(Message):
        """The user has submitted the text."""

        purpose: FieldPurpose
        text: str

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.purpose: FieldPurpose = "find"
        self._history: dict[FieldPurpose, list[str]] = {}
        self._history_index = 0
        """The entry of the history that the field shows, counted from the newest; 0 for none."""

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Static(id="log-prompt")
            yield Input(id="log-input", compact=True)
        yield StatusLine(id="log-switches", separator="  ")

    @property
    def is_open(self) -> bool:
        return self.has_class("-open")

    @property
    def text(self) -> str:
        return self.query_one(Input).value

    @property
    def pattern(self) -> LogPattern | None:
        """The typed text as a pattern; None if it is empty."""
        return LogPattern(self.text, bool(self.switches.regex), self.switches.case) if self.text else None

    def open_filter(self, options: LogOptions) -> None:
        pattern, switches = options.pattern, self.switches
        if pattern:
            switches = replace(switches, case=pattern.case)
        self.open("filter", pattern.text if pattern else "", replace(switches, invert=options.invert))

    def open(
        self,
        purpose: FieldPurpose,
        text: str = "",
        switches: FieldSwitches | None = None,
        *,
        is_selected: bool = False,
    ) -> None:
        """Open the field; typing replaces ``text`` if it is ``is_selected``."""
        self.purpose, self._history_index = purpose, 0
        prompt, placeholder = PROMPTS[purpose]
        self.query_one("#log-prompt", Static).update(prompt)
        field = self.query_one(Input)
        field.placeholder = placeholder
        with self.prevent(Input.Changed):
            self._set_text(text)
        if is_selected:
            field.action_select_all()
        self.problem = ""
        if switches is not None:
            self.switches = switches
        self.add_class("-open")
        self.watch_problem()
        self.screen.set_focus(field)  # immediately: focus() defers and would lose typed keys

    def close(self) -> None:
        self.remove_class("-open")

    def action_switch(self, name: str) -> None:
        """Set an option to its next value."""
        switch = SWITCHES[name]
        if self.purpose in switch.purposes:
            values = list(switch.value_texts)
            next_value = values[(values.index(getattr(self.switches, name)) + 1) % len(values)]
            changes: dict[str, Any] = {name: next_value}
            self.switches = replace(self.switches, **changes)

    def action_recall(self, step: int) -> None:
        history = self._history.get(self.purpose, [])
        self._history_index = max(0, min(len(history), self._history_index + step))
        self._set_text(history[-self._history_index] if self._history_index else "")

    def action_complete(self) -> None:
        history = self._history.get(self.purpose, [])
        completions = [text for text in history if text.startswith(self.text) and text != self.text]
        if completions:
            self._set_text(completions[-1])

    def _set_text(self, text: str) -> None:
        field = self.query_one(Input)
        field.value = text
        field.cursor_position = len(text)

    @on(Input.Changed, "#log-input")
    def watch_switches(self) -> None:
        """Show the options, or the error in the text; post ``Typed``, as the search or filter has changed."""
        pattern = self.pattern if self.purpose in ("find", "filter") else None
        self.problem = pattern.problem if pattern is not None else ""
        self.watch_problem()
        if self.is_open:
            self.post_message(self.Typed(self.purpose))

    @on(Input.Submitted, "#log-input")
    def _submitted(self, event: Input.Submitted) -> None:
        if event.value:
            history = self._history.setdefault(self.purpose, [])
            if event.value in history:
                history.remove(event.value)
            history.append(event.value)
        self.post_message(self.Submitted(self.purpose, event.value))

    @property
    def _offered_switches(self) -> list[str]:
        return [name for name, switch in SWITCHES.items() if self.purpose in switch.purposes]

    @on(events.Click, "#log-switches")
    def _clicked(self, event: events.Click) -> None:
        index = event.style.meta.get(FACT_KEY)
        if index is not None and index < len(self._offered_switches):
            self.action_switch(self._offered_switches[index])

    def watch_problem(self) -> None:
        line = self.query_one("#log-switches", StatusLine)
        if self.problem:
            line.set_facts([[("✗ ", "bad"), (self.problem, "bad")]], 1)
        elif self.purpose == "time":
            line.set_facts([[(TIME_EXAMPLES, "muted")]], 1)
        else:
            facts = [
                _switch_spans(SWITCHES[name], getattr(self.switches, name)) for name in self._offered_switches
            ]
            line.set_facts(facts, len(facts))


def _switch_spans(switch: Switch, value: object) -> list[Span]:
    tone = "plain" if value == next(iter(switch.value_texts)) else "accent"
    return [(f"{switch.key} ", "key"), (switch.label, "muted"), (switch.value_texts[value], tone)]
