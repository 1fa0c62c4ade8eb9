"""Checkpoints: steps and kinds, two compared, the lines that resume from one."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given, strategies as st

from api_client.definitions import BasetenCheckpoint, LoadCheckpointConfig
from api_client.models import Checkpoint, CheckpointFile
from tui.analysis.checkpoints.comparison import compare_checkpoints
from tui.analysis.checkpoints.facts import (
    checkpoint_facts,
    kind_label,
    newest_sound,
    resume_snippet,
    sync_state,
)
from tui.analysis.run.checkpoints import step_of

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def checkpoint(name: str, **more: object) -> Checkpoint:
    return Checkpoint.model_validate({"checkpoint_id": name, "created_at": NOON, **more})


STEPS = {
    "checkpoint-400": 400, "run/v0-checkpoint-400": 400, "checkpoint-2-1000": 1000, "checkpoint-1000-2": 1000,
    "global_step_100": 100, "iter_0004000": 4000, "epoch=1-step=250": 250, "merged": None, ".": None, "": None,
}  # fmt: skip


def test_steps_kinds_and_uploads_in_words() -> None:
    assert {name: step_of(name) for name in STEPS} == STEPS
    configs = {"r": 16}, {"r": "16"}, None
    adapters = [checkpoint("x", checkpoint_type="LORA", lora_adapter_config=one) for one in configs]
    others = [checkpoint("x", checkpoint_type=kind) for kind in ("full", "mamba", None)]
    words = ["LoRA r=16", "LoRA", "LoRA", "full", "mamba", "other"]
    assert [kind_label(one) for one in adapters + others] == words
    uploads = {"SYNCING": "uploading", "COMPLETE": "stored", "COMPLETED": "stored", None: "unknown"}
    assert {word: sync_state(checkpoint("x", sync_status=word)) for word in uploads} == uploads


def test_earlier_checkpoint_is_best_only_if_its_loss_is_lower_than_by_chance() -> None:
    saved = [checkpoint(f"checkpoint-{step}") for step in (100, 200)]
    noisy = [(step, 0.85 + 0.02 * (-1) ** step) for step in range(1, 201)]
    assert not any(
        one.is_best for one in checkpoint_facts(saved, loss_by_step=[*noisy[:99], (100, 0.80), *noisy[100:]])
    )
    worse = [(step, value + 2 * (step > 150)) for step, value in noisy]
    assert [one.is_best for one in checkpoint_facts(saved, loss_by_step=worse)] == [True, False]
    better = [(step, value - (step > 150)) for step, value in noisy]
    assert [one.is_best for one in checkpoint_facts(saved, loss_by_step=better)] == [False, True]


def test_newest_of_checkpoints_saved_in_the_same_moment_has_the_highest_step() -> None:
    facts = checkpoint_facts([checkpoint(f"checkpoint-{step}") for step in (2, 10, 3)])
    newest = newest_sound(facts)
    assert newest is not None and newest.step == 10
    assert [fact.is_newest for fact in facts] == [False, True, False]


def differing(pair: list[Checkpoint], files: list[list[CheckpointFile]]) -> dict[str, tuple[str, str]]:
    lines = compare_checkpoints(*checkpoint_facts(pair), left_files=files[0], right_files=files[1])
    return {line.name: (line.left, line.right) for line in lines if line.differs}


def file(name: str, size: int, rank: int | None = None) -> CheckpointFile:
    return CheckpointFile(url="", relative_file_name=name, size_bytes=size, node_rank=rank)


def test_two_checkpoints_side_by_side() -> None:
    configs = [{"r": 8, "target_modules": ["q", "k"]}, {"r": 16, "target_modules": ["k", "q"]}]
    pair = [
        checkpoint(f"checkpoint-{n}", size_bytes=1024 * n, lora_adapter_config=config)
        for n, config in enumerate(configs, start=1)
    ]
    files = [[file(f"checkpoint-{n}/model", 5), file(f"checkpoint-{n}/state", n)] for n in (1, 2)]
    assert differing(pair, files) == {
        "step": ("1", "2"), "size": ("1.00 KiB", "2.00 KiB"), "state": ("1 B", "2 B"), "adapter r": ("8", "16")
    }  # fmt: skip


def test_sizes_that_differ_by_a_byte_are_told_to_the_byte() -> None:
    pair = [checkpoint("a", size_bytes=5 * 2**30), checkpoint("b", size_bytes=5 * 2**30 + 1)]
    files = [[file(f"rank-1/{one}/m", 2**20 + place, 1)] for place, one in enumerate("ab")]
    told = differing(pair, files)
    assert told["size"] == ("5,368,709,120 B", "5,368,709,121 B")
    assert told["m (rank 1)"] == ("1,048,576 B", "1,048,577 B")


@given(st.text(max_size=30), st.text(max_size=12))
def test_the_snippet_is_python_that_means_these_names(name: str, job_id: str) -> None:
    scope = {one.__name__: one for one in (BasetenCheckpoint, LoadCheckpointConfig)}
    exec(resume_snippet(job_id, name).partition("\n")[2], scope)
    named = BasetenCheckpoint.from_named_checkpoint(name, job_id)
    assert scope["load_checkpoint_config"] == LoadCheckpointConfig(enabled=True, checkpoints=[named])
