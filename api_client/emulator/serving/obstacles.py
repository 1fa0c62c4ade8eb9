"""Why a server would not start: what can be told from the checkpoint and the machine alone."""

from __future__ import annotations

from collections.abc import Sequence

from api_client.emulator.serving.chosen import LORA, ChosenCheckpoint
from api_client.models import InstanceType

USABLE_MEMORY = 0.9
"""vLLM's own default for gpu_memory_utilization."""

BYTES_PER_MIB = 1024 * 1024
BYTES_PER_GIB = 1024**3


def obstacle(machine: InstanceType, checkpoints: Sequence[ChosenCheckpoint]) -> str | None:
    """The error the server would end with, or None if nothing is in its way."""
    if machine.gpu_count == 0:
        return f"RuntimeError: Failed to infer device type: {machine.name} has no GPU"
    for checkpoint in checkpoints:
        if checkpoint.weight_bytes == 0:
            return (
                f"RuntimeError: Cannot find any model weights in checkpoint {checkpoint.name!r}:"
                " shards of a distributed trainer must be merged before they can be served"
            )
    weight_bytes = sum(each.weight_bytes or 0 for each in checkpoints if each.kind != LORA)
    memory_bytes = (machine.gpu_memory_limit_mib or 0) * BYTES_PER_MIB * machine.gpu_count
    if memory_bytes and weight_bytes > memory_bytes * USABLE_MEMORY:
        return (
            f"torch.OutOfMemoryError: CUDA out of memory: the weights take {weight_bytes / BYTES_PER_GIB:.0f}"
            f" GiB, {machine.name} has {memory_bytes / BYTES_PER_GIB:.0f} GiB"
        )
    return None
