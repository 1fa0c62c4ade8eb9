"""All questions in order, as they apply to a state, and the position in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tui.wizard.environment_steps import environment_step, gpu_step, hf_secret_step, secrets_step
from tui.wizard.model_steps import base_model_step, checkpoints_step, job_step, model_name_step, rank_step
from tui.wizard.review import review_step
from tui.wizard.state import JOB, REVIEW, Answers, WizardState, is_lora
from tui.wizard.step import Answer, Step


def questions(state: WizardState) -> tuple[Step, ...]:
    """Return the questions that apply to this state, without the review.

    The rank is asked only for adapters. Loops checkpoints need no questions because the config names them.
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


@dataclass(frozen=True, slots=True)
class WizardProgress:
    """A position in the wizard. ``visited`` are the steps answered so far; ``current`` is shown.

    ``accepted`` are the visited steps whose proposals were accepted without asking.

    While ``state.needs_checkpoints`` is true, add the checkpoints to its facts first.
    """

    state: WizardState
    visited: frozenset[str] = frozenset()
    current: str = JOB
    accepted: frozenset[str] = frozenset()

    @property
    def steps(self) -> tuple[Step, ...]:
        return steps(self.state)

    @property
    def step(self) -> Step:
        return next((each for each in self.steps if each.id == self.current), self.steps[-1])

    @property
    def place(self) -> tuple[int, int]:
        """Number of the current step and the total: ``(3, 10)`` is the third of ten."""
        ids = [each.id for each in self.steps]
        return (ids.index(self.current) + 1 if self.current in ids else len(ids), len(ids))

    @property
    def can_go_back(self) -> bool:
        return self.back() is not self

    @property
    def is_complete(self) -> bool:
        """True if no question is open: the review can be shown."""
        return self.started().current == REVIEW

    def started(self) -> WizardProgress:
        """Move to the first open step."""
        for step in self.steps:
            settled = step.id in self.visited or step.is_given
            if step.id == REVIEW or not settled or not step.is_answered:
                return replace(self, current=step.id)
        return replace(self, current=REVIEW)

    def answered(self, answer: Answer) -> WizardProgress:
        """Apply the answer and move to the next step. Raises ValueError if the answer is invalid."""
        step = self.step
        state = step.apply(self.state, answer)
        # An answer given beforehand that is changed becomes an ordinary one.
        given = state.given - {step.id}
        moved = replace(
            self,
            state=replace(state, given=given),
            visited=self.visited | {step.id},
            accepted=self.accepted - {step.id},
        )
        return moved.started()

    def prefilled(self) -> WizardProgress:
        """Accept the proposals that need no decision, and move to the first open question."""
        empty = {step: getattr(Answers(), step) for step in self.accepted}
        state = replace(self.state, answers=replace(self.state.answers, **empty))
        wizard = replace(self, state=state, visited=self.visited - self.accepted, accepted=frozenset())
        wizard = wizard.started()
        while wizard.current != REVIEW and not wizard.state.needs_checkpoints and not wizard.step.is_open:
            accepted = wizard.accepted | {wizard.current}
            wizard = replace(wizard.answered(wizard.step.proposal), accepted=accepted)
        return wizard

    def back(self) -> WizardProgress:
        """Move to the previous step, skipping those answered beforehand."""
        return self._skip_back(lambda step: step.is_given and not step.problem(step.answer))

    def back_to_prefilled(self) -> WizardProgress:
        """Move to the previous step, including those answered beforehand except the job."""
        return self._skip_back(lambda step: step.is_given and step.id == JOB)

    def _skip_back(self, passed: Callable[[Step], bool]) -> WizardProgress:
        before: str | None = None
        for step in self.steps:
            if step.id == self.current:
                break
            if not passed(step):
                before = step.id
        return replace(self, current=before) if before is not None else self

    def at(self, step_id: str) -> WizardProgress:
        return replace(self, current=step_id)
