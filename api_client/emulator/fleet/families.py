"""Checkpoint families: for each kind of run, the files in a checkpoint, with their sizes and content."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from api_client.emulator.fleet.training import TrainingCurves
from api_client.emulator.fleet.weights import (
    Architecture,
    adapter_tensors,
    safetensors_header,
    shards,
    size_bytes,
)

Layout = Literal["transformers", "adapter", "distributed", "verl"]
"""Layout of a checkpoint: whole weights, an adapter, or one shard per rank."""

HISTORY_PER_EVALUATION = 4
HISTORY_ENTRIES = 40
"""Approximate number of log entries in trainer_state.json; a real one keeps them all."""
ADAM_BYTES_PER_WEIGHT_BYTE = 4
"""Adam's two float32 moments are four times the size of bf16 weights."""
RANDOM_STATE_BYTES = 15_984
SCHEDULER_BYTES = 1_465
TRAINING_ARGUMENTS_BYTES = 6_225
TOKENIZER_MODEL_BYTES = 499_723


@dataclass(frozen=True, slots=True)
class FileSpec:
    """A file's design: it begins with ``head``; the rest, up to ``size_bytes``, is noise."""

    name: str
    size_bytes: int
    head: bytes = b""
    node_rank: int = 0

    @property
    def is_whole(self) -> bool:
        """True if ``head`` is the whole file."""
        return len(self.head) == self.size_bytes


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of checkpoint.

    ``kind`` is the API's checkpoint_type (lora, full, whisper). ``directory`` is a checkpoint's name,
    with its step filled in. ``training_state`` is True if the optimizer is saved with the weights.
    ``data_workers`` is the number of data loaders per GPU that save their position.
    """

    key: str
    kind: Literal["lora", "full", "whisper"]
    layout: Layout
    base_model: str
    architecture: Architecture
    training_curves: TrainingCurves
    directory: str = "checkpoint-{step}"
    node_count: int = 1
    gpus_per_node: int = 1
    rank: int = 0
    training_state: bool = True
    data_workers: int = 0

    def adapter_config(self) -> dict[str, Any] | None:
        """Return adapter_config.json for a LoRA family, None for others."""
        if self.kind != "lora":
            return None
        modules = sorted({name.rsplit(".", 1)[-1] for name, _, _ in self.architecture.projections()})
        return {
            "base_model_name_or_path": self.base_model,
            "bias": "none",
            "lora_alpha": 2 * self.rank,
            "lora_dropout": 0.05,
            "peft_type": "LORA",
            "r": self.rank,
            "target_modules": modules,
            "task_type": "CAUSAL_LM",
        }

    def file_specs(self, step: int) -> list[FileSpec]:
        """Return all files of the checkpoint saved at ``step``, sorted by name."""
        writers = {
            "transformers": self._transformers,
            "adapter": self._adapter,
            "distributed": self._distributed,
            "verl": self._verl,
        }
        return sorted(writers[self.layout](step), key=lambda file: (file.name, file.node_rank))

    def _transformers(self, step: int) -> Iterator[FileSpec]:
        yield from weight_files(self.architecture, 0)
        yield _json("config.json", self._config())
        yield _json("generation_config.json", {"do_sample": True, "temperature": 0.6, "top_p": 0.9})
        yield from self._side_files(step, size_bytes(self.architecture.tensors()))

    def _adapter(self, step: int) -> Iterator[FileSpec]:
        tensors = adapter_tensors(self.architecture, self.rank)
        yield from weight_files(self.architecture, self.rank)
        yield _json("adapter_config.json", self.adapter_config())
        yield from self._side_files(step, size_bytes(tensors))

    def _distributed(self, step: int) -> Iterator[FileSpec]:
        """Yield one file per rank with weights and optimizer together (PyTorch distributed checkpoints)."""
        whole = size_bytes(self.architecture.tensors()) * (1 + ADAM_BYTES_PER_WEIGHT_BYTE)
        for node_rank, rank in self._ranks():
            yield FileSpec(f"__{rank}_0.distcp", whole // self._world + rank % 7 * 512, node_rank=node_rank)
        yield FileSpec(".metadata", 1_184_702)
        yield _json("train_state.json", {"step": step, "ntokens_seen": step * self._world * 8192})

    def _verl(self, step: int) -> Iterator[FileSpec]:
        weights = size_bytes(self.architecture.tensors())
        world = self._world
        for node_rank, rank in self._ranks():
            tail = f"world_size_{world}_rank_{rank}.pt"
            yield FileSpec(f"actor/model_{tail}", weights // world, node_rank=node_rank)
            yield FileSpec(
                f"actor/optim_{tail}", weights * ADAM_BYTES_PER_WEIGHT_BYTE // world, node_rank=node_rank
            )
            yield FileSpec(f"actor/extra_state_{tail}", RANDOM_STATE_BYTES, node_rank=node_rank)
        yield _json("actor/huggingface/config.json", self._config())
        yield _json("actor/fsdp_config.json", {"FSDP_version": 2, "world_size": world})
        yield FileSpec("data.pt", 1_492)

    @property
    def _world(self) -> int:
        return self.node_count * max(1, self.gpus_per_node)

    def _ranks(self) -> Iterator[tuple[int, int]]:
        for rank in range(self._world):
            yield rank // max(1, self.gpus_per_node), rank

    def _side_files(self, step: int, weight_bytes: int) -> Iterator[FileSpec]:
        yield _json("special_tokens_map.json", {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>"})
        yield _json("tokenizer_config.json", {"model_max_length": 131072, "padding_side": "right"})
        yield FileSpec("tokenizer.model", TOKENIZER_MODEL_BYTES)
        yield _json("trainer_state.json", self._trainer_state(step))
        yield FileSpec("training_args.bin", TRAINING_ARGUMENTS_BYTES)
        if self.training_state:
            yield FileSpec("optimizer.pt", weight_bytes * ADAM_BYTES_PER_WEIGHT_BYTE + 2_048)
        yield FileSpec("scheduler.pt", SCHEDULER_BYTES)
        for node_rank, rank in self._ranks():
            name = "rng_state.pth" if self._world == 1 else f"rng_state_{rank}.pth"
            yield FileSpec(name, RANDOM_STATE_BYTES, node_rank=node_rank)
            for worker in range(self.data_workers):
                place = {"rank": rank, "worker": worker, "samples_seen": step * 16 + worker}
                yield _json(f"dataloader/rank-{rank:02}/worker-{worker}.json", place, node_rank)
        yield _text("README.md", self._readme(step))

    def _readme(self, step: int) -> str:
        tags = "library_name: peft" if self.kind == "lora" else "library_name: transformers"
        return (
            f"---\nbase_model: {self.base_model}\n{tags}\n---\n\n# {self.key}\n\n"
            f"Made for the demo world of bt-tui: step {step} of {self.training_curves.pace.total_steps}. "
            f"The weights are noise under a true header.\n"
        )

    def _config(self) -> dict[str, object]:
        return {
            "_name_or_path": self.base_model,
            "architectures": [self.architecture.class_name],
            **self.architecture.config(),
            "torch_dtype": "bfloat16",
        }

    def _trainer_state(self, step: int) -> dict[str, object]:
        every = max(1, step // HISTORY_ENTRIES)
        training_curves = self.training_curves
        history = [
            {
                "epoch": round(training_curves.epoch(at), 4),
                "grad_norm": round(training_curves.grad_norm(at), 4),
                "learning_rate": training_curves.learning_rate(at),
                "loss": round(training_curves.loss(at), 4),
                "step": at,
            }
            for at in range(every, step + 1, every)
        ]
        evaluated = {
            at: round(training_curves.eval_loss(at), 4)
            for at in range(step, 0, -every * HISTORY_PER_EVALUATION)
        }
        history += [
            {"epoch": round(training_curves.epoch(at), 4), "eval_loss": loss, "step": at}
            for at, loss in evaluated.items()
        ]
        history.sort(key=lambda entry: entry["step"])
        best = min(evaluated, key=lambda at: (evaluated[at], at))
        return {
            "best_metric": evaluated[best],
            "best_model_checkpoint": f"/mnt/ckpts/{self.directory.format(step=best)}"
            if best == step
            else None,
            "epoch": round(training_curves.epoch(step), 4),
            "global_step": step,
            "log_history": history,
            "max_steps": training_curves.pace.total_steps,
        }


@lru_cache(maxsize=64)
def weight_files(architecture: Architecture, rank: int) -> tuple[FileSpec, ...]:
    """Return safetensors files, with an index if there are several.

    They hold the whole weights if ``rank`` is 0, otherwise an adapter of that rank.
    """
    tensors = adapter_tensors(architecture, rank) if rank else architecture.tensors()
    stem = "adapter_model" if rank else "model"
    parts = shards(tensors)
    files: list[FileSpec] = []
    where: dict[str, str] = {}
    for number, part in enumerate(parts, 1):
        name = f"{stem}.safetensors"
        if len(parts) > 1:
            name = f"{stem}-{number:05}-of-{len(parts):05}.safetensors"
            where.update((tensor.name, name) for tensor in part)
        head = safetensors_header(part)
        files.append(FileSpec(name, len(head) + size_bytes(part), head))
    if where:
        total = {"total_size": size_bytes(tensors)}
        files.append(_json(f"{stem}.safetensors.index.json", {"metadata": total, "weight_map": where}))
    return tuple(files)


def _json(name: str, value: object, node_rank: int = 0) -> FileSpec:
    return _text(name, json.dumps(value, indent=2) + "\n", node_rank)


def _text(name: str, text: str, node_rank: int = 0) -> FileSpec:
    content = text.encode()
    return FileSpec(name, len(content), content, node_rank)
