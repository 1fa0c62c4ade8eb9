"""Answers from a config file or from options; options override the file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from api_client.definitions import DeployCheckpointsConfig
from tui.wizard.environment_steps import HF_VARIABLE
from tui.wizard.progress import questions
from tui.wizard.state import (
    BASE_MODEL,
    CHECKPOINTS,
    ENVIRONMENT,
    GPU,
    HF_SECRET,
    JOB,
    LORA_RANK,
    MODEL_NAME,
    NO_SECRET,
    SECRETS,
    Answers,
    Facts,
    Pairs,
    WizardState,
    advised_rank,
    config_ranks,
    inferred_base_model,
    is_lora,
)
from tui.wizard.step import Step


@dataclass(frozen=True, slots=True)
class Prefilled:
    """Options as typed; None or empty if not given."""

    job_id: str | None = None
    checkpoint_names: tuple[str, ...] = ()
    base_model: str | None = None
    lora_rank: str | None = None
    model_name: str | None = None
    gpu: str | None = None
    hf_secret: str | None = None
    environment: Pairs = ()
    secrets: Pairs = ()


@dataclass(frozen=True, slots=True)
class MissingAnswer:
    """A question without a valid answer; ``flag`` answers it, ``problem`` is empty if no answer was given."""

    flag: str
    title: str
    problem: str = ""


def initial_wizard_state(
    given: Prefilled, config: DeployCheckpointsConfig | None, now: datetime
) -> WizardState:
    """Return the initial state with the given answers, unchecked, before any request to the server."""
    values = _of_config(config)
    options: dict[str, object] = {
        JOB: given.job_id,
        CHECKPOINTS: given.checkpoint_names or None,
        BASE_MODEL: given.base_model,
        LORA_RANK: _number(given.lora_rank),
        MODEL_NAME: given.model_name,
        GPU: given.gpu,
        HF_SECRET: given.hf_secret,
    }
    values |= {step: value for step, value in options.items() if value is not None}
    if given.environment or given.secrets:
        taken = {name for name, _value in (*given.environment, *given.secrets)}
        for step, new in ((ENVIRONMENT, given.environment), (SECRETS, given.secrets)):
            old: Any = values.get(step, ())  # of the file, except what an option sets
            values[step] = (*(pair for pair in old if pair[0] not in taken), *new)
    fields: dict[str, Any] = {_FIELDS.get(step, step): value for step, value in values.items()}
    return WizardState(Facts(now), Answers(**fields), given=frozenset(values), config=config)


def conflict(given: Prefilled, config: DeployCheckpointsConfig | None) -> str:
    """Return why the options cannot be combined with this config; empty if they can."""
    details = config.checkpoint_details if config else None
    if details is None:
        return ""
    if details.loops_checkpoint_ids and (given.job_id or given.checkpoint_names):
        return "the config deploys Loops checkpoints: it can't be combined with --job-id or --checkpoint"
    jobs = {each.training_job_id for each in details.checkpoints}
    if given.job_id and jobs and jobs != {given.job_id} and not given.checkpoint_names:
        return f"the config's checkpoints belong to job {', '.join(sorted(jobs))}, not to {given.job_id}"
    return ""


def config_jobs(config: DeployCheckpointsConfig | None) -> tuple[str, ...]:
    details = config.checkpoint_details if config else None
    return tuple(dict.fromkeys(each.training_job_id for each in details.checkpoints)) if details else ()


def unanswered_questions(state: WizardState) -> tuple[MissingAnswer, ...]:
    """Return the answers that are required whatever the server reports and are missing, for scripts."""
    needed = [(MODEL_NAME, "--model-name", "Model name"), (GPU, "--gpu", "GPU")]
    if not state.serves_loops:
        needed = [(JOB, "--job-id", "Job"), (CHECKPOINTS, "--checkpoint", "Checkpoints"), *needed]
    return tuple(MissingAnswer(flag, title) for step, flag, title in needed if step not in state.given)


def resolve_defaults(state: WizardState) -> tuple[WizardState, tuple[MissingAnswer, ...], tuple[str, ...]]:
    """Check the given answers and derive the rest from the checkpoints, without asking.

    Returns the state, all missing or invalid answers, and remarks on the derived values. The base model
    and the rank come from the checkpoint; a token, variables and secrets are used only if given.
    """
    remarks = []
    answers = state.answers
    if BASE_MODEL not in state.given and not state.serves_loops:
        base_model = inferred_base_model(state)
        answers = replace(answers, base_model=base_model)
        if base_model:
            remarks.append(f"base model {base_model}, from the checkpoint")
    if LORA_RANK not in state.given and is_lora(state):
        advice = advised_rank(state)
        answers = replace(answers, lora_rank=advice.default)
        if advice.default is not None:
            remarks.append(f"LoRA rank {advice.default}: {advice.explanation}")
    answers = replace(
        answers,
        hf_secret=NO_SECRET if answers.hf_secret is None else answers.hf_secret,
        environment=answers.environment or (),
        secrets=answers.secrets or (),
    )
    state = replace(state, answers=answers)
    asked = questions(state)
    settled = replace(state, given=state.given | {step.id for step in asked})
    missing_answers = tuple(_missing_answer(step) for step in asked if not step.is_answered)
    return settled, missing_answers, tuple(remarks)


def _missing_answer(step: Step) -> MissingAnswer:
    return MissingAnswer(step.flag, step.title, step.objection)


_FIELDS = {JOB: "job_id", CHECKPOINTS: "checkpoint_names"}
"""Fields of ``Answers`` that are not named as their step."""


def _of_config(config: DeployCheckpointsConfig | None) -> dict[str, object]:
    """Return the answers of a config file by step."""
    values: dict[str, object] = {}
    if config is None:
        return values
    details = config.checkpoint_details
    if details is not None and details.checkpoints:
        values[JOB] = details.checkpoints[0].training_job_id
        values[CHECKPOINTS] = tuple(each.checkpoint_name for each in details.checkpoints)
        if ranks := config_ranks(config):
            values[LORA_RANK] = max(ranks)
    if details is not None and details.base_model_id is not None:
        values[BASE_MODEL] = details.base_model_id
    if config.model_name:
        values[MODEL_NAME] = config.model_name
    spec = config.compute.accelerator if config.compute else None
    if spec is not None and spec.accelerator is not None and spec.count > 0:
        values[GPU] = f"{spec.accelerator.value}:{spec.count}"
    if config.runtime is not None:
        variables = config.runtime.environment_variables
        secrets = {name: value.name for name, value in variables.items() if not isinstance(value, str)}
        values[HF_SECRET] = secrets.pop(HF_VARIABLE, NO_SECRET)
        values[ENVIRONMENT] = tuple(
            (name, value) for name, value in variables.items() if isinstance(value, str)
        )
        values[SECRETS] = tuple(secrets.items())
    return values


def _number(text: str | None) -> object:
    """Return a rank option as a number if possible, else as typed, so that the check rejects it."""
    if text is None:
        return None
    try:
        return int(text) if text.isascii() else text
    except ValueError:
        return text
