"""Scripts written for the official SDK, run by ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.emulator import running_emulator

ROOT = Path(__file__).parents[4]
EXAMPLES = Path(__file__).parent / "examples"


def run_script(*arguments: str, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "api_client.run_script", *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT), **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_page_s_programmatic_submission(tmp_path: Path) -> None:
    with running_emulator() as emulator:
        template = str(EXAMPLES / "dynamic")
        finished = run_script(
            str(EXAMPLES / "submit.py"), template, folder=tmp_path, **emulator.remote_environ()
        )

    assert finished.returncode == 0, finished.stderr
    project, job = finished.stdout.splitlines()
    assert project.startswith("Project ID: ")
    assert job.startswith("Job ID: ")
    assert len(job) > len("Job ID: ")


def test_a_script_is_run_as_python_would_run_it(tmp_path: Path) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "beside.py").write_text("NAME = 'beside'")
    script = scripts / "script.py"
    script.write_text(
        "import sys, beside, truss_train\n"
        "from truss.base import truss_config\n"
        "print(__name__, sys.argv[1:], beside.NAME, truss_train.Image.__name__)\n"
    )

    finished = run_script("scripts/script.py", "--flag", folder=tmp_path)

    assert finished.stdout.split("\n")[0] == "__main__ ['--flag'] beside Image", finished.stderr
