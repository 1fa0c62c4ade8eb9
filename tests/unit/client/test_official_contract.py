"""Our requests beside those of the official client: same method, path, query and body."""

from __future__ import annotations

import contextlib
import inspect
import json
import re
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from baseten.client import ManagementClient
from baseten.client.managementapi._client import ApiClient

from api_client.routes import ROUTES
from support.official_calls import official_call
from support.resource_calls import CALLS, NOWHERE, call_of, sent_by

AWKWARD = "a/b c?d#é%2F"
OPTIONS = {
    **dict.fromkeys(("project_id", "job_id", "session_id", "model_id", "deployment_id"), AWKWARD),
    **dict.fromkeys(("team_id", "name"), AWKWARD),
    **{"statuses": ["TRAINING_JOB_RUNNING"], "priority": 0, "availability_model": "spot"},
    **{"direction": "desc", "limit": 7, "min_level": "ERROR", "replica": "abcde", "step_s": 3},
    **{"page_size": 5, "page_token": 10, "timeout_minutes": -1, "trigger": "on_startup"},
}
"""Everything that can be given, by the names of the parameters."""

OFFICIAL = re.compile(
    r'def (\w+)\((?:(?!def ).)*?method="(\w+)",\s+path_fmt="([^"]+)",\s+path_args=\[([^\]]*)\]', re.DOTALL
)
NAMES = {
    (method, path): (name, arguments.split(", "))
    for name, method, path, arguments in OFFICIAL.findall(inspect.getsource(ApiClient))
}
"""Method and parameters of the official client by a route's method and path."""


def parts(request: httpx.Request) -> tuple[object, ...]:
    path, query = request.url.raw_path.partition(b"?")[0], sorted(request.url.params.multi_items())
    return request.method, path, query, json.loads(request.content or b"null")


def official_request(ours: httpx.Request) -> httpx.Request | None:
    """Return the official client's request for the same ids and fields; None if it has no such route."""
    path = ours.url.raw_path.partition(b"?")[0].decode()
    for (method, template), (name, id_names) in NAMES.items():
        ids = re.fullmatch(template.replace("{}", "([^/]+)"), path)
        if method == ours.method and ids is not None:
            fields: dict[str, Any] = json.loads(ours.content or b"{}") | dict(ours.url.params)
            return _sent(name, dict(zip(id_names, map(unquote, ids.groups()), strict=False)), fields)
    return None


def _sent(name: str, ids: dict[str, str], fields: dict[str, Any]) -> httpx.Request:
    sent: list[httpx.Request] = []
    transport = httpx.MockTransport(lambda request: sent.append(request) or httpx.Response(200, json={}))
    # What comes back is of no interest here: {} is no valid answer.
    with httpx.Client(base_url=NOWHERE.api_url, transport=transport) as http, contextlib.suppress(ValueError):
        official_call(ManagementClient(api_key="", http_client_override=http).api, name, ids, **fields)
    return sent[0]


@pytest.mark.parametrize("options", [{}, OPTIONS], ids=["required", "everything"])
@pytest.mark.parametrize("name", CALLS)
async def test_request_is_that_of_the_official_client(name: str, options: dict[str, object]) -> None:
    for ours in await sent_by(call_of(name, options)):
        theirs = official_request(ours)
        if theirs is None:
            assert not any(route.is_published and route.matches(ours.url.path) for route in ROUTES)
        else:
            assert parts(ours) == parts(theirs)


async def test_every_route_is_asked_by_a_method() -> None:
    sent = [(each.method, each.url.path) for call in CALLS.values() for each in await sent_by(call)]
    assert [
        f"{route.method} {route.path}"
        for route in ROUTES
        if not any(route.method == method and route.matches(path) for method, path in sent)
    ] == []


def test_every_training_route_of_the_official_client_is_covered() -> None:
    """A newer official client with more training routes makes this fail: add them."""
    ours = {
        (route.method, re.sub(r"\{\w+\}", "{}", path))
        for route in ROUTES
        for path in route.paths
        if route.is_published
    }
    assert ours <= NAMES.keys()
    deprecated = {("POST", f"/v1/training_projects/{{}}/jobs/{{}}/{each}") for each in ("logs", "metrics")}
    assert {(method, path) for method, path in NAMES if "training" in path} - deprecated <= ours
