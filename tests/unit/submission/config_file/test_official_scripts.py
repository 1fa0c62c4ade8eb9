"""Scripts written for the official SDK, run by ours."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from config_writing import EXAMPLES

from api_client.emulator.processes import EmulatorChild

ROOT = Path(__file__).parents[4]


def run_script(*arguments: str, folder: Path, **more: str) -> list[str]:
    """The lines that it prints."""
    command = [sys.executable, "-m", "api_client.run_script", *arguments]
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT), **more}
    finished = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.splitlines()


@pytest.fixture(scope="module")
def environ() -> Iterator[dict[str, str]]:
    with EmulatorChild(world="empty") as emulator:
        yield emulator.remote_environ()


SDK_SCRIPT = """
import asyncio, os, sys
from pathlib import Path
import beside
from api_client import TrainingClient, resolve_remote
from truss_train.public_api import push

async def team_id():
    async with TrainingClient(resolve_remote(environ=os.environ)) as client:
        return (await client.account.teams())[0].id

print(__name__, sys.argv[1:], beside.NAME)
job = push(config=Path(sys.argv[1]), remote="baseten", team_id=asyncio.run(team_id()))
print(job["id"] == job["training_job"]["id"], job["current_status"], job["training_project"]["name"])
try:
    push(config=Path(sys.argv[1]), team_id="another")
except Exception as error:
    print(error)
"""


def test_the_page_s_programmatic_submission(environ: dict[str, str], tmp_path: Path) -> None:
    script, template = (str(EXAMPLES / name) for name in ("submit.py", "dynamic"))
    project, job = run_script(script, template, folder=tmp_path, **environ)
    assert project.startswith("Project ID: ")
    assert job.startswith("Job ID: ") and job != "Job ID: "


def test_a_script_runs_as_in_python_and_push_takes_a_team_id(environ: dict[str, str], tmp_path: Path) -> None:
    scripts, template = tmp_path / "scripts", tmp_path / "template"
    for folder in (scripts, template):
        folder.mkdir()
    (template / "config.py").write_text((EXAMPLES / "minimal.py").read_text())
    (scripts / "beside.py").write_text("NAME = 'beside'")
    (scripts / "script.py").write_text(SDK_SCRIPT)
    arguments = ("scripts/script.py", "template/config.py")
    run_as, created, refused = run_script(*arguments, folder=tmp_path, **environ)
    assert run_as == "__main__ ['template/config.py'] beside"
    assert created.startswith("True TRAINING_JOB_") and created.endswith(" minimal")
    assert "no team 'another'" in refused
