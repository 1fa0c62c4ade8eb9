"""A job with checkpoints and machines, as facts for tests of the deploy form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from api_client.deployment import ListedInstance
from api_client.models import Checkpoint, TrainingJob
from tui.forms.deployment import ALL_QUESTION_IDS, DeployForm
from tui.forms.draft import Facts
from tui.forms.question import Answer, Question

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


def form_of(
    *checkpoints: Checkpoint, secrets: tuple[str, ...] | None = ("hf_access_token", "wandb")
) -> DeployForm:
    """The form on a job with these checkpoints; it asks everything, as at a terminal."""
    facts = Facts(NOW, jobs=(job(),), instances=MACHINES, secret_names=secrets)
    return DeployForm(facts.with_checkpoints("job1", checkpoints, None), always_asked=ALL_QUESTION_IDS)


def with_checkpoints(form: DeployForm, checkpoints: Sequence[Checkpoint]) -> DeployForm:
    """The form with these checkpoints of the chosen job."""
    return replace(form, facts=form.facts.with_checkpoints(form.answers.job_id or "", checkpoints, None))


def to(form: DeployForm, question_id: str, **answers: Answer) -> DeployForm:
    """Answer with the defaults, or with ``answers``, until that question is reached."""
    for _ in range(20):
        if form.current == question_id:
            return form
        question = form.question
        form = form.answered(answers.get(question.id, question.default))
        if form.needs_checkpoints:
            form = with_checkpoints(form, form.facts.checkpoints)
    raise AssertionError(f"{question_id} was not reached, {form.current} was")


def question_named(form: DeployForm, question_id: str) -> Question:
    return next(question for question in form.questions if question.id == question_id)
