"""Record what the official CLI sends and prints for workstations, as data for the tests of our own.

Needs ``truss`` (0.18.35 when the data was made) in an environment of its own; it is no dependency of ours::

    python tests/support/record_official_workstations.py /path/to/truss

Runs ``truss train workstation … -o json`` with each of the ``CASES`` against a server on this machine, and
writes one document: for each case its arguments, the path and the bodies that were sent (less
``truss_user_env``, which describes the sender), the names of the archive's files, and what was printed.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

GOLDEN = Path(__file__).parents[1] / "cli" / "golden" / "workstation.json"

REMOTE_URL = "http://localhost:8000"
"""The one address beside the real ones that the official CLI knows a REST host for."""

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


class Recorder(BaseHTTPRequestHandler):
    """Answers what the official CLI asks, as a proxy: addresses come in their absolute form."""

    protocol_version = "HTTP/1.1"
    caught: dict[str, Any] = {}
    own_url = ""

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path == "/v1/blobs/credentials/train":
            creds = {"aws_access_key_id": "k", "aws_secret_access_key": "s", "aws_session_token": "t"}
            where = {"endpoint_url": self.own_url, "region_name": "us-east-1"}
            self._answer({"s3_bucket": "bucket", "s3_key": "key", "creds": creds | where})
        else:
            assert path == "/v1/training_projects", path
            self._answer({"training_projects": []})

    def do_PUT(self) -> None:
        raw = self._body()
        with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
            self.caught["archive"] = sorted(archive.getnames())
        self._send(b"")

    def do_POST(self) -> None:
        path, body = urlsplit(self.path).path, json.loads(self._body())
        if "query" in body:
            assert "teams" in body["query"], body
            self._answer({"data": {"teams": TEAMS}})
        elif "training_project" in body:
            self.caught |= {"path": path, "training_project": body["training_project"]}
            self._answer({"training_project": {"id": "p1", **body["training_project"]}})
        else:
            del body["training_job"]["truss_user_env"]
            self.caught["training_job"] = body["training_job"]
            project = {"id": "p1", "name": self.caught["training_project"]["name"]}
            self._answer({"training_job": {"id": "j1", "training_project": project}})

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def _answer(self, body: Any) -> None:
        self._send(json.dumps(body).encode())

    def _send(self, payload: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


def main(truss: str) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Recorder.own_url = f"http://127.0.0.1:{server.server_address[1]}"
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()} | {
        "BASETEN_TRUSS_AUTH_REMOTE_URL": REMOTE_URL,
        "BASETEN_TRUSS_AUTH_API_KEY": "recorded-by-nobody",
        "TRUSS_NO_UPDATE_CHECK": "1",
        "http_proxy": Recorder.own_url,
    }
    records = []
    for case in CASES:
        Recorder.caught.clear()
        command = [truss, "train", "workstation", *case.split(), "-o", "json", "--non-interactive"]
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE)
        records.append({"arguments": case.split(), **Recorder.caught, "printed": json.loads(done.stdout)})
    GOLDEN.write_text(json.dumps(records, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
