"""What the answers make: a config, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator

from api_client.definitions import CheckpointList, DeployCheckpointsConfig
from api_client.deployment import DeployAnswers, build_config, validate
from api_client.preflight.findings import Finding, gravest_first
from tui.wizard.derived import is_lora
from tui.wizard.machines import parse_gpu
from tui.wizard.state import WizardState


def deploy_answers(state: WizardState) -> DeployAnswers:
    """The answers as the client takes them. Raises ValueError while GPUs are not answered."""
    answers = state.answers
    gpu = parse_gpu(answers.gpu or "")
    if gpu is None:
        raise ValueError("choose GPUs first")
    job = state.job
    return DeployAnswers(
        project_id=job.project_id if job else "",
        job_id=answers.job_id or "",
        checkpoint_names=tuple(each.checkpoint_id for each in state.chosen),
        base_model=answers.base_model or None,
        lora_rank=answers.lora_rank if is_lora(state) and isinstance(answers.lora_rank, int) else None,
        model_name=answers.model_name or "",
        gpu_type=gpu[0],
        gpu_count=gpu[1],
        hf_secret=answers.hf_secret or None,
        environment=answers.environment or (),
        secrets=answers.secrets or (),
    )


def deploy_config(state: WizardState) -> DeployCheckpointsConfig:
    """The config that the answers make; what a config file said that no question asks about is kept.

    Raises ValueError while answers are missing, ConfigurationError for some that make no config.
    """
    given = state.config
    built = build_config(deploy_answers(state), state.chosen)
    return built.model_copy(
        update={
            "checkpoint_details": _checkpoint_details(state, built, given),
            "compute": _compute(built, given),
        }
    )


def _checkpoint_details(
    state: WizardState, built: DeployCheckpointsConfig, given: DeployCheckpointsConfig | None
) -> CheckpointList | None:
    details = given.checkpoint_details if given else None
    if details is None or state.serves_loops:
        return details or built.checkpoint_details
    new = built.checkpoint_details or CheckpointList()
    return details.model_copy(
        update={
            "base_model_id": state.answers.base_model or None,
            "checkpoints": details.checkpoints if state.keeps_config_checkpoints else new.checkpoints,
        }
    )


def _compute(built: DeployCheckpointsConfig, given: DeployCheckpointsConfig | None) -> object:
    """The file's compute with the answered GPUs."""
    if given is None or given.compute is None or built.compute is None:
        return built.compute
    return given.compute.model_copy(update={"accelerator": built.compute.accelerator})


def findings(state: WizardState, config: DeployCheckpointsConfig) -> tuple[Finding, ...]:
    """What is wrong with it, or worth knowing; errors first."""
    found = validate(
        config,
        state.facts.checkpoints,
        files=state.facts.files,
        instances=state.facts.instances,
        secret_names=state.facts.secret_names,
    )
    return gravest_first((*found, *_losses(state)))


def _losses(state: WizardState) -> Iterator[Finding]:
    """What the losses say against the chosen checkpoints, or why that is not known."""
    place = "checkpoint_details.checkpoints"
    best = next((one.name for one in state.facts.judged.values() if one.is_best), "")
    for checkpoint in state.chosen:
        known = state.facts.judged.get(checkpoint.checkpoint_id)
        if known is not None and known.fault is not None:
            problem = f"{known.name!r} was {known.fault.words(checkpoint.created_at)}"
            yield Finding("warning", place, problem, f"the best is {best!r}" if best else "")
    if state.chosen and state.facts.not_judged:
        yield Finding("info", place, f"checkpoints are not judged: {state.facts.not_judged}")
