"""The GraphQL calls of training clients."""

from __future__ import annotations

from typing import Any

import httpx
import pytest


def ask(http: httpx.Client, query: str) -> dict[str, Any]:
    answer = http.post("/graphql/", json={"query": query, "variables": {}})
    assert answer.status_code == 200
    content: dict[str, Any] = answer.json()
    return content


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


@pytest.mark.parametrize(
    "query", ["{", "}", "{ unknown }", "{ teams { id ", "subscription { x }", "{%}", "{a" * 100]
)
def test_a_query_that_makes_no_sense_is_an_error(http: httpx.Client, query: str) -> None:
    assert ask(http, query)["errors"][0]["message"]
