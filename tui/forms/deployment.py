"""The deploy form: a draft, the order of its questions, and how command-line options and files fill it.

Its last question is the review: the config has been built and checked, and the user chooses whether to
deploy, save or change it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from api_client.definitions import CheckpointList, DeployCheckpointsConfig, LoRACheckpoint
from api_client.deployment import (
    ENGINE,
    HF_TOKEN,
    VLLM,
    DeployAnswers,
    build_config,
    engine_configs,
    equivalent_command,
    render_python,
    validate,
)
from api_client.submission.findings import Finding, most_severe_first
from tui.forms.draft import NO_SECRET, DeployDraft, Facts
from tui.forms.question import Answer, Option, Question, option_problem, pairs_of, parse_number
from tui.forms.questions import price_an_hour, questions

REVIEW = "review"
DEPLOY = "deploy"
DRY_RUN = "dry-run"
SHOW = "show"
LEAVE = "leave"
SAVE = "save:"
"""Prefix of the actions that save the config to a file; a key of ``Review.config_texts`` follows."""
CHANGE = "change:"
"""Prefix of the actions that change an answer, as in ``change:gpu`` (the id of a question)."""
SAVE_LABELS = {
    "python": ("Save as a Python file", "for either CLI's --config"),
    ENGINE: ("Save an Engine-Builder config", "TensorRT-LLM, for truss push"),
    VLLM: ("Save a Truss config with vLLM", "to change as you like, for truss push"),
}
"""Label and explanation of each action that saves, by format."""


@dataclass(frozen=True, slots=True)
class Review:
    """A complete deployment before it is sent: its config, the answers, and problems of the config."""

    config: DeployCheckpointsConfig
    answers: Mapping[str, str]
    """The answer to each question as text, by the title of the question."""
    findings: tuple[Finding, ...]
    """Problems and remarks about the config, errors first."""
    config_texts: Mapping[str, str]
    """The config as text by format: a file for the official SDK (``python``), ``json`` and, if options can
    name all of its checkpoints, a ``command`` line. A full checkpoint also has Truss configs for an
    ``engine`` of TensorRT-LLM and for ``vllm``."""

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that prevent the deployment."""
        return tuple(finding for finding in self.findings if finding.severity == "error")


def review(draft: DeployDraft, form_questions: tuple[Question, ...]) -> Review:
    """Return the review of a draft without problems."""
    config = deploy_config(draft)
    return Review(
        config=config,
        answers={question.title: answer_text(draft, question) for question in form_questions},
        findings=findings(draft, config),
        config_texts=_config_texts(draft, config),
    )


def _config_texts(draft: DeployDraft, config: DeployCheckpointsConfig) -> dict[str, str]:
    texts = {
        "python": render_python(config),
        "json": json.dumps(config.model_dump(mode="json"), indent=2),
    }
    if draft.answers.job_id is not None:
        texts["command"] = equivalent_command(draft.complete_answers, draft.facts.command_options)
    return texts | _engine_configs(draft)


def _engine_configs(draft: DeployDraft) -> dict[str, str]:
    if draft.job is None or draft.gpu is None or len(draft.chosen_checkpoints) != 1:
        return {}
    return engine_configs(draft.job, draft.chosen_checkpoints[0], model_name=draft.model_name, gpu=draft.gpu)


def deploy_config(draft: DeployDraft) -> DeployCheckpointsConfig:
    """Build the config from the answers; fields that no question covers are taken from the config file.

    Raises ConfigurationError if the answers do not make a valid config.
    """
    built_config = build_config(draft.complete_answers, draft.chosen_checkpoints)
    if draft.config is None or built_config.checkpoint_details is None or built_config.compute is None:
        return built_config
    answers = {
        "base_model_id": built_config.checkpoint_details.base_model_id,
        "checkpoints": built_config.checkpoint_details.checkpoints,
    }
    compute = draft.config.compute or built_config.compute
    changed_fields = {
        "checkpoint_details": draft.config_checkpoints.model_copy(update=answers),
        "compute": compute.model_copy(update={"accelerator": built_config.compute.accelerator}),
    }
    return built_config.model_copy(update=changed_fields)


def findings(draft: DeployDraft, config: DeployCheckpointsConfig) -> tuple[Finding, ...]:
    """Return problems and remarks about the config, errors first."""
    facts = draft.facts
    validation_findings = validate(
        config,
        facts.checkpoints,
        files=facts.files,
        instances=facts.instances,
        secret_names=facts.secret_names,
    )
    return most_severe_first((*validation_findings, *_loss_findings(draft), *_gated_model_findings(draft)))


def _gated_model_findings(draft: DeployDraft) -> Iterator[Finding]:
    if draft.gated_model and not draft.hf_secret:
        problem = f"{draft.gated_model} is gated: it can't be downloaded without a Hugging Face token"
        store_command = draft.facts.store_secret_command if draft.facts.secret_names == () else ""
        remedy = f"store one: {store_command}" if store_command else "choose a secret with a token"
        yield Finding("warning", "runtime.environment_variables", problem, remedy)


def _loss_findings(draft: DeployDraft) -> Iterator[Finding]:
    field, facts_by_name = "checkpoint_details.checkpoints", draft.facts.checkpoint_facts
    best_name = next((candidate.name for candidate in facts_by_name.values() if candidate.is_best), "")
    for checkpoint in draft.chosen_checkpoints:
        facts = facts_by_name.get(checkpoint.checkpoint_id)
        if facts is not None and facts.fault is not None:
            problem = f"{facts.name!r} was {facts.fault.words(checkpoint.created_at)}"
            yield Finding("warning", field, problem, f"best: {best_name!r}" if best_name else "")
    if draft.chosen_checkpoints and draft.facts.unchecked_reason:
        yield Finding("info", field, f"checkpoints not checked: {draft.facts.unchecked_reason}")


def review_question(draft: DeployDraft, form_questions: tuple[Question, ...], refusal: str) -> Question:
    """Ask for the action: deploy, dry run, save, show, change an answer or leave. There is no default.

    ``refusal`` is why the draft cannot be deployed; empty if it can.
    """
    options = (
        Option(DEPLOY, "Deploy", ("asks to confirm",), refusal),
        Option(DRY_RUN, "Dry run", ("shows the Truss config only",), refusal),
        *(
            Option(f"{SAVE}{name}", SAVE_LABELS[name][0], SAVE_LABELS[name][1:])
            for name in ("python", *_engine_configs(draft))
        ),
        Option(SHOW, "Show the config", ("as Python, JSON and command line",)),
        *(
            Option(f"{CHANGE}{question.id}", question.title, (_answer_with_marks(draft, question),))
            for question in form_questions
            if not (question.id == "job_id" and question.id in draft.given_fields)
        ),
        Option(LEAVE, "Leave"),
    )
    return Question(
        id=REVIEW,
        title="Review",
        text="What next?",
        kind="review",
        flag="--yes",
        check=lambda answer: option_problem(options, answer, "action"),
        options=options,
    )


def _answer_with_marks(draft: DeployDraft, question: Question) -> str:
    """Return the answer as text; after a single checkpoint, also its marks, such as "best"."""
    text = answer_text(draft, question)
    facts = draft.facts.checkpoint_facts.get(text) if question.id == "checkpoint_names" else None
    return f"{text} · {facts.marks}" if facts is not None and facts.marks else text


def answer_text(draft: DeployDraft, question: Question) -> str:
    """Return the answer as text; of variables only the names, because their values may be tokens."""
    answer = question.default
    if question.kind == "pairs":
        answer = tuple(name for name, _value in pairs_of(answer))
    if question.id == "job_id" and draft.job is not None and draft.job.name:
        return f"{draft.job.name} ({draft.job.id})"
    if question.id == "gpu":
        instance = draft.instances_by_gpu.get(str(answer))
        return " · ".join(filter(None, (str(answer), price_an_hour(instance) if instance else "")))
    names = answer if isinstance(answer, tuple) else (answer,)
    return ", ".join(str(name) for name in names if name not in (None, "")) or "none"


ALL_QUESTION_IDS = frozenset(field.name for field in fields(DeployAnswers))
DERIVED_QUESTION_IDS = ("base_model", "lora_rank", "model_name")
"""Questions with a proposal that depends on the checkpoints. An accepted proposal is not stored as an answer,
so it changes with them."""
REQUIRED_QUESTION_IDS = ("job_id", "checkpoint_names", "model_name", "gpu")
"""Ids of the questions that a script must answer by options; all other questions have defaults."""


@dataclass(frozen=True)
class DeployForm(DeployDraft):
    """A draft with the state of its questions: which are answered, and which is shown.

    While ``needs_checkpoints`` is True, fetch the checkpoints of the job and add them to ``facts`` before
    asking further questions.
    """

    confirmed_ids: frozenset[str] = frozenset()
    """Ids of the questions that the user has answered."""
    selected_id: str | None = None
    """Id of the question that the user went to; None shows the first open question."""
    always_asked: frozenset[str] = frozenset()
    """Ids of the questions that are asked even if their proposals are valid."""

    @cached_property
    def questions_before_review(self) -> tuple[Question, ...]:
        """The questions that apply, without the review."""
        return questions(self)

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        problems = [*self.problems.values()] or [finding.problem for finding in self.review.errors]
        return (
            *self.questions_before_review,
            review_question(self, self.questions_before_review, next(iter(problems), "")),
        )

    @cached_property
    def problems(self) -> dict[str, str]:
        """Why answers are missing or invalid, by the command-line option of their question."""
        problems = {
            question.flag: question.problem(question.default) for question in self.questions_before_review
        }
        return {flag: problem for flag, problem in problems.items() if problem}

    @property
    def missing(self) -> tuple[Question, ...]:
        """The required questions that neither options nor a file have answered."""
        return tuple(
            question
            for question in self.questions_before_review
            if question.id in REQUIRED_QUESTION_IDS and question.id not in self.given_fields
        )

    @cached_property
    def review(self) -> Review:
        """The review of a form without problems."""
        return review(self, self.questions_before_review)

    @cached_property
    def first_open(self) -> str:
        """Id of the first question that is not settled; the review if all are."""
        return next(
            (question.id for question in self.questions_before_review if not self.is_settled(question)),
            REVIEW,
        )

    def is_settled(self, question: Question) -> bool:
        """Return True if the question need not be asked: its answer or its proposal is good enough."""
        is_decided = question.id in self.confirmed_ids | self.given_fields
        may_skip = question.id not in self.always_asked and not question.is_open
        return (is_decided or may_skip) and question.flag not in self.problems

    @property
    def is_complete(self) -> bool:
        """True if no question is open: the review can be shown."""
        return self.first_open == REVIEW

    @property
    def current(self) -> str:
        return self.selected_id or self.first_open

    @property
    def question(self) -> Question:
        """The question to show."""
        return self.questions[self.position[0] - 1]

    @property
    def position(self) -> tuple[int, int]:
        """Number of the shown question and the total, review included: ``(3, 10)`` is the third of ten."""
        ids = [*(question.id for question in self.questions_before_review), REVIEW]
        return (ids.index(self.current) + 1 if self.current in ids else len(ids), len(ids))

    def answered(self, answer: Answer) -> DeployForm:
        """Return the form with the shown question answered. Raises ValueError if the answer is invalid."""
        question = self.question
        problem = question.problem(answer)
        if problem:
            raise ValueError(problem)
        value = question.parse(answer)
        changes: dict[str, Any] = {question.id: value}
        reopened_ids = set()
        if question.id == "job_id" and value != self.answers.job_id:
            changes["checkpoint_names"] = ()
            reopened_ids = {"checkpoint_names"}
        elif question.id in DERIVED_QUESTION_IDS and value == question.proposed:
            changes[question.id] = None
        return replace(
            self,
            answers=replace(self.answers, **changes),
            # Once the user changes a given answer, it is handled like any other answer.
            given_fields=self.given_fields - reopened_ids - {question.id},
            confirmed_ids=(self.confirmed_ids - reopened_ids) | {question.id},
            selected_id=None,
        )

    def is_changeable(self, question_id: str) -> bool:
        """Return False for a given job, and for given answers to questions in ``always_asked``."""
        return question_id not in self.given_fields or question_id not in self.always_asked | {"job_id"}

    @property
    def can_go_back(self) -> bool:
        return self.back() is not self

    def back(self) -> DeployForm:
        """Return the form at the previous changeable question; this form itself if there is none."""
        earlier_ids = [
            question.id
            for question in self.questions_before_review[: self.position[0] - 1]
            if self.is_changeable(question.id)
        ]
        return replace(self, selected_id=earlier_ids[-1]) if earlier_ids else self


def filled_form(options: DeployAnswers, config: DeployCheckpointsConfig | None, now: datetime) -> DeployForm:
    """Return a form with the answers of command-line options and of a config file; options override the file.

    The answers are not checked. Options that were not given are None or empty.
    """
    values = _answers_of_config(config) if config else {}
    typed = {name: value for name, value in asdict(options).items() if value not in (None, ())}
    overridden_names = {
        name for pairs_field in ("environment", "secrets") for name, _value in typed.get(pairs_field, ())
    }
    for pairs_field in ("environment", "secrets") if overridden_names else ():
        pairs_of_file = tuple(pair for pair in values.get(pairs_field, ()) if pair[0] not in overridden_names)
        typed[pairs_field] = (*pairs_of_file, *typed.get(pairs_field, ()))
    values |= typed
    if options.lora_rank is not None:
        values["lora_rank"] = parse_number(str(options.lora_rank))
    return DeployForm(Facts(now), DeployAnswers(**values), given_fields=frozenset(values), config=config)


def _answers_of_config(config: DeployCheckpointsConfig) -> dict[str, Any]:
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
    job_ids = {checkpoint.training_job_id for checkpoint in details.checkpoints}
    if len(job_ids) > 1 and options.checkpoint_names and not options.job_id:
        return "the config's checkpoints belong to several jobs: --checkpoint needs --job-id"
    if options.job_id and job_ids - {options.job_id} and not options.checkpoint_names:
        return f"the config's checkpoints belong to job {', '.join(sorted(job_ids))}, not to {options.job_id}"
    return ""


def with_defaults(form: DeployForm) -> tuple[DeployForm, tuple[str, ...]]:
    """Fill unanswered questions with their proposals, without asking; variables and secrets stay empty.

    Returns the form, and remarks on the values derived from the checkpoints.
    """
    remarks = []
    if "base_model" not in form.given_fields and form.base_model:
        remarks.append(f"base model {form.base_model}, from the checkpoint")
    if "lora_rank" not in form.given_fields and form.is_lora and form.lora_rank is not None:
        remarks.append(f"LoRA rank {form.lora_rank}: {form.rank_advice.explanation}")
    if "hf_secret" not in form.given_fields and form.hf_secret:
        remarks.append(f"Hugging Face token from the secret {form.hf_secret}; --hf-secret '' uses none")
    ids = frozenset(question.id for question in form.questions_before_review)
    return replace(form, given_fields=form.given_fields | ids), tuple(remarks)
