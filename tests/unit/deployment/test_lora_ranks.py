"""Which LoRA ranks can be served, and which an adapter gets."""

from __future__ import annotations

import pytest
from deployable import checkpoint

from api_client.definitions import LORA_RANKS
from api_client.deployment import adapter_ranks, check_rank, rank_for

LIST = "8, 16, 32, 64, 128, 256, 320, 512"


def test_the_valid_ranks_are_the_documented_ones() -> None:
    assert LORA_RANKS == (8, 16, 32, 64, 128, 256, 320, 512)


@pytest.mark.parametrize("rank", LORA_RANKS)
def test_every_valid_rank_passes(rank: int) -> None:
    assert check_rank(rank, []) == ""
    assert check_rank(rank, [None, "abc"]) == ""
    assert check_rank(rank, [rank]) == ""


HUGE = pytest.param(10**5000, id="huge")


@pytest.mark.parametrize(
    "value", [0, 1, 7, 24, 100, 513, -8, "16", "16" * 99, 16.5, 16.0, None, True, [16], HUGE]
)
def test_any_other_is_refused_with_the_list(value: object) -> None:
    problem = check_rank(value, [16])

    assert LIST in problem
    assert len(problem) < 200


@pytest.mark.parametrize(("r", "rank"), [(8, 8), (16, 16), (64, 64), (320, 320), (512, 512), (64.0, 64)])
def test_an_adapter_gets_its_own_rank(r: object, rank: int) -> None:
    advice = rank_for([r])

    assert advice.default == rank
    assert advice.refusal == ""
    assert check_rank(rank, [r]) == ""


@pytest.mark.parametrize(("r", "rank"), [(24, 32), (1, 8), (9, 16), (257, 320), (321, 512)])
def test_a_rank_between_gets_the_next_one_and_a_sentence_why(r: int, rank: int) -> None:
    advice = rank_for([r])

    assert advice.default == rank
    assert f"is {r}" in advice.explanation
    assert f"{rank} is the smallest valid rank" in advice.explanation
    assert advice.refusal == ""


@pytest.mark.parametrize("r", [600, 513, HUGE])
def test_above_the_largest_nothing_is_offered(r: int) -> None:
    advice = rank_for([16, r])

    assert advice.default is None
    assert "512" in advice.refusal
    for rank in LORA_RANKS:
        assert check_rank(rank, [16, r]) == advice.refusal


@pytest.mark.parametrize(
    "r",
    [
        None,
        "abc",
        "64",
        pytest.param([10**5000], id="nested"),
        16.5,
        True,
        0,
        -8,
        [64],
        float("nan"),
        float("inf"),
    ],
)
def test_an_adapter_that_tells_no_rank_gets_16_and_a_sentence_why(r: object) -> None:
    advice = rank_for([r])

    assert advice.default == 16
    assert "assuming 16" in advice.explanation
    assert advice.refusal == ""


def test_without_any_adapter_it_is_16() -> None:
    assert rank_for([]).default == 16


def test_the_largest_adapter_decides() -> None:
    assert rank_for([8, 64, None, 16]).default == 64
    assert rank_for([8, 100, 16]).default == 128


@pytest.mark.parametrize(("value", "r"), [(8, 16), (16, 24), (320, 400)])
def test_a_rank_below_the_adapter_s_is_refused(value: int, r: int) -> None:
    problem = check_rank(value, [8, r])

    assert f"below the adapter's rank {r}" in problem
    assert "512" in problem


def test_a_rank_above_the_adapter_s_passes() -> None:
    assert check_rank(64, [24]) == ""


def test_ranks_are_read_from_the_adapters_own_configs() -> None:
    chosen = [
        checkpoint("a", r=8),
        checkpoint("b", r=...),
        checkpoint("c", r="abc"),
        checkpoint("d", "full"),
        checkpoint("e", lora_adapter_config=None),
    ]

    assert adapter_ranks(chosen) == (8, None, "abc", None)
