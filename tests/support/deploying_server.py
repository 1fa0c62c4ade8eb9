"""A fake of Baseten that lists checkpoints and deploys them; its answer can be lost on the way."""

from __future__ import annotations

import json
import time
from typing import Any

from api_client.deployment.sending import DEPLOY_FIELD
from support.fake_baseten import LONG_AGO, Answer, FakeBaseten, ReceivedRequest, page
from support.fake_runs import iso, training_log

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"

TRUSS_CONFIG = {
    "model_name": "m",
    "resources": {"accelerator": "H100:2"},
    "docker_server": {"server_port": 8000},
}

REFUSAL = {"code": "X", "description": "no such checkpoint"}
TROUBLES = {
    "no answer": Answer(is_reset=True),
    "half an answer": Answer({"data": {DEPLOY_FIELD: {"model_version": None}}}, is_cut=True),
    "bad gateway": Answer({"message": "the gateway lost it"}, status=502),
    "no JSON": Answer(b"<html>"),
    "no version": Answer({"data": {DEPLOY_FIELD: {"model_version": None, "truss_config": None}}}),
    "refused": Answer({"data": None, "errors": [{"message": "raw", "extensions": REFUSAL}]}),
}


def listed_checkpoint(
    name: str,
    kind: str | None = "lora",
    *,
    r: object = 16,
    base: str | None = LLAMA,
    job_id: str = "job1",
    **more: Any,
) -> dict[str, Any]:
    """As the API answers it; ``r`` counts for LoRAs, ``...`` leaves it out of the adapter's config."""
    config = None if kind != "lora" else {"lora_alpha": 32} if r is ... else {"lora_alpha": 32, "r": r}
    return {
        "checkpoint_id": name,
        "created_at": LONG_AGO,
        "checkpoint_type": kind,
        "base_model": base if kind == "lora" else None,
        "lora_adapter_config": config,
        "size_bytes": 83_945_296,
        "sync_status": "COMPLETE",
        "training_job_id": job_id,
    } | more


def listed_instance(gpu_type: str | None, gpu_count: int, node_count: int = 1) -> dict[str, Any]:
    name = f"{gpu_type or 'CPU'}:{gpu_count}"
    return {
        "id": f"{name}x{node_count}".lower(),
        "name": name,
        "millicpuLimit": 8000,
        "memoryLimit": 32768,
        "gpuCount": gpu_count,
        "gpuType": gpu_type,
        "gpuMemory": 81920 if gpu_type else None,
        "default": False,
        "displayName": name,
        "nodeCount": node_count,
        "price": 0.1 * gpu_count,
        "limitedCapacity": None,
    }


class DeployingServer(FakeBaseten):
    """Requests to deploy are answered ``trouble`` (of ``TROUBLES``); with ``makes_it`` they deploy."""

    def __init__(self) -> None:
        super().__init__()
        self.trouble = ""
        self.makes_it = True
        self.requests: list[dict[str, Any]] = []
        self.models: list[dict[str, Any]] = []
        self.deployments: list[dict[str, Any]] = []
        self.statuses = ["ACTIVE"]
        self.created_at = LONG_AGO
        self.checkpoints = [listed_checkpoint("checkpoint-100")]
        self.machines = [listed_instance("L4", 1), listed_instance("H100", 1), listed_instance("H100", 2)]
        self.lines: list[dict[str, Any]] = []
        self.on("POST", "/graphql/", self._graphql)
        self.on("GET", "/v1/.*/checkpoints", self._checkpoints)
        self.on("GET", "/v1/.*/checkpoint_files", Answer({"message": "no files here"}, status=404))
        self.on("GET", "/v1/teams", Answer({"teams": []}))
        self.on("GET", "/v1/secrets", Answer({"secrets": [{"name": "hf_access_token", "id": "s"}]}))
        self.on("GET", "/v1/models", lambda _: Answer({"models": self.models}))
        self.on("GET", "/v1/models/[^/]+/deployments", self._deployments_of)
        self.on("GET", "/v1/models/[^/]+/deployments/[^/]+", self._deployment)
        self.on("GET", "/v1/models/.*/logs", lambda asked: Answer({"logs": page(self.lines, asked.query)}))

    def deploy(self, name: str) -> dict[str, Any]:
        """What a deployment makes: a model of this name unless there is one, and a version of it."""
        model = next((each for each in self.models if each["name"] == name), None)
        if model is None:
            model = {"id": f"model{len(self.models)}", "name": name, "created_at": LONG_AGO}
            self.models.append(model)
        version = {"id": f"dep{len(self.deployments)}", "name": "deployment-1", "model_id": model["id"]}
        self.deployments.append(version | {"status": "BUILDING", "created_at": LONG_AGO})
        return version

    @property
    def wet(self) -> list[dict[str, Any]]:
        return [each for each in self.requests if each["dry_run"] is not True]

    def _checkpoints(self, _asked: ReceivedRequest) -> Answer:
        return Answer({"training_job": self.jobs[0], "checkpoints": self.checkpoints})

    def _graphql(self, asked: ReceivedRequest) -> Answer:
        if "listed_instances" in str(asked.body["query"]):
            return Answer({"data": {"listedInstances": self.machines}})
        request: Any = asked.body["variables"]["request"]  # type: ignore[index]
        self.requests.append(request)
        version = None
        if not request["dry_run"] and self.makes_it:
            version = self.deploy(request["metadata"]["oracle_name"])
        result = {"model_version": version, "truss_config": json.dumps(TRUSS_CONFIG)}
        return TROUBLES.get(self.trouble) or Answer({"data": {DEPLOY_FIELD: result}})

    def _deployments_of(self, asked: ReceivedRequest) -> Answer:
        model_id = asked.path.split("/")[3]
        return Answer({"deployments": [each for each in self.deployments if each["model_id"] == model_id]})

    def _deployment(self, asked: ReceivedRequest) -> Answer:
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return Answer({"id": asked.path.split("/")[5], "status": status, "created_at": self.created_at})


def broken_loss(server: DeployingServer) -> None:
    """Give the job a log whose loss became NaN at step 150, and checkpoints before and after."""
    begin_s = time.time() - 7200
    server.jobs[0] |= {"created_at": iso(begin_s), "current_status": "TRAINING_JOB_COMPLETED"}
    losses = [2.0 - step / 1000 if step < 150 else "nan" for step in range(1, 301)]
    training_log(server, "job1", begin_s, losses, total=1000)
    server.checkpoints = [
        listed_checkpoint(f"checkpoint-{step}", created_at=iso(begin_s + 10 * step + 5))
        for step in (100, 200)
    ]
