"""Which LoRA rank a deployment needs.

vLLM reserves room for adapters up to one rank from a fixed list. A rank below the adapter's own cannot hold
it; a higher one only costs memory. The official client does not check this (API facts, 7).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from api_client.definitions import DEFAULT_LORA_RANK, LORA_RANKS
from api_client.models import Checkpoint

_LONGEST_SHOWN = 40


@dataclass(frozen=True, slots=True)
class RankAdvice:
    """``default`` is the suggested rank and ``explanation`` a sentence with the reason.

    If no valid rank holds the adapters, there is no default and ``refusal`` says why; otherwise it is
    empty.
    """

    default: int | None
    explanation: str
    refusal: str = ""


def adapter_ranks(checkpoints: Iterable[Checkpoint]) -> tuple[object, ...]:
    """Return ``r`` of each adapter's own config, as the server sent it; None if it has none.

    Checkpoints that are not adapters are left out.
    """
    return tuple(
        (checkpoint.lora_adapter_config or {}).get("r")
        for checkpoint in checkpoints
        if checkpoint.lora_adapter_config is not None
        or (checkpoint.checkpoint_type or "").strip().lower() == "lora"
    )


def rank_for(adapter_ranks: Sequence[object]) -> RankAdvice:
    """Suggest the smallest valid rank that holds all adapters."""
    largest = _largest(adapter_ranks)
    if largest is None:
        return RankAdvice(DEFAULT_LORA_RANK, _why_assumed(adapter_ranks))
    if largest > LORA_RANKS[-1]:
        return RankAdvice(None, "", _too_large(largest))
    fitting = next(rank for rank in LORA_RANKS if rank >= largest)
    owner = "the adapter's rank" if len(adapter_ranks) == 1 else "the largest adapter's rank"
    if fitting == largest:
        return RankAdvice(fitting, f"{owner} is {fitting}")
    return RankAdvice(
        fitting,
        f"{owner} is {largest}; {fitting} is the smallest valid rank that fits it",
    )


def check_rank(value: object, adapter_ranks: Sequence[object]) -> str:
    """Explain in a sentence why ``value`` is not a valid rank; empty if it is.

    Strings and floats are not valid ranks.
    """
    largest = _largest(adapter_ranks)
    if largest is not None and largest > LORA_RANKS[-1]:
        return _too_large(largest)
    if type(value) is not int or value not in LORA_RANKS:
        return f"{_shown(value)} is not a LoRA rank; use {_listed(LORA_RANKS)}"
    if largest is not None and value < largest:
        holding = _listed([rank for rank in LORA_RANKS if rank >= largest])
        return f"{value} is below the adapter's rank {largest}; use {holding}"
    return ""


def _largest(values: Iterable[object]) -> int | None:
    return max((rank for rank in map(_rank, values) if rank is not None), default=None)


def _rank(value: object) -> int | None:
    """Parse a rank as JSON may write it: 16 or 16.0; None for anything else."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and value > 0 else None


def _why_assumed(values: Sequence[object]) -> str:
    assumed = f"assuming {DEFAULT_LORA_RANK}"
    told = [value for value in values if value is not None]
    if not told:
        return f"{assumed}: no rank (r) in adapter_config.json"
    return f"{assumed}: unusable rank in adapter_config.json (r is {_shown(told[0])})"


def _too_large(rank: int) -> str:
    return (
        f"the adapter's rank {_shown(rank)} is above the maximum of {LORA_RANKS[-1]}; merge the "
        f"adapter into its base model and deploy the full weights instead"
    )


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number with thousands of digits, or deeply nested lists
        return "that"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
