"""The real job of the demo world: what it prints is what a dashboard reads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from api_client.emulator import demo_job
from api_client.emulator.store.blobs import BlobStore
from api_client.models.logs import LogLine
from api_client.submission.config_file import load_training_project
from api_client.submission.payload import job_payload
from tui.analysis.progress.fold import ProgressFold


def test_steps_and_loss_of_the_demo_job_are_read_from_its_log() -> None:
    (folder,) = demo_job.__path__
    environ = {**os.environ, "STEPS": "30", "PACE_S": "0.02"}  # a bar of over 100 it/s counts data
    printed = subprocess.check_output([sys.executable, f"{folder}/code/train.py"], text=True, env=environ)
    fold = ProgressFold()
    lines = printed.splitlines()
    fold.add([LogLine(10**18 + second * 10**9, text, "node-0", None) for second, text in enumerate(lines)])
    progress = fold.snapshot()
    assert (progress.step, progress.total_steps) == (30, 30)
    assert progress.loss_by_step[-1][0] == 30
    assert progress.eval_loss is not None


def test_the_code_of_the_demo_job_is_a_project_that_pushes_the_same_job(tmp_path: Path) -> None:
    (folder,) = demo_job.__path__
    started = demo_job.upload_demo_job(BlobStore(tmp_path))
    (artifact,) = started["runtime"]["artifacts"]
    project = load_training_project(Path(folder, "code/config.py"))
    pushed = job_payload(project.job, artifact=tuple(artifact.values()), user_env=None)
    for part in ("image", "compute", "runtime"):
        assert started[part] == {name: pushed[part][name] for name in started[part]}
    assert (project.name, pushed["name"]) == ("digits", started["name"])
