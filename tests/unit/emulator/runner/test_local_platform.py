"""What the platform promises around a job: queues, preemption, caches, checkpoints."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from local_world import FOREIGN, OTHER, PROJECT, LocalWorld, job_spec, local_world

from api_client.models import JobStatus

ENABLED = {"checkpointing_config": {"enabled": True}}


@pytest.mark.proves("docs/emulator.md", "How a job's environment differs")
async def test_waiting_jobs_start_by_priority_and_none_overtakes(tmp_path: Path) -> None:
    async with local_world(tmp_path, max_running_nodes=2) as world:
        await world.create("running", job_spec("sleep 1000"))
        large = await world.create("large", job_spec("sleep 1000", nodes=2))
        for job_id in ("small", "urgent"):
            await world.create(job_id, job_spec("sleep 1000"))
            assert world.backend.job(job_id).current_status == JobStatus.PENDING
        assert large.current_status == JobStatus.PENDING
        await world.backend.update("urgent", {"priority": 1})
        await world.until(lambda: world.backend.job("urgent").current_status == JobStatus.RUNNING)
        await world.backend.stop("running")
        assert world.backend.job("small").current_status == JobStatus.PENDING
        await world.backend.stop("large")
        await world.until(lambda: world.backend.job("small").current_status == JobStatus.RUNNING)
        too_large = await world.run("too-large", job_spec("true", nodes=3))
        assert too_large.current_status == JobStatus.DEPLOY_FAILED
        assert "node_count is 3" in (too_large.error_message or "")


async def test_a_preempted_job_may_save_and_says_what_happened(world: LocalWorld) -> None:
    command = 'trap "echo saved; exit 0" TERM; echo ready; while :; do sleep 0.05; done'
    await world.create("job1", job_spec(command))
    await world.said("job1", "ready")
    job = await world.backend.preempt("job1")
    assert job.current_status == JobStatus.PREEMPTED
    assert "reclaimed" in (job.error_message or "")
    assert world.messages("job1")[-1] == "saved"
    assert world.statuses("job1")[-1] == JobStatus.PREEMPTED


@pytest.mark.proves("docs/emulator.md", "How a job's environment differs")
async def test_a_team_shares_one_cache_and_another_team_does_not(world: LocalWorld) -> None:
    cached = {"cache_config": {"enabled": True}}
    write = 'echo ours > "$BT_TEAM_CACHE_DIR/f"; echo mine > "$BT_PROJECT_CACHE_DIR/f"'
    show = 'cat "$BT_TEAM_CACHE_DIR/f" "$BT_PROJECT_CACHE_DIR/f" 2>/dev/null; true'
    assert world.backend.cache_files(PROJECT.id) is None
    await world.run("job1", job_spec(write, **cached))
    for project, seen in ((PROJECT, ["ours", "mine"]), (OTHER, ["ours"]), (FOREIGN, [])):
        await world.run(f"in-{project.id}", job_spec(show, **cached), project)
        assert world.messages(f"in-{project.id}") == seen
    await world.backend.delete_cache(PROJECT.id)
    assert world.backend.cache_files(PROJECT.id) is None


@pytest.mark.proves("docs/emulator.md", "How a job's environment differs")
@pytest.mark.proves("docs/emulator.md", "Absolute paths")
async def test_cache_paths_of_a_container_lead_to_the_cache(world: LocalWorld) -> None:
    config = {"enabled": True, "enable_legacy_hf_mount": True, "mount_base_path": "/my/cache"}
    command = (
        'echo x > "$BT_EMULATOR_ROOT/my/cache/user_artifacts/f"; ls "$BT_PROJECT_CACHE_DIR";'
        ' [ "$HF_HOME" -ef "$BT_EMULATOR_ROOT/root/.cache/huggingface" ] && echo hf'
    )
    await world.run("job1", job_spec(command, cache_config=config))
    assert world.messages("job1") == ["f", "hf"]
    files = world.backend.cache_files(PROJECT.id) or []
    assert [(file.path, file.size_bytes, file.file_type) for file in files] == [("f", 2, "file")]


def save(name: str, content: str) -> str:
    folder = f'"$BT_CHECKPOINT_DIR/{name}"'
    return f"mkdir -p {folder}; printf {content} > {folder}/model.safetensors"


async def load(world: LocalWorld, job_id: str, *sources: dict[str, Any], **more: Any) -> list[str]:
    """What a job finds that loads those; the reason as one line if it cannot start."""
    config = {"enabled": True, "checkpoints": list(sources), **more}
    show = 'cd "$BT_LOAD_CHECKPOINT_DIR"; for f in $(find . -type f | sort); do echo "$f $(cat $f)"; done'
    job = await world.run(job_id, job_spec(show, load_checkpoint_config=config))
    return world.messages(job_id) if job.error_message is None else [job.error_message]


def latest(**selector: str) -> dict[str, Any]:
    return {"typ": "baseten_latest_checkpoint", "project_name": None, "job_id": None, **selector}


def named(name: str, **selector: str) -> dict[str, Any]:
    return {"typ": "baseten_named_checkpoint", "checkpoint_name": name, **selector}


def age(folder: Path, seconds: int) -> None:
    for path in folder.rglob("*"):
        os.utime(path, (1_700_000_000 - seconds, 1_700_000_000 - seconds))


async def test_every_way_to_name_a_checkpoint(tmp_path: Path, world: LocalWorld) -> None:
    await world.run("job1", job_spec(save("c-1", "one"), save("c-2", "two"), **ENABLED))
    age(tmp_path / "jobs" / "job1" / "node-0" / "checkpoints" / "c-1", 60)
    age(tmp_path / "jobs" / "job1" / "node-0" / "checkpoints" / "c-2", 30)
    for job_id, project, text in (
        ("job2", PROJECT, "three"),
        ("job3", OTHER, "other"),
        ("job4", FOREIGN, ""),
    ):
        await world.run(job_id, job_spec(save(f"c-{job_id}", text), **ENABLED), project)
    one, two, three, other = (
        f"./rank-0/{name}/model.safetensors {text}"
        for name, text in {"c-1": "one", "c-2": "two", "c-job2": "three", "c-job3": "other"}.items()
    )
    assert await load(world, "empty") == [three]
    assert await load(world, "project", latest(project_name="other")) == [other]
    assert await load(world, "both", latest(project_name="digits", job_id="job1")) == [two]
    sources = (named("c-1", job_id="job1"), latest(project_name="digits"))
    assert await load(world, "two", *sources) == [one, three]
    unnamed = {"typ": "baseten_named_checkpoint", "job_id": "job1"}
    of_loops = {"typ": "loops_checkpoint", "run_id": "r", "checkpoint_name": "c"}
    for number, (source, reason) in enumerate((
        (latest(project_name="other", job_id="job1"), "no checkpoint of job job1 and project 'other'"),
        (unnamed, "checkpoint_name"),
        (of_loops, "Loops"),
    )):  # fmt: skip
        (told,) = await load(world, f"refused{number}", source)
        assert reason in told


@pytest.mark.proves("docs/emulator.md", "Checkpoint files and archives")
async def test_nodes_save_to_a_path_of_ones_choice_and_load_by_rank_from_another(world: LocalWorld) -> None:
    config = {"enabled": True, "checkpoint_path": "/mnt/ckpts"}
    command = 'cd "$BT_EMULATOR_ROOT/mnt/ckpts"; mkdir c; echo $BT_NODE_RANK > c/f-$BT_NODE_RANK'
    job = await world.run("job1", job_spec(command, nodes=2, checkpointing_config=config))
    assert job.checkpoint_sync_status == "COMPLETED", job.error_message
    (checkpoint,) = world.backend.checkpoints("job1")
    assert (checkpoint.checkpoint_id, checkpoint.size_bytes) == ("c", 4)
    names = [(file.node_rank, file.relative_name) for file in world.backend.checkpoint_files("job1")]
    assert names == [(0, "c/f-0"), (1, "c/f-1")]
    assert await load(world, "job2", latest()) == ["./rank-0/c/f-0 0", "./rank-1/c/f-1 1"]
    loading = {"enabled": True, "checkpoints": [latest()], "download_folder": "/loaded"}
    command = 'cat "$BT_EMULATOR_ROOT/loaded/rank-1/c/f-1"'
    await world.run("job3", job_spec(command, load_checkpoint_config=loading))
    assert world.messages("job3") == ["1"]


LORA = """
cd "$BT_CHECKPOINT_DIR"
mkdir checkpoint-10 && printf 1234 > checkpoint-10/adapter_model.safetensors
echo '{"r": 24, "base_model_name_or_path": "acme/base"}' > checkpoint-10/adapter_config.json
"""


OTHERS = """
mkdir -p full/nested && printf 12 > full/nested/model.bin
mkdir whisper && echo '{"architectures": ["WhisperForConditionalGeneration"]}' > whisper/config.json
mkdir empty .hidden && echo x > .hidden/file
mkdir broken && echo '{"r": 24,' > broken/adapter_config.json
ln -s /etc/passwd full/link
echo '{}' > config.json
"""


async def test_checkpoints_are_described_by_what_is_in_them(world: LocalWorld) -> None:
    job = await world.run("job1", job_spec(LORA + OTHERS, **ENABLED))
    assert job.current_status == JobStatus.COMPLETED
    assert job.checkpoint_sync_status == "COMPLETED"
    found = {checkpoint.checkpoint_id: checkpoint for checkpoint in world.backend.checkpoints("job1")}
    assert set(found) == {"checkpoint-10", "full", "whisper", "broken", "."}
    lora = found["checkpoint-10"]
    assert (lora.checkpoint_type, lora.base_model, lora.sync_status) == ("lora", "acme/base", "COMPLETE")
    assert (lora.lora_adapter_config or {})["r"] == 24
    assert (found["full"].checkpoint_type, found["full"].size_bytes) == ("full", 2)
    assert found["whisper"].checkpoint_type == "whisper"
    files = world.backend.checkpoint_files("job1")
    names = {file.relative_name for file in files}
    assert {"checkpoint-10/adapter_config.json", "full/nested/model.bin", "config.json"} <= names
    assert not any("link" in name or "hidden" in name for name in names)
    assert all(file.path is not None and file.path.stat().st_size == file.size_bytes for file in files)


@pytest.mark.proves("docs/emulator.md", "Checkpoint files and archives")
async def test_a_checkpoint_is_seen_while_it_is_written(world: LocalWorld) -> None:
    await world.create("job1", job_spec(LORA + "echo written; sleep 1000", **ENABLED))
    await world.said("job1", "written")
    (checkpoint,) = world.backend.checkpoints("job1")
    assert checkpoint.sync_status == "SYNCING"
    assert world.backend.job("job1").checkpoint_sync_status == "SYNCING"
    for file in world.backend.checkpoint_files("job1"):
        assert file.path is not None
        os.utime(file.path, (1_700_000_000, 1_700_000_000))
    await world.until(lambda: world.backend.job("job1").checkpoint_sync_status == "COMPLETED")
    assert world.backend.checkpoints("job1")[0].sync_status == "COMPLETE"
