"""What a job finds in its environment and its folders."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from local_world import LocalWorld, holds, job_spec, local_world

from api_client.models import JobStatus
from support.archives import packed

PRINT_ENVIRONMENT = f"{sys.executable} -c 'import json, os; print(json.dumps(dict(os.environ)))'"
OURS = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LC_ALL": "C.UTF-8"}
OURS |= dict.fromkeys(("BASETEN_API_KEY", "AWS_SECRET_ACCESS_KEY"), "must-not-leak")


def is_folder(path: str) -> bool:
    return Path(path).is_dir()


def resolved(path: str) -> Path:
    return Path(path).resolve()


async def environment_of(world: LocalWorld, job_id: str, spec: dict[str, Any]) -> list[dict[str, str]]:
    job = await world.run(job_id, spec)
    assert job.current_status == JobStatus.COMPLETED, job.error_message
    found = [json.loads(message) for message in world.messages(job_id)]
    return sorted(found, key=lambda variables: variables["BT_NODE_RANK"])


@pytest.mark.proves("docs/emulator.md", "How a job's environment differs")
async def test_documented_variables_of_two_nodes(tmp_path: Path) -> None:
    spec = job_spec(
        PRINT_ENVIRONMENT,
        nodes=2,
        checkpointing_config={"enabled": True},
        cache_config={"enabled": True},
        environment_variables={"PLAIN": "yes", "TOKEN": {"name": "my-token"}, "BT_NODE_RANK": "9"},
    )
    spec["compute"]["accelerator"] = {"accelerator": "H100", "count": 4}
    async with local_world(tmp_path, environ=OURS) as world:
        world.set_secret("my-token", "s3cret")
        first, second = await environment_of(world, "job1", spec)
        for rank, variables in enumerate((first, second)):
            assert {
                **{"BT_TRAINING_JOB_ID": "job1", "BT_TRAINING_JOB_NAME": "a-job"},
                **{"BT_TRAINING_PROJECT_ID": "proj1", "BT_TRAINING_PROJECT_NAME": "digits"},
                **{"BT_NUM_GPUS": "4", "BT_RETRY_COUNT": "0", "BT_GROUP_SIZE": "2"},
                **{"BT_NODE_RANK": str(rank), "BT_LEADER_ADDR": "127.0.0.1"},
                **{"PLAIN": "yes", "TOKEN": "s3cret", "LC_ALL": "C.UTF-8"},
            }.items() <= variables.items()
            assert "must-not-leak" not in variables.values()
            assert is_folder(variables["BT_CHECKPOINT_DIR"])
            assert Path(variables["BT_PROJECT_CACHE_DIR"]).parent == Path(variables["BT_RW_CACHE_DIR"])
            assert is_folder(variables["BT_TEAM_CACHE_DIR"])
            assert not is_folder(variables["BT_SCRATCH_DIR"])  # wiped at the end
        assert first["BT_CHECKPOINT_DIR"] != second["BT_CHECKPOINT_DIR"]
        assert first["BT_PROJECT_CACHE_DIR"] == second["BT_PROJECT_CACHE_DIR"]
        # Only where the job itself printed it.
        assert sum("s3cret" in record["message"] for record in world.records("job1")) == 2


DOCUMENTED_ALWAYS = frozenset(
    {
        "BT_TRAINING_JOB_ID",
        "BT_TRAINING_PROJECT_ID",
        "BT_TRAINING_JOB_NAME",
        "BT_TRAINING_PROJECT_NAME",
        "BT_NUM_GPUS",
        "BT_SCRATCH_DIR",
        "BT_RETRY_COUNT",
        "BT_GROUP_SIZE",
        "BT_LEADER_ADDR",
        "BT_NODE_RANK",
    }
)
DOCUMENTED_IF_ENABLED = {
    "BT_WORKING_DIR": "/b10/workspace",
    "BT_CHECKPOINT_DIR": "/mnt/ckpts",
    "BT_LOAD_CHECKPOINT_DIR": "/tmp/loaded_checkpoints",
    "BT_PROJECT_CACHE_DIR": "/root/.cache/user_artifacts",
    "BT_TEAM_CACHE_DIR": "/root/.cache/team_artifacts",
}
"""Folders of Baseten's tables of standard variables, with the documented paths."""
CACHE_BASE = "BT_RW_CACHE_DIR"  # the folder of both caches


@pytest.mark.proves("docs/emulator.md", "How a job's environment differs")
async def test_documented_variables_are_set_and_no_others(tmp_path: Path) -> None:
    folders = (*DOCUMENTED_IF_ENABLED, CACHE_BASE, "BT_SCRATCH_DIR")
    everything = {
        "checkpointing_config": {"enabled": True, "checkpoint_path": "/mnt/ckpts"},
        "cache_config": {"enabled": True},
        "load_checkpoint_config": {"enabled": True, "checkpoints": [{"typ": "baseten_latest_checkpoint"}]},
    }
    same = "; ".join(
        f'test "${name}" -ef "$BT_EMULATOR_ROOT{path}" || echo {name}'
        for name, path in DOCUMENTED_IF_ENABLED.items()
    )
    exist = "; ".join(f'test -d "${name}" || echo {name}' for name in folders)
    own = (
        'test "$PWD" -ef "$BT_WORKING_DIR" || echo PWD; cat "$BT_LOAD_CHECKPOINT_DIR/rank-$BT_NODE_RANK/c/f"'
    )
    async with local_world(tmp_path, environ=OURS) as world:
        save = 'mkdir "$BT_CHECKPOINT_DIR/c"; echo "of rank $BT_NODE_RANK" > "$BT_CHECKPOINT_DIR/c/f"'
        await world.run("saved", job_spec(save, nodes=2, checkpointing_config={"enabled": True}))
        spec = {**job_spec(f"{same}; {exist}; {own}", nodes=2, **everything), "enable_baseten_workdir": True}
        job = await world.run("checked", spec)
        assert job.current_status == JobStatus.COMPLETED
        assert [world.messages("checked", f"node-{rank}") for rank in (0, 1)] == [
            ["of rank 0"],
            ["of rank 1"],
        ]
        full = job_spec(PRINT_ENVIRONMENT, **everything)
        (variables,) = await environment_of(world, "full", {**full, "enable_baseten_workdir": True})
        (fewest,) = await environment_of(world, "fewest", job_spec(PRINT_ENVIRONMENT))
    ours = {"BT_EMULATOR_ROOT", "BT_EMULATOR_JOB_DIR"}
    assert names_of(variables) - ours == DOCUMENTED_ALWAYS | {*DOCUMENTED_IF_ENABLED, CACHE_BASE}
    assert names_of(fewest) - ours == DOCUMENTED_ALWAYS
    assert fewest["BT_NUM_GPUS"] == "0"


def names_of(variables: dict[str, str]) -> set[str]:
    return {name for name in variables if name.startswith("BT_")}


async def test_custom_path_of_checkpoints_stays_below_the_job(tmp_path: Path) -> None:
    async with local_world(tmp_path, environ=OURS) as world:
        config = {"enabled": True, "checkpoint_path": "/../../../../ckpts"}
        spec = job_spec(PRINT_ENVIRONMENT, checkpointing_config=config)
        (variables,) = await environment_of(world, "job1", spec)
        assert is_folder(variables["BT_CHECKPOINT_DIR"])
        node = tmp_path / "jobs" / "job1" / "node-0"
        assert node in resolved(variables["BT_CHECKPOINT_DIR"]).parents
        assert any("/../../../../ckpts" in record["message"] for record in world.records("job1"))


@pytest.mark.proves("docs/emulator.md", "How a job's environment differs")
async def test_the_uploaded_archive_is_the_working_directory(world: LocalWorld) -> None:
    files = {"run.sh": b"cat data/words; echo changed > data/words", "data/words": b"hello\n"}
    for job_id, is_zipped in (("plain", False), ("zipped", True)):
        artifact = world.upload(job_id, packed(files, is_zipped=is_zipped))
        job = await world.run(job_id, job_spec("sh ./run.sh", nodes=2, artifacts=[artifact]))
        assert job.current_status == JobStatus.COMPLETED
        assert world.messages(job_id) == ["hello", "hello"]


def artifact(key: str) -> dict[str, Any]:
    return job_spec("true", artifacts=[{"s3_bucket": "bucket", "s3_key": key}])


BAD_SPECS = [
    (job_spec("  "), "start_commands"),
    (artifact("missing"), "missing"),
    (artifact("garbage"), "can't unpack"),
    (artifact("outside"), "can't unpack"),
    (job_spec("true", environment_variables={"TOKEN": {"name": "no-such"}}), "no-such"),
    (job_spec("true", environment_variables={"A=B": "c"}), "A=B"),
    (job_spec("true", environment_variables={"A": "b\0c"}), "NUL"),
    (job_spec("true", load_checkpoint_config={"enabled": True, "checkpoints": []}), "checkpoint"),
    (job_spec("true", nodes=9), "node_count"),
]


@pytest.mark.proves("docs/emulator.md", "How a job's environment differs")
async def test_what_cannot_start_is_deploy_failed_with_a_reason(tmp_path: Path, world: LocalWorld) -> None:
    world.upload("garbage", b"not a tar")
    world.upload("outside", packed({"../../evil": b"x"}))
    for number, (spec, reason) in enumerate(BAD_SPECS):
        job = await world.run(f"job{number}", spec)
        assert job.current_status == JobStatus.DEPLOY_FAILED, reason
        assert reason in (job.error_message or "")
        assert JobStatus.RUNNING not in world.statuses(job.id)
    assert not holds(tmp_path, "evil")
