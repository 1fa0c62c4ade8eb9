"""Tensor shapes of models, enough to write valid safetensors headers."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

BYTES_PER_BF16 = 2
SHARD_LIMIT_BYTES = 5_000_000_000
"""Maximum shard size, the default of transformers: 5 GB."""
HEADER_ALIGNMENT = 8


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Name and shape of a bf16 tensor."""

    name: str
    shape: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        return prod(self.shape) * BYTES_PER_BF16


class Architecture(Hashable, Protocol):
    """A model architecture with its dimensions."""

    @property
    def class_name(self) -> str:
        """Name of the transformers class, as in config.json."""
        ...

    def config(self) -> dict[str, object]:
        """Return the dimensions as in config.json."""
        ...

    def tensors(self) -> list[TensorSpec]:
        """Return all weights in file order."""
        ...

    def projections(self) -> list[tuple[str, int, int]]:
        """Return the linear layers that adapters attach to: (name, inputs, outputs)."""
        ...


@dataclass(frozen=True, slots=True)
class Decoder:
    """A Llama-like decoder (Llama, Qwen, Mistral)."""

    class_name: str
    layers: int
    hidden: int
    intermediate: int
    heads: int
    key_value_heads: int
    vocabulary: int
    head_size: int = 128

    def config(self) -> dict[str, object]:
        return {
            "hidden_size": self.hidden,
            "intermediate_size": self.intermediate,
            "num_attention_heads": self.heads,
            "num_hidden_layers": self.layers,
            "num_key_value_heads": self.key_value_heads,
            "vocab_size": self.vocabulary,
            "max_position_embeddings": 131072,
        }

    def _layer(self) -> list[tuple[str, int, int]]:
        attention, key_value = self.heads * self.head_size, self.key_value_heads * self.head_size
        return [
            ("self_attn.q_proj", self.hidden, attention),
            ("self_attn.k_proj", self.hidden, key_value),
            ("self_attn.v_proj", self.hidden, key_value),
            ("self_attn.o_proj", attention, self.hidden),
            ("mlp.gate_proj", self.hidden, self.intermediate),
            ("mlp.up_proj", self.hidden, self.intermediate),
            ("mlp.down_proj", self.intermediate, self.hidden),
        ]

    def tensors(self) -> list[TensorSpec]:
        found = [TensorSpec("model.embed_tokens.weight", (self.vocabulary, self.hidden))]
        for layer in range(self.layers):
            prefix = f"model.layers.{layer}."
            found += [TensorSpec(f"{prefix}{name}.weight", (out, into)) for name, into, out in self._layer()]
            found += [
                TensorSpec(f"{prefix}{name}.weight", (self.hidden,))
                for name in ("input_layernorm", "post_attention_layernorm")
            ]
        return [
            *found,
            TensorSpec("model.norm.weight", (self.hidden,)),
            TensorSpec("lm_head.weight", (self.vocabulary, self.hidden)),
        ]

    def projections(self) -> list[tuple[str, int, int]]:
        return [
            (f"model.layers.{layer}.{name}", into, out)
            for layer in range(self.layers)
            for name, into, out in self._layer()
        ]


@dataclass(frozen=True, slots=True)
class Encoder:
    """A stack of plain transformer blocks: BERT-like, either half of Whisper, a diffusion transformer."""

    class_name: str
    layers: int
    hidden: int
    vocabulary: int
    prefixes: tuple[str, ...] = ("encoder",)

    def config(self) -> dict[str, object]:
        return {"d_model": self.hidden, "num_hidden_layers": self.layers, "vocab_size": self.vocabulary}

    def _linears(self) -> Iterator[tuple[str, int, int]]:
        for prefix in self.prefixes:
            for layer in range(self.layers):
                for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    yield f"{prefix}.layers.{layer}.self_attn.{name}", self.hidden, self.hidden
                yield f"{prefix}.layers.{layer}.fc1", self.hidden, 4 * self.hidden
                yield f"{prefix}.layers.{layer}.fc2", 4 * self.hidden, self.hidden

    def tensors(self) -> list[TensorSpec]:
        linears = [TensorSpec(f"{name}.weight", (out, into)) for name, into, out in self._linears()]
        return [TensorSpec("embed_tokens.weight", (self.vocabulary, self.hidden)), *linears]

    def projections(self) -> list[tuple[str, int, int]]:
        return list(self._linears())


def adapter_tensors(architecture: Architecture, rank: int) -> list[TensorSpec]:
    """Return the weights of a LoRA adapter of that rank, with peft's names."""
    found = []
    for name, into, out in architecture.projections():
        found.append(TensorSpec(f"base_model.model.{name}.lora_A.weight", (rank, into)))
        found.append(TensorSpec(f"base_model.model.{name}.lora_B.weight", (out, rank)))
    return found


def shards(tensors: Sequence[TensorSpec], limit_bytes: int = SHARD_LIMIT_BYTES) -> list[list[TensorSpec]]:
    """Split the tensors, in order, into files of at most ``limit_bytes``.

    A single larger tensor gets a file of its own.
    """
    found: list[list[TensorSpec]] = [[]]
    size_bytes = 0
    for tensor in tensors:
        if found[-1] and size_bytes + tensor.size_bytes > limit_bytes:
            found.append([])
            size_bytes = 0
        found[-1].append(tensor)
        size_bytes += tensor.size_bytes
    return found


def safetensors_header(tensors: Sequence[TensorSpec]) -> bytes:
    """Return a safetensors header: its length (8 bytes, little-endian), then the JSON padded to 8 bytes."""
    entries: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for tensor in tensors:
        entries[tensor.name] = {
            "dtype": "BF16",
            "shape": tensor.shape,
            "data_offsets": (offset, offset + tensor.size_bytes),
        }
        offset += tensor.size_bytes
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % HEADER_ALIGNMENT)
    return len(text).to_bytes(8, "little") + text


def size_bytes(tensors: Sequence[TensorSpec]) -> int:
    return sum(tensor.size_bytes for tensor in tensors)
