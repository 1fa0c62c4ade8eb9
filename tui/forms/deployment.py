"""The deploy form: a draft, the way through its questions, and how options and files fill it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from api_client.definitions import CheckpointList, DeployCheckpointsConfig, LoRACheckpoint
from api_client.deployment import HF_TOKEN, DeployAnswers
from tui.forms.draft import NO_SECRET, DeployDraft, Facts
from tui.forms.question import Answer, Question, read_number
from tui.forms.questions import questions
from tui.forms.review import REVIEW, Review, review, review_question

ALL_QUESTIONS = frozenset(field.name for field in fields(DeployAnswers))
DERIVED = ("base_model", "lora_rank", "model_name")
"""Questions whose accepted proposal keeps following the checkpoints."""
REQUIRED = ("job_id", "checkpoint_names", "model_name", "gpu")
"""Questions that a script must answer; the others have defaults."""


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
    def asked(self) -> tuple[Question, ...]:
        """The questions without the review."""
        return questions(self)

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        problems = [*self.problems.values()] or [finding.problem for finding in self.review.errors]
        return (*self.asked, review_question(self, self.asked, next(iter(problems), "")))

    @cached_property
    def problems(self) -> dict[str, str]:
        """Why answers are missing or invalid, by the flags of their questions."""
        problems = {question.flag: question.problem(question.default) for question in self.asked}
        return {flag: problem for flag, problem in problems.items() if problem}

    @property
    def missing(self) -> tuple[Question, ...]:
        """The questions that a script must answer and has not."""
        return tuple(
            question for question in self.asked if question.id in REQUIRED and question.id not in self.given
        )

    @cached_property
    def review(self) -> Review:
        """The review of a form without problems."""
        return review(self, self.asked)

    @cached_property
    def first_open(self) -> str:
        return next((question.id for question in self.asked if not self.is_settled(question)), REVIEW)

    def is_settled(self, question: Question) -> bool:
        """Return True if the question needs no further thought."""
        is_decided = question.id in self.confirmed | self.given
        skips = question.id not in self.asks and not question.is_open
        return (is_decided or skips) and question.flag not in self.problems

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
        ids = [*(question.id for question in self.asked), REVIEW]
        return (ids.index(self.current) + 1 if self.current in ids else len(ids), len(ids))

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
        before = [
            question.id
            for question in self.asked[: self.place[0] - 1]
            if question.id not in self.given or question.id not in self.asks | {"job_id"}
        ]
        return replace(self, at=before[-1]) if before else self


def filled_form(options: DeployAnswers, config: DeployCheckpointsConfig | None, now: datetime) -> DeployForm:
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
    return DeployForm(Facts(now), DeployAnswers(**values), given=frozenset(values), config=config)


def _of_config(config: DeployCheckpointsConfig) -> dict[str, Any]:
    details = config.checkpoint_details or CheckpointList()
    spec = config.compute.accelerator if config.compute else None
    adapters = [checkpoint for checkpoint in details.checkpoints if isinstance(checkpoint, LoRACheckpoint)]
    values: dict[str, Any] = {
        "base_model": details.base_model_id,
        "lora_rank": max((adapter.lora_details.rank for adapter in adapters), default=None),
        "model_name": config.model_name or None,
        "gpu": f"{spec.accelerator.value}:{spec.count}" if spec and spec.accelerator and spec.count else None,
    }
    if len({checkpoint.training_job_id for checkpoint in details.checkpoints}) == 1:
        values["job_id"] = details.checkpoints[0].training_job_id
        values["checkpoint_names"] = tuple(checkpoint.checkpoint_name for checkpoint in details.checkpoints)
    if config.runtime is not None:
        variables = config.runtime.environment_variables.items()
        secrets = {name: value.name for name, value in variables if not isinstance(value, str)}
        values["hf_secret"] = secrets.pop(HF_TOKEN, NO_SECRET)
        values["secrets"] = tuple(secrets.items())
        values["environment"] = tuple((name, value) for name, value in variables if isinstance(value, str))
    return {name: value for name, value in values.items() if value is not None}


def conflict(options: DeployAnswers, config: DeployCheckpointsConfig | None) -> str:
    """Return why the options cannot be combined with this config; empty if they can."""
    details = (config and config.checkpoint_details) or CheckpointList()
    if details.loops_checkpoint_ids and (options.job_id or options.checkpoint_names):
        return "the config deploys Loops checkpoints: it can't be combined with --job-id or --checkpoint"
    jobs = {checkpoint.training_job_id for checkpoint in details.checkpoints}
    if len(jobs) > 1 and options.checkpoint_names and not options.job_id:
        return "the config's checkpoints belong to several jobs: --checkpoint needs --job-id"
    if options.job_id and jobs - {options.job_id} and not options.checkpoint_names:
        return f"the config's checkpoints belong to job {', '.join(sorted(jobs))}, not to {options.job_id}"
    return ""


def with_defaults(form: DeployForm) -> tuple[DeployForm, tuple[str, ...]]:
    """Take the answers that are not given from the checkpoints, without asking.

    Returns the form, and remarks on the derived values. A token, variables and secrets are used only if
    given.
    """
    remarks = []
    if "base_model" not in form.given and form.base_model:
        remarks.append(f"base model {form.base_model}, from the checkpoint")
    if "lora_rank" not in form.given and form.is_lora and form.lora_rank is not None:
        remarks.append(f"LoRA rank {form.lora_rank}: {form.rank_advice.explanation}")
    answers = replace(form.answers, hf_secret=form.answers.hf_secret or NO_SECRET)
    ids = frozenset(question.id for question in form.asked)
    return replace(form, answers=answers, given=form.given | ids), tuple(remarks)
