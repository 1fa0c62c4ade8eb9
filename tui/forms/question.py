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

NAMED_AT_MOST = 12


@dataclass(frozen=True, slots=True)
class Option:
    """An option. Only ``value`` is not sanitized: the others are made safe to show here."""

    value: str
    label: str
    facts: tuple[str, ...] = ()
    """What distinguishes it, in the same order in all options of a question; may be empty."""
    disabled_reason: str = ""
    """Why it is shown but cannot be chosen; empty if it can."""
    warning: str = ""
    """A word or two against choosing it."""

    def __post_init__(self) -> None:
        _sanitize(self, "label", "disabled_reason", "warning")
        object.__setattr__(self, "facts", tuple(map(sanitize_multiline, self.facts)))

    @property
    def hint(self) -> str:
        return " · ".join(filter(None, self.facts))


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a form. Its texts and problems are safe to show."""

    id: str
    title: str
    text: str
    kind: QuestionKind
    flag: str
    """The command-line option that answers it."""
    check: Callable[[Answer], str]
    """Return why a value is invalid; empty if it is valid."""
    answer: Answer = None
    """The present answer; None if there is none."""
    proposed: Answer = None
    options: tuple[Option, ...] = ()
    remark: str = ""
    """A sentence to show with the question."""
    refusal: str = ""
    """Why no answer is possible."""
    must_ask: bool = False
    """True if a person must see the question even though there is a proposal."""

    def __post_init__(self) -> None:
        _sanitize(self, "text", "remark", "refusal")

    @property
    def default(self) -> Answer:
        return self.proposed if self.answer in (None, ()) else self.answer

    @property
    def default_text(self) -> str:
        """The default as a user would type it, a pair on each line."""
        if self.kind == "pairs":
            return "\n".join(f"{name}={value}" for name, value in pairs_of(self.default))
        if self.default is None or isinstance(self.default, tuple):
            return ""
        return sanitize_whole(str(self.default))

    @property
    def proposal(self) -> Answer:
        """The default without values that cannot be chosen: the values a list marks or highlights."""
        if self.kind not in ("choice", "choices"):
            return self.default
        possible = possible_values(self.options)
        if isinstance(self.default, tuple):
            return tuple(str(value) for value in self.default if value in possible)
        return self.default if self.default in possible else None

    @property
    def objection(self) -> str:
        """The reason the present answer is invalid; empty if it is valid or missing."""
        return self.refusal or ("" if self.answer in (None, "", ()) else self.problem(self.answer))

    @property
    def is_open(self) -> bool:
        """True if a person must answer: the answer is invalid, or the proposal invalid or warned of."""
        proposal = self.proposal
        chosen = proposal if isinstance(proposal, tuple) else (proposal,)
        is_warned = any(option.warning and option.value in chosen for option in self.options)
        return self.must_ask or is_warned or bool(self.objection or self.problem(proposal))

    def problem(self, answer: Answer) -> str:
        """Return why the answer is invalid, as a sentence; empty if it is valid. Numbers may be text."""
        return self.refusal or sanitize(self.check(self.read(answer)))

    def read(self, answer: Answer) -> Answer:
        """Convert what was typed to a value; if a line is not a pair, return that line."""
        if not isinstance(answer, str):
            return answer
        if self.kind == "number":
            return read_number(answer)
        if self.kind == "pairs":
            return read_pairs([line.strip() for line in answer.splitlines() if line.strip()])
        return answer.strip() if self.kind == "text" else answer


def _sanitize(texts: Option | Question, *names: str) -> None:
    for name in names:
        object.__setattr__(texts, name, sanitize_multiline(getattr(texts, name)))


def read_number(text: str) -> int | str:
    """Return a whole number as one, other text as it is, so that a check refuses it."""
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text.strip(), re.ASCII) else text


def read_pair(text: str) -> tuple[str, str] | None:
    """Split ``NAME=value`` at the first ``=``; None if there is none."""
    name, equals, value = text.partition("=")
    return (name.strip(), value) if equals else None


def read_pairs(texts: Sequence[str]) -> Pairs | str:
    """Return the pairs that these texts are, or the first text that is not a pair."""
    unreadable = next((text for text in texts if read_pair(text) is None), None)
    return unreadable or tuple(filter(None, map(read_pair, texts)))


def pairs_of(answer: Answer) -> Pairs:
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
    usable = listed(possible_values(options), NAMED_AT_MOST)
    return f"no {noun} {value!r}" + (f"; use {usable}" if usable else "")
