"""Record what the official CLI sends and prints for workstations, as expected data for tests of ours.

Needs ``truss`` (0.18.36 when the data was recorded) in an environment of its own; it is not a dependency of
this project::

    python tests/support/record_official_workstations.py /path/to/truss

Runs ``truss train workstation … -o json`` with each of the ``CASES`` against a local server, and writes one
document: for each case its arguments, the paths and bodies that were sent (without ``truss_user_env``, which
describes the sender), the names of the archive's files, and the output.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1])]

from support.official_cli import Recorder, recording  # noqa: E402

GOLDEN = Path(__file__).parents[1] / "cli" / "golden" / "workstation.json"

TEAMS = [{"id": "t1", "name": "Research", "default": True}]
CASES = (
    "",
    "--accelerator h200 --gpu-count 4 --project-id lab",
    "--accelerator B300 --gpu-count 8",
    "--accelerator gb300 --spot",
    "--accelerator L40S --image python:3.12",
    "--node-count 1 --orchestrator SLURM",
    "--node-count 3",
    "--accelerator B200 --node-count 2 --spot --enable-checkpointing",
    "--enable-checkpointing --checkpoint-path /mnt/ckpts --checkpoint-volume-size 200",
    "--checkpoint-path /mnt/ckpts --checkpoint-volume-size 50",
    "--checkpoint-from-job abc1234",
    "--team Research --project-id lab",
)


class WorkstationRecorder(Recorder):
    """Keeps what is sent to begin a workstation."""

    caught: dict[str, Any] = {}

    def do_GET(self) -> None:
        if self.route == "/v1/blobs/credentials/train":
            creds = {"aws_access_key_id": "k", "aws_secret_access_key": "s", "aws_session_token": "t"}
            where = {"endpoint_url": self.own_url, "region_name": "us-east-1"}
            self.answer({"s3_bucket": "bucket", "s3_key": "key", "creds": creds | where})
        else:
            assert self.route == "/v1/training_projects", self.path
            self.answer({"training_projects": []})

    def do_PUT(self) -> None:
        raw = self.body()
        with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
            self.caught["archive"] = sorted(archive.getnames())
        self.send(b"")

    def do_POST(self) -> None:
        path, body = self.route, json.loads(self.body())
        if "query" in body:
            assert "teams" in body["query"], body
            self.answer({"data": {"teams": TEAMS}})
        elif "training_project" in body:
            self.caught |= {"path": path, "training_project": body["training_project"]}
            self.answer({"training_project": {"id": "p1", **body["training_project"]}})
        else:
            del body["training_job"]["truss_user_env"]
            self.caught["training_job"] = body["training_job"]
            project = {"id": "p1", "name": self.caught["training_project"]["name"]}
            self.answer({"training_job": {"id": "j1", "training_project": project}})


def main(truss: str) -> None:
    records = []
    with recording(WorkstationRecorder) as environment:
        for case in CASES:
            WorkstationRecorder.caught.clear()
            command = [truss, "train", "workstation", *case.split(), "-o", "json", "--non-interactive"]
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run(
                    command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE
                )
            printed = json.loads(done.stdout)
            records.append({"arguments": case.split(), **WorkstationRecorder.caught, "printed": printed})
    GOLDEN.write_text(json.dumps(records, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
