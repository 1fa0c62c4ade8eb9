"""A stranger's server that knows checkpoints and deploys them; written from the API's description."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field

from support.stranger import LONG_AGO, Answer, FakeBaseten, ReceivedRequest
from support.stranger_runs import iso, training_log

BASE = "meta-llama/Llama-3.1-8B-Instruct"


def checkpoint(name: str, kind: str = "lora", **more: object) -> dict[str, object]:
    """A checkpoint with every required field."""
    return {
        "checkpoint_id": name,
        "created_at": LONG_AGO,
        "checkpoint_type": kind,
        "base_model": BASE,
        "lora_adapter_config": {"r": 16} if kind == "lora" else None,
        "size_bytes": 1000,
        "training_job_id": "job1",
    } | more


def machine(gpu_type: str, count: int) -> dict[str, object]:
    """A machine as GraphQL lists it."""
    return {
        "id": f"{gpu_type}-{count}",
        "name": f"{gpu_type}:{count}",
        "millicpuLimit": 1000,
        "memoryLimit": 1000,
        "gpuCount": count,
        "gpuType": gpu_type,
        "gpuMemory": 81_920,
        "default": False,
        "displayName": "",
        "nodeCount": 1,
        "price": 0.1 * count,
        "limitedCapacity": None,
    }


@dataclass
class Deployer:
    """What it has, and the ``requests`` to deploy that came; ``fails`` is answered instead."""

    stranger: FakeBaseten
    checkpoints: list[dict[str, object]] = field(default_factory=lambda: [checkpoint("checkpoint-100")])
    requests: list[dict[str, object]] = field(default_factory=list)
    statuses: list[str] = field(default_factory=lambda: ["BUILDING", "ACTIVE"])
    fails: Answer | None = None
    machines: list[dict[str, object]] = field(
        default_factory=lambda: [machine("L4", 1), machine("H100", 1), machine("H100", 2)]
    )

    def __post_init__(self) -> None:
        server = self.stranger
        server.on("GET", "/v1/.*/checkpoints", self._checkpoints)
        server.on("GET", "/v1/.*/checkpoint_files", Answer(404, {"message": "no files here"}))
        server.on("GET", "/v1/teams", Answer(body={"teams": []}))
        server.on("GET", "/v1/secrets", Answer(body={"secrets": [{"name": "hf_access_token", "id": "s"}]}))
        server.on("GET", "/v1/models", Answer(body={"models": []}))
        server.on("GET", "/v1/models/m1/deployments/d1", self._deployment)
        server.on("GET", "/v1/models/m1/deployments/d1/logs", Answer(body={"logs": []}))
        server.on("POST", "/graphql/", self._graphql)

    @property
    def wet(self) -> list[dict[str, object]]:
        """The requests that were no dry runs."""
        return [each for each in self.requests if each["dry_run"] is not True]

    def _checkpoints(self, _asked: ReceivedRequest) -> Answer:
        return Answer(body={"training_job": self.stranger.jobs[0], "checkpoints": self.checkpoints})

    def _deployment(self, _asked: ReceivedRequest) -> Answer:
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return Answer(body={"id": "d1", "model_id": "m1", "status": status, "created_at": LONG_AGO})

    def _graphql(self, asked: ReceivedRequest) -> Answer:
        if "listed_instances" in str(asked.body["query"]):
            return Answer(body={"data": {"listedInstances": self.machines}})
        request = asked.body["variables"]["request"]
        self.requests.append(request)
        if self.fails is not None:
            return self.fails
        version = {"id": "d1", "name": "one", "model_id": "m1"}
        made = {
            "model_version": None if request["dry_run"] else version,
            "truss_config": json.dumps({"model_name": request["metadata"]["oracle_name"]}),
        }
        return Answer(body={"data": {"create_model_version_from_inference_template": made}})


def broken_loss(deployer: Deployer) -> None:
    """Give the job a log whose loss became NaN at step 150, and checkpoints before and after."""
    begin_s = time.time() - 7200
    deployer.stranger.jobs[0] |= {"created_at": iso(begin_s), "current_status": "TRAINING_JOB_COMPLETED"}
    losses = [2.0 - step / 1000 if step < 150 else "nan" for step in range(1, 301)]
    training_log(deployer.stranger, "job1", begin_s, losses, total=1000)
    deployer.checkpoints = [
        checkpoint(f"checkpoint-{step}", created_at=iso(begin_s + 10 * step + 5)) for step in (100, 200)
    ]
