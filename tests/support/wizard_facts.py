"""A job with checkpoints and machines, as facts for tests of the deploy wizard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from api_client.deployment import ListedInstance
from api_client.models import Checkpoint, TrainingJob
from tui.wizard.progress import WizardProgress
from tui.wizard.state import Facts, WizardState
from tui.wizard.step import Answer, Step

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
EARLIER = "2026-03-01T11:00:00Z"
BASE = "meta-llama/Llama-3.1-8B-Instruct"
MISSING = object()


def job(job_id: str = "job1", status: str = "COMPLETED", **more: object) -> TrainingJob:
    values = {"id": job_id, "current_status": f"TRAINING_JOB_{status}", "training_project_id": "proj1"}
    return TrainingJob.model_validate(values | {"created_at": EARLIER} | more)


def lora(name: str, r: object = 16, **more: object) -> Checkpoint:
    """An adapter whose config has this ``r``; MISSING: a config without one."""
    config = {} if r is MISSING else {"r": r}
    return checkpoint(name, "lora", lora_adapter_config=config, **{"base_model": BASE} | more)


def checkpoint(name: str, kind: str | None, **more: object) -> Checkpoint:
    values = {"checkpoint_id": name, "checkpoint_type": kind, "training_job_id": "job1"}
    return Checkpoint.model_validate(values | {"size_bytes": 1000, "created_at": EARLIER} | more)


def machine(gpu_type: str | None, count: int, gib: int = 80, price: float | None = 0.1) -> ListedInstance:
    return ListedInstance(
        id=f"{gpu_type}-{count}",
        name=f"{gpu_type}:{count}",
        gpu_type=gpu_type,
        gpu_count=count,
        gpu_memory_limit_mib=gib * 1024,
        price=price,
    )


MACHINES = (
    machine(None, 0, price=0.001),
    machine("L4", 1, 24, 0.02),
    machine("H100", 1, 80, 0.1),
    machine("H100", 2, 80, 0.2),
    machine("A100-40GB", 1, 40, 0.05),
    machine("QUANTUM", 1, 999, 0.01),
)


def state_of(
    *checkpoints: Checkpoint, secrets: tuple[str, ...] | None = ("hf_access_token", "wandb")
) -> WizardState:
    facts = Facts(NOW, jobs=(job(),), instances=MACHINES, secret_names=secrets)
    return WizardState(facts.with_checkpoints("job1", checkpoints, None))


def wizard_of(*checkpoints: Checkpoint) -> WizardProgress:
    return WizardProgress(state_of(*checkpoints)).started()


def with_checkpoints(wizard: WizardProgress, found: Sequence[Checkpoint]) -> WizardProgress:
    """The wizard with these checkpoints of the chosen job, at the first open step."""
    state = wizard.state
    facts = state.facts.with_checkpoints(state.answers.job_id or "", found, None)
    return replace(wizard, state=replace(state, facts=facts)).started()


def to(wizard: WizardProgress, step_id: str, **answers: Answer) -> WizardProgress:
    """Answer with the defaults, or with ``answers``, until that step is reached."""
    for _ in range(20):
        if wizard.current == step_id:
            return wizard
        step = wizard.step
        wizard = wizard.answered(answers.get(step.id, step.default))
        if wizard.state.needs_checkpoints:
            wizard = with_checkpoints(wizard, wizard.state.facts.checkpoints)
    raise AssertionError(f"{step_id} was not reached, {wizard.current} was")


def step_named(wizard: WizardProgress, step_id: str) -> Step:
    return next(each for each in wizard.steps if each.id == step_id)
