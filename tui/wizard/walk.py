"""The way through the steps: forth, back, and from the review to any of them; answers are never lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from api_client.models import Checkpoint, CheckpointFile
from tui.wizard.state import JOB, REVIEW, WizardState
from tui.wizard.step import Answer, Step
from tui.wizard.steps import steps


@dataclass(frozen=True, slots=True)
class Walk:
    """Where somebody is. ``visited`` are the steps that were answered on the way; ``current`` is shown.

    While ``state.needs_checkpoints`` they are to be fetched and handed to ``with_checkpoints`` first.
    """

    state: WizardState
    visited: frozenset[str] = frozenset()
    current: str = JOB

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps as they are now."""
        return steps(self.state)

    @property
    def step(self) -> Step:
        """The present step."""
        return next((each for each in self.steps if each.id == self.current), self.steps[-1])

    @property
    def place(self) -> tuple[int, int]:
        """``(3, 10)``: the third of ten steps."""
        ids = [each.id for each in self.steps]
        return (ids.index(self.current) + 1 if self.current in ids else len(ids), len(ids))

    @property
    def can_go_back(self) -> bool:
        """Whether there is a step before this one that can be asked again."""
        return self.back() is not self

    def started(self) -> Walk:
        """The same at the first step that is to be asked."""
        return self._at_first_open()

    def answered(self, answer: Answer) -> Walk:
        """The next step, this answer taken. Raises ValueError for one that has a problem."""
        step = self.step
        state = step.apply(self.state, answer)
        # What was given beforehand and is changed now is an answer like any other.
        given = state.given - {step.id}
        moved = replace(self, state=replace(state, given=given), visited=self.visited | {step.id})
        return moved._at_first_open()

    def back(self) -> Walk:
        """The step before this one; those that were given beforehand are passed over."""
        return self._back_over(lambda step: step.is_given and not step.problem(step.answer))

    def back_into_given(self) -> Walk:
        """The step before this one; of those given beforehand only the job is not asked for again."""
        return self._back_over(lambda step: step.is_given and step.id == JOB)

    def _back_over(self, passed: Callable[[Step], bool]) -> Walk:
        before: str | None = None
        for step in self.steps:
            if step.id == self.current:
                break
            if not passed(step):
                before = step.id
        return replace(self, current=before) if before is not None else self

    def at(self, step_id: str) -> Walk:
        """At that step, to change its answer."""
        return replace(self, current=step_id)

    def with_checkpoints(
        self, checkpoints: Sequence[Checkpoint], files: Sequence[CheckpointFile] | None
    ) -> Walk:
        """The checkpoints of the chosen job, and their files if they were told."""
        job_id = self.state.answers.job_id or ""
        facts = self.state.facts.with_checkpoints(job_id, checkpoints, files)
        moved = replace(self, state=replace(self.state, facts=facts))
        return moved._at_first_open()

    def _at_first_open(self) -> Walk:
        for step in self.steps:
            settled = step.id in self.visited or step.is_given
            if step.id == REVIEW or not settled or not step.is_answered:
                return replace(self, current=step.id)
        return replace(self, current=REVIEW)
