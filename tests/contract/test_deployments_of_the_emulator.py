"""Deployments: what the mutation renders, makes and refuses; what the official client sees over time."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from baseten.client import ManagementClient
from baseten.client.managementapi._client import ApiClient

from api_client.models import Checkpoint
from support.deployment_requests import DEPLOY, ask, deployed, refusal, request_for
from support.fake_backend import START
from support.faulty import FaultyServer
from support.official_calls import official_call
from support.served_platform import KEY, NOW, Served, served_platform

LORA = "checkpoint-100"
Known = dict[str, Checkpoint]
LOOPS = {"weight_source_type": "B10_LOOPS_CHECKPOINTING"}


@pytest.fixture
def checkpoints(served: Served, monkeypatch: pytest.MonkeyPatch) -> Known:
    """The checkpoints of every job, for a test to add to."""
    known: Known = {}
    monkeypatch.setattr(served.backend, "checkpoints", lambda job_id: list(known.values()))
    return known


def add(known: Known, name: str, kind: str = "lora", **more: Any) -> None:
    fields = {"base_model": "meta-llama/Llama-3.1-8B", "sync_status": "COMPLETE", **more}
    known[name] = Checkpoint(checkpoint_id=name, checkpoint_type=kind, created_at=START, **fields)


def dry_run(http: httpx.Client, request: dict[str, Any]) -> dict[str, Any]:
    answer = ask(http, {**request, "dry_run": True})["data"][DEPLOY]
    assert answer["model_version"] is None
    config: dict[str, Any] = json.loads(answer["truss_config"])
    return config


def server_words(config: dict[str, Any]) -> list[str]:
    """The words of the server's command, behind what comes before it in the shell."""
    shell, flag, script = shlex.split(config["docker_server"]["start_command"])
    assert (shell, flag) == ("sh", "-c")
    return shlex.split(script.rpartition("exec ")[2])


def after(words: list[str], option: str) -> str:
    return words[words.index(option) + 1]


def test_a_dry_run_renders_and_makes_nothing(http: httpx.Client, served: Served) -> None:
    environment = [
        {"name": "HF_TOKEN", "value": "hf_access_token", "is_secret_reference": True},
        {"name": "GREETING", "value": "it's; $HOME", "is_secret_reference": False},
    ]
    config = dry_run(http, request_for((served.job_id, LORA), environment=environment))
    assert config["model_name"] == "fine-tuned-llm"
    resources = {"accelerator": "H100:2", "cpu": "52", "memory": "468Gi", "use_gpu": True}
    assert config["resources"] == resources
    assert config["secrets"] == {"hf_access_token": None}
    assert config["environment_variables"] == {"GREETING": "it's; $HOME"}
    assert config["training_checkpoints"]["artifact_references"] == [
        {"training_job_id": served.job_id, "paths": [f"rank-0/{LORA}/"]}
    ]
    words = server_words(config)
    assert words[:3] == ["vllm", "serve", "meta-llama/Llama-3.1-8B"]
    assert after(words, "--max-lora-rank") == "16"
    assert after(words, "--tensor-parallel-size") == "2"
    assert after(words, "--lora-modules").startswith(f"{LORA}=/tmp/training_checkpoints/{served.job_id}/")
    assert "export HF_TOKEN=" in config["docker_server"]["start_command"]
    assert http.get("/v1/models").json() == {"models": []}


def test_the_servers_rank_holds_every_adapter(http: Any, served: Served, checkpoints: Known) -> None:
    cases: tuple[tuple[list[Any], str], ...] = (([24], "32"), (["abc"], "16"), ([8, 64, 24], "64"))
    for ranks, served_rank in cases:
        for number, rank in enumerate(ranks):
            add(checkpoints, f"c-{number}", lora_adapter_config={"r": rank})
        words = server_words(dry_run(http, request_for(*((served.job_id, name) for name in checkpoints))))
        assert after(words, "--max-lora-rank") == served_rank
        modules = words[words.index("--lora-modules") + 1 :][: len(ranks)]
        assert [word.partition("=")[0] for word in modules] == [*checkpoints]


def test_full_weights_and_whisper_are_folders(http: Any, served: Served, checkpoints: Known) -> None:
    add(checkpoints, ".", kind="full")
    add(checkpoints, "speech", kind="whisper")
    full, whisper = (dry_run(http, request_for((served.job_id, name))) for name in checkpoints)
    assert server_words(full)[2] == f"/tmp/training_checkpoints/{served.job_id}/rank-0"
    assert full["training_checkpoints"]["artifact_references"][0]["paths"] == ["rank-0/"]
    assert after(server_words(whisper), "--served-model-name") == "speech"
    assert "transcriptions" in whisper["docker_server"]["predict_endpoint"]


def test_the_same_name_is_the_same_model(http: httpx.Client, served: Served) -> None:
    first = deployed(http, request_for((served.job_id, LORA)))
    second = deployed(http, request_for((served.job_id, LORA)))
    other = deployed(http, request_for((served.job_id, LORA), metadata={"oracle_name": "another"}))
    assert first["model_id"] == second["model_id"] != other["model_id"]
    assert (first["name"], second["name"], other["name"]) == ("deployment-1", "deployment-2", "deployment-1")
    models = {model["name"]: model for model in http.get("/v1/models").json()["models"]}
    assert models["fine-tuned-llm"]["deployments_count"] == 2
    assert models["fine-tuned-llm"]["production_deployment_id"] == first["id"]


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"weights_sources": []}, "VALIDATION_ERROR", "request.weights_sources"),
    ({"weights_sources": [{}]}, "VALIDATION_ERROR", "weights_sources.0"),
    ({"weights_sources": [LOOPS]}, "NOT_IMPLEMENTED", "Loops"),
    ({"metadata": {"oracle_name": " "}}, "VALIDATION_ERROR", "oracle_name"),
    ({"metadata": None}, "VALIDATION_ERROR", "metadata"),
    ({"inference_stack": {"stack_type": "TGI"}}, "VALIDATION_ERROR", "stack_type"),
    ({"environment": [{"name": "A=B", "value": ""}]}, "VALIDATION_ERROR", "variables.0.name"),
    ({"environment": [{"name": "A", "value": 1}]}, "VALIDATION_ERROR", "value"),
    ({"dry_run": "no"}, "VALIDATION_ERROR", "dry_run"),
    ({"instance_type_id": "a-toaster"}, "RESOURCE_NOT_FOUND", "a-toaster"),
]


def test_a_wrong_request_is_refused_in_words(http: httpx.Client, served: Served) -> None:
    for changes, code, words in REFUSED:
        found = refusal(http, request_for((served.job_id, LORA), **changes))
        assert (found[0], words in found[1]) == (code, True), found
    for no_request in (None, [], "text", {}):
        assert refusal(http, no_request)[0] == "VALIDATION_ERROR"
    assert http.get("/v1/models").json() == {"models": []}


def test_what_cannot_be_served_is_refused(http: httpx.Client, served: Served, checkpoints: Known) -> None:
    add(checkpoints, "lora", lora_adapter_config={"r": 8})
    add(checkpoints, "full", "full")
    add(checkpoints, "no base", base_model=None)
    add(checkpoints, "wide", lora_adapter_config={"r": 600})
    for expected, words, *places in (
        ("VALIDATION_ERROR", "only LoRA checkpoints", (served.job_id, "full"), (served.job_id, "lora")),
        ("VALIDATION_ERROR", "base model", (served.job_id, "no base")),
        ("VALIDATION_ERROR", "600", (served.job_id, "wide")),
        ("RESOURCE_NOT_FOUND", "nojob", ("nojob", "lora")),
        ("RESOURCE_NOT_FOUND", "checkpoint-7", (served.job_id, "checkpoint-7")),
    ):
        for is_dry in (True, False):
            code, message = refusal(http, request_for(*places, dry_run=is_dry))
            assert (code, words in message) == (expected, True), message
    request = request_for((served.job_id, "lora"))
    too_much = f"mutation {{ {DEPLOY}(request: $request) {{ truss_config }} other {{ id }} }}"
    assert refusal(http, request, too_much)[0] == "NOT_IMPLEMENTED"
    assert http.get("/v1/models").json() == {"models": []}


STAGES = ["BUILDING", "DEPLOYING", "LOADING_MODEL", "ACTIVE"]
NOW_MS = int(NOW.timestamp() * 1000)
DEPLOYMENT = "get_models_deployments_deployment_id"


def later(served: Served, seconds: float) -> None:
    served.clock.moment = NOW + timedelta(seconds=seconds)


@dataclass
class Deployment:
    """One deployment, and the official client's calls about it."""

    api: ApiClient
    ids: dict[str, str]

    @property
    def path(self) -> str:
        return f"/v1/models/{self.ids['model_id']}/deployments/{self.ids['deployment_id']}"

    @property
    def status(self) -> str:
        return str(self.ask(DEPLOYMENT).status)

    def ask(self, name: str, /, **fields: Any) -> Any:
        return official_call(self.api, name, self.ids, **fields)

    def act(self, verb: str) -> Any:
        return self.ask(f"post_models_deployments_{verb}")

    def logs(self, **fields: Any) -> list[Any]:
        window = {"start_epoch_millis": NOW_MS, "end_epoch_millis": NOW_MS + 60_000, "direction": "asc"}
        found: list[Any] = self.ask("get_models_deployments_logs", **window | fields).logs
        return found

    def startups(self, lasting_ms: int = 90_000) -> list[Any]:
        window = {"start_epoch_millis": NOW_MS, "end_epoch_millis": NOW_MS + lasting_ms}
        found: list[Any] = self.ask("get_models_deployments_startups", **window).items
        return found


@pytest.fixture
def make(http: httpx.Client, official: ManagementClient, served: Served) -> Any:
    """Deploy the adapter; ``changes`` are of the request."""

    def deploy(**changes: Any) -> Deployment:
        version = deployed(http, request_for((served.job_id, LORA), **changes))
        return Deployment(official.api, {"model_id": version["model_id"], "deployment_id": version["id"]})

    return deploy


@pytest.fixture
def one(make: Callable[[], Deployment]) -> Deployment:
    return make()


def test_the_official_client_reads_models_and_deployments(one: Deployment, served: Served) -> None:
    (model,) = one.ask("get_models").models
    assert model == one.ask("get_models_model_id")
    assert (model.name, model.team_name, model.deployments_count) == ("fine-tuned-llm", "Research", 1)
    assert model.production_deployment_id == one.ids["deployment_id"]
    assert model.instance_type_name == "H100:2 52x468"
    team = next(team for team in one.api.get_teams().teams if team.default)
    assert one.api.get_teams_models(team_id=team.id).models == [model]
    elsewhere = served.platform.stores.teams.ensure("Elsewhere", NOW)
    assert one.api.get_teams_models(team_id=elsewhere.id).models == []
    assert one.ask("get_models", name="of another name").models == []
    (deployment,) = one.ask("get_models_deployments").deployments
    assert deployment == one.ask(DEPLOYMENT) == one.ask("get_models_deployments_production")
    assert (deployment.status, deployment.environment) == ("BUILDING", "production")
    assert one.ask("get_models_deployments_config").config["model_name"] == "fine-tuned-llm"


@pytest.mark.proves("docs/emulator.md", "The emulator")
def test_a_deployment_walks_through_its_stages(one: Deployment, served: Served) -> None:
    seen: dict[str, int] = {}
    for second in range(0, 20, 2):
        later(served, second)
        deployment = one.ask(DEPLOYMENT)
        assert deployment.active_replica_count == (deployment.status == "ACTIVE")
        assert (deployment.autoscaling_settings is not None) == (deployment.status == "ACTIVE")
        seen[deployment.status] = len(one.logs())
    assert [*seen] == STAGES
    assert [*seen.values()] == sorted(set(seen.values()))
    later(served, -3600)
    assert one.status == "BUILDING"


def test_the_log_by_window_and_direction(one: Deployment, http: httpx.Client, served: Served) -> None:
    later(served, 60)

    def read(**fields: Any) -> list[str]:
        return [line.message for line in one.logs(**fields)]

    messages, stamps = read(), [int(line.timestamp) for line in one.logs()]
    assert stamps == sorted(stamps)
    assert ("emulator" in messages[0], LORA in messages[-1]) == (True, True)
    assert read(direction="desc") == messages[::-1]
    assert read(limit=2) == messages[:2]
    seam_ms = NOW_MS + 4000
    assert seam_ms * 1_000_000 in stamps
    assert read(end_epoch_millis=seam_ms) + read(start_epoch_millis=seam_ms) == messages
    assert len({line.replica for line in one.logs()} - {None}) == 1
    assert read(min_level="ERROR") == []
    assert [line.message for line in one.ask("post_models_deployments_logs", limit=1).logs] == messages[-1:]
    assert http.get(f"{one.path}/logs", params={"limit": "0"}).status_code == 400
    refused = http.post(f"{one.path}/logs", json={"includes": ["Build"]})
    assert (refused.status_code, refused.json()["code"]) == (501, "NOT_IMPLEMENTED"), "never the whole log"


def test_a_missing_secret_is_in_the_log_by_name(make: Any, official: Any, served: Served) -> None:
    official_call(official.api, "post_secrets", {}, name="there", value="hush-hush")
    environment = [
        {"name": name, "value": name.lower(), "is_secret_reference": True} for name in ("THERE", "MISSING")
    ]
    one = make(environment=environment)
    later(served, 60)
    (warning,) = one.logs(min_level="WARNING")
    assert "'missing'" in warning.message
    assert "hush-hush" not in f"{one.logs(limit=1000)} {one.ask('get_models_deployments_config')}"


def test_what_is_deleted_is_gone(one: Deployment, make: Any, http: httpx.Client) -> None:
    assert one.ask("delete_models_deployments").deleted
    assert one.ask("get_models_model_id").production_deployment_id is None
    assert http.get(one.path).status_code == 404
    link = f"/models/{one.ids['model_id']}/logs/{one.ids['deployment_id']}"
    page = http.get(link, headers={"Authorization": ""})
    assert (page.status_code, page.headers["content-type"][:10]) == (200, "text/plain"), "it leads somewhere"
    make()
    assert one.ask("delete_models").deleted
    assert one.ask("get_models").models == []
    assert http.get(one.path.rpartition("/")[0]).status_code == 404


def test_a_deployment_outlives_the_emulator_and_its_job(front: FaultyServer, tmp_path: Path) -> None:
    with httpx.Client(base_url=front.url, headers={"Authorization": f"Bearer {KEY}"}) as client:
        with served_platform(front, tmp_path) as before:
            version = deployed(client, request_for((before.job_id, LORA)))
            client.delete(f"/v1/training_projects/{before.project_id}").raise_for_status()
        path = f"/v1/models/{version['model_id']}/deployments/{version['id']}"
        with served_platform(front, tmp_path) as after:
            assert client.get(path).json()["status"] == "BUILDING"
            later(after, 60)
            assert client.get(path).json()["status"] == "ACTIVE"
            assert LORA in client.get(f"{path}/logs").json()["logs"][0]["message"]


@pytest.mark.proves("docs/emulator.md", "The emulator")
def test_a_deployment_is_stopped_and_started_again(one: Deployment, served: Served) -> None:
    later(served, 60)
    assert one.act("activate").no_op
    before = len(one.logs(end_epoch_millis=None))
    stopped = one.act("deactivate")
    assert (stopped.success, stopped.no_op, one.status) == (True, False, "DEACTIVATING")
    later(served, 70)
    assert (one.status, one.act("deactivate").no_op) == ("INACTIVE", True)
    assert (one.act("activate").no_op, one.status) == (False, "BUILDING")
    later(served, 90)
    assert one.status == "ACTIVE"
    assert len(one.logs(end_epoch_millis=None)) == 2 * before
    assert not one.act("retry").retried
    newest, first = one.startups()
    assert newest.started_at_epoch_millis > first.started_at_epoch_millis
    assert (first.outcome, first.duration_ms) == ("SUCCESS", 11_000)
    assert sum(phase.duration_ms or 0 for phase in first.phase_summary) == first.duration_ms
    assert one.startups(0) == []


@pytest.mark.proves("docs/emulator.md", "The emulator")
def test_one_that_failed_is_retried_and_never_promoted(make: Any, http: Any, served: Served) -> None:
    one = make(instance_type_id="cpu-4x16")
    later(served, 60)
    assert one.status == "DEPLOY_FAILED"
    assert "no GPU" in one.logs(min_level="ERROR")[-1].message
    for verb in ("promote", "activate"):
        assert http.post(f"{one.path}/{verb}", json={}).status_code == 400
    answer = one.act("retry")
    assert (answer.retried, answer.deployment.status) == (True, "BUILDING")
    (attempt,) = one.startups()
    assert (attempt.outcome, attempt.ready_at_epoch_millis) == ("FAILED", None)
    assert attempt.phase_summary[-1].status == "FAILED"


def test_a_promoted_deployment_is_the_only_one_in_production(one: Deployment, make: Any) -> None:
    promoted = make().act("promote")
    assert (promoted.is_production, promoted.environment) == (True, "production")
    found = one.ask("get_models_deployments").deployments
    assert [each.id for each in found if each.is_production] == [promoted.id] != [one.ids["deployment_id"]]
