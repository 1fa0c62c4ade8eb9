"""The rank a server must be started with to load adapters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from api_client.emulator.faults import invalid

SERVED_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""What vLLM takes as max_lora_rank (API facts, 7)."""

UNSAID_RANK = 16
"""The rank of an adapter whose configuration says none."""


def adapter_rank(configuration: Any) -> int:
    """``r`` of an adapter_config.json, or what is assumed where it is missing or no number."""
    rank = configuration.get("r") if isinstance(configuration, dict) else None
    if isinstance(rank, int) and not isinstance(rank, bool) and rank > 0:
        return rank
    return UNSAID_RANK


def served_rank(adapter_ranks: Iterable[int]) -> int:
    """The smallest rank that holds all of them; raises an ``ApiFault`` if there is none."""
    largest = max(adapter_ranks)
    for rank in SERVED_RANKS:
        if rank >= largest:
            return rank
    raise invalid(f"LoRA rank {largest} cannot be served: the largest possible is {SERVED_RANKS[-1]}")
