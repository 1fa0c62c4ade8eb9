"""The examples as processes, pointed at an emulator by the environment alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = REPOSITORY / "examples"
TIMEOUT_S = 60


def run_example(
    name: str, *arguments: str | Path, environ: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """What one example prints, and its exit code."""
    return subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / name, *map(str, arguments)],
        env={**os.environ, **environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
