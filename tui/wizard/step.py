"""One question of the wizard, complete: whoever can show choices and take an answer can ask it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tui.wizard.state import Pairs, WizardState

StepKind = Literal["choice", "choices", "text", "number", "pairs", "review"]

Answer = str | int | tuple[str, ...] | Pairs | None
"""By kind: the chosen value, the chosen values, the text, the number, name and value pairs."""

WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)
LONGEST_NUMBER = 18
"""Digits; more than that is no answer to anything, and Python refuses to read much longer ones."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Something to choose. ``label`` and ``hint`` may hold text of a server: show them inert.

    ``disabled_reason`` says why it is shown and yet cannot be chosen; empty when it can. ``warning`` says in
    a word or two what speaks against it.
    """

    value: str
    label: str
    hint: str = ""
    disabled_reason: str = ""
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """A question.

    ``default`` is the present answer, else what is proposed. ``remark`` is a sentence to show with the
    question, ``refusal`` says that there is no possible answer and why. ``flag`` is the option that answers
    it on a command line; ``is_given`` marks a question answered beforehand, which is not asked.
    """

    id: str
    title: str
    question: str
    kind: StepKind
    flag: str
    check: Callable[[Answer], str]
    put: Callable[[WizardState, Answer], WizardState]
    answer: Answer = None
    default: Answer = None
    choices: tuple[Choice, ...] = ()
    remark: str = ""
    refusal: str = ""
    is_given: bool = False

    def problem(self, answer: Answer) -> str:
        """Why this is no answer, as a sentence; empty when it is one. Numbers may come as typed."""
        return self.refusal or self.check(self._read(answer))

    def apply(self, state: WizardState, answer: Answer) -> WizardState:
        """The state with this answer. Raises ValueError for one that has a problem."""
        problem = self.problem(answer)
        if problem:
            raise ValueError(problem)
        return self.put(state, self._read(answer))

    @property
    def is_answered(self) -> bool:
        """Whether the present answer will do."""
        return not self.problem(self.answer)

    @property
    def objection(self) -> str:
        """Why the present answer is not accepted; empty if it is, or if there is none yet."""
        return self.refusal or ("" if self.answer in (None, "", ()) else self.problem(self.answer))

    @property
    def proposal(self) -> Answer:
        """The default without values that cannot be chosen: what a list marks or highlights."""
        if self.kind not in ("choice", "choices"):
            return self.default
        possible = [choice.value for choice in self.choices if not choice.disabled_reason]
        if isinstance(self.default, tuple):
            return tuple(str(value) for value in self.default if value in possible)
        return self.default if self.default in possible else None

    def _read(self, answer: Answer) -> Answer:
        if isinstance(answer, str):
            text = answer.strip()
            if self.kind == "number" and WHOLE_NUMBER.fullmatch(text) and len(text) <= LONGEST_NUMBER:
                return int(text)
            return text if self.kind == "text" else answer
        return answer


def choice_problem(choices: tuple[Choice, ...], value: object, what: str) -> str:
    """Why ``value`` cannot be chosen: not among the choices, or disabled; empty if it can."""
    for choice in choices:
        if choice.value == value:
            return f"{value}: {choice.disabled_reason}" if choice.disabled_reason else ""
    if value is None or value == "":
        return f"choose {what}"
    known = listed([choice.value for choice in choices if not choice.disabled_reason])
    return f"there is no {what_of(what)} {value!r}" + (f"; there is {known}" if known else "")


NAMED_AT_MOST = 12


def listed(names: list[str]) -> str:
    """``a, b and 7 more``."""
    more = len(names) - NAMED_AT_MOST
    return ", ".join(names[:NAMED_AT_MOST]) + (f" and {more} more" if more > 0 else "")


def what_of(what: str) -> str:
    """``a checkpoint`` → ``checkpoint``."""
    return what.removeprefix("an ").removeprefix("a ")
