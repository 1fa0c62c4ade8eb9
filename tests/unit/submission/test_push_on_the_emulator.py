"""Pushes to a whole emulator in a process of its own: the job really runs from the archive."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from api_client import Overrides, TrainingClient, push, resolve_remote
from api_client.definitions import Image, Runtime, TrainingJob, TrainingProject, Workspace
from api_client.emulator.processes import EmulatorChild
from api_client.models import JobStatus
from api_client.models.logs import LogLine
from support.emulator import running_emulator

CONFIG = """
from truss_train import Image, Runtime, TrainingJob, TrainingProject

project = TrainingProject(
    name="quick",
    job=TrainingJob(
        image=Image(base_image="python:3.12-slim"),
        runtime=Runtime(start_commands=["./run.sh"]),
        name="first",
    ),
)
"""
TIMEOUT_S = 60
INTERVAL_S = 0.1


@pytest.fixture(scope="module")
def emulator() -> Iterator[EmulatorChild]:
    with running_emulator() as child:
        yield child


@pytest.fixture
def config(tmp_path: Path) -> Path:
    folder = tmp_path / "starter"
    folder.mkdir()
    (folder / "config.py").write_text(CONFIG)
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    return folder / "config.py"


def client_of(emulator: EmulatorChild) -> TrainingClient:
    return TrainingClient(resolve_remote(environ=emulator.remote_environ()))


async def outcome(client: TrainingClient, project_id: str, job_id: str) -> tuple[str, list[str]]:
    """The job's last status and its lines."""
    async with asyncio.timeout(TIMEOUT_S):
        looks = client.jobs.watch(project_id, job_id, interval_s=INTERVAL_S)
        job = [look async for look in looks][-1]
        lines: list[str] = []
        around = timedelta(minutes=1)
        history = client.logs.history(
            project_id, job_id, start=job.created_at - around, end=job.updated_at + around
        )
        async for batch in history:
            lines += [entry.message for entry in batch.entries if isinstance(entry, LogLine)]
    return job.current_status, lines


async def test_a_project_built_in_code_runs_with_a_large_archive_in_parts(
    emulator: EmulatorChild, tmp_path: Path
) -> None:
    folder, shared = tmp_path / "job", tmp_path / "shared"
    folder.mkdir()
    shared.mkdir()
    (folder / "train.sh").write_text("wc -c < shared/noise.bin\n")
    (shared / "noise.bin").write_bytes(bytes(6_000_000))
    made = TrainingJob(
        image=Image(base_image="python:3.12"),
        runtime=Runtime(start_commands=["exit 1"]),
        workspace=Workspace(external_dirs=["../shared"]),
    )
    told: list[int] = []
    async with client_of(emulator) as client:
        submission = await client.push(
            TrainingProject(name="parts", job=made),
            source_dir=folder,
            overrides=Overrides(entrypoint="sh train.sh", job_name="second"),
            on_progress=lambda progress: told.append(progress.done_bytes),
        )
        status, lines = await outcome(client, submission.training_project.id, submission.training_job.id)
    assert status == JobStatus.COMPLETED
    assert "6000000" in [line.strip() for line in lines]
    assert max(told) > 6_000_000


async def test_push_for_scripts_answers_as_documented_inside_of_a_running_loop_too(
    emulator: EmulatorChild, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in emulator.remote_environ().items():
        monkeypatch.setenv(name, value)
    for result in (await asyncio.to_thread(push, config), push(config)):
        assert set(result) == {"training_project", "training_job"}
        assert result["training_project"]["name"] == "quick"
        assert result["training_job"]["training_project"]["name"] == "quick"
        assert result["training_job"]["name"] == "first"
        assert isinstance(result["training_job"]["id"], str)
