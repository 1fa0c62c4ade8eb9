"""Questions at a terminal: questionary asks them on stderr, so that stdout stays clean.

questionary is imported for the first question.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import Any, TypeVar

from tui.text.sanitize import sanitize
from tui.wizard.environment_steps import read_pair
from tui.wizard.state import Pairs
from tui.wizard.step import Answer, Choice, Step

T = TypeVar("T")

MARK_HELP = "(space to mark)"
FILTER_HELP = "(type to filter)"
_SURROGATES = re.compile("[\ud800-\udfff]")
LONG_LIST = 15
"""Number of choices from which typing filters the list, so that j and k no longer move the cursor."""

NO_HELP = " "
"""A blank replaces questionary's own help on the arrow keys."""


class WizardMove(Enum):
    BACK = "back"
    LEAVE = "leave"


Say = Callable[[str], None]


async def ask(step: Step, place: tuple[int, int], say: Say) -> Answer | WizardMove:
    if step.kind == "pairs":
        return await _ask_pairs(step, place, say)
    title = f"[{place[0]}/{place[1]}] {step.question}"
    for line in step.remark.splitlines():
        say(line)
    if step.objection:
        say(step.objection)
    if step.kind not in ("choice", "choices", "review") and step.choices:
        say("One of " + ", ".join(each.value for each in step.choices if not each.disabled_reason) + ".")
    if step.kind in ("choice", "choices", "review"):
        return await _ask_choice(title, step, say)
    default = "" if step.default is None else str(step.default)
    return await _run(_text(title, default, step.problem), str)


async def _ask_choice(title: str, step: Step, say: Say) -> Answer | WizardMove:
    """Ask until the choice is valid: a filtered list also offers disabled choices.

    Problems are printed between questions, since questionary would cut them to one line.
    """
    marked = step.proposal
    while True:
        chosen: Answer | WizardMove
        if step.kind == "choices":
            chosen = await _run(_checkbox(title, step, marked), partial(_values, step))
        else:
            chosen = await _run(_select(title, step), lambda place: step.choices[place].value)
        problem = "" if isinstance(chosen, WizardMove) else step.problem(chosen)
        if isinstance(chosen, WizardMove) or not problem:
            return chosen
        say(problem)
        marked = chosen


async def ask_yes_no(question: str) -> bool:
    import questionary

    return await _run(questionary.confirm(sanitize(question), default=False, output=_stderr()), bool) is True


async def ask_text(question: str, default: str) -> str:
    answer = await _run(_text(question, default, lambda _text: ""), str)
    return "" if isinstance(answer, WizardMove) else answer.strip()


async def ask_secret(question: str) -> str:
    import questionary

    field = questionary.password(sanitize(question), validate=_checked(lambda _text: ""), output=_stderr())
    answer = await _run(field, str)
    return "" if isinstance(answer, WizardMove) else answer.strip()


async def _ask_pairs(step: Step, place: tuple[int, int], say: Say) -> Answer | WizardMove:
    """Ask for pairs until an empty line; ``-NAME`` removes one."""
    default = step.default if isinstance(step.default, tuple) else ()
    pairs: Pairs = tuple((each[0], each[1]) for each in default if isinstance(each, tuple))
    title = f"[{place[0]}/{place[1]}] {step.question} {step.remark}, empty to continue"
    if step.choices:
        say("secrets: " + ", ".join(each.value for each in step.choices))
    while True:
        if pairs:
            say("set: " + ", ".join(name for name, _value in pairs) + "  (-NAME removes one)")
        problem = step.problem(pairs)
        if problem:
            say(problem)
        line = await _run(_text(title, "", partial(_pair_problem, step, pairs)), str)
        if isinstance(line, WizardMove):
            return line
        if not line and not problem:
            return pairs
        pairs = _with_line(pairs, line)


def _pair_problem(step: Step, pairs: Pairs, answer: Answer) -> str:
    line = str(answer)
    if not line:
        return ""
    if line.startswith("-"):
        return "" if any(name == line[1:].strip() for name, _value in pairs) else f"{line[1:]} is not set"
    return step.problem(_with_line(pairs, line)) if read_pair(line) else "expected NAME=value"


def _with_line(pairs: Pairs, line: str) -> Pairs:
    """Return the pairs with ``NAME=value`` set, or with NAME removed for ``-NAME``."""
    pair = None if line.startswith("-") else read_pair(line)
    name = pair[0] if pair else line[1:].strip()
    kept = tuple(each for each in pairs if each[0] != name)
    return (*kept, pair) if pair else kept


def _select(title: str, step: Step) -> Any:
    """Return a single-choice list; its answer is the choice's index, as values may repeat or be empty.

    In a long list, which can be filtered, disabled choices are only marked: if nothing else passed the
    filter, questionary would search for a selectable choice forever.
    """
    import questionary

    is_long = len(step.choices) >= LONG_LIST
    choices = [_choice(each, place, blocked=not is_long) for place, each in enumerate(step.choices)]
    return questionary.select(
        sanitize(title),
        choices=choices,
        default=next(
            (
                shown
                for each, shown in zip(step.choices, choices, strict=True)
                if each.value == step.default and not each.disabled_reason
            ),
            None,
        ),
        instruction=FILTER_HELP if is_long else NO_HELP,
        use_search_filter=is_long,
        use_jk_keys=not is_long,
        output=_stderr(),
    )


def _checkbox(title: str, step: Step, marked: Answer) -> Any:
    import questionary

    names = marked if isinstance(marked, tuple) else ()
    return questionary.checkbox(
        sanitize(title),
        choices=[
            _choice(each, place, checked=each.value in names) for place, each in enumerate(step.choices)
        ],
        instruction=MARK_HELP,
        output=_stderr(),
    )


def _values(step: Step, places: Sequence[int]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(step.choices[place].value for place in places))


def _text(title: str, default: str, problem: Callable[[Answer], str]) -> Any:
    import questionary

    return questionary.text(
        sanitize(title),
        default=sanitize(default),
        validate=_checked(problem),
        validate_while_typing=False,
        output=_stderr(),
    )


def _checked(problem: Callable[[Answer], str]) -> Callable[[str], str | bool]:
    """Return a validator for questionary that rejects surrogates, which it passes on for invalid UTF-8."""

    def validate(text: str) -> str | bool:
        if _SURROGATES.search(text):
            return "not UTF-8; check the terminal's encoding and try again"
        return sanitize(problem(text)) or True

    return validate


def _choice(choice: Choice, place: int, *, checked: bool = False, blocked: bool = True) -> Any:
    import questionary

    reason = sanitize(choice.disabled_reason)
    warning = f"  ▲ {choice.warning}" if choice.warning else ""
    title = sanitize(choice.label + warning + (f"  {choice.hint}" if choice.hint else ""))
    if reason and not blocked:
        title, reason = f"- {title} ({reason})", ""
    return questionary.Choice(
        title=title,
        value=place,
        disabled=reason or None,
        checked=checked and not choice.disabled_reason,
    )


async def _run(question: Any, read: Callable[[Any], T]) -> T | WizardMove:
    """Ask and convert questionary's answer; adds the keys for going back and leaving."""
    from prompt_toolkit.key_binding import KeyBindings, merge_key_bindings
    from prompt_toolkit.keys import Keys

    keys = KeyBindings()

    @keys.add(Keys.BackTab, eager=True)
    def _back(event: Any) -> None:
        event.app.exit(result=WizardMove.BACK)

    @keys.add(Keys.Escape, eager=True)
    def _leave(event: Any) -> None:
        event.app.exit(result=WizardMove.LEAVE)

    application = question.application
    application.key_bindings = merge_key_bindings([application.key_bindings, keys])
    answer = await question.unsafe_ask_async()
    return answer if isinstance(answer, WizardMove) else read(answer)


def _stderr() -> Any:
    from prompt_toolkit.output import create_output

    return create_output(stdout=sys.stderr)
