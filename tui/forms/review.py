"""The end of the deploy form: build the config, check it, and offer to deploy, save or change it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from api_client.definitions import DeployCheckpointsConfig
from api_client.deployment import (
    ENGINE,
    VLLM,
    build_config,
    engine_configs,
    equivalent_command,
    render_python,
    validate,
)
from api_client.submission.findings import Finding, most_severe_first
from tui.forms.draft import DeployDraft
from tui.forms.question import Option, Question, option_problem, pairs_of
from tui.forms.questions import price_an_hour

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
