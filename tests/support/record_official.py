"""Record what the official SDK and CLI send and print, as expected data for tests of ours.

Needs an environment with truss (0.18.36 when the data was recorded); it is not a dependency of this project::

    python tests/support/record_official.py [commands] [payloads] [workstations] [requests]

The baseten CLI is one Go binary: its part of the recorded commands follows the ``Flags`` of its sources.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
from truss.cli.cli import truss_cli
from truss.remote.baseten.api import BasetenApi
from truss_train import deployment, loader

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS.parent), str(TESTS), str(TESTS / "unit" / "deployment")]

from deployable import CHECKPOINT_DATA, EXAMPLES, JOB_ID, LISTED_INSTANCES, PROJECT_ID  # noqa: E402

from api_client.deployment import build_config, render_python  # noqa: E402
from api_client.models import Checkpoint  # noqa: E402
from support.example_configs import NAMES, example_config  # noqa: E402
from support.fake_baseten import Answer, FakeBaseten, ReceivedRequest  # noqa: E402

TRUSS = (sys.executable, "-c", "from truss.cli.cli import truss_cli; truss_cli()", "train")
REMOTE_URL = "http://localhost:8000"
"""The one address beside the real ones that the official CLI knows a REST host for."""
CREDENTIALS = {"s3_bucket": "bucket", "s3_key": "key", "creds": {}}
WORKSTATIONS = (
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


def write(path: Path, document: Any) -> None:
    text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii="definitions" not in path.parts)
    path.write_text(text + "\n", encoding="utf-8")


def commands() -> None:
    """The commands and options of the truss CLI that docs/truss.md maps to ours."""

    def below(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
        if isinstance(command, click.Group):
            for name in sorted(command.commands):
                yield from below(command.commands[name], (*words, name))
        else:
            names = [name for option in command.params for name in (*option.opts, *option.secondary_opts)]
            yield " ".join(words), sorted(name for name in names if name.startswith("--"))

    found = {
        words: names
        for each in ("train", "ssh", "login")
        for words, names in below(truss_cli.commands[each], (each,))
    }
    path = TESTS / "cli" / "golden" / "official_commands.json"
    recorded = json.loads(path.read_text())
    recorded["truss"] = {"version": version("truss"), "commands": dict(sorted(found.items()))}
    path.write_text(json.dumps(recorded, indent=1) + "\n")


def payloads() -> None:
    """What the official push sends for the example configs, and the fields of the deploy configs."""
    deployment.transfer.multipart_upload_boto3 = lambda *_arguments: None
    deployment.archive_dir = lambda _folder: tempfile.NamedTemporaryFile(suffix=".tgz")  # noqa: SIM115
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            record = deploy_definition if name.startswith("deploy") else caught_push
            golden = TESTS / "unit" / "definitions" / "golden" / f"{name}.json"
            write(golden, record(example_config(name, Path(folder))))


def caught_push(config: Path) -> dict[str, Any]:
    """The bodies that were sent, without ``truss_user_env``, which describes the sender."""
    bodies: dict[str, Any] = {}

    def post(_path: str, body: dict[str, Any]) -> dict[str, Any]:
        sent = json.loads(json.dumps(body))
        bodies.update(sent)
        return {name: {"id": name} for name in sent}

    api = BasetenApi.__new__(BasetenApi)
    api._rest_api_client = SimpleNamespace(get=lambda _path, **_options: CREDENTIALS, post=post)
    provider = SimpleNamespace(api=api, upsert_training_project=api.upsert_training_project)
    with loader.import_training_project(config) as project:
        deployment.create_training_job(provider, config, project)
    del bodies["training_job"]["truss_user_env"]
    return bodies


def deploy_definition(config: Path) -> dict[str, Any]:
    """A deploy config's fields, each checkpoint with those of its own class."""
    with loader.import_deploy_checkpoints_config(config) as loaded:
        definition = loaded.model_dump()
        if loaded.checkpoint_details:
            found = [checkpoint.model_dump() for checkpoint in loaded.checkpoint_details.checkpoints]
            definition["checkpoint_details"]["checkpoints"] = found
        if loaded.compute:
            definition["compute"] = loaded.compute.model_dump()
        return {"definition": definition}


class Recorder(FakeBaseten):
    """Answer what the official CLI asks, in absolute addresses, and keep what it sends in ``caught``."""

    def __init__(self) -> None:
        super().__init__()
        self.caught: dict[str, Any] = {}

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which the official CLI asks here (at ``http_proxy``)."""
        return {name: value for name, value in os.environ.items() if "proxy" not in name.lower()} | {
            "BASETEN_TRUSS_AUTH_REMOTE_URL": REMOTE_URL,
            "BASETEN_TRUSS_AUTH_API_KEY": "recorded-by-nobody",
            "TRUSS_NO_UPDATE_CHECK": "1",
            "http_proxy": self.url,
        }

    def answer(self, asked: ReceivedRequest) -> Answer:
        body: Any = asked.body
        project = {"id": PROJECT_ID, "name": "p"}
        if asked.method == "PUT":
            with tarfile.open(fileobj=io.BytesIO(asked.raw)) as archive:
                self.caught["archive"] = sorted(archive.getnames())
            return Answer(b"")
        if asked.path.endswith("/checkpoints"):
            return Answer({"training_job": {"id": JOB_ID}, "checkpoints": CHECKPOINT_DATA})
        if asked.path == "/v1/blobs/credentials/train":
            creds = {"aws_access_key_id": "k", "aws_secret_access_key": "s", "aws_session_token": "t"}
            return Answer(
                CREDENTIALS | {"creds": creds | {"endpoint_url": self.url, "region_name": "us-east-1"}}
            )
        if asked.method == "GET":
            assert asked.path == "/v1/training_projects", asked.path
            return Answer({"training_projects": []})
        if "teams" in body.get("query", ""):
            return Answer({"data": {"teams": [{"id": "t1", "name": "Research", "default": True}]}})
        if "listed_instances" in body.get("query", ""):
            return Answer({"data": {"listedInstances": LISTED_INSTANCES}})
        if "query" in body:
            self.caught["deploying"] = body
            result = {"model_version": None, "truss_config": '{"model_name": "dry", "resources": {}}'}
            return Answer({"data": {"create_model_version_from_inference_template": result}})
        if "training_project" in body:
            self.caught |= {"path": asked.path, "training_project": body["training_project"]}
            return Answer({"training_project": {"id": "p1", **body["training_project"]}})
        if "training_job" in body:
            del body["training_job"]["truss_user_env"]
            self.caught["training_job"] = body["training_job"]
            project = {"id": "p1", "name": self.caught["training_project"]["name"]}
            return Answer({"training_job": {"id": "j1", "training_project": project}})
        return Answer({"training_jobs": [{"id": JOB_ID, "training_project": project}]})


def run_truss(environment: dict[str, str], *arguments: str) -> bytes:
    """Run a command of ``truss train`` in an empty folder; its standard output."""
    command = [*TRUSS, *arguments, "--non-interactive"]
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE).stdout


def workstations() -> None:
    """What each command line sends and prints, and the names of the archive's files."""
    records = []
    with Recorder() as server:
        for case in WORKSTATIONS:
            server.caught.clear()
            printed = json.loads(run_truss(server.environment, "workstation", *case.split(), "-o", "json"))
            records.append({"arguments": case.split(), **server.caught, "printed": printed})
    write(TESTS / "cli" / "golden" / "workstation.json", records)


def requests() -> None:
    """The body of the deploying request of each example file, which are written from the answers first."""
    here = TESTS / "unit" / "deployment"
    checkpoints = [Checkpoint.model_validate(each) for each in CHECKPOINT_DATA]
    with Recorder() as server:
        for name, answers in EXAMPLES.items():
            example = here / "examples" / f"{name}.py"
            example.write_text(render_python(build_config(answers, checkpoints)), encoding="utf-8")
            run_truss(server.environment, "deploy_checkpoints", "--config", str(example), "--dry-run")
            write(here / "golden" / f"{name}.json", server.caught.pop("deploying"))


if __name__ == "__main__":
    for what in (commands, payloads, workstations, requests):
        if what.__name__ in sys.argv[1:] or len(sys.argv) == 1:
            what()
