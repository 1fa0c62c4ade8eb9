"""The deploy form: a draft, the way through its questions, and how options and files fill it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from api_client.definitions import CheckpointList, DeployCheckpointsConfig
from tui.forms.draft import HF_VARIABLE, NO_SECRET, Answers, DeployDraft, Facts, config_ranks
from tui.forms.question import Answer, Question, read_number
from tui.forms.questions import checkpoints_refusal, questions
from tui.forms.review import REVIEW, Review, review, review_question

ALL_QUESTIONS = frozenset(field.name for field in fields(Answers))
DERIVED = ("base_model", "lora_rank", "model_name")
"""Questions whose accepted proposal keeps following the checkpoints."""


@dataclass(frozen=True)
class DeployForm(DeployDraft):
    """A deploy form: what is answered, and which question is shown.

    While ``needs_checkpoints`` is true, add the checkpoints to its facts first.
    """

    confirmed: frozenset[str] = frozenset()
    """The questions that the user has answered."""
    at: str | None = None
    """The question that the user went to; None: the first open one."""
    asks: frozenset[str] = frozenset()
    """The questions that are asked even if their proposals are sound."""

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        applicable = questions(self)
        return (*applicable, review_question(self, applicable))

    @cached_property
    def review(self) -> Review:
        """The review. Raises ValueError while answers are missing."""
        return review(self, self.questions[:-1])

    @cached_property
    def first_open(self) -> str:
        return next(
            (question.id for question in self.questions[:-1] if not self._is_settled(question)), REVIEW
        )

    def _is_settled(self, question: Question) -> bool:
        is_decided = question.id in self.confirmed | self.given
        skips = question.id not in self.asks and not question.is_open
        return (is_decided or skips) and not question.problem(question.default)

    @property
    def is_complete(self) -> bool:
        """True if no question is open: the review can be shown."""
        return self.first_open == REVIEW

    @property
    def current(self) -> str:
        return self.at or self.first_open

    @property
    def question(self) -> Question:
        """The question to show."""
        return self.questions[self.place[0] - 1]

    @property
    def place(self) -> tuple[int, int]:
        """Number of the question and the total: ``(3, 10)`` is the third of ten."""
        ids = [question.id for question in self.questions]
        return (ids.index(self.current) + 1 if self.current in ids else len(ids), len(ids))

    def is_done(self, question: Question) -> bool:
        """Return True if the question needs no further thought, and is not the one that is shown."""
        if question.id in (self.current, REVIEW):
            return False
        ids = [other.id for other in self.questions]
        return ids.index(question.id) < ids.index(self.first_open) or (
            question.id in self.confirmed | self.given and self._is_settled(question)
        )

    def answered(self, answer: Answer) -> DeployForm:
        """Answer the question that is shown. Raises ValueError if the answer is invalid."""
        question = self.question
        problem = question.problem(answer)
        if problem:
            raise ValueError(problem)
        value = question.read(answer)
        changes: dict[str, Any] = {question.id: value}
        open_again = set()
        if question.id == "job_id" and value != self.answers.job_id:
            changes["checkpoint_names"] = ()
            open_again = {"checkpoint_names"}
        elif question.id in DERIVED and value == question.proposed:
            changes[question.id] = None
        return replace(
            self,
            answers=replace(self.answers, **changes),
            # An answer given beforehand that is changed becomes an ordinary one.
            given=self.given - open_again - {question.id},
            confirmed=(self.confirmed - open_again) | {question.id},
            at=None,
        )

    @property
    def can_go_back(self) -> bool:
        return self.back() is not self

    def back(self) -> DeployForm:
        """Move to the previous question; return this form if there is none.

        A job that was given is fixed, and so are other given answers to questions that are asked anyway.
        """

        def is_fixed(question: Question) -> bool:
            is_kept = question.id in self.asks and not question.problem(question.answer)
            return question.id in self.given and (is_kept or question.id == "job_id")

        before = [question.id for question in self.questions[: self.place[0] - 1] if not is_fixed(question)]
        return replace(self, at=before[-1]) if before else self


@dataclass(frozen=True, slots=True)
class MissingAnswer:
    """A question without a valid answer; ``flag`` answers it, ``problem`` is empty if no answer was given."""

    flag: str
    problem: str = ""


def filled_form(options: Answers, config: DeployCheckpointsConfig | None, now: datetime) -> DeployForm:
    """Return a form with the answers of options and a config file, unchecked; options override the file.

    The options are as typed; those not given are None or empty.
    """
    values = _of_config(config) if config else {}
    typed = {name: value for name, value in asdict(options).items() if value not in (None, ())}
    taken = {name for pairs in ("environment", "secrets") for name, _value in typed.get(pairs, ())}
    for pairs in ("environment", "secrets") if taken else ():
        in_file = tuple(pair for pair in values.get(pairs, ()) if pair[0] not in taken)
        typed[pairs] = (*in_file, *typed.get(pairs, ()))
    values |= typed
    if options.lora_rank is not None:
        values["lora_rank"] = read_number(str(options.lora_rank))
    return DeployForm(Facts(now), Answers(**values), given=frozenset(values), config=config)


def _of_config(config: DeployCheckpointsConfig) -> dict[str, Any]:
    details = config.checkpoint_details or CheckpointList()
    spec = config.compute.accelerator if config.compute else None
    values: dict[str, Any] = {
        "base_model": details.base_model_id,
        "lora_rank": max(config_ranks(details), default=None),
        "model_name": config.model_name or None,
        "gpu": f"{spec.accelerator.value}:{spec.count}" if spec and spec.accelerator and spec.count else None,
    }
    if details.checkpoints:
        values["job_id"] = details.checkpoints[0].training_job_id
        values["checkpoint_names"] = tuple(checkpoint.checkpoint_name for checkpoint in details.checkpoints)
    if config.runtime is not None:
        variables = config.runtime.environment_variables.items()
        secrets = {name: value.name for name, value in variables if not isinstance(value, str)}
        values["hf_secret"] = secrets.pop(HF_VARIABLE, NO_SECRET)
        values["secrets"] = tuple(secrets.items())
        values["environment"] = tuple((name, value) for name, value in variables if isinstance(value, str))
    return {name: value for name, value in values.items() if value is not None}


def conflict(options: Answers, config: DeployCheckpointsConfig | None) -> str:
    """Return why the options cannot be combined with this config; empty if they can."""
    details = (config and config.checkpoint_details) or CheckpointList()
    if details.loops_checkpoint_ids and (options.job_id or options.checkpoint_names):
        return "the config deploys Loops checkpoints: it can't be combined with --job-id or --checkpoint"
    jobs = {checkpoint.training_job_id for checkpoint in details.checkpoints}
    if options.job_id and jobs - {options.job_id} and not options.checkpoint_names:
        return f"the config's checkpoints belong to job {', '.join(sorted(jobs))}, not to {options.job_id}"
    return ""


def unanswered_questions(form: DeployForm) -> tuple[MissingAnswer, ...]:
    """Return the answers that are required and missing, for scripts.

    Once the job's checkpoints are known, this includes why none of them can be chosen.
    """
    required = {"model_name": MissingAnswer("--model-name"), "gpu": MissingAnswer("--gpu")}
    if not form.serves_loops:
        refusal = "" if form.needs_checkpoints or not form.answers.job_id else checkpoints_refusal(form)
        checkpoints = MissingAnswer("--checkpoint", refusal)
        required = {"job_id": MissingAnswer("--job-id"), "checkpoint_names": checkpoints, **required}
    return tuple(answer for name, answer in required.items() if name not in form.given)


def with_defaults(form: DeployForm) -> tuple[DeployForm, tuple[MissingAnswer, ...], tuple[str, ...]]:
    """Check the given answers and take the rest from the checkpoints, without asking.

    Returns the form, all missing or invalid answers, and remarks on the derived values. A token, variables
    and secrets are used only if given.
    """
    remarks = []
    if "base_model" not in form.given and form.base_model:
        remarks.append(f"base model {form.base_model}, from the checkpoint")
    if "lora_rank" not in form.given and form.is_lora and form.lora_rank is not None:
        remarks.append(f"LoRA rank {form.lora_rank}: {form.rank_advice.explanation}")
    if form.answers.hf_secret is None:
        form = replace(form, answers=replace(form.answers, hf_secret=NO_SECRET))
    missing = tuple(
        MissingAnswer(question.flag, question.objection)
        for question in form.questions[:-1]
        if question.problem(question.default)
    )
    settled = frozenset(question.id for question in form.questions[:-1])
    return replace(form, given=form.given | settled), missing, tuple(remarks)
