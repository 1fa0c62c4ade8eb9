"""Record what the official CLI sends for the example files, as data for the tests of our own request.

Needs ``truss`` (0.18.36 when the data was made) in an environment of its own; it is no dependency of ours::

    python tests/unit/deployment/record_official_requests.py /path/to/truss

Writes ``examples/*.py`` from the answers, runs ``truss train deploy_checkpoints --config FILE --dry-run`` on
each against a server on this machine, and keeps the body of the deploying request in ``golden/``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parents[1]), str(HERE)]

from deployable import CHECKPOINT_DATA, EXAMPLES, JOB_ID, LISTED_INSTANCES, PROJECT_ID  # noqa: E402

from api_client.deployment import build_config, render_python  # noqa: E402
from api_client.models import Checkpoint  # noqa: E402
from support.official_cli import Recorder, recording  # noqa: E402


class DeployingRecorder(Recorder):
    """Keeps the bodies of deploying requests."""

    deploying: list[Any] = []

    def do_GET(self) -> None:
        assert self.route.endswith("/checkpoints"), self.path
        self.answer({"training_job": {"id": JOB_ID}, "checkpoints": CHECKPOINT_DATA})

    def do_POST(self) -> None:
        body = json.loads(self.body())
        if "query" not in body:
            self.answer(
                {"training_jobs": [{"id": JOB_ID, "training_project": {"id": PROJECT_ID, "name": "p"}}]}
            )
        elif "listed_instances" in body["query"]:
            self.answer({"data": {"listedInstances": LISTED_INSTANCES}})
        else:
            self.deploying.append(body)
            rendered = json.dumps({"model_name": "dry", "resources": {}})
            result = {"model_version": None, "truss_config": rendered}
            self.answer({"data": {"create_model_version_from_inference_template": result}})


def main(truss: str) -> None:
    checkpoints = [Checkpoint.model_validate(each) for each in CHECKPOINT_DATA]
    with recording(DeployingRecorder) as environment:
        for name, answers in EXAMPLES.items():
            example = HERE / "examples" / f"{name}.py"
            example.write_text(render_python(build_config(answers, checkpoints)), encoding="utf-8")
            with tempfile.TemporaryDirectory() as folder:
                command = [truss, "train", "deploy_checkpoints", "--config", str(example), "--dry-run"]
                subprocess.run([*command, "--non-interactive"], cwd=folder, env=environment, check=True)
            text = json.dumps(DeployingRecorder.deploying.pop(), indent=1, sort_keys=True, ensure_ascii=True)
            (HERE / "golden" / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
