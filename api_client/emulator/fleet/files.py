"""The files of the demo world's caches and checkpoints, generated on demand.

JSON files have plausible content. Weights have a valid safetensors header with the tensors of the real model,
followed by noise; the same range of the same file always has the same bytes.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import shake_128
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from api_client.clock import moment_at
from api_client.emulator.fleet.training import TrainingCurves, mix
from api_client.models import CachedFile
from api_client.models.logs import NS_PER_S

ADAM_FACTOR = 4
"""Adam's two float32 moments are four times the size of bf16 weights."""
NOISE_BLOCK_BYTES = 64 * 1024

Tensor = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class FileSpec:
    """A generated file: ``head``, then noise up to ``size_bytes``."""

    name: str
    size_bytes: int
    head: bytes = b""
    node_rank: int = 0

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from ``start`` (inclusive) to ``end`` (exclusive), limited to the file's size."""
        start, end = max(0, start), min(end, self.size_bytes)
        content = bytearray(self.head[start:end])
        while start + len(content) < end:
            block, offset = divmod(start + len(content), NOISE_BLOCK_BYTES)
            content += _noise(self.name, block)[offset : offset + end - start - len(content)]
        return bytes(content)


@lru_cache(maxsize=8)
def _noise(name: str, block: int) -> bytes:
    return shake_128(f"{name}:{block}".encode()).digest(NOISE_BLOCK_BYTES)


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A model's dimensions; ``linears`` are the layers that adapters attach to: (name, inputs, outputs)."""

    name: str
    class_name: str
    layers: int
    hidden: int
    vocabulary: int
    linears: tuple[tuple[str, int, int], ...]
    prefixes: tuple[str, ...]
    library: str | None = None
    """``parent_library`` in peft's adapter config; None for models of the transformers library."""

    def tensors(self, lora_rank: int) -> Iterator[Tensor]:
        """Yield the weights of the model (rank 0) or of a LoRA adapter of that rank, in file order."""
        if not lora_rank:
            yield "model.embed_tokens.weight", (self.vocabulary, self.hidden)
        for prefix, layer, (linear, inputs, outputs) in product(
            self.prefixes, range(self.layers), self.linears
        ):
            name = f"{prefix}.{layer}.{linear}"
            if lora_rank:
                yield f"base_model.model.{name}.lora_A.weight", (lora_rank, inputs)
                yield f"base_model.model.{name}.lora_B.weight", (outputs, lora_rank)
            else:
                yield f"{name}.weight", (outputs, inputs)

    def config(self) -> dict[str, object]:
        return {
            "_name_or_path": self.name,
            "architectures": [self.class_name],
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "vocab_size": self.vocabulary,
            "torch_dtype": "bfloat16",
        }


@lru_cache(maxsize=64)
def weight_files(model: ModelShape, lora_rank: int) -> tuple[FileSpec, ...]:
    """Return the safetensors files, at most 5 GB each, and an index if there are several files."""
    shards: list[list[Tensor]] = [[]]
    for tensor in model.tensors(lora_rank):
        # The default maximum shard size of transformers
        if shards[-1] and _bf16_bytes(*shards[-1], tensor) > 5_000_000_000:
            shards.append([])
        shards[-1].append(tensor)
    stem, count = "adapter_model" if lora_rank else "model", len(shards)
    if count == 1:
        return (_safetensors_spec(f"{stem}.safetensors", shards[0]),)
    files = {f"{stem}-{n + 1:05}-of-{count:05}.safetensors": shard for n, shard in enumerate(shards)}
    shard_of = {tensor: name for name, shard in files.items() for tensor, _ in shard}
    metadata = {"total_size": sum(_bf16_bytes(*shard) for shard in shards)}
    index = _json_spec(f"{stem}.safetensors.index.json", {"metadata": metadata, "weight_map": shard_of})
    return (*(_safetensors_spec(name, shard) for name, shard in files.items()), index)


def _bf16_bytes(*tensors: Tensor) -> int:
    return sum(prod(shape) for _, shape in tensors) * 2  # bf16


def _safetensors_spec(name: str, tensors: list[Tensor]) -> FileSpec:
    """Build a file with a header: its length (8 bytes, little-endian), then JSON padded to 8 bytes."""
    entries: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for tensor, shape in tensors:
        start, end = end, end + _bf16_bytes((tensor, shape))
        entries[tensor] = {"dtype": "BF16", "shape": shape, "data_offsets": (start, end)}
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    head = len(text).to_bytes(8, "little") + text
    return FileSpec(name, len(head) + end, head)


def _json_spec(name: str, value: object, node_rank: int = 0) -> FileSpec:
    content = json.dumps(value, indent=2).encode() + b"\n"
    return FileSpec(name, len(content), content, node_rank)


@dataclass(frozen=True, slots=True)
class Family:
    """A type of checkpoint: full weights, a LoRA adapter of ``rank``, or a shard per GPU.

    ``kind`` is the API's checkpoint_type. ``directory`` is the template of a checkpoint's name.
    ``has_optimizer`` is True if the optimizer state is saved with the weights. ``data_workers`` is the number
    of data loaders per GPU that save their position.
    """

    kind: Literal["lora", "full", "whisper"]
    model: ModelShape
    nodes: int = 1
    gpus: int = 1
    rank: int = 0
    layout: Literal["transformers", "distributed", "verl"] = "transformers"
    directory: str = "checkpoint-{step}"
    has_optimizer: bool = True
    data_workers: int = 0

    def adapter_config(self) -> dict[str, Any] | None:
        """Return adapter_config.json for a LoRA family, None for other families."""
        if not self.rank:
            return None
        library = self.model.library
        mapping = {"base_model_class": self.model.class_name, "parent_library": library}
        return {
            "base_model_name_or_path": self.model.name,
            "bias": "none",
            "lora_alpha": 2 * self.rank,
            "lora_dropout": 0.05,
            "peft_type": "LORA",
            "r": self.rank,
            "auto_mapping": mapping if library else None,
            "target_modules": sorted(name.rsplit(".", 1)[-1] for name, _, _ in self.model.linears),
            "task_type": None if library else "CAUSAL_LM",
        }

    def file_specs(self, step: int, curves: TrainingCurves) -> list[FileSpec]:
        """Return all files of the checkpoint saved at ``step``, sorted by name."""
        ranks = [(rank // self.gpus, rank) for rank in range(self.nodes * self.gpus)]
        size_factors = {
            "distributed": {"__{rank}_0.distcp": 1 + ADAM_FACTOR},
            "verl": {
                "actor/model_world_size_{world}_rank_{rank}.pt": 1,
                "actor/optim_world_size_{world}_rank_{rank}.pt": ADAM_FACTOR,
            },
        }.get(self.layout)
        files = [
            *(
                self._transformers_files(step, curves)
                if size_factors is None
                else self._sharded_files(step, size_factors, ranks)
            ),
            *(FileSpec(f"rng_state_{rank}.pth", 15_984, node_rank=node) for node, rank in ranks),
        ]
        for worker in range(self.data_workers):
            for node, rank in ranks:
                position = {"rank": rank, "worker": worker, "samples_seen": step * 16 + worker}
                files.append(_json_spec(f"dataloader/rank-{rank:02}/worker-{worker}.json", position, node))
        return sorted(files, key=lambda file: (file.name, file.node_rank))

    def _transformers_files(self, step: int, curves: TrainingCurves) -> Iterator[FileSpec]:
        yield from weight_files(self.model, self.rank)
        if self.rank:
            yield _json_spec("adapter_config.json", self.adapter_config())
        else:
            yield _json_spec("config.json", self.model.config())
            yield _json_spec("generation_config.json", {"do_sample": True, "temperature": 0.6, "top_p": 0.9})
        yield _json_spec("tokenizer_config.json", {"model_max_length": 131072, "padding_side": "right"})
        yield _json_spec("trainer_state.json", self._trainer_state(step, curves))
        yield FileSpec("training_args.bin", 6_225)
        yield FileSpec("scheduler.pt", 1_465)
        if self.has_optimizer:
            yield FileSpec("optimizer.pt", _bf16_bytes(*self.model.tensors(self.rank)) * ADAM_FACTOR + 2_048)
        note = f"Made for the demo world of bt-tui: step {step}. The weights are noise under a true header.\n"
        text = f"---\nbase_model: {self.model.name}\n---\n\n{note}".encode()
        yield FileSpec("README.md", len(text), text)

    def _sharded_files(
        self, step: int, size_factors: Mapping[str, int], ranks: Sequence[tuple[int, int]]
    ) -> Iterator[FileSpec]:
        shard_bytes = _bf16_bytes(*self.model.tensors(0)) // len(ranks)
        for template, factor in size_factors.items():
            for node, rank in ranks:
                yield FileSpec(
                    template.format(rank=rank, world=len(ranks)), shard_bytes * factor, node_rank=node
                )
        yield _json_spec("huggingface/config.json", self.model.config())
        yield _json_spec("train_state.json", {"step": step, "world_size": len(ranks)})

    def _trainer_state(self, step: int, curves: TrainingCurves) -> dict[str, object]:
        interval = max(1, step // 40)  # a real trainer state has every entry
        eval_losses = {
            logged_step: round(curves.eval_loss(logged_step), 4)
            for logged_step in range(step, 0, -interval * 4)
        }
        history: list[dict[str, Any]] = [
            {
                "epoch": round(curves.epoch(logged_step), 4),
                "grad_norm": round(curves.grad_norm(logged_step), 4),
                "learning_rate": curves.learning_rate(logged_step),
                "loss": round(curves.loss(logged_step), 4),
                "step": logged_step,
            }
            for logged_step in range(interval, step + 1, interval)
        ]
        history += [
            {"epoch": round(curves.epoch(logged_step), 4), "eval_loss": loss, "step": logged_step}
            for logged_step, loss in eval_losses.items()
        ]
        best_step = min(eval_losses, key=lambda logged_step: (eval_losses[logged_step], logged_step))
        return {
            "best_metric": eval_losses[best_step],
            "best_model_checkpoint": f"/mnt/ckpts/{self.directory.format(step=best_step)}"
            if best_step == step
            else None,
            "epoch": round(curves.epoch(step), 4),
            "global_step": step,
            "log_history": sorted(history, key=lambda entry: entry["step"]),
            "max_steps": curves.steps,
        }


NumberedFiles = tuple[str, int, int, int]
"""Name template, count, size of the first file and size increase from file to file, in bytes.

Templates may use ``{n}`` (from 0), ``{number}`` (from 1) and ``{count}``.
"""
CacheTree = tuple[NumberedFiles, ...]


@lru_cache(maxsize=8)
def cached_files(tree: CacheTree | None, epoch_ns: int) -> list[CachedFile] | None:
    """List all files and directories of a cache, sorted by path; None if there is no cache."""
    if tree is None:
        return None
    entries: dict[str, CachedFile] = {}
    for template, count, size_bytes, growth_bytes in tree:
        for n in range(count):
            path, size = template.format(n=n, number=n + 1, count=count), size_bytes + n * growth_bytes
            age_s = 3_600 + mix(len(path), size) % (12 * 86_400 - 3_600)  # up to twelve days
            modified = moment_at(epoch_ns - age_s * NS_PER_S).isoformat()
            for end in range(path.count("/")):
                folder = path.rsplit("/", end + 1)[0]
                entries.setdefault(folder, _cached_file(folder, 4096, modified, "directory", "drwxr-xr-x"))
            entries[path] = _cached_file(path, size, modified, "file", "-rw-r--r--")
    return [entries[path] for path in sorted(entries)]


def _cached_file(path: str, size_bytes: int, modified: str, file_type: str, permissions: str) -> CachedFile:
    return CachedFile.model_construct(
        path=path, size_bytes=size_bytes, modified=modified, file_type=file_type, permissions=permissions
    )


_FILES_TOML = tomllib.loads(Path(__file__).with_name("files.toml").read_text(encoding="utf-8"))
_MODEL_SHAPES = TypeAdapter(dict[str, ModelShape]).validate_python(_FILES_TOML["models"])
CACHES = TypeAdapter(dict[str, CacheTree]).validate_python(_FILES_TOML["caches"])
"""Cache contents by project; a project that is not listed has no cache."""
FAMILIES = {
    name: Family(**fields | {"model": _MODEL_SHAPES[fields["model"]]})
    for name, fields in _FILES_TOML["families"].items()
}
"""The types of checkpoints that the demo world's jobs write, by name."""
