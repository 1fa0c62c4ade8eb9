"""Check a deployment config before it is sent, including LoRA ranks, unlike the official client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from api_client.definitions import CheckpointList, DeployCheckpointsConfig, LoRACheckpoint, SecretReference
from api_client.deployment.instances import smallest_instance
from api_client.models import Checkpoint, CheckpointFile, InstanceType
from api_client.servable import (
    adapter_ranks,
    check_rank,
    check_selection,
    find_checkpoint,
    kind_of,
    memory_problem,
    missing_parts,
    not_text,
    stored_weight_bytes,
)
from api_client.submission.findings import Finding, most_severe_first
from api_client.words import counted, listed

_DETAILS = "checkpoint_details"


def validate(
    config: DeployCheckpointsConfig,
    checkpoints: Sequence[Checkpoint],
    *,
    files: Iterable[CheckpointFile] | None = None,
    instances: Iterable[InstanceType] | None = None,
    secret_names: Iterable[str] | None = None,
) -> tuple[Finding, ...]:
    """Return all problems with deploying ``config``, most severe first; errors prevent the deployment.

    ``checkpoints`` are the checkpoints of the config's jobs, as the server lists them. Optional data is
    checked if given. Sends no request.
    """
    known_files = None if files is None else tuple(files)
    details = config.checkpoint_details or CheckpointList()
    matches = [
        find_checkpoint(checkpoints, selected.training_job_id, selected.checkpoint_name)
        for selected in details.checkpoints
    ]
    selected_checkpoints = [match for match in matches if match is not None]
    findings: list[Finding] = []
    if not details.loops_checkpoint_ids:  # the server checks checkpoints of Loops runs
        findings += _checkpoint_findings(details, matches, checkpoints)
        if len(selected_checkpoints) == len(matches):
            findings += _selection_findings(selected_checkpoints, known_files)
        findings += _adapter_findings(
            details, [match for match in selected_checkpoints if kind_of(match) == "lora"]
        )
    if not (config.model_name or "").strip():
        findings.append(Finding("error", "model_name", "the model has no name", "set a name"))
    findings += _compute_findings(config, instances)
    findings += _memory_findings(config, selected_checkpoints, known_files, instances)
    findings += _secret_findings(config, secret_names)
    return most_severe_first(findings)


def _checkpoint_findings(
    details: CheckpointList, matches: Sequence[Checkpoint | None], listed_checkpoints: Iterable[Checkpoint]
) -> Iterator[Finding]:
    """Check that each checkpoint exists, and that an adapter's rank is valid."""
    for index, (selected, match) in enumerate(zip(details.checkpoints, matches, strict=True)):
        field, job_id = f"{_DETAILS}.checkpoints.{index}", selected.training_job_id
        if match is None:
            job_checkpoints = [item for item in listed_checkpoints if item.training_job_id in ("", job_id)]
            names = listed([repr(checkpoint.checkpoint_id) for checkpoint in job_checkpoints], 12)
            problem = f"job {job_id} has no checkpoint {selected.checkpoint_name!r}"
            yield Finding("error", f"{field}.checkpoint_name", problem, f"it has {names or 'none'}")
        elif isinstance(selected, LoRACheckpoint) and (
            problem := check_rank(selected.lora_details.rank, adapter_ranks([match]))
        ):
            remedy = "choose a rank that fits the adapter"
            yield Finding("error", f"{field}.lora_details.rank", problem, remedy)


def _selection_findings(
    selected_checkpoints: Sequence[Checkpoint], files: tuple[CheckpointFile, ...] | None
) -> Iterator[Finding]:
    """Check that the checkpoints can be served together, and that each has the files that vLLM needs."""
    field, names = (
        f"{_DETAILS}.checkpoints",
        [checkpoint.checkpoint_id for checkpoint in selected_checkpoints],
    )
    if reason := check_selection(selected_checkpoints, files):
        yield Finding("error", field, reason, "choose other checkpoints")
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            problem = f"{names.count(name)} checkpoints are named {name!r}, but requests select one by name"
            yield Finding("warning", field, problem, "deploy them one at a time")
    for index, checkpoint in enumerate(selected_checkpoints):
        name, is_full = checkpoint.checkpoint_id, kind_of(checkpoint) == "full"
        if kind := not_text(checkpoint, files):
            problem = f"{name!r} is {kind}, but vLLM serves language models"
            yield Finding("warning", f"{field}.{index}", problem, "write your own Truss to serve it")
        elif missing := missing_parts(name, files or ()) if is_full else ():
            problem = f"{name!r} has weights but no {' and no '.join(missing)}: vLLM cannot serve it"
            remedy = "save model and tokenizer with save_pretrained, or write your own Truss"
            yield Finding("warning", f"{field}.{index}", problem, remedy)


def _adapter_findings(details: CheckpointList, adapters: Sequence[Checkpoint]) -> Iterator[Finding]:
    field, base_model = f"{_DETAILS}.base_model_id", (details.base_model_id or "").strip()
    inferred = next((checkpoint.base_model for checkpoint in adapters if checkpoint.base_model), None)
    if adapters and not base_model and not inferred:
        problem = "the adapter needs a base model, but the checkpoint names none"
        yield Finding("error", field, problem, "give the model it was trained on")
    elif base_model and inferred and base_model != inferred:
        problem = f"the adapter was trained on {inferred!r}, not on {base_model!r}"
        yield Finding("warning", field, problem, "the server uses the adapter's config")


def _memory_findings(
    config: DeployCheckpointsConfig,
    selected_checkpoints: Sequence[Checkpoint],
    files: tuple[CheckpointFile, ...] | None,
    instances: Iterable[InstanceType] | None,
) -> Iterator[Finding]:
    """Warn if the weights are known to be larger than the memory of the requested GPUs."""
    machine = smallest_instance(instances or (), config.compute)
    base_model = config.checkpoint_details and config.checkpoint_details.base_model_id
    if machine is None or not machine.gpu_memory_bytes:
        return
    if base_model:
        selected_checkpoints = [
            checkpoint.model_copy(update={"base_model": base_model}) for checkpoint in selected_checkpoints
        ]
    problem = memory_problem(
        selected_checkpoints, stored_weight_bytes(selected_checkpoints, files), machine.gpu_memory_bytes
    )
    if problem:
        memory = f"{machine.gpu_memory_bytes / 1024**3:.0f} GiB of memory"
        problem = f"{problem}, but {machine.gpu_count} × {machine.gpu_type} has {memory}"
        yield Finding("warning", "compute.accelerator", problem, "choose more or larger GPUs")


def _compute_findings(
    config: DeployCheckpointsConfig, instances: Iterable[InstanceType] | None
) -> Iterator[Finding]:
    compute = config.compute
    if compute is None:
        yield Finding("error", "compute", "no GPU is chosen", "choose a GPU type and count")
    elif instances is not None and smallest_instance(instances, compute) is None:
        cpus = f"{counted(compute.cpu_count, 'CPU')} and {compute.memory}"
        problem = f"no single-node instance type has {str(compute.accelerator or '') or cpus}"
        yield Finding("error", "compute.accelerator", problem, "choose one of the account's instance types")


def _secret_findings(
    config: DeployCheckpointsConfig, secret_names: Iterable[str] | None
) -> Iterator[Finding]:
    variables = config.runtime.environment_variables if config.runtime and secret_names is not None else {}
    names = set(secret_names or ())
    for name, value in variables.items():
        if isinstance(value, SecretReference) and value.name not in names:
            # Only a warning, because the key may not see every team's secrets.
            problem = f"the workspace has no secret {value.name!r}"
            remedy = "add it to the workspace, or choose another"
            yield Finding("warning", f"runtime.environment_variables.{name}", problem, remedy)
