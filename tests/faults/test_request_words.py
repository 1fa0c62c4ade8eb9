"""What people read of a failed request: what they tried and what the server said, no method and no route."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import httpx
import pytest
from pydantic import SecretStr
from resource_calls import CHANGING, PUBLIC_KEY, READING, World

from api_client import Remote, RetryPolicy, TrainingClient
from api_client.errors import ErrorAnswer, InvalidAnswer, RequestError
from api_client.http.readonly import request_description

URL = "https://api.example.test"
REMOTE = Remote("lab", URL, URL, SecretStr("sk-test"), "the test")
WORLD = cast(
    World,
    SimpleNamespace(
        served=SimpleNamespace(project_id="proj1", job_id="job1"),
        job=("proj1", "job1"),
        team_id="team1",
        model=("model1", "dep1"),
        session_job="job1",
        session="session1",
        deployment={},
        doomed=lambda: "proj1",
    ),
)
CALLS = READING | CHANGING
NOT_READ = "account.log_out"
"""Whose answer nobody reads."""


async def failed(name: str, answer: httpx.Response) -> RequestError:
    """The error of that call when the server answers so."""
    transport = httpx.MockTransport(lambda _request: answer)
    async with TrainingClient(REMOTE, retry=RetryPolicy(max_attempts=1), http_transport=transport) as client:
        with pytest.raises(RequestError) as caught:
            await CALLS[name](client, WORLD)
    return caught.value


@pytest.mark.parametrize("name", CALLS)
async def test_a_failure_says_what_was_tried_and_keeps_the_route_in_the_error(name: str) -> None:
    error = await failed(name, httpx.Response(400, json={"message": "Not while it runs."}))
    assert isinstance(error, ErrorAnswer)
    assert str(error).endswith("api.example.test: Not while it runs (400)")
    assert ("complete" in str(error)) == name.startswith("graphql")
    assert error.method and error.path.startswith(("/v1/", "/graphql"))
    no_answer = error if name == NOT_READ else await failed(name, httpx.Response(200, content=b"not JSON"))
    assert isinstance(no_answer, InvalidAnswer) or name == NOT_READ
    for each in (error, no_answer):
        assert str(each).startswith("can't ")
        assert not [hidden for hidden in (f"{each.method} ", "/v1", "%", PUBLIC_KEY) if hidden in str(each)]


@pytest.mark.parametrize(
    ("method", "path", "words"),
    [
        ("PATCH", "/v1/training_projects/p/jobs/Z%C3%BCrich", "update job Zürich"),
        ("POST", "/v1/training_projects/p/jobs/a%2Fb%1B%5B31m/stop", "stop job a/b\ufffd[31m"),
        ("DELETE", "/v1/teams/t/secrets/hf", "delete secret hf"),
        ("POST", "/v1/teams/t/training_projects", "create the project"),
        ("GET", f"/v1/training_projects/{'x' * 500}", f"read project {'x' * 59}…"),
        ("PUT", "/v1/training_projects/p/jobs/j/new", "complete a request about job j"),
        ("PUT", "/v2/whatever", "complete the request"),
        ("GET", "/", "complete the request"),
    ],
)
def test_ids_are_shown_whatever_they_hold(method: str, path: str, words: str) -> None:
    assert request_description(method, path) == words
