"""What the files of a checkpoint say about it: weights that can be served, shards, a trainer's state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from api_client.models import CheckpointFile

ROOT = "."
"""The name of the checkpoint that is the checkpoint folder itself (API facts, 2.1)."""

FileVerdict = Literal["weights", "shards", "trainer state", "unclear"]

_RANK_FOLDER = re.compile(r"rank-[0-9]+/", re.ASCII)
_WEIGHTS = re.compile(
    r"[^/]*\.safetensors|[^/]*\.gguf|(pytorch_model(?!_fsdp)|adapter_model)[^/]*\.bin|consolidated[^/]*\.pth"
)
_SHARDS = re.compile(
    r"(.*/)?("
    r"__[0-9]+_[0-9]+\.distcp|fsdp_config\.json"
    r"|model_world_size_[0-9]+_rank_[0-9]+\.pt|pytorch_model_fsdp(_[0-9]+)?(\.bin|/.*)"
    r"|[^/]*mp_rank_[0-9]+_model_states\.pt"
    r")"
)
_TRAINER_STATE = re.compile(
    r"(.*/)?(optimizer[^/]*\.(pt|bin)|scheduler\.pt|trainer_state\.json|train_state\.json"
    r"|training_args\.bin|rng_state[^/]*\.pth|[^/]*_optim_states\.pt)"
)
_MODEL_CONFIG = re.compile(r"config\.json|params\.json")
_TOKENIZER = re.compile(r"tokenizer.*|vocab\..*|spiece\.model|tekken\.json|[^/]*\.gguf")


def telling_files(files: Iterable[CheckpointFile]) -> tuple[CheckpointFile, ...]:
    """The few of a job's files by whose names ``verdict`` and ``missing_parts`` go."""
    known = (_WEIGHTS, _SHARDS, _TRAINER_STATE, _MODEL_CONFIG, _TOKENIZER)
    return tuple(
        file
        for file in files
        if any(
            one.fullmatch(name)
            for name in (file.relative_file_name, file.relative_file_name.rpartition("/")[2])
            for one in known
        )
    )


def missing_parts(checkpoint_id: str, files: Iterable[CheckpointFile]) -> tuple[str, ...]:
    """What vLLM needs beside the weights of a full model and does not find in this checkpoint's folder.

    Nothing is missing where no weights are: ``verdict`` speaks of that.
    """
    names = [name for name in _own_names(checkpoint_id, files) if "/" not in name]
    if not any(_WEIGHTS.fullmatch(name) for name in names):
        return ()
    parts = (("config.json", _MODEL_CONFIG), ("tokenizer", _TOKENIZER))
    is_whole = any(name.endswith(".gguf") for name in names)
    return () if is_whole else tuple(part for part, known in parts if not any(map(known.fullmatch, names)))


def verdict(checkpoint_id: str, files: Iterable[CheckpointFile]) -> FileVerdict:
    """What the files of this checkpoint are; ``files`` may hold those of others too.

    Weights count where they are served from: directly in the checkpoint's folder. Only known names speak
    against a checkpoint, so an unknown layout is unclear.
    """
    found: FileVerdict = "unclear"
    for name in _own_names(checkpoint_id, files):
        if _WEIGHTS.fullmatch(name):
            return "weights"
        if _SHARDS.fullmatch(name):
            found = "shards"
        elif found == "unclear" and _TRAINER_STATE.fullmatch(name):
            found = "trainer state"
    return found


def _own_names(checkpoint_id: str, files: Iterable[CheckpointFile]) -> Iterator[str]:
    """Names from the checkpoint's folder; of the root's, only those not in another folder."""
    folder = f"{checkpoint_id}/"
    for file in files:
        name = file.relative_file_name.removeprefix("./")
        rank_folder = _RANK_FOLDER.match(name)
        if rank_folder and not checkpoint_id.startswith(rank_folder[0]):
            name = name[rank_folder.end() :].removeprefix("./")
        if checkpoint_id == ROOT:
            if "/" not in name:
                yield name
        elif name.startswith(folder):
            yield name.removeprefix(folder)
