"""Answer widgets, one per kind of question: each shows choices and default, and posts the answer."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static, TextArea
from textual.widgets.option_list import Option

from tui.screens.base import key_on
from tui.screens.dialogs import ChoiceList
from tui.text.sanitize import sanitize
from tui.wizard.environment_steps import read_pair
from tui.wizard.progress import questions
from tui.wizard.review import CHANGE
from tui.wizard.state import SECRETS
from tui.wizard.step import Answer, Choice, Step

REASON_CELLS = 44
"""Wrap reasons to this width, so that they fit beside the list of steps at 80 columns."""


TITLE_CELLS = 12
"""Width of the longest title of a question, "Checkpoints" and "Environment", with a cell to spare."""


class CheckboxList(ChoiceList):
    """A multiple-choice list. Space or a click marks, Enter continues; marks are signs, not colors."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "mark", "mark"),
        Binding("enter", "go_on", "next"),
    ]

    class Complete(Message):
        """The user has finished marking."""

    def __init__(self, choices: Sequence[Choice], marked: Collection[str]) -> None:
        self._choices = tuple(choices)
        self._marked = set(marked)
        self.is_changed = False
        """True if the user has marked or unmarked a choice."""
        super().__init__(*(self._option(choice) for choice in self._choices))

    @property
    def marked(self) -> tuple[str, ...]:
        return tuple(choice.value for choice in self._choices if choice.value in self._marked)

    def answer(self) -> tuple[str, ...]:
        """Return the marked values; with none, mark and return the one under the cursor."""
        if not self._marked:
            self.action_mark()
        return self.marked

    def revise(self, choices: Sequence[Choice], proposed: Collection[str]) -> bool:
        """Update the text of the same choices, return False if the choices differ.

        Marks that the user has changed are kept; others follow the proposal.
        """
        if [one.value for one in choices] != [one.value for one in self._choices]:
            return False
        self._choices = tuple(choices)
        if not self.is_changed:
            self._marked = set(proposed)
        for place, choice in enumerate(choices):
            self.replace_option_prompt_at_index(place, self._option(choice).prompt)
        return True

    def _option(self, choice: Choice) -> Option:
        sign = " " if choice.disabled_reason else "☑" if choice.value in self._marked else "☐"
        return Option(
            Text.assemble(f"{sign} ", choice_text(choice)),
            id=choice.value,
            disabled=bool(choice.disabled_reason),
        )

    def action_mark(self) -> None:
        if self.highlighted is None:
            return
        choice = self._choices[self.highlighted]
        if choice.disabled_reason:
            return
        self.is_changed = True
        self._marked ^= {choice.value}
        self.replace_option_prompt_at_index(self.highlighted, self._option(choice).prompt)

    action_select = action_mark  # a click marks

    def action_go_on(self) -> None:
        self.post_message(self.Complete())


class QuestionPane(Vertical):
    """Asks one step and posts ``Answered`` when the user is done; it does not validate the answer."""

    @dataclass
    class Answered(Message):
        """The user's answer; ``unreadable`` is the reason if the typed text could not be parsed."""

        step_id: str
        answer: Answer
        unreadable: str = ""

    def __init__(self, step: Step) -> None:
        super().__init__()
        self.step = step

    def compose(self) -> ComposeResult:
        step = self.step
        if step.kind == "review":
            yield _review_page(step)
        elif step.kind == "choice":
            yield _options(step)
        elif step.kind == "choices":
            yield CheckboxList(step.choices, _names(step.proposal))
        elif step.kind == "pairs":
            yield TextArea(_pairs_text(step), id="pairs", show_line_numbers=False, compact=True)
            value = "secret" if step.id == SECRETS else "value"
            key = key_on(self, "deploy.next")
            yield Static(f"One NAME={value} per line; {key} continues", classes="hint")
        else:
            if step.choices:
                yield _options(step)
                yield Static("Choose above or type one:", classes="hint")
            yield Input(_text(step.default), id="text", compact=True)

    @property
    def is_changed(self) -> bool:
        """True if the user has typed or marked something that is not answered yet."""
        match self.step.kind:
            case "text" | "number":
                return any(field.value != _text(self.step.default) for field in self.query(Input))
            case "pairs":
                return any(field.text != _pairs_text(self.step) for field in self.query(TextArea))
            case "choices":
                return any(each.is_changed for each in self.query(CheckboxList))
            case _:
                return False

    def revise(self, step: Step) -> bool:
        """Update the text of the same question's choices; return False if the question differs."""
        if step.id == self.step.id and step.kind == "review":
            self.step = step
            return _revise_page(self.query_one(ChoiceList), step)
        marks = self.query(CheckboxList)
        if (
            step.id != self.step.id
            or not marks
            or not marks.first().revise(step.choices, _names(step.proposal))
        ):
            return False
        self.step = step
        return True

    def on_mount(self) -> None:
        self.take_focus()

    def take_focus(self) -> None:
        target = "#text" if self.step.kind in ("text", "number") else "OptionList, TextArea"
        for widget in self.query(target).results(Widget):  # none before the pane is mounted
            self.screen.set_focus(widget)
            break

    @on(CheckboxList.Complete)
    @on(Input.Submitted)
    def give(self) -> None:
        match self.step.kind:
            case "choices":
                self._post(self.query_one(CheckboxList).answer())
            case "pairs":
                self._submit_pairs(self.query_one(TextArea).text)
            case "text" | "number":
                self._post(self.query_one("#text", Input).value)
            case _:
                options = self.query_one(OptionList)
                if options.highlighted is not None:
                    self._post(options.get_option_at_index(options.highlighted).id)

    def _post(self, answer: Answer, unreadable: str = "") -> None:
        self.post_message(self.Answered(self.step.id, answer, unreadable))

    def _submit_pairs(self, text: str) -> None:
        pairs = []
        for line in filter(None, (line.strip() for line in text.splitlines())):
            pair = read_pair(line)
            if pair is None:
                self._post(None, f"{line!r} is not NAME=value")
                return
            pairs.append(pair)
        self._post(tuple(pairs))

    @on(OptionList.OptionSelected)
    def _option_chosen(self, event: OptionList.OptionSelected) -> None:
        if self.step.kind in ("text", "number"):
            field = self.query_one("#text", Input)
            field.value = event.option.id or ""
            self.screen.set_focus(field)
        else:
            self._post(event.option.id)


def _options(step: Step) -> ChoiceList:
    options = ChoiceList(*_option_list(step.choices))
    values = [choice.value for choice in step.choices]
    wanted = str(step.proposal)
    if wanted in values:
        options.highlighted = values.index(wanted)
    return options


def _review_page(step: Step) -> ChoiceList:
    """Return the answers, a row each, and below them the actions, with the cursor on the first of these."""
    rows, actions = _page_options(step)
    page = ChoiceList(*rows, None, *actions)
    page.highlighted = len(rows) + [action.disabled for action in actions].index(False)
    return page


def _page_options(step: Step) -> tuple[list[Option], list[Option]]:
    titles = {f"{CHANGE}{each.id}": each.title for each in questions(step.state)}
    rows = [
        Option(_answer_row(titles[one.value], one.hint), id=one.value)
        for one in step.choices
        if one.value in titles
    ]
    return rows, _option_list([one for one in step.choices if one.value not in titles])


def _revise_page(page: OptionList, step: Step) -> bool:
    """Update the texts, leaving the cursor where it is; return False if the possible choices differ."""
    rows, actions = _page_options(step)
    shown, wanted = page.options, [*rows, *actions]
    if [(one.id, one.disabled) for one in shown] != [(one.id, one.disabled) for one in wanted]:
        return False
    for place, one in enumerate(wanted):
        page.replace_option_prompt_at_index(place, one.prompt)
    return True


def _answer_row(title: str, answer: str) -> Table:
    row = Table.grid(padding=(0, 2, 0, 0))
    row.add_column(width=TITLE_CELLS, no_wrap=True)
    row.add_column(overflow="fold")
    row.add_row(Text(sanitize(title), "dim"), Text(sanitize(answer)))
    return row


def _option_list(choices: Sequence[Choice]) -> list[Option]:
    return [
        Option(choice_text(choice), id=choice.value, disabled=bool(choice.disabled_reason))
        for choice in choices
    ]


def choice_text(choice: Choice) -> Text:
    """Return label and hint; the whole reason if disabled, as the cursor cannot move there to read on."""
    text = Text(sanitize(choice.label))
    if choice.disabled_reason:
        lines = textwrap.wrap(sanitize(choice.disabled_reason), REASON_CELLS, break_on_hyphens=False)
        text.append("".join(f"\n    {line}" for line in lines), "italic")
    elif choice.hint:
        text.append(f"  {sanitize(choice.hint)}", "dim")
    if choice.warning:
        text.append(f"\n    ▲ {sanitize(choice.warning)}", "bold")
    return text


def _names(value: Answer) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, tuple) else ()


def _text(value: Answer) -> str:
    return "" if value is None or isinstance(value, tuple) else sanitize(str(value))


def _pairs_text(step: Step) -> str:
    pairs = step.default if isinstance(step.default, tuple) else ()
    return "\n".join(f"{pair[0]}={pair[1]}" for pair in pairs if isinstance(pair, tuple))
