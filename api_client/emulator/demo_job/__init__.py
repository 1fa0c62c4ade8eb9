"""The demo's real job: a classifier of digits, trained on this machine.

The folder ``code`` is what a user would push; a test compares its ``config.py`` with the job spec below.
"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

from api_client.emulator.store.blobs import BUCKET, BlobStore


def upload_demo_job(blobs: BlobStore, **variables: str) -> dict[str, Any]:
    """Store the job's code and return a job spec that runs it.

    ``variables`` are the job's environment variables; by default, the job runs for 23 minutes.
    """
    key = "demo/digits-mlp.tar"
    with blobs.receive(BUCKET, key) as archive:
        archive.write(_tar_bytes(Path(__file__).parent / "code"))
        archive.commit()
    return {
        "name": "digits-mlp",
        "image": {"base_image": "python:3.11-slim", "docker_auth": None},
        "compute": {"node_count": 2, "cpu_count": 1, "memory": "2Gi", "accelerator": None},
        "runtime": {
            "start_commands": ["python3 train.py"],
            "environment_variables": variables,
            "checkpointing_config": {"enabled": True, "checkpoint_path": None, "volume_size_gib": None},
            "artifacts": [{"s3_bucket": BUCKET, "s3_key": key}],
        },
    }


def _tar_bytes(folder: Path) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for path in filter(Path.is_file, folder.iterdir()):
            archive.add(path, path.name)
    return content.getvalue()
