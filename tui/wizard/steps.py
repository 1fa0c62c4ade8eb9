"""All questions in their order, as they are for a state."""

from __future__ import annotations

from tui.wizard.environment_steps import environment_step, gpu_step, hf_secret_step, secrets_step
from tui.wizard.model_steps import base_model_step, checkpoints_step, job_step, model_name_step, rank_step
from tui.wizard.review import review_step
from tui.wizard.state import WizardState, is_lora
from tui.wizard.step import Step


def questions(state: WizardState) -> tuple[Step, ...]:
    """The questions that apply to this state, the review left out.

    The rank is asked once adapters are chosen; of Loops checkpoints nothing is asked, a config names them.
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
    """The questions and, last, the review."""
    asked = questions(state)
    return (*asked, review_step(state, asked))
