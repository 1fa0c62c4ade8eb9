"""Ask the deploy form at a terminal."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import replace

import click

from tui.commands.support.exit_codes import CommandFailed, ExitCode
from tui.commands.support.questions import FormMove, ask, ask_yes_no
from tui.forms.deployment import DeployForm
from tui.forms.question import Question
from tui.forms.review import CHANGE, LEAVE, REVIEW, Review
from tui.text.sanitize import sanitize


async def ask_form(
    form: DeployForm,
    read: Callable[[DeployForm], Awaitable[DeployForm]],
    present: Callable[[Review], None],
    decided: str,
) -> tuple[DeployForm, str]:
    """Ask the open questions; return the form, and the action that was chosen at the review.

    ``read`` adds the checkpoints of a newly chosen job, ``present`` shows the review. ``decided`` is the
    action at the review, if it is possible; otherwise it is asked for.

    Raises CommandFailed if the first question has no answer.
    """
    while True:
        if form.needs_checkpoints:
            form = await read(form)
            continue
        question = form.question
        if question.id == REVIEW:
            present(form.review)
            if decided and not question.problem(decided):
                return form, decided
        if question.refusal:
            if not form.can_go_back:
                raise CommandFailed(question.refusal, ExitCode.USAGE)
            remark(question.refusal)
        answer = FormMove.BACK if question.refusal else await ask(_spoken(question), form.place, remark)
        if answer is FormMove.LEAVE:
            if await ask_yes_no("Leave without deploying?"):
                return form, LEAVE
        elif answer is FormMove.BACK:
            form = form.back()
        elif question.id == REVIEW:
            return form, str(answer)
        elif not isinstance(answer, FormMove):
            form = form.answered(answer)


def remark(text: str) -> None:
    """Print a dimmed line between questions."""
    click.secho(f"  {sanitize(text)}", err=True, dim=not os.environ.get("NO_COLOR"))


def _spoken(question: Question) -> Question:
    """Return the question with each change of an answer named as an action."""
    options = (
        replace(option, label=f"Change {_inside_a_sentence(option.label)}")
        if option.value.startswith(CHANGE)
        else option
        for option in question.options
    )
    return replace(question, options=tuple(options)) if question.id == REVIEW else question


def _inside_a_sentence(title: str) -> str:
    """Lowercase a title unless it begins with a name such as ``GPU`` or ``LoRA``."""
    return title.lower() if title.split(maxsplit=1)[0][1:].islower() else title
