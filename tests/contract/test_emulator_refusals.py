"""What the emulator refuses, and in which words; and the GraphQL calls of training clients."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from api_client.models import JobStatus
from support.served_platform import KEY, Served


def test_the_key_opens_with_either_scheme_and_nothing_else_does(anyone: httpx.Client, served: Served) -> None:
    for scheme in ("Bearer", "Api-Key", "bearer"):
        answer = anyone.get(served.url + "/v1/teams", headers={"Authorization": f"{scheme} {KEY}"})
        assert answer.status_code == 200, scheme
    for wrong in (None, "Bearer wrong", KEY, f"Basic {KEY}"):
        for path in ("/v1/teams", "/v1/nothing/here", "/graphql/"):
            answer = anyone.get(served.url + path, headers={"Authorization": wrong} if wrong else {})
            assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHORIZED")
            assert answer.json()["message"] and KEY not in answer.text


def test_hosts_that_are_not_this_machine_are_refused(http: httpx.Client) -> None:
    for host, status in (
        *((host, 403) for host in ("evil.example", "127.0.0.1.evil.example", "[::2]", "10.0.0.1:80", "][")),
        *((host, 200) for host in ("localhost:8000", "api.localhost:8000", "[::1]:9", "127.0.0.1")),
    ):
        assert http.get("/v1/teams", headers={"Host": host}).status_code == status, host


def test_another_sites_page_is_refused_its_forms_too(anyone: httpx.Client, served: Served) -> None:
    """Forms need no leave of the browser's: without the key, which no page has, they do nothing."""
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1"):
        headers = {"Origin": origin, **served.headers}
        assert anyone.get(served.url + "/v1/teams", headers=headers).status_code == 403
    for kind in ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain"):
        for path in ("/v1/training_projects", "/v1/secrets", "/graphql/"):
            answer = anyone.post(served.url + path, content=b"name=x&value=y", headers={"Content-Type": kind})
            assert answer.status_code == 401
            from_a_page = {"Content-Type": kind, "Origin": "https://evil.example", **served.headers}
            assert anyone.post(served.url + path, content=b"{}", headers=from_a_page).status_code == 403


@pytest.fixture
def raw(served: Served) -> Iterator[http.client.HTTPConnection]:
    with closing(http.client.HTTPConnection("127.0.0.1", urlsplit(served.url).port)) as connection:
        yield connection


def test_there_are_no_web_sockets(raw: http.client.HTTPConnection, served: Served) -> None:
    """Browsers let any page open one to any address."""
    asked = {"Connection": "Upgrade", "Upgrade": "websocket"}
    asked |= {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    for path in ("/v1/teams", "/graphql/", "/"):
        raw.request("GET", path, headers={**served.headers, **asked})
        assert raw.getresponse().status != 101
        raw.close()


@pytest.mark.proves("docs/emulator.md", "The truss CLI")
def test_targets_as_sent_to_a_proxy_are_understood(raw: http.client.HTTPConnection, served: Served) -> None:
    for host, status in (("api.localhost:8000", 200), ("evil.example", 403)):
        raw.request("GET", f"http://{host}/v1/teams?name=Research", headers=served.headers)
        assert raw.getresponse().status == status
        raw.close()


def test_what_is_not_there_is_not_found(http: httpx.Client, served: Served) -> None:
    project = f"training_projects/{served.project_id}"
    for path in (
        *("nothing", "teams/nothing", "models/nothing", "training/jobs/nothing/queue_context"),
        *(f"training_projects/nothing{rest}" for rest in ("", "/jobs", "/cache/summary")),
        *(f"{project}/{rest}" for rest in ("jobs/nothing", "jobs/nothing/logs", "cache/summary")),
        f"{project}/jobs/{served.job_id}/download",
    ):
        answer = http.get(f"/v1/{path}")
        assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND"), path
        assert answer.json()["message"]


def test_a_job_is_found_in_its_own_project_only(http: httpx.Client, served: Served) -> None:
    other = http.post("/v1/training_projects", json={"training_project": {"name": "other"}}).json()
    path = f"/v1/training_projects/{other['training_project']['id']}/jobs/{served.job_id}"
    answers = (http.get(path), http.post(path + "/stop"), http.delete(path))
    assert [answer.status_code for answer in answers] == [404] * 3
    assert served.job_id in served.backend.by_id


def test_a_job_description_that_is_wrong_says_where(http: httpx.Client, served: Served) -> None:
    jobs = f"/v1/training_projects/{served.project_id}/jobs"
    half = b'{"training_job": {"image": {"base_image": "\\ud800"}}}'
    for body in (b"not json", b"[]", b'"text"', b'{"training_job": 3}', b"{}", b"[" * 100_000, b"\xff", half):
        answer = http.post(jobs, content=body)
        assert (answer.status_code, answer.json()["code"]) == (400, "VALIDATION_ERROR")
    for part, wrong, word in (
        ("image", {}, "base_image"),
        ("compute", {"node_count": 0}, "node_count"),
        ("compute", {"node_count": "many"}, "node_count"),
        ("compute", {"cpu_count": 2**70}, "cpu_count"),
        ("compute", {"accelerator": {"accelerator": "H100", "count": 2**70}}, "accelerator.count"),
        ("compute", {"accelerator": "H100:2"}, "accelerator: must be an object"),
        ("compute", {"availability_model": "cheap"}, "availability_model"),
        ("priority", 2**70, "priority"),
        ("runtime", {"start_commands": "one string"}, "start_commands"),
        ("runtime", {"environment_variables": {"A": 3}}, "environment_variables"),
        ("interactive_session", {"trigger": "sometimes"}, "trigger"),
        ("interactive_session", {"timeout_minutes": 2**70}, "timeout_minutes"),
    ):
        spec = {"image": {"base_image": "python:3.11"}, part: wrong}
        answer = http.post(jobs, json={"training_job": spec})
        assert (answer.status_code, word in answer.json()["message"]) == (400, True)
    assert served.backend.specs == []


def test_only_a_waiting_job_is_updated_and_a_running_one_stopped(http: httpx.Client, served: Served) -> None:
    assert http.patch(served.job_path, json={"priority": 3}).status_code == 400
    served.backend.set_status(served.job_id, JobStatus.PENDING)
    for wrong in ({}, {"priority": "high"}, {"availability_model": "cheap"}):
        assert http.patch(served.job_path, json=wrong).status_code == 400
    answer = http.patch(served.job_path, json={"priority": 0, "availability_model": "SPOT"})
    assert answer.json()["training_job"]["availability_model"] == "spot"
    served.backend.set_status(served.job_id, JobStatus.COMPLETED)
    answer = http.post(served.job_path + "/stop", json={})
    assert answer.json()["training_job"]["current_status"] == JobStatus.COMPLETED


def test_its_own_failure_is_answered_in_json(http: httpx.Client, served: Served, monkeypatch: Any) -> None:
    monkeypatch.setattr(served.backend, "checkpoints", lambda job_id: 1 / 0)
    answer = http.get(served.job_path + "/checkpoints")
    assert (answer.status_code, answer.json()["code"]) == (500, "INTERNAL_ERROR")


def ask(http: httpx.Client, query: str) -> Any:
    """The answer, whose status is 200 whatever it says."""
    return http.post("/graphql/", json={"query": query, "variables": {}}).raise_for_status().json()


def test_teams_instances_and_who_i_am(http: httpx.Client) -> None:
    (team,) = ask(http, "query Teams { teams { id name default } }")["data"]["teams"]
    assert (team["name"], team["default"], bool(team["id"])) == ("Research", True, True)
    query = """{ listedInstances: listed_instances { id gpuCount: gpu_count, gpuType: gpu_type
        nodeCount: node_count price limitedCapacity: limited_capacity displayName: display_name } }"""
    machines = ask(http, query)["data"]["listedInstances"]
    assert {"H100", None} <= {machine["gpuType"] for machine in machines}
    assert all(machine["limitedCapacity"] is None and machine["price"] > 0 for machine in machines)
    data = ask(http, "{organization{workspace_name id} user{email}}")["data"]
    assert data["organization"]["workspace_name"]
    assert "@" in data["user"]["email"]


def test_a_query_that_makes_no_sense_is_an_error(http: httpx.Client) -> None:
    for query in ("{", "}", "{ unknown }", "{ teams { id ", "subscription { x }", "{%}", "{a" * 100):
        assert ask(http, query)["errors"][0]["message"]
