"""The questions of the deploy form, with options and defaults for the values of a draft."""

from __future__ import annotations

import re
from dataclasses import replace

from api_client.definitions import LORA_RANKS
from api_client.deployment import HF_TOKEN, ListedInstance, Pairs, normal_gpu
from api_client.models import Checkpoint, TrainingJob
from api_client.servable import adapter_ranks, check_rank, check_selection, kind_of, memory_hint
from api_client.vocabulary import JobStatus
from api_client.words import listed
from tui.analysis.checkpoints.facts import fault_lines
from tui.analysis.status import status_view
from tui.forms.draft import (
    MEMORY_HEADROOM_FACTOR,
    NO_SECRET,
    DeployDraft,
    Facts,
    has_name_in_configs,
    newest_first,
)
from tui.forms.question import (
    MAX_LISTED_NAMES,
    Answer,
    Option,
    Question,
    option_problem,
    pairs_of,
    possible_values,
)
from tui.text.sanitize import sanitize_whole
from tui.text.units import HOUR_S, MINUTE_S, age, bytes_iec, money, number

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


def questions(draft: DeployDraft) -> tuple[Question, ...]:
    """Return the questions that apply to a draft, without the review.

    The LoRA rank is asked only for adapters. Checkpoints of Loops runs can only be given in a config file.
    """
    return (
        *((_job_question(draft), _checkpoints_question(draft)) if draft.asks_checkpoints else ()),
        *((_base_model_question(draft),) if draft.chosen_checkpoints or draft.asks_checkpoints else ()),
        *((_lora_rank_question(draft),) if draft.is_lora else ()),
        _model_name_question(draft),
        _gpu_question(draft),
        _hf_secret_question(draft),
        _environment_question(draft),
        _secrets_question(draft),
    )


def _job_question(draft: DeployDraft) -> Question:
    options = tuple(_job_option(job, draft.facts) for job in newest_first(draft.facts.jobs))
    possible_ids = possible_values(options)
    refusal = "none of these jobs has run yet" if options else "there are no training jobs"
    return Question(
        id="job_id",
        title="Job",
        text="Which job's checkpoints?",
        kind="choice",
        flag="--job-id",
        check=lambda answer: option_problem(options, answer, "job"),
        answer=draft.answers.job_id,
        proposed=next(iter(possible_ids), None),
        options=options,
        refusal="" if possible_ids else f"{refusal}; no checkpoints to deploy",
        must_ask=True,
    )


def _job_option(job: TrainingJob, facts: Facts) -> Option:
    view = status_view(job.current_status)
    created = f"{age((facts.now - job.created_at).total_seconds())} ago" if job.created_at else ""
    option_facts = (job.project_name or "", f"{view.sign} {view.word}", created)
    disabled_reason = "has not run" if job.current_status in UNSTARTED_STATUSES else ""
    return Option(job.id, f"{job.name} ({job.id})" if job.name else job.id, option_facts, disabled_reason)


def _checkpoints_question(draft: DeployDraft) -> Question:
    """Ask for one or several checkpoints; the default is ``proposed_checkpoints`` of the draft."""
    options = tuple(
        _checkpoint_option(checkpoint, draft.facts) for checkpoint in newest_first(draft.checkpoints)
    )
    refusal = "" if draft.needs_checkpoints else checkpoints_refusal(draft)
    if refusal:  # names the reasons, so the options need not repeat them
        options = tuple(replace(option, disabled_reason="can't be deployed") for option in options)

    def check(answer: Answer) -> str:
        names = answer if isinstance(answer, tuple) and answer else ("",)
        problems = [option_problem(options, name, "checkpoint") for name in names]
        if any(problems):
            return "; ".join(filter(None, problems)) if answer else "choose at least one checkpoint"
        return check_selection(
            [checkpoint for checkpoint in draft.checkpoints if checkpoint.checkpoint_id in names]
        )

    return Question(
        id="checkpoint_names",
        title="Checkpoints",
        text="Which checkpoints?",
        kind="choices",
        flag="--checkpoint",
        check=check,
        answer=draft.answers.checkpoint_names,
        proposed=draft.proposed_checkpoints,
        options=options,
        remark="\n".join(
            (
                "LoRAs can be served together; full and Whisper checkpoints can't.",
                *_evidence_remarks(draft.facts),
            )
        ),
        refusal=refusal,
        must_ask=bool(draft.facts.unchecked_reason),
    )


def checkpoints_refusal(draft: DeployDraft) -> str:
    """Return why none of the job's checkpoints can be chosen; empty if at least one can."""
    if not draft.checkpoints:
        return "this job has no checkpoints"
    names_by_reason: dict[str, list[str]] = {}
    for checkpoint in newest_first(draft.checkpoints):
        name = checkpoint.checkpoint_id
        names_by_reason.setdefault(draft.facts.unfit_reasons[name], []).append(name)
    if "" in names_by_reason:
        return ""
    reasons = (
        f"{reason} ({listed(names, MAX_LISTED_NAMES)})" if len(names_by_reason) > 1 else reason
        for reason, names in names_by_reason.items()
    )
    return f"none of the job's checkpoints can be deployed: {'; '.join(reasons)}"


def _evidence_remarks(facts: Facts) -> list[str]:
    """Return remarks on the checkpoints based on the losses of their run: faults, and the best checkpoint."""
    if facts.unchecked_reason:
        return [f"checkpoints not checked: {facts.unchecked_reason}"]
    known_facts = facts.checkpoint_facts.values()
    best_remarks = [
        f"best: {checkpoint.name}, {checkpoint.score.words}"
        for checkpoint in known_facts
        if checkpoint.is_best and checkpoint.score
    ]
    return [*fault_lines(known_facts), *best_remarks]


def _checkpoint_option(checkpoint: Checkpoint, facts: Facts) -> Option:
    kind, name = kind_of(checkpoint), checkpoint.checkpoint_id
    rank = (checkpoint.lora_adapter_config or {}).get("r") if kind == "lora" else None
    created, known_facts = checkpoint.created_at, facts.checkpoint_facts.get(name)
    losses = (known_facts.evaluation, known_facts.loss) if known_facts else ()
    option_facts = (
        "★" if known_facts and known_facts.is_best else "",
        *(f"{loss.name} {number(loss.value)}" if loss is not None else "" for loss in losses),
        f"{kind} r={rank}" if rank is not None else checkpoint.checkpoint_type or "unknown type",
        bytes_iec(checkpoint.size_bytes) if checkpoint.size_bytes is not None else "",
        age((facts.now - created).total_seconds()) if created else "",
    )
    return Option(
        name,
        ". (the checkpoint folder itself)" if name == "." else name,
        option_facts,
        facts.unfit_reasons[name],
        known_facts.fault.mark if known_facts and known_facts.fault else "",
    )


def _base_model_question(draft: DeployDraft) -> Question:
    """Ask for the base model: required for a LoRA, optional otherwise."""
    is_required = draft.is_lora
    reason = "the checkpoint names no base model" if is_required else "the checkpoint holds all weights"

    def check(answer: Answer) -> str:
        if not answer:
            return "a LoRA needs its base model: owner/name, as on Hugging Face" if is_required else ""
        name = str(answer)
        if any(letter.isspace() for letter in name):
            return "no spaces in a base model's name: owner/name, as on Hugging Face"
        return _control_character_problem(name, "a base model's name")

    return Question(
        id="base_model",
        title="Base model",
        text="Which base model?" if is_required else "Which base model? (may be empty)",
        kind="text",
        flag="--base-model",
        check=check,
        answer=draft.answers.base_model,
        proposed=draft.inferred_base_model,
        remark="from the checkpoint"
        if draft.inferred_base_model
        else f"{'Required' if is_required else 'Optional'}: {reason}.",
    )


def _lora_rank_question(draft: DeployDraft) -> Question:
    """Ask for the highest LoRA rank to serve. The adapters' ranks decide the default and the minimum."""
    ranks, advice = adapter_ranks(draft.chosen_checkpoints), draft.rank_advice
    rank_note = "The platform reads the rank from the adapter; the config only records it"
    return Question(
        id="lora_rank",
        title="LoRA rank",
        text="Which LoRA rank?",
        kind="number",
        flag="--lora-rank",
        check=lambda answer: check_rank(answer, ranks),
        answer=draft.answers.lora_rank,
        proposed=advice.default,
        options=tuple(Option(str(rank), str(rank)) for rank in LORA_RANKS if not check_rank(rank, ranks)),
        remark=f"{advice.explanation}. {rank_note}".strip(" ."),
        refusal=advice.refusal,
    )


def _model_name_question(draft: DeployDraft) -> Question:
    return Question(
        id="model_name",
        title="Model name",
        text="What's the model's name?",
        kind="text",
        flag="--model-name",
        check=lambda answer: (
            _control_character_problem(str(answer), "a model's name") if answer else "enter a model name"
        ),
        answer=draft.answers.model_name,
        proposed=draft.proposed_model_name,
        remark="defaults to the base model's name" if draft.is_lora else "",
    )


def _control_character_problem(text: str, subject: str) -> str:
    return "" if sanitize_whole(text) == text else f"{subject} can't contain control characters"


def _gpu_question(draft: DeployDraft) -> Question:
    """Ask for the GPUs; the default is the cheapest instance type whose memory fits the weights."""
    options = tuple(_gpu_option(gpu, instance, draft) for gpu, instance in draft.instances_by_gpu.items())
    return Question(
        id="gpu",
        title="GPU",
        text="Which GPUs?",
        kind="choice",
        flag="--gpu",
        check=lambda answer: option_problem(options, answer and normal_gpu(str(answer)), "GPU"),
        answer=draft.answers.gpu and normal_gpu(draft.answers.gpu),
        proposed=draft.proposed_gpu,
        options=options,
        remark=memory_hint(draft.checkpoints_with_base_model),
        refusal=""
        if possible_values(options)
        else "the account has no GPU instance type that configs can name",
    )


def _gpu_option(gpu: str, instance: ListedInstance, draft: DeployDraft) -> Option:
    memory = instance.gpu_memory_bytes
    size = bytes_iec(memory) if memory else ""
    facts = (price_an_hour(instance), size, _fit_text(memory, draft.stored_bytes), instance.name)
    disabled_reason = "" if has_name_in_configs(gpu) else "config files have no name for this GPU type"
    label = f"{instance.gpu_count} × {gpu.rpartition(':')[0]}"
    return Option(gpu, label, facts, disabled_reason)


def price_an_hour(instance: ListedInstance) -> str:
    """Return ``$6.50 an hour``; empty if the price is unknown."""
    price = instance.price
    return f"{money(price * HOUR_S / MINUTE_S)} an hour" if price is not None else ""


def _fit_text(memory_bytes: int, weight_bytes: int | None) -> str:
    """Return whether the weights fit into the GPU memory, in words; empty if unknown, or if it is close."""
    if weight_bytes is None or not memory_bytes:
        return ""
    if weight_bytes > memory_bytes:
        return "smaller than the weights"
    return "fits" if weight_bytes * MEMORY_HEADROOM_FACTOR <= memory_bytes else ""


def _hf_secret_question(draft: DeployDraft) -> Question:
    names, store_command = draft.facts.secret_names, draft.facts.store_secret_command
    secrets_note = ""
    if names is None:
        secrets_note = " Can't list the workspace's secrets; may be empty."
    elif not names:
        secrets_note = " The workspace has no secrets" + (
            f"; store one: {store_command}" if store_command else "."
        )
    warning = "gated base model: needs a token" if draft.gated_model else ""
    options = (
        *_secret_options(draft),
        Option(NO_SECRET, "no token", ("public weights only",), warning=warning),
    )
    return Question(
        id="hf_secret",
        title="HF token",
        text="Which secret holds the Hugging Face token?",
        kind="text" if names is None else "choice",
        flag="--hf-secret",
        check=lambda answer: "" if names is None else option_problem(options, answer, "secret"),
        answer=draft.answers.hf_secret,
        proposed=draft.proposed_hf_secret,
        options=() if names is None else options,
        remark=f"Set as {HF_TOKEN}.{secrets_note}",
    )


def _environment_question(draft: DeployDraft) -> Question:
    return Question(
        id="environment",
        title="Environment",
        text="Any environment variables?",
        kind="pairs",
        flag="--env",
        check=lambda answer: _variables_problem(draft, answer, draft.secrets),
        answer=draft.answers.environment,
        proposed=(),
        remark="NAME=value",
    )


def _secrets_question(draft: DeployDraft) -> Question:
    options = _secret_options(draft)

    def check(answer: Answer) -> str:
        problem = _variables_problem(draft, answer, draft.environment)
        for name, secret in pairs_of(answer):
            if not secret:
                problem = problem or f"choose a secret for {name}"
            elif draft.facts.secret_names is not None:
                problem = problem or option_problem(options, secret, "secret")
        return problem

    return Question(
        id="secrets",
        title="Secrets",
        text="Any variables from secrets?",
        kind="pairs",
        flag="--secret",
        check=check,
        answer=draft.answers.secrets,
        proposed=(),
        options=options,
        remark="NAME=secret",
    )


def _variables_problem(draft: DeployDraft, answer: Answer, other_pairs: Pairs) -> str:
    names_in_use = {HF_TOKEN} if draft.hf_secret else set()
    names_in_use |= {name for name, _value in other_pairs}
    if isinstance(answer, str):
        return f"{answer!r} is not NAME=value"
    for name, value in pairs_of(answer):
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name, re.ASCII):
            return f"{name!r} is not a variable name: use letters, digits and _, no digit first"
        if "\0" in value:
            return f"the value of {name} contains a NUL, which no variable can hold"
        if name in names_in_use:
            return f"{name} is set twice"
        names_in_use.add(name)
    return ""


def _secret_options(draft: DeployDraft) -> tuple[Option, ...]:
    return tuple(Option(name, name) for name in draft.facts.secret_names or ())
