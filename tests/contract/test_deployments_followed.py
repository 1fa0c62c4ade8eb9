"""Deployments over time, as the official client sees them: they start, log, and outlive a restart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from baseten.client import ManagementClient
from baseten.client.managementapi._client import ApiClient

from support.deployment_requests import deployed, request_for
from support.faulty import FaultyServer
from support.official_calls import official_call
from support.served_platform import KEY, NOW, Served, served_platform

LORA = "checkpoint-100"
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


def test_the_log_by_window_direction_and_filters(one: Deployment, http: httpx.Client, served: Served) -> None:
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
    (replica,) = {line.replica for line in one.logs()} - {None}
    assert 0 < len(read(replica=replica)) < len(messages)
    assert read(component="chainlet") == read(request_id="r") == read(min_level="ERROR") == []
    assert read(search_pattern="^Build.*d$") == read(includes=["Build", "finished"]) == ["Build finished"]
    assert "Build finished" not in read(excludes=["finished", "nothing"])
    posted = one.ask("post_models_deployments_logs", includes=["Build", "finished"]).logs
    assert [line.message for line in posted] == ["Build finished"]
    for wrong in ({"search_pattern": "("}, {"search_pattern": "a" * 257}, {"limit": "0"}):
        assert http.get(f"{one.path}/logs", params=wrong).status_code == 400
    assert http.post(f"{one.path}/logs", json={"includes": ["a"] * 9}).status_code == 400


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


def test_a_deployment_is_stopped_and_started_again(one: Deployment, served: Served) -> None:
    later(served, 60)
    assert one.act("activate").no_op
    before = len(one.logs(end_epoch_millis=None))
    stopped = one.act("deactivate")
    assert (stopped.success, stopped.no_op, one.status) == (True, False, "DEACTIVATING")
    later(served, 70)
    assert (one.status, one.act("deactivate").no_op) == ("INACTIVE", True)
    assert (one.act("activate").no_op, one.status) == (False, "DEPLOYING")
    later(served, 90)
    assert one.status == "ACTIVE"
    assert before < len(one.logs(end_epoch_millis=None)) < 2 * before  # the second start builds nothing
    assert not one.act("retry").retried
    newest, first = one.startups()
    assert newest.started_at_epoch_millis > first.started_at_epoch_millis
    assert (first.outcome, first.duration_ms) == ("SUCCESS", 11_000)
    assert sum(phase.duration_ms or 0 for phase in first.phase_summary) == first.duration_ms
    assert one.startups(0) == []


def test_one_that_failed_is_retried_and_never_promoted(make: Any, http: Any, served: Served) -> None:
    one = make(instance_type_id="cpu-4x16")
    later(served, 60)
    assert one.status == "DEPLOY_FAILED"
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
