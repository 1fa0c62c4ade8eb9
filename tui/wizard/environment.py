"""The questions for the Hugging Face token, environment variables and secrets."""

from __future__ import annotations

import re
from dataclasses import replace

from tui.wizard.state import ENVIRONMENT, HF_SECRET, NO_SECRET, SECRETS, Pairs, WizardState
from tui.wizard.step import Answer, Choice, Step, listed

USUAL_HF_SECRET = "hf_access_token"
"""The name of the secret that official tools propose (API facts, 7)."""

HF_VARIABLE = "HF_TOKEN"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def hf_secret_step(state: WizardState) -> Step:
    """Which secret holds the token that opens gated base models."""
    names = state.facts.secret_names
    none = Choice(NO_SECRET, "no token", "for weights that anybody may download")
    choices = (*(Choice(name, name) for name in names), none) if names is not None else ()
    answer = state.answers.hf_secret
    return Step(
        id=HF_SECRET,
        title="HF token",
        question="Which secret holds the Hugging Face token?",
        kind="choice" if names is not None else "text",
        flag="--hf-secret",
        choices=choices,
        answer=answer,
        default=answer if answer is not None else _proposed(names),
        remark=f"It becomes the variable {HF_VARIABLE}."
        + ("" if names is not None else " The workspace's secrets could not be listed; may be empty."),
        check=lambda given: _secret_problem(names, given),
        put=lambda before, given: replace(before, answers=replace(before.answers, hf_secret=str(given))),
        is_given=HF_SECRET in state.given,
    )


def environment_step(state: WizardState) -> Step:
    """Variables in plain text."""
    return Step(
        id=ENVIRONMENT,
        title="Environment",
        question="Any environment variables?",
        kind="pairs",
        flag="--env",
        answer=state.answers.environment,
        default=state.answers.environment or (),
        remark="NAME=value",
        check=lambda given: _variables_problem(given, taken=_taken(state, state.answers.secrets)),
        put=lambda before, given: replace(before, answers=replace(before.answers, environment=_pairs(given))),
        is_given=ENVIRONMENT in state.given,
    )


def secrets_step(state: WizardState) -> Step:
    """Variables whose values are secrets of the workspace."""
    names = state.facts.secret_names
    return Step(
        id=SECRETS,
        title="Secrets",
        question="Any variables out of secrets?",
        kind="pairs",
        flag="--secret",
        choices=tuple(Choice(name, name) for name in names or ()),
        answer=state.answers.secrets,
        default=state.answers.secrets or (),
        remark="NAME=secret's name",
        check=lambda given: _secrets_problem(state, given),
        put=lambda before, given: replace(before, answers=replace(before.answers, secrets=_pairs(given))),
        is_given=SECRETS in state.given,
    )


def read_pair(text: str) -> tuple[str, str] | None:
    """``NAME=value`` parted at the first ``=``; None without one."""
    name, equals, value = text.partition("=")
    return (name.strip(), value) if equals else None


def _proposed(names: tuple[str, ...] | None) -> str:
    """The usual name where there is such a secret, else one that looks like it, else none."""
    known = names or ()
    if USUAL_HF_SECRET in known:
        return USUAL_HF_SECRET
    return next((name for name in known if name.lower() in ("hf_token", "huggingface_token")), NO_SECRET)


def _taken(state: WizardState, others: Pairs | None) -> set[str]:
    """Variables that another step sets."""
    hf = {HF_VARIABLE} if state.answers.hf_secret else set()
    return hf | {name for name, _value in others or ()}


def _pairs(answer: Answer) -> Pairs:
    if not isinstance(answer, tuple):
        return ()
    return tuple((each[0], each[1]) for each in answer if isinstance(each, tuple))


def _variables_problem(answer: Answer, *, taken: set[str]) -> str:
    if not isinstance(answer, tuple):
        return "give pairs of names and values, or none"
    seen: set[str] = set()
    for each in answer:
        if not isinstance(each, tuple):
            return f"{each!r} is not written as NAME=value"
        name, value = each
        if not _VARIABLE.fullmatch(name):
            return f"{name!r} is no name of a variable: letters, digits and _, no digit first"
        if "\0" in value:
            return f"the value of {name} has a NUL in it, which no variable can hold"
        if name in seen or name in taken:
            return f"{name} is set twice"
        seen.add(name)
    return ""


def _secrets_problem(state: WizardState, answer: Answer) -> str:
    problem = _variables_problem(answer, taken=_taken(state, state.answers.environment))
    if problem or not isinstance(answer, tuple):
        return problem
    for name, secret in _pairs(answer):
        if not secret:
            return f"name the secret for {name}"
        problem = _secret_problem(state.facts.secret_names, secret)
        if problem:
            return problem
    return ""


def _secret_problem(names: tuple[str, ...] | None, answer: Answer) -> str:
    if not isinstance(answer, str):
        return "choose a secret, or none"
    if answer == NO_SECRET or names is None or answer in names:
        return ""
    has = f"it has {listed(list(names))}" if names else "it has none"
    return f"the workspace has no secret {answer!r}; {has}"
