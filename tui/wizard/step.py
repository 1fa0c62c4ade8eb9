"""A question of the wizard as data: any UI that can show choices and read an answer can ask it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, cast

from tui.text.names import listed
from tui.wizard.state import Pairs, WizardState

StepKind = Literal["choice", "choices", "text", "number", "pairs", "review"]

Answer = str | int | tuple[str, ...] | Pairs | None
"""An answer by kind: the chosen value, the chosen values, text, number, or name and value pairs."""

WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)
NAMED_AT_MOST = 12
LONGEST_NUMBER = 18
"""Maximum number of digits: longer numbers are never valid, and Python refuses to parse very long ones."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice. ``label`` and ``hint`` may contain server text: sanitize them before showing.

    ``disabled_reason`` explains why it is shown but cannot be chosen; empty if it can. ``warning`` is a
    word or two against choosing it.
    """

    value: str
    label: str
    hint: str = ""
    disabled_reason: str = ""
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """A question.

    ``remark`` is a sentence to show with the question; ``refusal`` explains why no answer is possible.
    ``flag`` is the command-line option that answers it. ``must_ask`` is True if a person must see the
    question even though there is a proposal. ``put`` stores the answer, by default in the field
    of ``Answers`` that has the step's id.
    """

    state: WizardState
    id: str
    title: str
    question: str
    kind: StepKind
    flag: str
    check: Callable[[Answer], str]
    proposed: Answer = None
    choices: tuple[Choice, ...] = ()
    remark: str = ""
    refusal: str = ""
    must_ask: bool = False
    put: Callable[[WizardState, Answer], WizardState] | None = None

    @property
    def answer(self) -> Answer:
        """The present answer; None if there is none."""
        return cast(Answer, getattr(self.state.answers, self.id, None))

    @property
    def default(self) -> Answer:
        return self.proposed if self.answer in (None, ()) else self.answer

    @property
    def is_given(self) -> bool:
        """True if the question was answered beforehand; then it is not asked."""
        return self.id in self.state.given

    def problem(self, answer: Answer) -> str:
        """Return why the answer is invalid, as a sentence; empty if it is valid. Numbers may be text."""
        return self.refusal or self.check(self._read(answer))

    def apply(self, state: WizardState, answer: Answer) -> WizardState:
        """Return the state with this answer. Raises ValueError if the answer is invalid."""
        problem = self.problem(answer)
        if problem:
            raise ValueError(problem)
        value = self._read(answer)
        if self.put is not None:
            return self.put(state, value)
        return replace(state, answers=replace(state.answers, **{self.id: value}))  # type: ignore[arg-type]

    @property
    def is_answered(self) -> bool:
        return not self.problem(self.answer)

    @property
    def objection(self) -> str:
        """The reason the present answer is invalid; empty if it is valid or missing."""
        return self.refusal or ("" if self.answer in (None, "", ()) else self.problem(self.answer))

    @property
    def proposal(self) -> Answer:
        """The default without values that cannot be chosen: the values a list marks or highlights."""
        if self.kind not in ("choice", "choices"):
            return self.default
        possible = [choice.value for choice in self.choices if not choice.disabled_reason]
        if isinstance(self.default, tuple):
            return tuple(str(value) for value in self.default if value in possible)
        return self.default if self.default in possible else None

    @property
    def is_open(self) -> bool:
        """True if a person must answer: the answer is invalid, or the proposal invalid or warned of."""
        proposal = self.proposal
        chosen = proposal if isinstance(proposal, tuple) else (proposal,)
        is_warned = any(choice.warning and choice.value in chosen for choice in self.choices)
        return self.must_ask or is_warned or bool(self.objection or self.problem(proposal))

    def _read(self, answer: Answer) -> Answer:
        if isinstance(answer, str):
            text = answer.strip()
            if self.kind == "number" and WHOLE_NUMBER.fullmatch(text) and len(text) <= LONGEST_NUMBER:
                return int(text)
            return text if self.kind == "text" else answer
        return answer


def choice_problem(choices: tuple[Choice, ...], value: object, what: str) -> str:
    """Return why ``value`` cannot be chosen: unknown or disabled; empty if it can."""
    for choice in choices:
        if choice.value == value:
            return f"{value}: {choice.disabled_reason}" if choice.disabled_reason else ""
    if value is None or value == "":
        return f"choose {what}"
    known = listed([choice.value for choice in choices if not choice.disabled_reason], NAMED_AT_MOST)
    return f"no {what_of(what)} {value!r}" + (f"; use {known}" if known else "")


def what_of(what: str) -> str:
    """Remove the article: ``a checkpoint`` → ``checkpoint``."""
    return what.removeprefix("an ").removeprefix("a ")
