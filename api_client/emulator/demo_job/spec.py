"""The demo job's configuration as a create-job payload."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

DEMO_JOB_NAME = "digits-mlp"
DEMO_NODE_COUNT = 2


def demo_job_spec(
    *, steps: int | None = None, pace_s: float | None = None, node_count: int = DEMO_NODE_COUNT
) -> dict[str, Any]:
    """Return a payload that trains on the digits on this machine; the default run takes about 23 minutes.

    ``pace_s`` is the minimum time per step in seconds.
    """
    variables = {}
    if steps is not None:
        variables["STEPS"] = str(steps)
    if pace_s is not None:
        variables["PACE_S"] = str(pace_s)
    return {
        "name": DEMO_JOB_NAME,
        "image": {"base_image": "python:3.11-slim", "docker_auth": None},
        "compute": {"node_count": node_count, "cpu_count": 1, "memory": "2Gi", "accelerator": None},
        "runtime": {
            "start_commands": [shlex.join([sys.executable, str(Path(__file__).resolve().parent)])],
            "environment_variables": variables,
            "checkpointing_config": {"enabled": True, "checkpoint_path": None, "volume_size_gib": None},
        },
    }
