"""The end of the deploy form: build the config, check it, and offer to deploy, save or change it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath

from api_client.definitions import (
    Checkpoint,
    CheckpointList,
    DeployCheckpointsConfig,
    LoRACheckpoint,
    LoRADetails,
)
from api_client.deployment import (
    ENGINE,
    VLLM,
    DeployAnswers,
    build_config,
    engine_configs,
    equivalent_command,
    render_python,
    validate,
)
from api_client.errors import ConfigurationError
from api_client.submission.findings import Finding, most_severe_first
from tui.forms.draft import DeployDraft, config_ranks, parse_gpu
from tui.forms.question import Option, Question, option_problem, pairs_of
from tui.forms.questions import price_an_hour

REVIEW = "review"
DEPLOY = "deploy"
DRY_RUN = "dry-run"
SAVE = "save"
SAVED_FORMS = {SAVE: "python", f"{SAVE} {ENGINE}": ENGINE, f"{SAVE} {VLLM}": VLLM}
"""Actions that save a form of the config to a file."""
SHOW = "show"
LEAVE = "leave"
ENGINES = {
    ENGINE: ("Save an Engine-Builder config", "TensorRT-LLM, for truss push"),
    VLLM: ("Save a Truss config with vLLM", "to change as you like, for truss push"),
}
CHANGE = "change:"
"""Prefix of an action that changes an answer; the question's id follows."""


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
    """Return the review. Raises ValueError while answers are missing, and ConfigurationError."""
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
    if len(draft.job_ids) == 1:  # options name only one
        forms["command"] = equivalent_command(_deploy_answers(draft), draft.facts.command_options)
    return forms | _engine_configs(draft)


def _engine_configs(draft: DeployDraft) -> dict[str, str]:
    gpu = parse_gpu(draft.gpu or "")
    if draft.job is None or gpu is None or len(draft.job_ids) != 1 or len(draft.chosen) != 1:
        return {}
    return engine_configs(
        draft.job, draft.chosen[0], model_name=draft.model_name, gpu_type=gpu[0], gpu_count=gpu[1]
    )


def save_command(action: str, path: PurePath, deploys_python: str) -> str:
    """Return the command that deploys what an action saved; a config of a Truss by its folder."""
    return deploys_python if action == SAVE else shlex.join(("truss", "push", str(path.parent)))


def _deploy_answers(draft: DeployDraft) -> DeployAnswers:
    gpu = parse_gpu(draft.gpu or "")
    if gpu is None:
        raise ValueError("choose GPUs first")
    return DeployAnswers(
        project_id=draft.job.project_id if draft.job else "",
        job_id=draft.answers.job_id or "",
        checkpoint_names=tuple(checkpoint.checkpoint_id for checkpoint in draft.chosen),
        base_model=draft.base_model or None,
        lora_rank=draft.lora_rank if draft.is_lora and isinstance(draft.lora_rank, int) else None,
        model_name=draft.model_name,
        gpu_type=gpu[0],
        gpu_count=gpu[1],
        hf_secret=draft.hf_secret or None,
        environment=draft.environment,
        secrets=draft.secrets,
    )


def deploy_config(draft: DeployDraft) -> DeployCheckpointsConfig:
    """Build the config from the answers, keeping fields of a config file that no question covers.

    Raises ValueError while answers are missing, and ConfigurationError if they make no valid config.
    """
    answers, details = _deploy_answers(draft), draft.details
    if draft.keeps_config_checkpoints:
        answers = replace(answers, checkpoint_names=())  # the file's may belong to several jobs
    built = build_config(answers, draft.chosen)
    new = built.checkpoint_details or CheckpointList()
    if draft.config is None:
        return built
    if not draft.serves_loops:
        checkpoints = [_with_rank(checkpoint, draft) for checkpoint in details.checkpoints]
        checkpoints = checkpoints if draft.keeps_config_checkpoints else new.checkpoints
        update = {"base_model_id": new.base_model_id, "checkpoints": checkpoints}
        details = details.model_copy(update=update)
    return built.model_copy(update={"checkpoint_details": details, "compute": _compute(draft.config, built)})


def _with_rank(checkpoint: Checkpoint, draft: DeployDraft) -> Checkpoint:
    """Return a checkpoint of the config file, with the rank if it was changed."""
    is_changed = draft.lora_rank != max(config_ranks(draft.details), default=None)
    if not isinstance(checkpoint, LoRACheckpoint) or not isinstance(draft.lora_rank, int) or not is_changed:
        return checkpoint
    return checkpoint.model_copy(update={"lora_details": LoRADetails(rank=draft.lora_rank)})


def _compute(config: DeployCheckpointsConfig, built: DeployCheckpointsConfig) -> object:
    if config.compute is None or built.compute is None:
        return built.compute
    return config.compute.model_copy(update={"accelerator": built.compute.accelerator})


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


def review_question(draft: DeployDraft, asked: tuple[Question, ...]) -> Question:
    """Ask for the action: deploy, dry run, save, show, change an answer or leave. There is no default."""
    options = _actions(draft, asked)
    return Question(
        id=REVIEW,
        title="Review",
        text="What next?",
        kind="review",
        flag="--yes",
        check=lambda answer: option_problem(options, answer, "action"),
        options=options,
    )


def _actions(draft: DeployDraft, asked: tuple[Question, ...]) -> tuple[Option, ...]:
    try:
        checked = findings(draft, deploy_config(draft))
    except (ValueError, ConfigurationError) as error:
        reason = str(error)
    else:
        reason = next((finding.problem for finding in checked if finding.severity == "error"), "")
    return (
        Option(DEPLOY, "Deploy", "asks to confirm", reason),
        Option(DRY_RUN, "Dry run", "shows the Truss config only", reason),
        Option(SAVE, "Save as a Python file", "for either CLI's --config"),
        *(Option(f"{SAVE} {name}", *ENGINES[name]) for name in _engine_configs(draft)),
        Option(SHOW, "Show as Python, JSON and command line"),
        *(
            Option(f"{CHANGE}{question.id}", question.title, _described(draft, question))
            for question in asked
            if not (question.id == "job_id" and question.id in draft.given)
        ),
        Option(LEAVE, "Leave"),
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
        return _gpu_text(draft, str(answer))
    names = answer if isinstance(answer, tuple) else (answer,)
    return ", ".join(str(name) for name in names if name not in (None, "")) or "none"


def _gpu_text(draft: DeployDraft, gpu: str) -> str:
    instance = draft.offers.get(gpu)
    if instance is None:
        return gpu
    # Instance type names usually start with the answer: "H100:4 104x936".
    name = instance.name if instance.name.split(" ")[0] == gpu else f"{gpu} · {instance.name}"
    return " · ".join(filter(None, (name, price_an_hour(instance))))
