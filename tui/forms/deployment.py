"""The deploy form: a draft, the way through its questions, and how options and files fill it.

At its end, the review: the config is built and checked, to deploy, save or change it.
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
from tui.forms.question import Answer, Option, Question, option_problem, pairs_of, read_number
from tui.forms.questions import price_an_hour, questions

REVIEW = "review"
DEPLOY = "deploy"
DRY_RUN = "dry-run"
SHOW = "show"
LEAVE = "leave"
SAVE = "save:"
"""Prefix of an action that saves the config to a file; one of ``Review.forms`` follows."""
CHANGE = "change:"
"""Prefix of an action that changes an answer; the question's id follows."""
SAVES = {
    "python": ("Save as a Python file", "for either CLI's --config"),
    ENGINE: ("Save an Engine-Builder config", "TensorRT-LLM, for truss push"),
    VLLM: ("Save a Truss config with vLLM", "to change as you like, for truss push"),
}


@dataclass(frozen=True, slots=True)
class Review:
    """A deployment that is about to be made."""

    config: DeployCheckpointsConfig
    answers: Mapping[str, str]
    """Each question's answer as text, by the question's title."""
    findings: tuple[Finding, ...]
    """Problems and remarks about the config, errors first."""
    forms: Mapping[str, str]
    """The config as a file for the official SDK (``python``), as ``json`` and, if options can name all
    of its checkpoints, as a ``command`` line. For one full checkpoint also the configs of an ``engine`` and
    of a Truss with ``vllm``."""

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that prevent the deployment."""
        return tuple(finding for finding in self.findings if finding.severity == "error")


def review(draft: DeployDraft, asked: tuple[Question, ...]) -> Review:
    """Return the review of a draft without problems."""
    config = deploy_config(draft)
    return Review(
        config=config,
        answers={question.title: answer_text(draft, question) for question in asked},
        findings=findings(draft, config),
        forms=_forms(draft, config),
    )


def _forms(draft: DeployDraft, config: DeployCheckpointsConfig) -> dict[str, str]:
    forms = {
        "python": render_python(config),
        "json": json.dumps(config.model_dump(mode="json"), indent=2),
    }
    if draft.answers.job_id is not None:
        forms["command"] = equivalent_command(draft.complete, draft.facts.command_options)
    return forms | _engine_configs(draft)


def _engine_configs(draft: DeployDraft) -> dict[str, str]:
    if draft.job is None or draft.gpu is None or len(draft.chosen) != 1:
        return {}
    return engine_configs(draft.job, draft.chosen[0], model_name=draft.model_name, gpu=draft.gpu)


def deploy_config(draft: DeployDraft) -> DeployCheckpointsConfig:
    """Build the config from the answers, keeping fields of a config file that no question covers.

    Raises ConfigurationError if they make no valid config.
    """
    built = build_config(draft.complete, draft.chosen)
    if draft.config is None or built.checkpoint_details is None or built.compute is None:
        return built
    answers = {
        "base_model_id": built.checkpoint_details.base_model_id,
        "checkpoints": built.checkpoint_details.checkpoints,
    }
    compute = draft.config.compute or built.compute
    update = {
        "checkpoint_details": draft.details.model_copy(update=answers),
        "compute": compute.model_copy(update={"accelerator": built.compute.accelerator}),
    }
    return built.model_copy(update=update)


def findings(draft: DeployDraft, config: DeployCheckpointsConfig) -> tuple[Finding, ...]:
    """Return problems and remarks about the config, errors first."""
    facts = draft.facts
    checked = validate(
        config,
        facts.checkpoints,
        files=facts.files,
        instances=facts.instances,
        secret_names=facts.secret_names,
    )
    return most_severe_first((*checked, *_losses(draft), *_gated(draft)))


def _gated(draft: DeployDraft) -> Iterator[Finding]:
    if draft.gated_model and not draft.hf_secret:
        problem = f"{draft.gated_model} is gated: it can't be downloaded without a Hugging Face token"
        store = draft.facts.store_secret if draft.facts.secret_names == () else ""
        remedy = f"store one: {store}" if store else "choose a secret with a token"
        yield Finding("warning", "runtime.environment_variables", problem, remedy)


def _losses(draft: DeployDraft) -> Iterator[Finding]:
    field, judged = "checkpoint_details.checkpoints", draft.facts.judged
    best = next((candidate.name for candidate in judged.values() if candidate.is_best), "")
    for checkpoint in draft.chosen:
        facts = judged.get(checkpoint.checkpoint_id)
        if facts is not None and facts.fault is not None:
            problem = f"{facts.name!r} was {facts.fault.words(checkpoint.created_at)}"
            yield Finding("warning", field, problem, f"best: {best!r}" if best else "")
    if draft.chosen and draft.facts.unchecked_reason:
        yield Finding("info", field, f"checkpoints not checked: {draft.facts.unchecked_reason}")


def review_question(draft: DeployDraft, asked: tuple[Question, ...], refusal: str) -> Question:
    """Ask for the action: deploy, dry run, save, show, change an answer or leave. There is no default.

    ``refusal`` says why it cannot be deployed as it is.
    """
    options = (
        Option(DEPLOY, "Deploy", ("asks to confirm",), refusal),
        Option(DRY_RUN, "Dry run", ("shows the Truss config only",), refusal),
        *(
            Option(f"{SAVE}{name}", SAVES[name][0], SAVES[name][1:])
            for name in ("python", *_engine_configs(draft))
        ),
        Option(SHOW, "Show the config", ("as Python, JSON and command line",)),
        *(
            Option(f"{CHANGE}{question.id}", question.title, (_described(draft, question),))
            for question in asked
            if not (question.id == "job_id" and question.id in draft.given)
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


def _described(draft: DeployDraft, question: Question) -> str:
    """Return the answer, and what is known of a single checkpoint."""
    text = answer_text(draft, question)
    facts = draft.facts.judged.get(text) if question.id == "checkpoint_names" else None
    return f"{text} · {facts.marks}" if facts is not None and facts.marks else text


def answer_text(draft: DeployDraft, question: Question) -> str:
    """Return the answer as text; only the names of variables, because values may be tokens."""
    answer = question.default
    if question.kind == "pairs":
        answer = tuple(name for name, _value in pairs_of(answer))
    if question.id == "job_id" and draft.job is not None and draft.job.name:
        return f"{draft.job.name} ({draft.job.id})"
    if question.id == "gpu":
        instance = draft.offers.get(str(answer))
        return " · ".join(filter(None, (str(answer), price_an_hour(instance) if instance else "")))
    names = answer if isinstance(answer, tuple) else (answer,)
    return ", ".join(str(name) for name in names if name not in (None, "")) or "none"


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

    def is_changeable(self, question_id: str) -> bool:
        """Return False for a job that was given, and for given answers to questions that are asked anyway."""
        return question_id not in self.given or question_id not in self.asks | {"job_id"}

    @property
    def can_go_back(self) -> bool:
        return self.back() is not self

    def back(self) -> DeployForm:
        """Move to the previous question; return this form if there is none."""
        before = [
            question.id for question in self.asked[: self.place[0] - 1] if self.is_changeable(question.id)
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

    Returns the form, and remarks on the derived values. Variables and secrets are used only if given.
    """
    remarks = []
    if "base_model" not in form.given and form.base_model:
        remarks.append(f"base model {form.base_model}, from the checkpoint")
    if "lora_rank" not in form.given and form.is_lora and form.lora_rank is not None:
        remarks.append(f"LoRA rank {form.lora_rank}: {form.rank_advice.explanation}")
    if "hf_secret" not in form.given and form.hf_secret:
        remarks.append(f"Hugging Face token from the secret {form.hf_secret}; --hf-secret '' uses none")
    ids = frozenset(question.id for question in form.asked)
    return replace(form, given=form.given | ids), tuple(remarks)
