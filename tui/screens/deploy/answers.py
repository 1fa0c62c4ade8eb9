"""Widgets that ask a question of a form: they show its options and default, and post the answer."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.table import Table
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, OptionList, Static, TextArea
from textual.widgets.option_list import Option as ListOption

from tui.forms.deployment import CHANGE
from tui.forms.question import Answer, Option, Question
from tui.screens.base import key_for_widget
from tui.screens.dialogs import ChoiceList

TITLE_CELLS = 12
"""Width of the longest question titles, "Checkpoints" and "Environment", plus one cell."""


class CheckboxList(ChoiceList):
    """A multiple-choice list: space or a click marks an option, enter continues."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "mark", "mark"),
        Binding("enter", "go_on", "next"),
    ]

    class Complete(Message):
        """The user has finished marking options."""

    def __init__(self, options: Sequence[Option], marked: Collection[str]) -> None:
        self._question_options = tuple(options)
        self._marked_values = set(marked)
        self.is_changed = False
        """True if the user has marked or unmarked an option."""
        super().__init__(*map(self._option_line, self._question_options))

    @property
    def marked_values(self) -> tuple[str, ...]:
        return tuple(option.value for option in self._question_options if option.value in self._marked_values)

    def answer(self) -> tuple[str, ...]:
        """Return the marked values; if none is marked, mark and return the value under the cursor."""
        if not self._marked_values:
            self.action_mark()
        return self.marked_values

    def revise(self, options: Sequence[Option], proposed: Collection[str]) -> bool:
        """Update the texts of the options; return False for other options, which take a new list.

        If the user has not changed any mark, mark the proposed options.
        """
        self._question_options = tuple(options)
        if not self.is_changed:
            self._marked_values = set(proposed)
        return _replace_prompts(self, list(map(self._option_line, options)))

    def _option_line(self, option: Option) -> ListOption:
        sign = " " if option.disabled_reason else "☑" if option.value in self._marked_values else "☐"
        text = Text.assemble(f"{sign} ", option_text(option, column_widths(self._question_options)))
        return ListOption(text, id=option.value, disabled=bool(option.disabled_reason))

    def action_mark(self) -> None:
        option = None if self.highlighted is None else self._question_options[self.highlighted]
        if option is None or option.disabled_reason:
            return
        self.is_changed = True
        self._marked_values ^= {option.value}
        self.replace_option_prompt_at_index(self.highlighted or 0, self._option_line(option).prompt)

    action_select = action_mark  # a click marks

    def action_go_on(self) -> None:
        self.post_message(self.Complete())


class QuestionPane(Vertical):
    """Asks one question and posts ``Answered`` when the user is done; it does not validate the answer."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("up,down", "options", "options", show=False)]

    @dataclass
    class Answered(Message):
        """The user's answer, as typed."""

        question_id: str
        answer: Answer

    def __init__(self, question: Question) -> None:
        super().__init__()
        self.question = question
        self._field: CheckboxList | ChoiceList | Input | TextArea
        """The widget that holds the answer."""
        if question.kind == "choices":
            self._field = CheckboxList(question.options, _string_values(question.proposal))
        elif question.kind == "pairs":
            self._field = TextArea(question.default_text, id="pairs", show_line_numbers=False, compact=True)
        elif question.kind in ("text", "number"):
            self._field = Input(question.default_text, id="text", compact=True)
        else:
            self._field = _choice_list(question)

    def compose(self) -> ComposeResult:
        if isinstance(self._field, Input) and self.question.options:
            yield _choice_list(self.question)
            yield Static("Choose above or type one:", classes="hint")
        yield self._field
        if isinstance(self._field, TextArea):
            key = key_for_widget(self, "deploy.next")
            yield Static(f"One {self.question.remark} per line; {key} continues", classes="hint")

    @property
    def is_changed(self) -> bool:
        """True if the user has typed or marked something that is not submitted yet."""
        match self._field:
            case CheckboxList():
                return self._field.is_changed
            case Input():
                return self._field.value != self.question.default_text
            case TextArea():
                return self._field.text != self.question.default_text
        return False

    def revise(self, question: Question) -> bool:
        """Show the newest state of the question; return False if that takes a new pane."""
        previous, self.question = self.question, question
        if question.id != previous.id:
            return False
        if (question.default, question.options) == (previous.default, previous.options):
            return True
        if isinstance(self._field, CheckboxList):
            return self._field.revise(question.options, _string_values(question.proposal))
        return isinstance(self._field, ChoiceList) and _replace_prompts(self._field, _option_rows(question))

    def on_mount(self) -> None:
        self._field.focus()

    def on_show(self) -> None:
        # The field may handle an earlier ``Hide`` only now, and lose the focus: focus it after that.
        self._field.call_later(self._field.focus)

    def action_options(self) -> None:
        """Move from the text field to the options above it."""
        for options in self.query(ChoiceList):
            options.focus()

    @on(CheckboxList.Complete)
    @on(Input.Submitted)
    def post_answer(self) -> None:
        """Post the answer; do nothing until the question is mounted."""
        if not self._field.is_mounted:
            return
        match self._field:
            case CheckboxList():
                self._post_answered(self._field.answer())
            case Input():
                self._post_answered(self._field.value)
            case TextArea():
                self._post_answered(self._field.text)
            case OptionList(highlighted=int(index)):
                self._post_answered(self._field.get_option_at_index(index).id)

    def _post_answered(self, answer: Answer) -> None:
        self.post_message(self.Answered(self.question.id, answer))

    @on(OptionList.OptionSelected)
    def _option_chosen(self, event: OptionList.OptionSelected) -> None:
        if isinstance(self._field, Input):
            self._field.value = event.option.id or ""
            self._field.focus()
        else:
            self._post_answered(event.option.id)


def _choice_list(question: Question) -> ChoiceList:
    """Return the list of options; in the review, the answers come first, then the actions."""
    rows = _option_rows(question)
    answer_count = sum(option.value.startswith(CHANGE) for option in question.options)
    choices = ChoiceList(*rows[:answer_count], *([None] if answer_count else []), *rows[answer_count:])
    values = [row.id for row in rows]
    if question.kind == "review":
        choices.highlighted = answer_count + [row.disabled for row in rows[answer_count:]].index(False)
    elif str(question.proposal) in values:
        choices.highlighted = values.index(str(question.proposal))
    return choices


def _option_rows(question: Question) -> list[ListOption]:
    answers = [option for option in question.options if option.value.startswith(CHANGE)]
    actions = [option for option in question.options if not option.value.startswith(CHANGE)]
    widths = column_widths(actions)
    return [
        *map(_answer_row, answers),
        *(
            ListOption(option_text(option, widths), id=option.value, disabled=bool(option.disabled_reason))
            for option in actions
        ),
    ]


def _replace_prompts(option_list: OptionList, new_rows: Sequence[ListOption]) -> bool:
    """Update the texts of a list, keeping its cursor; return False if its options or their states differ."""
    if [(row.id, row.disabled) for row in option_list.options] != [
        (row.id, row.disabled) for row in new_rows
    ]:
        return False
    for index, row in enumerate(new_rows):
        option_list.replace_option_prompt_at_index(index, row.prompt)
    option_list._update_lines()  # Textual keeps the height and the scroll bar of the old texts
    option_list.refresh(layout=True)
    return True


def _answer_row(option: Option) -> ListOption:
    row = Table.grid(padding=(0, 2, 0, 0))
    row.add_column(width=TITLE_CELLS, no_wrap=True)
    row.add_column(overflow="fold")
    row.add_row(Text(option.label, "dim"), Text(option.hint))
    return ListOption(row, id=option.value)


def column_widths(options: Sequence[Option]) -> list[int]:
    """Return the widths that align the labels of these options, and each of their facts."""
    columns = zip_longest(*((option.label, *option.facts) for option in options), fillvalue="")
    return [max(map(cell_len, column)) for column in columns]


def option_text(option: Option, widths: Sequence[int]) -> Text:
    """Return label and facts of an option, or why it is disabled, in full."""
    text = Text(option.label)
    if option.disabled_reason:
        # Lines of 44 cells fit beside the list of questions at 80 columns.
        lines = textwrap.wrap(option.disabled_reason, 44, break_on_hyphens=False)
        text.append("".join(f"\n    {line}" for line in lines), "italic")
    elif option.hint:
        text.pad_right(widths[0] - text.cell_len)
        facts = zip(option.facts, widths[1:], strict=False)
        text.append("".join(f"  {_aligned(fact, width)}" for fact, width in facts if width).rstrip(), "dim")
    if option.warning:
        text.append(f"\n    ▲ {option.warning}", "bold")
    return text


def _aligned(fact: str, cells: int) -> str:
    """Align amounts at the right, everything else at the left."""
    return fact.rjust(cells) if fact[:1] == "$" or fact[:1].isdigit() else set_cell_size(fact, cells)


def _string_values(value: Answer) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, tuple) else ()
