"""A stranger's server that deploys, on a real socket; its answer to a deployment can be lost on the way."""

from __future__ import annotations

import json
from typing import Any, Literal

from deployable import LISTED_INSTANCES

from api_client.deployment.sending import DEPLOY_FIELD
from support.stranger import LONG_AGO, Answer, FakeBaseten, ReceivedRequest

TRUSS_CONFIG = {
    "model_name": "m",
    "resources": {"accelerator": "H100:2"},
    "docker_server": {"server_port": 8000},
}

Trouble = Literal["", "no answer", "half an answer", "bad gateway", "no JSON", "no version", "refused"]


class DeployingServer(FakeBaseten):
    """``trouble`` is what happens to the answer; ``makes_it`` whether the deployment is made all the same."""

    def __init__(self) -> None:
        super().__init__()
        self.trouble: Trouble = ""
        self.makes_it = True
        self.requests: list[dict[str, Any]] = []
        self.models: list[dict[str, Any]] = []
        self.deployments: list[dict[str, Any]] = []
        self.statuses = ["ACTIVE"]
        self.lines: list[dict[str, Any]] = []
        self.on("POST", "/graphql/", self._graphql)
        self.on("GET", "/v1/models", lambda _: Answer(body={"models": self.models}))
        self.on("GET", "/v1/models/[^/]+/deployments", self._deployments_of)
        self.on("GET", "/v1/models/[^/]+/deployments/[^/]+", self._deployment)
        self.on("GET", "/v1/models/[^/]+/deployments/[^/]+/logs", self._logs)

    def deploy(self, name: str) -> dict[str, Any]:
        """What a deployment makes: a model of this name unless there is one, and a version of it."""
        model = next((each for each in self.models if each["name"] == name), None)
        if model is None:
            model = {"id": f"model{len(self.models)}", "name": name, "created_at": LONG_AGO}
            self.models.append(model)
        version = {"id": f"dep{len(self.deployments)}", "name": "deployment-1", "model_id": model["id"]}
        self.deployments.append(version | {"status": "BUILDING", "created_at": LONG_AGO})
        return version

    def _graphql(self, asked: ReceivedRequest) -> Answer:
        if "listed_instances" in str(asked.body["query"]):
            return Answer(body={"data": {"listedInstances": LISTED_INSTANCES}})
        request: Any = asked.body["variables"]["request"]  # type: ignore[index]
        self.requests.append(request)
        version = None
        if not request["dry_run"] and self.makes_it:
            version = self.deploy(request["metadata"]["oracle_name"])
        result = {"model_version": version, "truss_config": json.dumps(TRUSS_CONFIG)}
        return self._troubled({"data": {DEPLOY_FIELD: result}})

    def _troubled(self, body: dict[str, Any]) -> Answer:
        match self.trouble:
            case "no answer":
                return Answer(is_reset=True)
            case "half an answer":
                return Answer(body=body, is_cut=True)
            case "bad gateway":
                return Answer(502, {"message": "the gateway lost it"})
            case "no JSON":
                return Answer(body=b"<html>")
            case "no version":
                return Answer(body={"data": {DEPLOY_FIELD: {"model_version": None, "truss_config": None}}})
            case "refused":
                error = {"message": "raw", "extensions": {"code": "X", "description": "no such checkpoint"}}
                return Answer(body={"data": None, "errors": [error]})
        return Answer(body=body)

    def _deployments_of(self, asked: ReceivedRequest) -> Answer:
        model_id = asked.path.split("/")[3]
        return Answer(
            body={"deployments": [each for each in self.deployments if each["model_id"] == model_id]}
        )

    def _deployment(self, asked: ReceivedRequest) -> Answer:
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return Answer(body={"id": asked.path.split("/")[5], "status": status, "created_at": LONG_AGO})

    def _logs(self, asked: ReceivedRequest) -> Answer:
        first, last = int(asked.query["start_epoch_millis"]), int(asked.query["end_epoch_millis"])
        within = [each for each in self.lines if first <= int(each["timestamp"]) // 1_000_000 < last]
        within.sort(key=lambda each: int(each["timestamp"]), reverse=asked.query["direction"] == "desc")
        return Answer(body={"logs": within[: int(asked.query["limit"])]})
