"""The files of the demo world's checkpoints, generated on demand.

JSON files have the content that their names promise. Weights have a valid safetensors header with the
tensors of the real model, followed by noise; the same range of the same file always has the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import shake_128
from itertools import product
from math import prod
from typing import Any, Literal

from api_client.emulator.fleet.training import TrainingCurves

BYTES_PER_BF16 = 2
SHARD_LIMIT_BYTES = 5_000_000_000
"""Maximum shard size, the default of transformers: 5 GB."""
ADAM_FACTOR = 4
"""Adam's two float32 moments are four times the size of bf16 weights."""
HEAD_SIZE, KEY_VALUE_SIZE = 128, 1024
RANDOM_STATE_BYTES = 15_984
HISTORY_ENTRIES, HISTORY_PER_EVALUATION = 40, 4
"""Approximate number of log entries in trainer_state.json; a real one keeps them all."""
NOISE_BLOCK_BYTES = 64 * 1024

Tensor = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class FileSpec:
    """A file's design: it begins with ``head``; the rest, up to ``size_bytes``, is noise."""

    name: str
    size_bytes: int
    head: bytes = b""
    node_rank: int = 0

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from ``start`` (inclusive) to ``end`` (exclusive), limited to the file's size."""
        start, end = max(0, start), min(end, self.size_bytes)
        content = bytearray(self.head[start:end])
        while start + len(content) < end:
            number, skip = divmod(start + len(content), NOISE_BLOCK_BYTES)
            content += _noise(self.name, number)[skip : skip + end - start - len(content)]
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

    def tensors(self, rank: int) -> Iterator[Tensor]:
        """Yield the weights in file order, or those of a LoRA adapter of that rank, with peft's names."""
        if not rank:
            yield "model.embed_tokens.weight", (self.vocabulary, self.hidden)
        for prefix, layer, (linear, into, out) in product(self.prefixes, range(self.layers), self.linears):
            name = f"{prefix}.{layer}.{linear}"
            if rank:
                yield f"base_model.model.{name}.lora_A.weight", (rank, into)
                yield f"base_model.model.{name}.lora_B.weight", (out, rank)
            else:
                yield f"{name}.weight", (out, into)

    @property
    def auto_mapping(self) -> dict[str, str] | None:
        """Return what peft writes into an adapter's config for a model that is not of transformers."""
        if not self.class_name.endswith("Transformer2DModel"):
            return None
        return {"base_model_class": self.class_name, "parent_library": "diffusers.models.transformers"}

    def config(self) -> dict[str, object]:
        return {
            "_name_or_path": self.name,
            "architectures": [self.class_name],
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "vocab_size": self.vocabulary,
            "torch_dtype": "bfloat16",
        }


def decoder(
    name: str, class_name: str, layers: int, hidden: int, inner: int, heads: int, vocabulary: int
) -> ModelShape:
    linears = (
        ("self_attn.q_proj", hidden, heads * HEAD_SIZE),
        ("self_attn.k_proj", hidden, KEY_VALUE_SIZE),
        ("self_attn.v_proj", hidden, KEY_VALUE_SIZE),
        ("self_attn.o_proj", heads * HEAD_SIZE, hidden),
        ("mlp.gate_proj", hidden, inner),
        ("mlp.up_proj", hidden, inner),
        ("mlp.down_proj", inner, hidden),
    )
    return ModelShape(name, class_name, layers, hidden, vocabulary, linears, ("model.layers",))


def encoder(
    name: str, class_name: str, layers: int, hidden: int, vocabulary: int, *prefixes: str
) -> ModelShape:
    """Return plain transformer blocks: BERT-like, either half of Whisper, a diffusion transformer."""
    attention = tuple((f"self_attn.{part}_proj", hidden, hidden) for part in ("q", "k", "v", "out"))
    linears = (*attention, ("fc1", hidden, 4 * hidden), ("fc2", 4 * hidden, hidden))
    return ModelShape(name, class_name, layers, hidden, vocabulary, linears, prefixes)


@lru_cache(maxsize=64)
def weight_files(model: ModelShape, rank: int) -> tuple[FileSpec, ...]:
    """Return the safetensors files, of at most 5 GB each, with an index if there are several."""
    shards: list[list[Tensor]] = [[]]
    for tensor in model.tensors(rank):
        if shards[-1] and _size(*shards[-1], tensor) > SHARD_LIMIT_BYTES:
            shards.append([])
        shards[-1].append(tensor)
    stem, count = "adapter_model" if rank else "model", len(shards)
    if count == 1:
        return (_weights(f"{stem}.safetensors", shards[0]),)
    files = {f"{stem}-{n + 1:05}-of-{count:05}.safetensors": shard for n, shard in enumerate(shards)}
    shard_of = {tensor: name for name, shard in files.items() for tensor, _ in shard}
    total = {"total_size": sum(_size(*shard) for shard in shards)}
    index = _json(f"{stem}.safetensors.index.json", {"metadata": total, "weight_map": shard_of})
    return (*(_weights(name, shard) for name, shard in files.items()), index)


def _size(*tensors: Tensor) -> int:
    return sum(prod(shape) for _, shape in tensors) * BYTES_PER_BF16


def _weights(name: str, tensors: list[Tensor]) -> FileSpec:
    """Build a file with a header: its length (8 bytes, little-endian), then JSON padded to 8 bytes."""
    entries: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for tensor, shape in tensors:
        start, end = end, end + _size((tensor, shape))
        entries[tensor] = {"dtype": "BF16", "shape": shape, "data_offsets": (start, end)}
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    head = len(text).to_bytes(8, "little") + text
    return FileSpec(name, len(head) + end, head)


def _json(name: str, value: object, node_rank: int = 0) -> FileSpec:
    content = json.dumps(value, indent=2).encode() + b"\n"
    return FileSpec(name, len(content), content, node_rank)


SHARDS = {
    "distributed": {"__{rank}_0.distcp": 1 + ADAM_FACTOR},
    "verl": {
        "actor/model_world_size_{world}_rank_{rank}.pt": 1,
        "actor/optim_world_size_{world}_rank_{rank}.pt": ADAM_FACTOR,
    },
}
"""Files of each rank in the layouts of distributed trainers, and their size relative to its weights."""


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of checkpoint: whole weights, an adapter of ``rank``, or one shard per GPU.

    ``kind`` is the API's checkpoint_type. ``directory`` is a checkpoint's name, with its step filled in.
    ``has_optimizer`` is True if the optimizer is saved with the weights. ``data_workers`` is the number of
    data loaders per GPU that save their position.
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
        """Return adapter_config.json for a LoRA family, None for others."""
        if not self.rank:
            return None
        return {
            "base_model_name_or_path": self.model.name,
            "bias": "none",
            "lora_alpha": 2 * self.rank,
            "lora_dropout": 0.05,
            "peft_type": "LORA",
            "r": self.rank,
            "auto_mapping": self.model.auto_mapping,
            "target_modules": sorted(name.rsplit(".", 1)[-1] for name, _, _ in self.model.linears),
            "task_type": None if self.model.auto_mapping else "CAUSAL_LM",
        }

    def file_specs(self, step: int, curves: TrainingCurves) -> list[FileSpec]:
        """Return all files of the checkpoint saved at ``step``, sorted by name."""
        ranks = [(rank // self.gpus, rank) for rank in range(self.nodes * self.gpus)]
        shards = SHARDS.get(self.layout)
        files = [
            *(self._merged(step, curves) if shards is None else self._sharded(step, shards, ranks)),
            *(FileSpec(f"rng_state_{rank}.pth", RANDOM_STATE_BYTES, node_rank=node) for node, rank in ranks),
        ]
        for worker in range(self.data_workers):
            for node, rank in ranks:
                position = {"rank": rank, "worker": worker, "samples_seen": step * 16 + worker}
                files.append(_json(f"dataloader/rank-{rank:02}/worker-{worker}.json", position, node))
        return sorted(files, key=lambda file: (file.name, file.node_rank))

    def _merged(self, step: int, curves: TrainingCurves) -> Iterator[FileSpec]:
        yield from weight_files(self.model, self.rank)
        if self.rank:
            yield _json("adapter_config.json", self.adapter_config())
        else:
            yield _json("config.json", self.model.config())
            yield _json("generation_config.json", {"do_sample": True, "temperature": 0.6, "top_p": 0.9})
        yield _json("tokenizer_config.json", {"model_max_length": 131072, "padding_side": "right"})
        yield _json("trainer_state.json", self._trainer_state(step, curves))
        yield FileSpec("training_args.bin", 6_225)
        yield FileSpec("scheduler.pt", 1_465)
        if self.has_optimizer:
            yield FileSpec("optimizer.pt", _size(*self.model.tensors(self.rank)) * ADAM_FACTOR + 2_048)
        note = f"Made for the demo world of bt-tui: step {step}. The weights are noise under a true header.\n"
        text = f"---\nbase_model: {self.model.name}\n---\n\n{note}".encode()
        yield FileSpec("README.md", len(text), text)

    def _sharded(
        self, step: int, shards: Mapping[str, int], ranks: Sequence[tuple[int, int]]
    ) -> Iterator[FileSpec]:
        share_bytes = _size(*self.model.tensors(0)) // len(ranks)
        for template, factor in shards.items():
            for node, rank in ranks:
                yield FileSpec(
                    template.format(rank=rank, world=len(ranks)), share_bytes * factor, node_rank=node
                )
        yield _json("huggingface/config.json", self.model.config())
        yield _json("train_state.json", {"step": step, "world_size": len(ranks)})

    def _trainer_state(self, step: int, curves: TrainingCurves) -> dict[str, object]:
        every = max(1, step // HISTORY_ENTRIES)
        evaluated = {
            at: round(curves.eval_loss(at), 4) for at in range(step, 0, -every * HISTORY_PER_EVALUATION)
        }
        history: list[dict[str, Any]] = [
            {
                "epoch": round(curves.epoch(at), 4),
                "grad_norm": round(curves.grad_norm(at), 4),
                "learning_rate": curves.learning_rate(at),
                "loss": round(curves.loss(at), 4),
                "step": at,
            }
            for at in range(every, step + 1, every)
        ]
        history += [
            {"epoch": round(curves.epoch(at), 4), "eval_loss": loss, "step": at}
            for at, loss in evaluated.items()
        ]
        best = min(evaluated, key=lambda at: (evaluated[at], at))
        return {
            "best_metric": evaluated[best],
            "best_model_checkpoint": f"/mnt/ckpts/{self.directory.format(step=best)}"
            if best == step
            else None,
            "epoch": round(curves.epoch(step), 4),
            "global_step": step,
            "log_history": sorted(history, key=lambda entry: entry["step"]),
            "max_steps": curves.pace.total_steps,
        }


LLAMA_70B = decoder("meta-llama/Llama-3.1-70B-Instruct", "LlamaForCausalLM", 80, 8192, 28672, 64, 128256)
LLAMA_8B = decoder("meta-llama/Llama-3.1-8B-Instruct", "LlamaForCausalLM", 32, 4096, 14336, 32, 128256)
MISTRAL = decoder(
    "mistralai/Mistral-Small-24B-Instruct-2501", "MistralForCausalLM", 40, 5120, 32768, 32, 131072
)
QWEN_8B = decoder("Qwen/Qwen3-8B", "Qwen3ForCausalLM", 36, 4096, 12288, 32, 151936)
QWEN_14B = decoder("Qwen/Qwen3-14B", "Qwen3ForCausalLM", 40, 5120, 17408, 40, 151936)
MINITRON = decoder("nvidia/Minitron-8B-Base", "NemotronForCausalLM", 32, 4096, 16384, 48, 256000)
WHISPER_PARTS = ("model.encoder.layers", "model.decoder.layers")
WHISPER_LARGE = encoder(
    "openai/whisper-large-v3", "WhisperForConditionalGeneration", 32, 1280, 51866, *WHISPER_PARTS
)
WHISPER_SMALL = encoder(
    "openai/whisper-small", "WhisperForConditionalGeneration", 12, 768, 51865, *WHISPER_PARTS
)
FLUX = encoder(
    "black-forest-labs/FLUX.1-dev",
    "FluxTransformer2DModel",
    38,
    3072,
    4096,
    "transformer.single_transformer_blocks.layers",
)
BGE = encoder("BAAI/bge-m3", "XLMRobertaModel", 24, 1024, 250002, "encoder.layers")

FAMILIES = {
    # A job with eighteen of these checkpoints has over 5,000 files.
    "llama-70b-full": Family("full", LLAMA_70B, 4, 8, has_optimizer=False, data_workers=8),
    "llama-70b-lora": Family("lora", LLAMA_70B, 4, 8, rank=64),
    "llama-8b-lora": Family("lora", LLAMA_8B, gpus=8, rank=16),
    "mistral-24b-lora": Family("lora", MISTRAL, gpus=8, rank=24),
    "qwen3-8b-grpo": Family("full", QWEN_8B, 2, 8, layout="verl", directory="global_step_{step}"),
    "qwen3-8b-full": Family("full", QWEN_8B, gpus=8),
    "whisper-large": Family("whisper", WHISPER_LARGE),
    "whisper-small": Family("whisper", WHISPER_SMALL),
    "flux-lora": Family("lora", FLUX, rank=16, has_optimizer=False),
    "bge-large": Family("full", BGE, directory=".", has_optimizer=False),
    "qwen3-14b-titan": Family("full", QWEN_14B, gpus=8, layout="distributed", directory="step-{step}"),
    "minitron-8b": Family("full", MINITRON, gpus=8, layout="distributed", directory="iter_{step:07}"),
}
"""Checkpoint families written by the demo world's jobs."""
