"""A deployment's status and log, until it serves or has failed."""

from __future__ import annotations

from typing import Any

import pytest

from api_client import LogLine, TrainingClient
from api_client.deployment import DeploymentUpdate, follow
from support.deploying_server import DeployingServer
from support.fake_baseten import Answer, line
from support.log_server import FastClock
from support.remotes import remote_of


async def updates(server: DeployingServer, **how: Any) -> list[DeploymentUpdate]:
    async with TrainingClient(remote_of(server), clock=FastClock()) as client:
        return [update async for update in follow(client, "m", "d", **how)]


def messages(seen: list[DeploymentUpdate]) -> list[list[str]]:
    return [[entry.message for entry in update.lines if isinstance(entry, LogLine)] for update in seen]


@pytest.mark.parametrize(
    "last", ["DEPLOYING SOMETHING_NEW LOADING_MODEL ACTIVE", "BUILD_FAILED", "UNHEALTHY"]
)
async def test_it_ends_when_it_serves_or_never_will(last: str) -> None:
    with DeployingServer() as server:
        server.statuses = ["BUILDING", *last.split()]
        seen = await updates(server)
    assert [update.status for update in seen] == ["BUILDING", *last.split()]
    assert [update.is_finished for update in seen] == [False] * (len(seen) - 1) + [True]
    assert seen[-1].is_serving == ("ACTIVE" in last)


async def test_every_line_comes_once_the_late_and_the_last_ones_too() -> None:
    with DeployingServer() as server:
        server.lines = [line("pulling"), line("pulling"), line("pulled", at_ms=1_740_830_401_000)]
        loading, last = line("loading", at_ms=1_740_830_405_000), line("up", at_ms=1_740_830_406_000)
        late = line("late", at_ms=1_740_830_402_000)
        stages = {"BUILDING": [], "LOADING_MODEL": [loading], "ACTIVE": [late, last]}

        def next_status(_: object) -> Answer:
            status = next(iter(stages))
            server.lines += stages.pop(status)
            return Answer({"id": "d", "status": status, "created_at": "2025-03-01T12:00:00Z"})

        server.on("GET", "/v1/models/m/deployments/d", next_status)
        seen = await updates(server)

    assert messages(seen) == [["pulling", "pulling", "pulled"], ["loading"], ["late", "up"]]


async def test_a_server_without_logs_is_followed_all_the_same() -> None:
    with DeployingServer() as server:
        server.statuses = ["BUILDING", "ACTIVE"]
        server.on("GET", "/v1/models/m/deployments/d/logs", Answer({"message": "no logs"}, status=404))
        seen = await updates(server)
    assert messages(seen) == [[], []]


async def test_after_a_change_the_old_status_is_not_the_end_and_known_lines_are_left_out() -> None:
    with DeployingServer() as server:
        server.statuses = ["DEPLOY_FAILED", "DEPLOY_FAILED", "BUILDING", "ACTIVE"]
        server.lines = [line("first start"), line("second start", at_ms=1_740_830_401_000)]
        first = server.lines[0]
        known = [LogLine(int(first["timestamp"]), "first start", first["replica"], None)]
        seen = await updates(server, changed_from="DEPLOY_FAILED", known=known)
    assert [update.status for update in seen] == ["DEPLOY_FAILED", "DEPLOY_FAILED", "BUILDING", "ACTIVE"]
    assert [each for lines in messages(seen) for each in lines] == ["second start"]
