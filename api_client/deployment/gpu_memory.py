"""How much GPU memory checkpoints need to be served, roughly."""

from __future__ import annotations

import re
from collections.abc import Sequence

from api_client.deployment.selection import kind_of
from api_client.models import Checkpoint

BYTES_PER_GB = 1_000_000_000
LEAST_GB = 0.1
"""Of less nobody needs to know how much."""
BYTES_PER_WEIGHT = 2
"""Weights are served in 16 bits."""

_BILLIONS = re.compile(
    r"(?<![0-9a-z.])(?:(?P<experts>[0-9]{1,3})x)?(?P<size>[0-9]{1,4}(\.[0-9]{1,3})?)b(?![a-z0-9])"
)


def needed_gpu_bytes(checkpoints: Sequence[Checkpoint]) -> int | None:
    """Roughly the GPU memory that the weights take, without the KV cache; None if nothing tells.

    Full weights by the checkpoint's size (which may hold an optimizer's state as well), adapters by the
    number of weights in their base model's name.
    """
    if not checkpoints:
        return None
    adapters = [checkpoint for checkpoint in checkpoints if kind_of(checkpoint) == "lora"]
    named = next((size for size in map(_named_bytes, checkpoints) if size is not None), None)
    if not adapters:
        return named or checkpoints[0].size_bytes
    return None if named is None else named + sum(checkpoint.size_bytes or 0 for checkpoint in adapters)


def memory_hint(checkpoints: Sequence[Checkpoint]) -> str:
    """A sentence on how much GPU memory these need; empty if nothing tells."""
    needed = needed_gpu_bytes(checkpoints)
    if needed is None:
        return ""
    base = next((each.base_model for each in checkpoints if _named_bytes(each) is not None), None)
    if base:
        what = f"{base.split('/')[-1]} takes about {_gigabytes(needed)} of GPU memory in 16 bits"
    else:
        what = f"the checkpoint is {_gigabytes(needed)}, which its weights may take of GPU memory"
    return f"{what}; the KV cache comes on top"


def _named_bytes(checkpoint: Checkpoint) -> int | None:
    """By the size in the base model's name: ``Llama-3.1-8B`` 16 GB, ``Mixtral-8x7B`` at most 112 GB."""
    match = _BILLIONS.search((checkpoint.base_model or "").split("/")[-1].lower())
    if match is None:
        return None
    billions = float(match["size"]) * int(match["experts"] or 1)
    return round(billions * BYTES_PER_WEIGHT * BYTES_PER_GB) or None


def _gigabytes(size_bytes: int) -> str:
    gigabytes = size_bytes / BYTES_PER_GB
    if gigabytes < LEAST_GB:
        return f"less than {LEAST_GB} GB"
    return f"{gigabytes:,.0f} GB" if gigabytes >= 10 else f"{gigabytes:.1f} GB"
