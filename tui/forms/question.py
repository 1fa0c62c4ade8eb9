"""A question of a form as data: any UI that can show options and read an answer can ask it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from api_client.deployment import Pairs
from api_client.words import listed
from tui.text.sanitize import sanitize, sanitize_multiline, sanitize_whole

QuestionKind = Literal["choice", "choices", "text", "number", "pairs", "review"]

Answer = str | int | tuple[str, ...] | Pairs | None
"""An answer by kind: the chosen value, the chosen values, text, number, or name and value pairs."""

MAX_LISTED_NAMES = 12
"""Number of values that an error message lists; it abbreviates longer lists."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a question. All texts are sanitized here, except ``value``, which is the answer."""

    value: str
    label: str
    facts: tuple[str, ...] = ()
    """Texts that help to choose, in the same order in all options of a question; each may be empty."""
    disabled_reason: str = ""
    """Why the option is listed but cannot be chosen; empty if it can."""
    warning: str = ""
    """A short reason against choosing the option; empty if there is none."""

    def __post_init__(self) -> None:
        _sanitize(self, "label", "disabled_reason", "warning")
        object.__setattr__(self, "facts", tuple(map(sanitize_multiline, self.facts)))

    @property
    def hint(self) -> str:
        return " · ".join(filter(None, self.facts))


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a form. Its texts, and the problems of answers to it, are sanitized."""

    id: str
    title: str
    text: str
    kind: QuestionKind
    flag: str
    """The command-line option that answers the question."""
    check: Callable[[Answer], str]
    """Returns why a value is invalid; empty if it is valid."""
    answer: Answer = None
    """The user's answer so far; None if there is none."""
    proposed: Answer = None
    """The value used if the user gives no answer; None if there is none."""
    options: tuple[Option, ...] = ()
    remark: str = ""
    """A sentence to show with the question."""
    refusal: str = ""
    """Why every answer is invalid; empty if the question can be answered."""
    must_ask: bool = False
    """True if a person must see the question even if the proposed value is valid."""

    def __post_init__(self) -> None:
        _sanitize(self, "text", "remark", "refusal")

    @property
    def default(self) -> Answer:
        """The answer, or else the proposed value."""
        return self.proposed if self.answer in (None, ()) else self.answer

    @property
    def default_text(self) -> str:
        """The default as a user would type it, with each NAME=value pair on a line of its own."""
        if self.kind == "pairs":
            return "\n".join(f"{name}={value}" for name, value in pairs_of(self.default))
        if self.default is None or isinstance(self.default, tuple):
            return ""
        return sanitize_whole(str(self.default))

    @property
    def proposal(self) -> Answer:
        """The default without values that cannot be chosen; a list of options marks or highlights them."""
        if self.kind not in ("choice", "choices"):
            return self.default
        possible_answers = possible_values(self.options)
        if isinstance(self.default, tuple):
            return tuple(str(value) for value in self.default if value in possible_answers)
        return self.default if self.default in possible_answers else None

    @property
    def objection(self) -> str:
        """Why the user's answer is invalid; empty if it is valid or missing."""
        return self.refusal or ("" if self.answer in (None, "", ()) else self.problem(self.answer))

    @property
    def is_open(self) -> bool:
        """True if a person must answer: answer or proposal are invalid, or the proposal has a warning."""
        proposal = self.proposal
        chosen_values = proposal if isinstance(proposal, tuple) else (proposal,)
        is_warned = any(option.warning and option.value in chosen_values for option in self.options)
        return self.must_ask or is_warned or bool(self.objection or self.problem(proposal))

    def problem(self, answer: Answer) -> str:
        """Return why an answer is invalid, as a sentence; empty if it is valid. Numbers may be text."""
        return self.refusal or sanitize(self.check(self.parse(answer)))

    def parse(self, answer: Answer) -> Answer:
        """Convert typed text to the kind of the question; return text that cannot be converted unchanged.

        If lines are to be NAME=value pairs, return only the first line that is not.
        """
        if not isinstance(answer, str):
            return answer
        if self.kind == "number":
            return parse_number(answer)
        if self.kind == "pairs":
            return parse_pairs([line.strip() for line in answer.splitlines() if line.strip()])
        return answer.strip() if self.kind == "text" else answer


def _sanitize(frozen: Option | Question, *field_names: str) -> None:
    for name in field_names:
        object.__setattr__(frozen, name, sanitize_multiline(getattr(frozen, name)))


def parse_number(text: str) -> int | str:
    """Parse an integer; return any other text unchanged, so that the question's check refuses it."""
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text.strip(), re.ASCII) else text


def parse_pair(text: str) -> tuple[str, str] | None:
    """Split ``NAME=value`` at the first ``=``; return None if there is no ``=``."""
    name, separator, value = text.partition("=")
    return (name.strip(), value) if separator else None


def parse_pairs(texts: Sequence[str]) -> Pairs | str:
    """Parse texts such as ``NAME=value`` into pairs; return the first text that is not a pair, if any."""
    unreadable = next((text for text in texts if parse_pair(text) is None), None)
    return unreadable or tuple(filter(None, map(parse_pair, texts)))


def pairs_of(answer: Answer) -> Pairs:
    """Return the pairs of an answer; empty if it has another kind."""
    return tuple(pair for pair in answer if isinstance(pair, tuple)) if isinstance(answer, tuple) else ()


def possible_values(options: Sequence[Option]) -> list[str]:
    return [option.value for option in options if not option.disabled_reason]


def option_problem(options: Sequence[Option], value: object, noun: str) -> str:
    """Return why ``value`` cannot be chosen: unknown or disabled; empty if it can."""
    for option in options:
        if option.value == value:
            return f"{value}: {option.disabled_reason}" if option.disabled_reason else ""
    if value in (None, ""):
        return f"choose {'an' if noun[0] in 'aeiou' else 'a'} {noun}"
    usable_values = listed(possible_values(options), MAX_LISTED_NAMES)
    return f"no {noun} {value!r}" + (f"; use {usable_values}" if usable_values else "")
