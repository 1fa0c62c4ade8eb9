"""Answers from a config file or from options; options override the file."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from api_client.definitions import DeployCheckpointsConfig
from tui.wizard.environment_steps import HF_VARIABLE, normal_gpu
from tui.wizard.model_steps import checkpoints_step
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
    WizardState,
    advised_rank,
    config_ranks,
    inferred_base_model,
    is_lora,
)


@dataclass(frozen=True, slots=True)
class MissingAnswer:
    """A question without a valid answer; ``flag`` answers it, ``problem`` is empty if no answer was given."""

    flag: str
    title: str
    problem: str = ""


def initial_wizard_state(
    given: Answers, config: DeployCheckpointsConfig | None, now: datetime
) -> WizardState:
    """Return the initial state with the answers of options and config, unchecked.

    The options are as typed; those not given are None or empty.
    """
    of_file = _of_config(config)
    values = of_file | {step: value for step, value in asdict(given).items() if value not in (None, ())}
    environment, secrets = given.environment or (), given.secrets or ()
    if environment or secrets:
        taken = {name for name, _value in (*environment, *secrets)}
        for step, new in ((ENVIRONMENT, environment), (SECRETS, secrets)):
            old = of_file.get(step, ())  # except what an option sets
            values[step] = (*(pair for pair in old if pair[0] not in taken), *new)
    if given.lora_rank is not None:
        values[LORA_RANK] = _number(given.lora_rank)
    if given.gpu is not None:
        values[GPU] = normal_gpu(given.gpu)
    return WizardState(Facts(now), Answers(**values), given=frozenset(values), config=config)


def conflict(given: Answers, config: DeployCheckpointsConfig | None) -> str:
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
    """Return the answers that are required and missing, for scripts.

    Once the job's checkpoints are known, this includes why none of them can be chosen.
    """
    needed = [(MODEL_NAME, "--model-name", "Model name", ""), (GPU, "--gpu", "GPU", "")]
    if not state.serves_loops:
        refusal = checkpoints_step(state).refusal
        checkpoints = (CHECKPOINTS, "--checkpoint", "Checkpoints", refusal)
        needed = [(JOB, "--job-id", "Job", ""), checkpoints, *needed]
    return tuple(MissingAnswer(*missing) for step, *missing in needed if step not in state.given)


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
    missing_answers = tuple(
        MissingAnswer(step.flag, step.title, step.objection) for step in asked if not step.is_answered
    )
    return settled, missing_answers, tuple(remarks)


def _of_config(config: DeployCheckpointsConfig | None) -> dict[str, Any]:
    values: dict[str, Any] = {}
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


def _number(typed: int | str) -> int | str:
    """Return a rank option as a number if possible, else as typed, so that the check rejects it."""
    try:
        return int(typed) if str(typed).isascii() else typed
    except ValueError:
        return typed
