"""All questions in order, as they apply to a state."""

from __future__ import annotations

from tui.wizard.environment_steps import environment_step, gpu_step, hf_secret_step, secrets_step
from tui.wizard.model_steps import base_model_step, checkpoints_step, job_step, model_name_step, rank_step
from tui.wizard.review import review_step
from tui.wizard.state import WizardState, is_lora
from tui.wizard.step import Step


def questions(state: WizardState) -> tuple[Step, ...]:
    """Return the questions that apply to this state, without the review.

    The rank is asked only for adapters. Loops checkpoints need no questions because the config names
    them.
    """
    what: tuple[Step, ...] = ()
    if not state.serves_loops:
        what = (job_step(state), checkpoints_step(state), base_model_step(state))
        if is_lora(state):
            what = (*what, rank_step(state))
    return (
        *what,
        model_name_step(state),
        gpu_step(state),
        hf_secret_step(state),
        environment_step(state),
        secrets_step(state),
    )


def steps(state: WizardState) -> tuple[Step, ...]:
    asked = questions(state)
    return (*asked, review_step(state, asked))
