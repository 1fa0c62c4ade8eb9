"""Record what the official CLI sends for the example files, as data for the tests of our own request.

Needs ``truss`` (0.18.35 when the data was made) in an environment of its own; it is no dependency of ours::

    python tests/unit/deployment/record_official_requests.py /path/to/truss

Writes ``examples/*.py`` from the answers, runs ``truss train deploy_checkpoints --config FILE --dry-run`` on
each against a server on this machine, and keeps the body of the deploying request in ``golden/``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[2]), str(HERE)]

from deployable import CHECKPOINT_DATA, EXAMPLES, JOB_ID, LISTED_INSTANCES, PROJECT_ID  # noqa: E402

from api_client.deployment import build_config, render_python  # noqa: E402
from api_client.models import Checkpoint  # noqa: E402

REMOTE_URL = "http://localhost:8000"
"""The one address beside the real ones that the official CLI knows a REST host for."""


class Recorder(BaseHTTPRequestHandler):
    """Answers what the official CLI asks, as a proxy: addresses come in their absolute form."""

    deploying: list[Any] = []

    def do_GET(self) -> None:
        assert urlsplit(self.path).path.endswith("/checkpoints"), self.path
        self._answer({"training_job": {"id": JOB_ID}, "checkpoints": CHECKPOINT_DATA})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "query" not in body:
            self._answer(
                {"training_jobs": [{"id": JOB_ID, "training_project": {"id": PROJECT_ID, "name": "p"}}]}
            )
        elif "listed_instances" in body["query"]:
            self._answer({"data": {"listedInstances": LISTED_INSTANCES}})
        else:
            self.deploying.append(body)
            rendered = json.dumps({"model_name": "dry", "resources": {}})
            result = {"model_version": None, "truss_config": rendered}
            self._answer({"data": {"create_model_version_from_inference_template": result}})

    def _answer(self, body: Any) -> None:
        payload = json.dumps(body).encode()
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
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()} | {
        "BASETEN_TRUSS_AUTH_REMOTE_URL": REMOTE_URL,
        "BASETEN_TRUSS_AUTH_API_KEY": "recorded-by-nobody",
        "TRUSS_NO_UPDATE_CHECK": "1",
        "http_proxy": f"http://127.0.0.1:{server.server_address[1]}",
    }
    checkpoints = [Checkpoint.model_validate(each) for each in CHECKPOINT_DATA]
    for name, answers in EXAMPLES.items():
        example = HERE / "examples" / f"{name}.py"
        example.write_text(render_python(build_config(answers, checkpoints)), encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            command = [truss, "train", "deploy_checkpoints", "--config", str(example), "--dry-run"]
            subprocess.run([*command, "--non-interactive"], cwd=folder, env=environment, check=True)
        text = json.dumps(Recorder.deploying.pop(), indent=1, sort_keys=True, ensure_ascii=True)
        (HERE / "golden" / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
