"""Check a deployment config before it is sent, including the LoRA ranks, which nothing else checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches

from api_client.definitions import Checkpoint as CheckpointToDeploy
from api_client.definitions import CheckpointList, DeployCheckpointsConfig, LoRACheckpoint, SecretReference
from api_client.deployment.instances import smallest_instance
from api_client.models import Checkpoint, CheckpointFile, InstanceType
from api_client.models.checkpoints import ROOT_CHECKPOINT
from api_client.servable import (
    adapter_ranks,
    check_rank,
    check_selection,
    find_checkpoint,
    kind_of,
    memory_problem,
    missing_parts,
    not_text,
    rank_for,
    stored_weight_bytes,
)
from api_client.submission.findings import Finding, most_severe_first
from api_client.words import counted

_NAMED_AT_MOST = 12
_MIB_PER_GIB, _BYTES_PER_GIB = 1024, 1024**3


def validate(
    config: DeployCheckpointsConfig,
    checkpoints: Sequence[Checkpoint],
    *,
    files: Iterable[CheckpointFile] | None = None,
    instances: Iterable[InstanceType] | None = None,
    secret_names: Iterable[str] | None = None,
) -> tuple[Finding, ...]:
    """Return all problems with deploying ``config``, most severe first; errors prevent it from working.

    ``checkpoints`` are those of the config's jobs as the server lists them; optional data is checked if
    given. Sends nothing.
    """
    known_files = None if files is None else tuple(files)
    details = config.checkpoint_details or CheckpointList()
    findings = [*_details_findings(details, checkpoints, known_files)]
    if not (config.model_name or "").strip():
        findings.append(Finding("error", "model_name", "the model has no name", "set a name"))
    findings += _compute_findings(config, instances)
    findings += _memory_findings(config, checkpoints, known_files, instances)
    findings += _environment_findings(config, secret_names)
    return most_severe_first(findings)


def _details_findings(
    details: CheckpointList, listed: Sequence[Checkpoint], files: tuple[CheckpointFile, ...] | None
) -> Iterator[Finding]:
    place = "checkpoint_details.checkpoints"
    if details.loops_checkpoint_ids:
        return  # the server checks checkpoints of Loops runs
    if not details.checkpoints:
        yield Finding("error", place, "nothing to deploy", "choose at least one checkpoint")
        return
    found: list[Checkpoint] = []
    for index, wanted in enumerate(details.checkpoints):
        checkpoint = find_checkpoint(listed, wanted.training_job_id, wanted.checkpoint_name)
        if checkpoint is None:
            yield _unknown_name(f"{place}.{index}.checkpoint_name", wanted, listed)
            continue
        found.append(checkpoint)
        yield from _checkpoint_findings(f"{place}.{index}", wanted, checkpoint)
    if len(found) == len(details.checkpoints):
        reason = check_selection(found, files)
        if reason:
            yield Finding("error", place, reason, "choose other checkpoints")
        yield from _name_findings(place, found)
        yield from _servable_findings(place, found, files)
    yield from _base_model_findings(details, found)
    yield from _rank_findings(details, found)


def _unknown_name(place: str, wanted: CheckpointToDeploy, listed: Iterable[Checkpoint]) -> Finding:
    names = [each.checkpoint_id for each in listed if each.training_job_id in ("", wanted.training_job_id)]
    problem = f"job {wanted.training_job_id} has no checkpoint {wanted.checkpoint_name!r}"
    if not names:
        return Finding("error", place, problem, "the job has no checkpoints; choose another job")
    similar = get_close_matches(wanted.checkpoint_name, names, n=1)
    hint = f"did you mean {similar[0]!r}? " if similar else ""
    more = f" and {len(names) - _NAMED_AT_MOST} more" if len(names) > _NAMED_AT_MOST else ""
    listed_names = ", ".join(map(repr, names[:_NAMED_AT_MOST]))
    return Finding("error", place, problem, f"{hint}it has {listed_names}{more}")


def _checkpoint_findings(place: str, wanted: CheckpointToDeploy, checkpoint: Checkpoint) -> Iterator[Finding]:
    kind = kind_of(checkpoint)
    declared = wanted.model_weight_format.value
    if kind not in ("other", declared):
        problem = f"{wanted.checkpoint_name!r} is declared as {declared}, but is {kind}"
        yield Finding("error", f"{place}.model_weight_format", problem, f"use the class for {kind} weights")
    elif kind == "lora":
        rank = wanted.lora_details.rank if isinstance(wanted, LoRACheckpoint) else None
        problem = check_rank(rank, adapter_ranks([checkpoint]))
        if problem:
            remedy = "choose a rank that fits the adapter"
            yield Finding("error", f"{place}.lora_details.rank", problem, remedy)


def _rank_findings(details: CheckpointList, found: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Report a rank that makes a difference: the official request has no field for it."""
    lora = [each for each in details.checkpoints if isinstance(each, LoRACheckpoint)]
    # Values that are not numbers are rejected elsewhere.
    chosen = max((each.lora_details.rank for each in lora if type(each.lora_details.rank) is int), default=0)
    adapters = [checkpoint for checkpoint in found if kind_of(checkpoint) == "lora"]
    own = rank_for(adapter_ranks(adapters)).default if adapters else None
    if own is not None and chosen > own:
        problem = f"the config sets rank {chosen}, but the platform uses the adapter's own ({own})"
        yield Finding("info", "checkpoint_details.checkpoints", problem)


def _name_findings(place: str, found: Sequence[Checkpoint]) -> Iterator[Finding]:
    names = [checkpoint.checkpoint_id for checkpoint in found]
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            problem = f"{names.count(name)} checkpoints are named {name!r}, but requests select one by name"
            yield Finding("warning", place, problem, "deploy them one at a time")
    if names == [ROOT_CHECKPOINT]:
        yield Finding("info", place, "'.' is the job's checkpoint folder itself")


def _servable_findings(
    place: str, found: Sequence[Checkpoint], files: tuple[CheckpointFile, ...] | None
) -> Iterator[Finding]:
    """Report full weights without the files that vLLM reads with them: the deployment would not start."""
    for index, checkpoint in enumerate(found):
        missing = (
            missing_parts(checkpoint.checkpoint_id, files or ()) if kind_of(checkpoint) == "full" else ()
        )
        if kind := not_text(checkpoint, files):
            problem = f"{checkpoint.checkpoint_id!r} is {kind}, but vLLM serves language models"
            yield Finding("warning", f"{place}.{index}", problem, "write your own Truss to serve it")
        elif missing:
            lacking = " and no ".join(missing)
            problem = f"{checkpoint.checkpoint_id!r} has weights but no {lacking}: vLLM cannot serve it"
            remedy = "save model and tokenizer with save_pretrained, or write your own Truss"
            yield Finding("warning", f"{place}.{index}", problem, remedy)


def _memory_findings(
    config: DeployCheckpointsConfig,
    listed: Sequence[Checkpoint],
    files: tuple[CheckpointFile, ...] | None,
    instances: Iterable[InstanceType] | None,
) -> Iterator[Finding]:
    """Report weights that are known to be larger than the memory of the chosen GPUs."""
    details, compute = config.checkpoint_details or CheckpointList(), config.compute
    machine = smallest_instance(instances or (), compute)
    found = [
        find_checkpoint(listed, each.training_job_id, each.checkpoint_name) for each in details.checkpoints
    ]
    if machine is None or machine.gpu_memory_limit_mib is None or not machine.gpu_count:
        return
    base = {"base_model": details.base_model_id} if details.base_model_id else {}
    chosen = [each.model_copy(update=base) for each in found if each is not None]
    memory_gib = machine.gpu_memory_limit_mib * machine.gpu_count / _MIB_PER_GIB
    problem = memory_problem(chosen, stored_weight_bytes(chosen, files), round(memory_gib * _BYTES_PER_GIB))
    if problem:
        gpus = f"{machine.gpu_count} × {machine.gpu_type}"
        problem += f", but {gpus} has {memory_gib:.0f} GiB of memory"
        yield Finding("warning", "compute.accelerator", problem, "choose more or larger GPUs")


def _base_model_findings(details: CheckpointList, found: Sequence[Checkpoint]) -> Iterator[Finding]:
    place = "checkpoint_details.base_model_id"
    adapters = [checkpoint for checkpoint in found if kind_of(checkpoint) == "lora"]
    base_model = (details.base_model_id or "").strip()
    inferred = next((checkpoint.base_model for checkpoint in adapters if checkpoint.base_model), None)
    if adapters and not base_model and not inferred:
        problem = "the adapter needs a base model, but the checkpoint names none"
        yield Finding("error", place, problem, "give the model it was trained on")
    elif base_model and inferred and base_model != inferred:
        problem = f"the adapter was trained on {inferred!r}, not on {base_model!r}"
        yield Finding("warning", place, problem, "the server uses the adapter's config")


def _compute_findings(
    config: DeployCheckpointsConfig, instances: Iterable[InstanceType] | None
) -> Iterator[Finding]:
    compute = config.compute
    if compute is None:
        yield Finding("error", "compute", "no GPU is chosen", "choose a GPU type and count")
        return
    if compute.node_count != 1:
        problem = "checkpoints are deployed on one node"
        yield Finding("error", "compute.node_count", problem, "leave node_count at 1")
    if instances is not None and smallest_instance(instances, compute) is None:
        asked = str(compute.accelerator or "") or f"{counted(compute.cpu_count, 'CPU')} and {compute.memory}"
        problem = f"no single-node instance type has {asked}"
        yield Finding("error", "compute.accelerator", problem, "choose one of the account's instance types")


def _environment_findings(
    config: DeployCheckpointsConfig, secret_names: Iterable[str] | None
) -> Iterator[Finding]:
    variables = config.runtime.environment_variables if config.runtime else {}
    known = None if secret_names is None else set(secret_names)
    for name, value in variables.items():
        place = f"runtime.environment_variables.{name}"
        if not name or "=" in name or "\0" in name:
            yield Finding("error", place, f"{name!r} is not a valid variable name", "rename it")
        if isinstance(value, SecretReference) and known is not None and value.name not in known:
            # The key may not see every team's secrets, so this is not an error.
            problem = f"the workspace has no secret {value.name!r}"
            yield Finding("warning", place, problem, "add it to the workspace, or choose another")
