"""The questions for the job, its checkpoints, the base model, the LoRA rank and the model's name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from api_client.definitions import LORA_RANKS
from api_client.deployment import (
    adapter_ranks,
    check_rank,
    check_selection,
    kind_of,
    rank_for,
    selectable,
)
from api_client.models import Checkpoint, TrainingJob
from api_client.models.jobs import JobStatus
from tui.analysis.checkpoints.facts import fault_lines
from tui.analysis.status import status_view
from tui.text.names import listed
from tui.text.sanitize import sanitize
from tui.text.times import time_key
from tui.text.units import age, bytes_iec, number
from tui.wizard.state import (
    BASE_MODEL,
    CHECKPOINTS,
    JOB,
    LORA_RANK,
    MODEL_NAME,
    WizardState,
    advised_rank,
    forget_stale,
    inferred_base_model,
    is_lora,
    proposed_model_name,
)
from tui.wizard.step import NAMED_AT_MOST, Answer, Choice, Step, choice_problem

Created = TypeVar("Created", TrainingJob, Checkpoint)

UNSTARTED_STATUSES = frozenset(
    {
        JobStatus.PENDING,
        JobStatus.QUEUED,
        JobStatus.CREATED,
        JobStatus.DEPLOYING,
        JobStatus.DEPLOY_FAILED,
    }
)
"""Statuses of jobs that cannot have written a checkpoint."""

TOGETHER = "LoRAs can be served together; full and Whisper checkpoints can't."


def job_step(state: WizardState) -> Step:
    choices = tuple(_job_choice(job, state) for job in _newest_first(state.facts.jobs))
    possible = [choice.value for choice in choices if not choice.disabled_reason]
    refusal = ""
    if not possible:
        refusal = "none of these jobs has run yet" if choices else "there are no training jobs"
        refusal += "; no checkpoints to deploy"
    return Step(
        state,
        id=JOB,
        title="Job",
        question="Which job's checkpoints?",
        kind="choice",
        flag="--job-id",
        choices=choices,
        proposed=next(iter(possible), None),
        refusal=refusal,
        must_ask=True,
        check=lambda answer: choice_problem(choices, answer, "a job"),
        put=_put_job,
    )


def checkpoints_step(state: WizardState) -> Step:
    """Ask for one or several checkpoints; proposes the best, else the newest that is deployable and sound."""
    facts = state.facts
    choices = tuple(_checkpoint_choice(each, state) for each in _newest_first(facts.checkpoints))
    possible = [choice.value for choice in choices if not choice.disabled_reason]
    best = [name for name in possible if (known := facts.judged.get(name)) is not None and known.is_best]
    sound = [choice.value for choice in choices if not choice.disabled_reason and not choice.warning]
    refusal = ""
    if not state.needs_checkpoints:
        if not choices:
            refusal = "this job has no checkpoints"
        elif not possible:
            refusal = f"none of the job's checkpoints can be deployed: {_reasons(choices)}"
    return Step(
        state,
        id=CHECKPOINTS,
        title="Checkpoints",
        question="Which checkpoints?",
        kind="choices",
        flag="--checkpoint",
        choices=choices,
        proposed=tuple((best or sound or possible)[:1]),
        remark="\n".join((TOGETHER, *_checkpoint_hint(state))),
        refusal=refusal,
        must_ask=bool(facts.unchecked_reason),
        check=lambda answer: _checkpoints_problem(state, choices, answer),
        put=_put_checkpoints,
    )


def _checkpoint_hint(state: WizardState) -> list[str]:
    if state.facts.unchecked_reason:
        return [f"checkpoints not checked: {state.facts.unchecked_reason}"]
    judged = state.facts.judged.values()
    best = [f"best: {one.name}, {one.score.words}" for one in judged if one.is_best and one.score]
    return [*fault_lines(judged), *best]


def _newest_first(each: Iterable[Created]) -> list[Created]:
    return sorted(each, key=lambda one: time_key(one.created_at), reverse=True)


def _job_choice(job: TrainingJob, state: WizardState) -> Choice:
    view = status_view(job.current_status)
    created = f"{age((state.facts.now - job.created_at).total_seconds())} ago" if job.created_at else ""
    hint = " · ".join(part for part in (job.project_name, f"{view.sign} {view.word}", created) if part)
    reason = "has not run" if job.current_status in UNSTARTED_STATUSES else ""
    return Choice(job.id, f"{job.name} ({job.id})" if job.name else job.id, hint, reason)


def _checkpoint_choice(checkpoint: Checkpoint, state: WizardState) -> Choice:
    kind = kind_of(checkpoint)
    rank = (checkpoint.lora_adapter_config or {}).get("r") if kind == "lora" else None
    made = checkpoint.created_at
    parts = (
        f"{kind} r={rank}" if rank is not None else checkpoint.checkpoint_type or "unknown type",
        bytes_iec(checkpoint.size_bytes) if checkpoint.size_bytes is not None else "",
        f"{age((state.facts.now - made).total_seconds())} ago" if made else "",
    )
    reason = state.facts.unfit.get(checkpoint.checkpoint_id) or selectable(checkpoint)
    if not reason and kind == "lora":
        reason = rank_for([rank]).refusal
    name = checkpoint.checkpoint_id
    label = ". (the checkpoint folder itself)" if name == "." else name
    known = state.facts.judged.get(name)
    best = "★ best" if known and known.is_best else ""
    losses = (known.evaluation, known.loss) if known else ()
    scores = (f"{one.name} {number(one.value)}" for one in losses if one is not None)
    warning = known.fault.mark if known and known.fault else ""
    hint = " · ".join(part for part in (best, *scores, *parts) if part)
    return Choice(name, label, hint, reason, warning)


def _checkpoints_problem(state: WizardState, choices: tuple[Choice, ...], answer: Answer) -> str:
    names = answer if isinstance(answer, tuple) else ()
    if not names:
        return "choose at least one checkpoint"
    problems = [problem for name in names if (problem := choice_problem(choices, name, "a checkpoint"))]
    if problems:
        return "; ".join(problems)
    return check_selection([each for each in state.facts.checkpoints if each.checkpoint_id in names])


def _reasons(choices: tuple[Choice, ...]) -> str:
    return listed([f"{choice.value} ({choice.disabled_reason})" for choice in choices], NAMED_AT_MOST)


def _put_job(state: WizardState, answer: Answer) -> WizardState:
    if answer == state.answers.job_id:
        return state
    emptied = replace(state, answers=replace(state.answers, checkpoint_names=()))
    kept = forget_stale(state, emptied)
    return replace(kept, answers=replace(kept.answers, job_id=str(answer)))


def _put_checkpoints(state: WizardState, answer: Answer) -> WizardState:
    names = tuple(str(name) for name in answer) if isinstance(answer, tuple) else ()
    wanted = replace(state, answers=replace(state.answers, checkpoint_names=names))
    return forget_stale(state, wanted)


NOT_SENT = "Only saved in the config; the platform reads the adapter's rank"


def base_model_step(state: WizardState) -> Step:
    """Ask for the base model: required for a LoRA, optional otherwise."""
    required = is_lora(state)
    inferred = inferred_base_model(state)
    if inferred:
        remark = "from the checkpoint"
    elif required:
        remark = "Required: the checkpoint doesn't name it."
    else:
        remark = "Optional: the checkpoint holds all weights."
    return Step(
        state,
        id=BASE_MODEL,
        title="Base model",
        question="Which base model?" if required else "Which base model? (may be empty)",
        kind="text",
        flag="--base-model",
        proposed=inferred,
        remark=remark,
        check=lambda given: _base_model_problem(given, required=required),
        put=lambda before, given: _put_base_model(before, str(given)),
    )


def rank_step(state: WizardState) -> Step:
    """Ask for the largest rank to serve. The adapters' ranks decide the default and the minimum."""
    ranks = adapter_ranks(state.chosen)
    advice = advised_rank(state)
    choices = tuple(Choice(str(rank), str(rank)) for rank in LORA_RANKS if not check_rank(rank, ranks))
    return Step(
        state,
        id=LORA_RANK,
        title="LoRA rank",
        question="Which LoRA rank?",
        kind="number",
        flag="--lora-rank",
        choices=choices,
        proposed=advice.default,
        remark=f"{advice.explanation}. {NOT_SENT}".replace(".. ", ". ").strip(" ."),
        refusal=advice.refusal,
        check=lambda given: check_rank(given, ranks),
    )


def model_name_step(state: WizardState) -> Step:
    kinds = {kind_of(each) for each in state.chosen}
    return Step(
        state,
        id=MODEL_NAME,
        title="Model name",
        question="What's the model's name?",
        kind="text",
        flag="--model-name",
        proposed=proposed_model_name(state),
        remark="defaults to the base model's name" if kinds == {"lora"} else "",
        check=_model_name_problem,
    )


def _put_base_model(state: WizardState, base_model: str) -> WizardState:
    """Store the base model, and reset a model name that only accepted the old proposal."""
    answers = replace(state.answers, base_model=base_model)
    if MODEL_NAME not in state.given and answers.model_name == proposed_model_name(state):
        answers = replace(answers, model_name=None)
    return replace(state, answers=answers)


def _base_model_problem(answer: Answer, *, required: bool) -> str:
    if not isinstance(answer, str):
        return (
            "enter the base model"
            if required
            else ("" if answer is None else "the base model must be a name")
        )
    if not answer:
        return "a LoRA needs its base model: owner/name, as on Hugging Face" if required else ""
    if any(letter.isspace() for letter in answer):
        return "no spaces in a base model's name: owner/name, as on Hugging Face"
    return _unprintable(answer, "a base model's name")


def _model_name_problem(answer: Answer) -> str:
    if not isinstance(answer, str) or not answer:
        return "enter a model name"
    return _unprintable(answer, "a model's name")


def _unprintable(text: str, what: str) -> str:
    return "" if sanitize(text) == text else f"{what} can't contain control characters"
