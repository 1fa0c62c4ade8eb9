"""Questions at a terminal: questionary asks them on stderr, so that stdout stays clean.

questionary is slow to import, so commands import this module only when they ask their first question.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import Any, TypeVar

import click
import questionary
from prompt_toolkit.key_binding import KeyBindings, merge_key_bindings
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import create_output

from tui.commands.support.terminal import terminal_cells, wrapped
from tui.forms.question import Answer, Option, Question, pairs_of, parse_pairs, possible_values
from tui.text.sanitize import cell_width, clip, sanitize

T = TypeVar("T")


class FormMove(Enum):
    BACK = "back"
    LEAVE = "leave"


PrintLine = Callable[[str], None]


async def ask(question: Question, number: int, print_line: PrintLine) -> Answer | FormMove:
    """Ask until the answer is valid: in a filtered list, disabled options can be chosen, too.

    Problems are printed between questions, because questionary would truncate them to one line.
    """
    is_pairs = question.kind == "pairs"
    title = f"[{number}] {question.text}{f' {question.remark} …' if is_pairs else ''}"
    remark_lines = [] if is_pairs else question.remark.splitlines()
    for line in filter(None, (*remark_lines, question.objection)):
        print_line(line)
    # a text is kept, because it can be corrected
    if question.objection and question.kind not in ("text", "pairs"):
        question = replace(question, answer=None)
    if question.options and question.kind in ("text", "number", "pairs"):
        values = ", ".join(possible_values(question.options))
        print_line(f"secrets: {values}" if is_pairs else f"One of {values}.")
    preselected = question.proposal
    while True:
        answer = await _ask_once(title, question, preselected)
        if isinstance(answer, FormMove) or not (problem := question.problem(answer)):
            return answer
        print_line(problem)
        preselected = answer


async def _ask_once(title: str, question: Question, preselected: Answer) -> Answer | FormMove:
    values = [option.value for option in question.options]
    match question.kind:
        case "text" | "number":
            return await _ask_prompt(_text(title, question.default_text, question.problem), str)
        case "pairs":
            default = shlex.join(f"{name}={value}" for name, value in pairs_of(question.default))
            return await _ask_prompt(
                _text(title, default, lambda text: question.problem(_parse_pairs_line(text))),
                _parse_pairs_line,
            )
        case "choices":
            prompt = _checkbox(title, question, preselected)
            return await _ask_prompt(
                prompt, lambda indices: tuple(dict.fromkeys(values[index] for index in indices))
            )
    return await _ask_prompt(_select(title, question), values.__getitem__)


def _parse_pairs_line(text: str) -> Answer:
    """Parse pairs on one line, quoted as for a shell; return text with an unclosed quote unchanged."""
    try:
        return parse_pairs(shlex.split(text))
    except ValueError:
        return text


async def ask_yes_no(question: str) -> bool:
    return (
        await _ask_prompt(questionary.confirm(wrapped(question), default=False, output=_stderr()), bool)
        is True
    )


async def ask_text(question: str, default: str) -> str:
    answer = await _ask_prompt(_text(sanitize(question), sanitize(default), lambda _text: ""), str)
    return "" if isinstance(answer, FormMove) else answer.strip()


async def ask_secret(question: str) -> str:
    """Ask for a text that is not shown. Raises click.Abort if there is no answer."""
    prompt = questionary.password(sanitize(question), validate=_validator(lambda _text: ""), output=_stderr())
    answer = await _ask_prompt(prompt, str)
    if isinstance(answer, FormMove) or not answer.strip():
        raise click.Abort
    return answer.strip()


def _select(title: str, question: Question) -> Any:
    """Return a single-choice list; its answer is the option's index, as values may repeat or be empty.

    In a long list, which can be filtered, disabled options are only marked: if nothing else passed the
    filter, questionary would search for a selectable option forever.
    """
    options = question.options
    # Typing filters a long list, so that j and k no longer move the cursor.
    is_long = len(options) >= 15
    choices = [_choice(option, index, disables_option=not is_long) for index, option in enumerate(options)]
    options_and_choices = zip(options, choices, strict=True)
    return questionary.select(
        title,
        choices=choices,
        default=next(
            (choice for option, choice in options_and_choices if option.value == question.proposal), None
        ),
        instruction="(type to filter)" if is_long else " ",  # in place of questionary's help on keys
        use_search_filter=is_long,
        use_jk_keys=not is_long,
        output=_stderr(),
    )


def _checkbox(title: str, question: Question, preselected: Answer) -> Any:
    preselected_values = preselected if isinstance(preselected, tuple) else ()
    return questionary.checkbox(
        title,
        choices=[
            _choice(option, index, checked=option.value in preselected_values)
            for index, option in enumerate(question.options)
        ],
        instruction="(space to mark)",
        output=_stderr(),
    )


def _text(title: str, default: str, find_problem: Callable[[str], str]) -> Any:
    return questionary.text(
        title,
        default=default,
        validate=_validator(find_problem),
        validate_while_typing=False,
        output=_stderr(),
    )


def _validator(find_problem: Callable[[str], str]) -> Callable[[str], str | bool]:
    """Return a validator that also rejects surrogates: questionary decodes invalid UTF-8 to surrogates."""

    def validate(text: str) -> str | bool:
        if re.search("[\ud800-\udfff]", text):
            return "not UTF-8; check the terminal's encoding and try again"
        return find_problem(text) or True

    return validate


def _choice(option: Option, index: int, *, checked: bool = False, disables_option: bool = True) -> Any:
    disabled_reason = option.disabled_reason
    warning = f"  ▲ {option.warning}" if option.warning else ""
    title = option.label + warning + (f"  {option.hint}" if option.hint else "")
    if disabled_reason and not disables_option:
        title, disabled_reason = f"- {title} ({disabled_reason})", ""
    room = terminal_cells() - 6  # questionary's pointer and box take six cells
    title = clip(title, room - min(cell_width(disabled_reason) + 3, room // 2) if disabled_reason else room)
    disabled_reason = clip(disabled_reason, room - cell_width(title) - 3)  # it is shown in brackets
    return questionary.Choice(
        title=title,
        value=index,
        disabled=disabled_reason or None,
        checked=checked and not option.disabled_reason,
    )


async def _ask_prompt(question: Any, read: Callable[[Any], T]) -> T | FormMove:
    """Ask and convert questionary's answer with ``read``; add the keys for going back and leaving."""
    keys = KeyBindings()

    @keys.add(Keys.BackTab, eager=True)
    def _back(event: Any) -> None:
        event.app.exit(result=FormMove.BACK)

    @keys.add(Keys.Escape, eager=True)
    def _leave(event: Any) -> None:
        event.app.exit(result=FormMove.LEAVE)

    application = question.application
    application.key_bindings = merge_key_bindings([application.key_bindings, keys])
    answer = await question.unsafe_ask_async()
    return answer if isinstance(answer, FormMove) else read(answer)


def _stderr() -> Any:
    return create_output(stdout=sys.stderr)
