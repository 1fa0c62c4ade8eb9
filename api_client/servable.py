"""Decide which checkpoints can be served, alone and together, with which LoRA rank and how much GPU memory.

These rules are pure, and shared by the client and the emulator. A checkpoint is classified by its files,
because the server also lists shards and trainer states as weights. Only known file names rule a checkpoint
out; an unknown layout is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from api_client.definitions import DEFAULT_LORA_RANK, LORA_RANKS
from api_client.models import Checkpoint, CheckpointFile
from api_client.models.checkpoints import ROOT_CHECKPOINT, SAFETENSORS_SUFFIX, belongs_to, name_inside

FileVerdict = Literal["weights", "shards", "trainer state", "unclear"]

_WEIGHT_FILES = re.compile(
    r"[^/]*\.safetensors|[^/]*\.gguf|(pytorch_model(?!_fsdp)|adapter_model)[^/]*\.bin|consolidated[^/]*\.pth"
)
_SHARD_FILES = re.compile(
    r"(.*/)?("
    r"__[0-9]+_[0-9]+\.distcp|fsdp_config\.json"
    r"|model_world_size_[0-9]+_rank_[0-9]+\.pt|pytorch_model_fsdp(_[0-9]+)?(\.bin|/.*)"
    r"|[^/]*mp_rank_[0-9]+_model_states\.pt"
    r")"
)
_TRAINER_STATE_FILES = re.compile(
    r"(.*/)?(optimizer[^/]*\.(pt|bin)|scheduler\.pt|trainer_state\.json|train_state\.json"
    r"|training_args\.bin|rng_state[^/]*\.pth|[^/]*_optim_states\.pt)"
)
_MODEL_CONFIG_FILES = re.compile(r"config\.json|params\.json")
_PIPELINE_INDEX = "model_index.json"
"""The index of a diffusers pipeline, in its folder."""
_PIPELINE_ADAPTER_FILE = "pytorch_lora_weights.safetensors"
"""File name with which diffusers saves and loads adapters."""
_NON_TEXT_TASKS = frozenset({"SEQ_CLS", "TOKEN_CLS", "QUESTION_ANS", "FEATURE_EXTRACTION"})
"""PEFT's task types that generate no text."""
_TOKENIZER_FILES = re.compile(r"tokenizer.*|vocab\..*|spiece\.model|tekken\.json|[^/]*\.gguf")


def relevant_files(files: Iterable[CheckpointFile]) -> tuple[CheckpointFile, ...]:
    """Return the job's files that ``verdict`` and ``missing_parts`` depend on, usually few."""
    patterns = (_WEIGHT_FILES, _SHARD_FILES, _TRAINER_STATE_FILES, _MODEL_CONFIG_FILES, _TOKENIZER_FILES)
    return tuple(
        file
        for file in files
        if any(
            pattern.fullmatch(name)
            for name in (file.relative_file_name, file.relative_file_name.rpartition("/")[2])
            for pattern in patterns
        )
        or file.relative_file_name.rpartition("/")[2] == _PIPELINE_INDEX
    )


def missing_parts(checkpoint_id: str, files: Iterable[CheckpointFile]) -> tuple[str, ...]:
    """Return the files that a full checkpoint lacks although vLLM needs them besides the weights.

    Empty if the checkpoint has no weights; ``verdict`` covers that case.
    """
    names = [name for name in _names_in_checkpoint(checkpoint_id, files) if "/" not in name]
    if not any(_WEIGHT_FILES.fullmatch(name) for name in names):
        return ()
    required_files = (("config.json", _MODEL_CONFIG_FILES), ("tokenizer", _TOKENIZER_FILES))
    has_gguf = any(name.endswith(".gguf") for name in names)
    return (
        ()
        if has_gguf
        else tuple(
            file_name for file_name, pattern in required_files if not any(map(pattern.fullmatch, names))
        )
    )


def not_text(checkpoint: Checkpoint, files: Iterable[CheckpointFile] | None = None) -> str:
    """Explain what this checkpoint is, if its adapter config or files show that it is not a language model.

    Empty otherwise. Names of models are ignored, because they prove nothing.
    """
    config = checkpoint.lora_adapter_config or {}
    mapping = config.get("auto_mapping")
    auto_mapping = mapping if isinstance(mapping, dict) else {}
    if str(auto_mapping.get("parent_library")).partition(".")[0] == "diffusers":
        model = auto_mapping.get("base_model_class")
        return "an adapter of a diffusers model" + (f" ({_quoted(model)})" if isinstance(model, str) else "")
    names = set(_names_in_checkpoint(checkpoint.checkpoint_id, files or ()))
    if _PIPELINE_INDEX in names:
        return "a diffusers pipeline"
    if _PIPELINE_ADAPTER_FILE in names:
        return "an adapter of a diffusers pipeline"
    task = config.get("task_type")
    return f"an adapter for the task {task}" if isinstance(task, str) and task in _NON_TEXT_TASKS else ""


def stored_weight_bytes(
    checkpoints: Sequence[Checkpoint], files: Iterable[CheckpointFile] | None
) -> int | None:
    """Return the size of a full model's weight files; None if unknown, as for a LoRA's base model.

    If the same weights are stored in several formats, only safetensors count, because only safetensors are
    served.
    """
    if files is None or len(checkpoints) != 1 or kind_of(checkpoints[0]) == "lora":
        return None
    checkpoint_id = checkpoints[0].checkpoint_id
    sizes = {
        name_inside(file.relative_file_name, checkpoint_id): file.size_bytes
        for file in files
        if verdict(checkpoint_id, [file]) == "weights"
    }
    tensors = {name: size for name, size in sizes.items() if name.endswith(SAFETENSORS_SUFFIX)}
    weight_sets = {(name.partition("-")[0], name.rpartition("-of-")[2]) for name in tensors or sizes}
    if len(weight_sets) != 1:
        return (
            None  # no weights, or the same weights twice (model-….safetensors and consolidated.safetensors)
        )
    return sum((tensors or sizes).values()) or None


def verdict(checkpoint_id: str, files: Iterable[CheckpointFile]) -> FileVerdict:
    """Classify a checkpoint by its files; ``files`` may include files of other checkpoints.

    Weights count only directly in the checkpoint's folder, from where they are served. Unknown file names are
    unclear.
    """
    result: FileVerdict = "unclear"
    for name in _names_in_checkpoint(checkpoint_id, files):
        if _WEIGHT_FILES.fullmatch(name):
            return "weights"
        if _SHARD_FILES.fullmatch(name):
            result = "shards"
        elif result == "unclear" and _TRAINER_STATE_FILES.fullmatch(name):
            result = "trainer state"
    return result


def _names_in_checkpoint(checkpoint_id: str, files: Iterable[CheckpointFile]) -> Iterator[str]:
    """Yield names relative to the checkpoint's folder; for the root, only files directly in it."""
    for file in files:
        if belongs_to(file.relative_file_name, checkpoint_id):
            name = name_inside(file.relative_file_name, checkpoint_id)
            if checkpoint_id != ROOT_CHECKPOINT or "/" not in name:
                yield name


CheckpointKind = Literal["lora", "full", "whisper", "other"]

_KINDS: dict[str, CheckpointKind] = {"lora": "lora", "full": "full", "whisper": "whisper"}
_MAX_QUOTED_CHARACTERS = 80

_REASONS_BY_VERDICT: dict[FileVerdict, str] = {
    "shards": "sharded weights (FSDP and other distributed checkpoints) cannot be served; merge them into "
    "Hugging Face weights first, or write your own Truss",
    "trainer state": "trainer state for resuming; it has no weights to serve",
}


def kind_of(checkpoint: Checkpoint) -> CheckpointKind:
    """Return the type of the checkpoint's weights, according to the server."""
    return _KINDS.get((checkpoint.checkpoint_type or "").strip().lower(), "other")


def find_checkpoint(checkpoints: Iterable[Checkpoint], job_id: str, name: str) -> Checkpoint | None:
    """Return the job's checkpoint with this name; servers may leave out the job's id."""
    for checkpoint in checkpoints:
        if checkpoint.checkpoint_id == name and checkpoint.training_job_id in ("", job_id):
            return checkpoint
    return None


def why_not_deployable(checkpoint: Checkpoint, files: Iterable[CheckpointFile] | None = None) -> str:
    """Explain why this checkpoint cannot be deployed; empty if it can.

    ``files`` (possibly of the whole job) reveal shards and trainer states that the server reports as
    weights; without them, the server's report is trusted.
    """
    if kind_of(checkpoint) == "other":
        kind = _quoted(checkpoint.checkpoint_type or None)
        return f"unknown type {kind}; only lora, full and whisper checkpoints can be deployed"
    if files is not None:
        reason = _REASONS_BY_VERDICT.get(verdict(checkpoint.checkpoint_id, files), "")
        if reason:
            return reason
    if (checkpoint.sync_status or "").strip().upper() == "SYNCING":
        return "still uploading (SYNCING); wait until it is complete"
    return ""


def check_selection(checkpoints: Sequence[Checkpoint], files: Iterable[CheckpointFile] | None = None) -> str:
    """Explain why these checkpoints cannot be deployed together; empty if they can.

    vLLM serves several LoRAs on one base model; full and Whisper weights are deployed individually.
    """
    if not checkpoints:
        return "choose at least one checkpoint"
    known_files = None if files is None else list(files)
    for checkpoint in checkpoints:
        reason = why_not_deployable(checkpoint, known_files)
        if reason:
            return f"{_quoted(checkpoint.checkpoint_id)}: {reason}"
    if len(checkpoints) == 1:
        return ""
    return _unservable_together(checkpoints)


def _unservable_together(checkpoints: Sequence[Checkpoint]) -> str:
    for checkpoint in checkpoints:
        kind = kind_of(checkpoint)
        if kind != "lora":
            weights = "full weights" if kind == "full" else "Whisper weights"
            return (
                f"{_quoted(checkpoint.checkpoint_id)} has {weights}: only LoRA checkpoints can be served "
                f"together"
            )
    names = [(checkpoint.training_job_id, checkpoint.checkpoint_id) for checkpoint in checkpoints]
    if len(set(names)) < len(names):
        return "the same checkpoint is selected twice"
    if any(checkpoint.checkpoint_id == ROOT_CHECKPOINT for checkpoint in checkpoints):
        return "'.' is the checkpoint folder itself and contains the others; deploy it alone"
    bases = {checkpoint.base_model: checkpoint for checkpoint in checkpoints if checkpoint.base_model}
    if len(bases) > 1:
        first, second, *_ = bases
        return (
            f"adapters of different base models ({_quoted(first)} and {_quoted(second)}) cannot be served "
            f"together"
        )
    return ""


BYTES_PER_GB = 1_000_000_000
MIN_GPU_GB = 0.1  # smaller estimates are shown as "less than 0.1 GB"

_PARAMETER_COUNT = re.compile(
    r"(?<![0-9a-z.])(?:(?P<experts>[0-9]{1,3})x)?(?P<size>[0-9]{1,4}(\.[0-9]{1,3})?)b(?![a-z0-9])"
)


def needed_gpu_bytes(checkpoints: Sequence[Checkpoint]) -> int | None:
    """Estimate the GPU memory of the weights, without the KV cache; None if it is unknown.

    The estimate comes from the parameter count in the base model's name; for full weights without it, from
    the checkpoint's size, which may include optimizer state.
    """
    if not checkpoints:
        return None
    adapters = [checkpoint for checkpoint in checkpoints if kind_of(checkpoint) == "lora"]
    model_bytes = next((size for size in map(_bytes_from_model_name, checkpoints) if size is not None), None)
    if not adapters:
        return model_bytes or checkpoints[0].size_bytes
    return (
        None
        if model_bytes is None
        else model_bytes + sum(checkpoint.size_bytes or 0 for checkpoint in adapters)
    )


def memory_hint(checkpoints: Sequence[Checkpoint]) -> str:
    """Return a sentence about the GPU memory that the checkpoints need; empty if it is unknown."""
    needed_bytes = needed_gpu_bytes(checkpoints)
    if needed_bytes is None:
        return ""
    base_model = next(
        (
            checkpoint.base_model
            for checkpoint in checkpoints
            if _bytes_from_model_name(checkpoint) is not None
        ),
        None,
    )
    if base_model:
        sentence = (
            f"{base_model.split('/')[-1]} needs about {_gigabytes(needed_bytes)} of GPU memory in 16 bits"
        )
    else:
        sentence = f"the weights may need {_gigabytes(needed_bytes)} of GPU memory"
    return f"{sentence}, plus KV cache"


def memory_problem(checkpoints: Sequence[Checkpoint], stored_bytes: int | None, memory_bytes: int) -> str:
    """Explain that the weights need more than this GPU memory; empty if they fit or that is unknown."""
    if not memory_bytes:
        return ""
    needed_bytes = stored_bytes or needed_gpu_bytes(checkpoints)
    if needed_bytes is None or needed_bytes <= memory_bytes:
        return ""
    if stored_bytes:
        return f"the weights take {_gigabytes(stored_bytes)} as stored"
    is_named = any(_bytes_from_model_name(checkpoint) is not None for checkpoint in checkpoints)
    return memory_hint(checkpoints).partition(", plus")[0] if is_named else ""


def _bytes_from_model_name(checkpoint: Checkpoint) -> int | None:
    """Estimate from the size in the model's name: 16 GB for ``Llama-3.1-8B``, 112 GB for ``Mixtral-8x7B``."""
    match = _PARAMETER_COUNT.search((checkpoint.base_model or "").split("/")[-1].lower())
    if match is None:
        return None
    billions = float(match["size"]) * int(match["experts"] or 1)
    return round(billions * 2 * BYTES_PER_GB) or None  # weights are served in 16 bits


def _gigabytes(size_bytes: int) -> str:
    gigabytes = size_bytes / BYTES_PER_GB
    if gigabytes < MIN_GPU_GB:
        return f"less than {MIN_GPU_GB} GB"
    return f"{gigabytes:,.0f} GB" if gigabytes >= 10 else f"{gigabytes:.1f} GB"


# vLLM reserves room for adapters up to one rank from a fixed list. With a rank below an adapter's rank, the
# adapter does not fit; a higher rank only costs memory. The official client does not check this.


@dataclass(frozen=True, slots=True)
class RankAdvice:
    """``default`` is the suggested rank and ``explanation`` a sentence with the reason.

    If no valid rank holds the adapters, there is no default and ``refusal`` says why; otherwise it is empty.
    """

    default: int | None
    explanation: str
    refusal: str = ""


def adapter_ranks(checkpoints: Iterable[Checkpoint]) -> tuple[object, ...]:
    """Return ``r`` from each adapter's config, as the server sent it; None for a config without ``r``.

    Checkpoints that are not adapters are left out.
    """
    return tuple(
        (checkpoint.lora_adapter_config or {}).get("r")
        for checkpoint in checkpoints
        if checkpoint.lora_adapter_config is not None or kind_of(checkpoint) == "lora"
    )


def rank_for(adapter_ranks: Sequence[object]) -> RankAdvice:
    """Suggest the smallest valid rank that fits all adapters."""
    largest = _largest_rank(adapter_ranks)
    if largest is None:
        return RankAdvice(DEFAULT_LORA_RANK, _assumed_rank_reason(adapter_ranks))
    if largest > LORA_RANKS[-1]:
        return RankAdvice(None, "", _rank_too_large(largest))
    smallest_fitting = next(rank for rank in LORA_RANKS if rank >= largest)
    rank_name = "the adapter's rank" if len(adapter_ranks) == 1 else "the largest adapter's rank"
    if smallest_fitting == largest:
        return RankAdvice(smallest_fitting, f"{rank_name} is {smallest_fitting}")
    return RankAdvice(
        smallest_fitting,
        f"{rank_name} is {largest}; {smallest_fitting} is the smallest valid rank that fits it",
    )


def check_rank(value: object, adapter_ranks: Sequence[object]) -> str:
    """Explain in a sentence why ``value`` is not a valid rank for these adapters; empty if it is.

    Strings and floats are not valid ranks.
    """
    largest = _largest_rank(adapter_ranks)
    if largest is not None and largest > LORA_RANKS[-1]:
        return _rank_too_large(largest)
    valid = [rank for rank in LORA_RANKS if rank >= (largest or 0)]
    if type(value) is int and value in valid:
        return ""
    is_rank = type(value) is int and value in LORA_RANKS
    problem = f"is below the adapter's rank {largest}" if is_rank else "is not a LoRA rank"
    return f"{_quoted(value)} {problem}; use {', '.join(map(str, valid))}"


def _largest_rank(values: Iterable[object]) -> int | None:
    return max((rank for rank in map(_parse_rank, values) if rank is not None), default=None)


def _parse_rank(value: object) -> int | None:
    """Parse a rank as JSON may write it: 16 or 16.0; None for other values."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and value > 0 else None


def _assumed_rank_reason(values: Sequence[object]) -> str:
    assumed = f"assuming {DEFAULT_LORA_RANK}"
    ranks = [value for value in values if value is not None]
    if not ranks:
        return f"{assumed}: no rank (r) in adapter_config.json"
    return f"{assumed}: unusable rank in adapter_config.json (r is {_quoted(ranks[0])})"


def _rank_too_large(rank: int) -> str:
    return (
        f"the adapter's rank {_quoted(rank)} is above the maximum of {LORA_RANKS[-1]}; merge the "
        f"adapter into its base model and deploy the full weights instead"
    )


def _quoted(value: object) -> str:
    if value is None:
        return "nothing"
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number with thousands of digits, or deeply nested lists
        return "that"
    return text if len(text) <= _MAX_QUOTED_CHARACTERS else f"{text[:_MAX_QUOTED_CHARACTERS]}…"
