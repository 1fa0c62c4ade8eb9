"""Which checkpoints can be deployed, and which of them together. Every "no" comes with its reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from api_client.deployment.checkpoint_files import ROOT, verdict
from api_client.models import Checkpoint, CheckpointFile

CheckpointKind = Literal["lora", "full", "whisper", "other"]

_KINDS: dict[str, CheckpointKind] = {"lora": "lora", "full": "full", "whisper": "whisper"}
_SHARD_WORDS = ("fsdp", "shard", "distcp", "dcp")
_TRAINER_WORDS = ("trainer", "optimizer", "state")
_LONGEST_SHOWN = 80

_SHARDS_REASON = (
    "sharded weights (FSDP and other distributed checkpoints) cannot be served; merge them into one set of"
    " Hugging Face weights first, or write the Truss by hand"
)
_TRAINER_REASON = "a trainer's state, to resume training from; it holds no weights that can be served"
_SYNCING_REASON = "still being uploaded (SYNCING); it can be deployed once it is complete"


def kind_of(checkpoint: Checkpoint) -> CheckpointKind:
    """What the checkpoint's weights are, by the server's word."""
    return _KINDS.get(_type_of(checkpoint), "other")


def selectable(checkpoint: Checkpoint, files: Iterable[CheckpointFile] | None = None) -> str:
    """Why this checkpoint cannot be deployed; empty if it can.

    ``files`` (of the whole job, if you like) show shards and trainer states that the server takes for
    weights; without them only its own word counts.
    """
    if kind_of(checkpoint) == "other":
        return _unservable_type(_type_of(checkpoint))
    if files is not None:
        found = verdict(checkpoint.checkpoint_id, files)
        if found == "shards":
            return _SHARDS_REASON
        if found == "trainer state":
            return _TRAINER_REASON
    if (checkpoint.sync_status or "").strip().upper() == "SYNCING":
        return _SYNCING_REASON
    return ""


def check_selection(checkpoints: Sequence[Checkpoint], files: Iterable[CheckpointFile] | None = None) -> str:
    """Why these cannot be deployed together; empty if they can.

    vLLM serves several LoRAs on one base model; full and Whisper weights stand alone (API facts, 7).
    """
    if not checkpoints:
        return "choose at least one checkpoint"
    known_files = None if files is None else list(files)
    for checkpoint in checkpoints:
        reason = selectable(checkpoint, known_files)
        if reason:
            return f"{_shown(checkpoint.checkpoint_id)}: {reason}"
    if len(checkpoints) == 1:
        return ""
    return _unservable_together(checkpoints)


def _unservable_together(checkpoints: Sequence[Checkpoint]) -> str:
    for checkpoint in checkpoints:
        kind = kind_of(checkpoint)
        if kind != "lora":
            weights = "full weights" if kind == "full" else "Whisper weights"
            return (
                f"{_shown(checkpoint.checkpoint_id)} holds {weights}, which stand alone: several checkpoints"
                " can be served together only when all are LoRA"
            )
    names = [(checkpoint.training_job_id, checkpoint.checkpoint_id) for checkpoint in checkpoints]
    if len(set(names)) < len(names):
        return "the same checkpoint is chosen twice"
    if any(checkpoint.checkpoint_id == ROOT for checkpoint in checkpoints):
        return "'.' is the checkpoint folder itself, which holds the others; deploy it alone"
    bases = {checkpoint.base_model: checkpoint for checkpoint in checkpoints if checkpoint.base_model}
    if len(bases) > 1:
        first, second, *_ = bases
        return (
            f"these adapters belong to different base models ({_shown(first)} and {_shown(second)}), which"
            " cannot be served together"
        )
    return ""


def _type_of(checkpoint: Checkpoint) -> str:
    return (checkpoint.checkpoint_type or "").strip().lower()


def _unservable_type(name: str) -> str:
    if any(word in name for word in _SHARD_WORDS):
        return _SHARDS_REASON
    if any(word in name for word in _TRAINER_WORDS):
        return _TRAINER_REASON
    known = "only lora, full and whisper checkpoints can be deployed"
    if not name:
        return f"the server does not say what kind of weights it holds; {known}"
    return f"its type {_shown(name)} is unknown; {known}"


def _shown(text: str | None) -> str:
    shown = repr(text or "")
    return shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}…"
