"""Record what the official SDK sends for the example configs, as expected data for tests of our payloads.

Needs an environment with truss (0.18.36 when the data was recorded); it is not a dependency of this project::

    python tests/support/record_official_payloads.py

Runs the official push with its requests and its upload intercepted, and writes one document per config: the
bodies' ``training_project`` and ``training_job``, without ``truss_user_env``, which describes the sender; for
deploy configs the ``definition`` itself.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from truss.remote.baseten.api import BasetenApi
from truss_train import deployment, loader

TESTS = Path(__file__).parents[1]
EXAMPLES = TESTS / "unit" / "submission" / "config_file" / "examples"
GOLDEN = TESTS / "unit" / "definitions" / "golden"

CREDENTIALS = {"s3_bucket": "bucket", "s3_key": "key", "creds": {}}


class CaughtRequests:
    """Stands in for the official REST client: keeps the bodies, answers ids."""

    def __init__(self) -> None:
        self.bodies: dict[str, Any] = {}

    def get(self, _path: str, **_options: Any) -> dict[str, Any]:
        return CREDENTIALS

    def post(self, _path: str, body: dict[str, Any]) -> dict[str, Any]:
        sent = json.loads(json.dumps(body))
        self.bodies.update(sent)
        return {name: {"id": name} for name in sent}


def caught_push(config: Path) -> dict[str, Any]:
    caught = CaughtRequests()
    api = BasetenApi.__new__(BasetenApi)
    api._rest_api_client = caught
    provider = SimpleNamespace(api=api, upsert_training_project=api.upsert_training_project)
    with loader.import_training_project(config) as project:
        deployment.create_training_job(provider, config, project)
    del caught.bodies["training_job"]["truss_user_env"]
    return caught.bodies


def deploy_definition(config: Path) -> dict[str, Any]:
    """A deploy config's fields, each checkpoint with those of its own class."""
    with loader.import_deploy_checkpoints_config(config) as loaded:
        definition = loaded.model_dump()
        if loaded.checkpoint_details:
            checkpoints = [checkpoint.model_dump() for checkpoint in loaded.checkpoint_details.checkpoints]
            definition["checkpoint_details"]["checkpoints"] = checkpoints
        if loaded.compute:
            definition["compute"] = loaded.compute.model_dump()
        return {"definition": definition}


def main() -> None:
    deployment.transfer.multipart_upload_boto3 = lambda *_arguments: None
    deployment.archive_dir = lambda _folder: tempfile.NamedTemporaryFile(suffix=".tgz")  # noqa: SIM115
    for config in sorted(EXAMPLES.rglob("*.py")):
        if config.stem == "submit":
            continue
        record = deploy_definition if config.stem.startswith("deploy") else caught_push
        name = "-".join(config.relative_to(EXAMPLES).with_suffix("").parts)
        text = json.dumps(record(config), indent=1, sort_keys=True, ensure_ascii=False)
        (GOLDEN / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
