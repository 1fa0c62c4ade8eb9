"""Which LoRA ranks can be served, and which an adapter gets."""

from __future__ import annotations

import pytest
from deployable import checkpoint

from api_client.definitions import LORA_RANKS
from api_client.servable import adapter_ranks, check_rank, rank_for

LIST = "use 16, 32, 64, 128, 256, 320, 512"


HUGE = pytest.param(10**5000, id="huge")


@pytest.mark.parametrize(
    "value", [0, 1, 7, 24, 100, 513, -8, "16", "16" * 99, 16.5, 16.0, None, True, [16], HUGE]
)
@pytest.mark.proves("docs/commands.md", "Inspect, download and deploy checkpoints")
def test_any_other_is_refused_with_the_list(value: object) -> None:
    problem = check_rank(value, [16])
    assert LIST in problem
    assert len(problem) < 200


@pytest.mark.parametrize(
    ("ranks", "rank"),
    [
        *(([rank], rank) for rank in LORA_RANKS),
        *(([64.0], 64), ([24], 32), ([1], 8), ([9], 16), ([257], 320), ([321], 512)),
        *(([], 16), ([8, 64, None, 16], 64), ([8, 100, 16], 128)),
    ],
)
def test_the_smallest_valid_rank_that_holds_the_largest_is_advised(ranks: list[object], rank: int) -> None:
    advice = rank_for(ranks)
    assert (advice.default, advice.refusal) == (rank, "")
    largest = max((each for each in ranks if each), default=rank)
    assert f"is {largest:g}" in advice.explanation or not ranks
    assert (f"{rank} is the smallest valid rank" in advice.explanation) == (largest != rank)
    for other in LORA_RANKS:
        problem = check_rank(other, ranks)
        assert (problem == "") == (other >= rank or not ranks)
        assert f"below the adapter's rank {largest:g}; use {rank}" in problem or not problem


@pytest.mark.parametrize("r", [600, 513, HUGE])
def test_above_the_largest_nothing_is_offered(r: int) -> None:
    advice = rank_for([16, r])
    assert advice.default is None
    assert "512" in advice.refusal
    for rank in LORA_RANKS:
        assert check_rank(rank, [16, r]) == advice.refusal


@pytest.mark.parametrize(
    "r",
    [None, "abc", "64", pytest.param([10**5000], id="nested"), 16.5, True, 0, -8, float("nan"), float("inf")],
)
def test_an_adapter_that_tells_no_rank_gets_16_and_a_sentence_why(r: object) -> None:
    advice = rank_for([r])
    assert advice.default == 16
    assert "assuming 16" in advice.explanation
    assert advice.refusal == ""


def test_ranks_are_read_from_the_adapters_own_configs() -> None:
    chosen = [
        checkpoint("a", r=8),
        checkpoint("b", r=...),
        checkpoint("c", r="abc"),
        checkpoint("d", "full"),
        checkpoint("e", lora_adapter_config=None),
    ]
    assert adapter_ranks(chosen) == (8, None, "abc", None)
