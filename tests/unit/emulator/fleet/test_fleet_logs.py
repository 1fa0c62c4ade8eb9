"""Simulated log lines: one sequence, whichever way it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from fleet_worlds import MINUTE_NS, World
from hypothesis import given, settings, strategies as st

from api_client.models import LogRecord

TOLD = (
    "llama-70b-sft-v3", "qwen3-grpo-7", "llama-70b-longctx-v1", "whisper-ft", "flux-lora-products",
    "qwen3-14b-titan", "nemotron-8b-cpt", "llama-70b-sft-v1", "qwen3-grpo-4", "ifeval-first-try",
    "tokenize-fineweb",
)  # fmt: skip
FAST = settings(max_examples=15)
SPAN_NS = 3 * MINUTE_NS


@pytest.fixture(scope="module", params=["usual", "hurried"])
def timed_world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Ten minutes into one that is seven times as fast, or after restarts with other speeds too."""
    made = World(tmp_path_factory.mktemp("timed") / "state.db", speed=7.0)
    if request.param == "usual":
        made.after(600)
    else:
        for seconds, speed in ((100, 60.0), (120, 0.333)):
            told = messages(made.after(seconds))
            made.reopen(speed)
            assert messages(made) == told  # what happened before keeps its order
        made.after(600)
    yield made
    made.database.close()


def messages(world: World) -> list[str]:
    newest = world.lines(TOLD[0], end_ns=world.now_ns, direction="desc", limit=2_000)
    return [line["message"] for line in newest]


def stamps(lines: list[LogRecord]) -> list[int]:
    return [int(line["timestamp"]) for line in lines]


def last_minutes(world: World, name: str) -> tuple[int, int]:
    """The last minutes in which the job said anything."""
    last = int(world.lines(name, direction="desc", limit=1)[0]["timestamp"])
    return last - SPAN_NS, last + 1


@pytest.mark.parametrize("name", [*TOLD, "flux-lora-custom-image"])
def test_lines_ascend_from_the_mark_of_the_demo_never_of_the_future(still_world: World, name: str) -> None:
    assert still_world.lines(name, limit=1)[0]["message"].startswith("[demo data] simulated run")
    start_ns, _ = last_minutes(still_world, name)
    found = stamps(still_world.lines(name, start_ns))
    assert found == sorted(found) != []
    assert found[-1] <= still_world.now_ns


@pytest.mark.parametrize("name", ["llama-70b-sft-v1", "qwen3-grpo-6"])
def test_gpu_that_is_out_of_memory_has_what_its_machine_has(still_world: World, name: str) -> None:
    limit_mib = still_world.named(name).instance_type.gpu_memory_limit_mib
    (text,) = (
        line["message"]
        for line in still_world.lines(name, direction="desc", limit=20)
        if "total capacity of" in line["message"]
    )
    capacity_gib = float(text.partition("total capacity of ")[2].split()[0])
    assert limit_mib is not None and 0.95 < capacity_gib * 1024 / limit_mib < 1


@FAST
@given(st.sampled_from(TOLD), st.lists(st.integers(0, SPAN_NS), max_size=8), st.data())
@pytest.mark.proves("README.md", "The emulator")
def test_any_split_of_a_window_gives_the_same_lines(
    timed_world: World, name: str, cuts: list[int], data: st.DataObject
) -> None:
    start_ns, end_ns = last_minutes(timed_world, name)
    whole = timed_world.lines(name, start_ns, end_ns)
    at_a_line = data.draw(st.sampled_from(stamps(whole))) + data.draw(st.integers(0, 2))
    bounds = [start_ns, *sorted([at_a_line, *(start_ns + cut for cut in cuts)]), end_ns]
    parts = [timed_world.lines(name, low, high) for low, high in pairwise(bounds)]
    assert [line for part in parts for line in part] == whole
    for (low, high), part in zip(pairwise(bounds), parts, strict=True):
        assert all(low <= at < high for at in stamps(part))


@FAST
@given(st.sampled_from(TOLD), st.integers(0, SPAN_NS), st.integers(0, SPAN_NS), st.integers(1, 400))
def test_directions_and_limits_agree(timed_world: World, name: str, one: int, other: int, limit: int) -> None:
    base_ns, _ = last_minutes(timed_world, name)
    start_ns, end_ns = base_ns + min(one, other), base_ns + max(one, other)
    whole = timed_world.lines(name, start_ns, end_ns)
    assert all(start_ns <= at < end_ns for at in stamps(whole))
    assert timed_world.lines(name, start_ns, end_ns, limit=limit) == whole[:limit]
    newest = timed_world.lines(name, start_ns, end_ns, direction="desc", limit=limit)
    assert newest == whole[::-1][:limit]


def test_the_run_on_four_nodes_is_live_right_now(world: World) -> None:
    recent = world.lines("llama-70b-sft-v3", world.now_ns - MINUTE_NS)
    assert {line["replica"] for line in recent} == {f"node-{rank}" for rank in range(4)}
    told = "\n".join(line["message"] for line in recent)
    assert "{'loss':" in told and "/9000 [" in told
