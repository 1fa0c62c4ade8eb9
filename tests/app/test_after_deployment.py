"""The end of the deploy wizard on its screen: the phases of the start, and changes of the deployment."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
from pydantic import SecretStr
from textual.pilot import Pilot

from api_client.deployment import DeployAnswers, DeploymentResult
from api_client.remotes import Remote
from support.dashboard import Dashboard, screen_view, text_of
from support.deploying_server import DeployingServer
from support.fake_baseten import Answer, line
from support.log_server import FastClock
from support.waiting import sees, to_screen, until
from tui.feeds.deployment import DeployFeed
from tui.forms.deployment import filled_form
from tui.readers.deployment import SentDeployment
from tui.readers.session import Session
from tui.screens.deploy.screen import DeployScreen
from tui.screens.dialogs import ConfirmScreen

PHASES = [
    {"phase": "IMAGE_PULL", "status": "COMPLETED", "offset_ms": 0, "duration_ms": 9_000},
    {"phase": "WEIGHT_DOWNLOAD", "status": "COMPLETED", "offset_ms": 9_000, "duration_ms": 31_000},
]
STARTUP = {"duration_ms": 40_000, "outcome": "SUCCESS", "phase_summary": PHASES}


class DeployedFeed(DeployFeed):
    """The feed once it has deployed."""

    async def begin(self) -> None:
        self.show(filled_form(DeployAnswers(model_name="tuned"), None, FastClock().now()))
        await self.follow(
            SentDeployment(DeploymentResult("m", "d", "deployment-1", "", "https://app.test/d"))
        )


@pytest.fixture
def server() -> Iterator[DeployingServer]:
    with DeployingServer() as server:
        server.lines = [line("first start")]
        server.on("GET", ".*/startups", Answer({"items": [STARTUP]}))
        yield server


@asynccontextmanager
async def deployed(server: DeployingServer) -> AsyncIterator[tuple[Dashboard, Pilot[Any]]]:
    remote = Remote(
        "here", server.url, server.url, SecretStr(server.key), "a test", options=("--remote", "acme")
    )
    session = Session(remote, clock=FastClock())
    app = screen_view(lambda: DeployScreen(partial(DeployedFeed, session, DeployAnswers()), "acme"))
    async with app.run_test(size=(100, 30)) as pilot:
        yield app, pilot
    await session.aclose()


async def confirm(app: Dashboard, pilot: Pilot[Any], key: str, question: str) -> None:
    await pilot.press(key)
    await until(pilot, lambda: isinstance(app.screen, ConfirmScreen) and question in text_of(app))
    await pilot.press("y")


def changes(server: DeployingServer) -> list[str]:
    return [asked.path.rpartition("/")[2] for asked in server.asked if asked.method == "POST"]


def keys_offered(app: Dashboard) -> set[str]:
    return {binding.binding.action for binding in app.screen.active_bindings.values() if binding.enabled} & {
        "promote",
        "deactivate",
        "activate",
        "retry",
    }


@patch("tui.feeds.deployment.serves_nothing", lambda _remote: False)
async def test_one_that_serves_is_stopped_and_started_again(server: DeployingServer) -> None:
    server.statuses = ["BUILDING", "LOADING_MODEL", "ACTIVE"]
    async with deployed(server) as (app, pilot):
        await sees(pilot, "last start 40s: image pull 9s · weight download 31s")
        assert (
            "✓ active" in (screen := text_of(app))
            and "to see this again: bt-tui --remote acme deployments show " in screen
        )
        assert keys_offered(app) == {"promote", "deactivate"}
        assert app.focused is not None and app.focused.id == "deployment-log"

        server.on("POST", ".*/deactivate", Answer({"success": True}))
        server.statuses = ["ACTIVE", "DEACTIVATING", "INACTIVE"]
        await confirm(app, pilot, "x", "Deactivate deployment of tuned")
        await sees(pilot, "■ INACTIVE", "✓ deactivated")
        assert keys_offered(app) == {"promote", "activate"}

        server.on("POST", ".*/activate", Answer({"success": True}))
        server.lines.append(line("second start", at_ms=1_740_830_401_000))
        server.statuses = ["INACTIVE", "DEPLOYING", "ACTIVE"]
        await confirm(app, pilot, "a", "Billed while running")
        await sees(pilot, "✓ active", "second start")
        assert text_of(app).count("first start") == 1
        assert changes(server) == ["deactivate", "activate"]


async def test_one_that_failed_is_retried_once_and_a_lost_answer_is_said(server: DeployingServer) -> None:
    server.statuses = ["DEPLOY_FAILED"]
    server.on("POST", ".*/retry", Answer({"message": "the gateway lost it"}, status=502))
    async with deployed(server) as (app, pilot):
        await until(pilot, lambda: keys_offered(app) == {"deactivate", "retry"})
        await to_screen(pilot, ConfirmScreen, "t")
        await pilot.press("n")
        assert changes(server) == []
        await confirm(app, pilot, "t", "Retry deployment of tuned")
        await sees(pilot, "✗ may not have been retried")
        assert changes(server) == ["retry"]

        server.on("POST", ".*/retry", Answer({"retried": False, "reason": "too old"}))
        await confirm(app, pilot, "t", "Retry deployment of tuned")
        await sees(pilot, "✗ not retried: too old")
        assert keys_offered(app) == {"deactivate", "retry"}
