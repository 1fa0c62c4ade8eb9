"""Screens × classes of fault, over a real socket: words on the screen, no crash, and back by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from api_client.models import CachedFile
from support.dashboard import text_of
from support.faulty import FaultyServer, faulty_server
from support.remotes import remote_of
from support.served_platform import KEY, Served, served_platform
from support.waiting import until
from tui.app import BtTuiApp

SIZE = (100, 30)
FAULTS = {
    "401": "refused",
    "429": "429",
    "503": "503",
    "html": "HTML",
    "reset": "broke off",
}
"""A fault for each class, and a word that tells it."""


@pytest.fixture(scope="module")
def faulty() -> Iterator[FaultyServer]:
    with faulty_server() as server:
        server.key = KEY
        yield server


@pytest.fixture
def served(faulty: FaultyServer, tmp_path: Path) -> Iterator[Served]:
    with served_platform(faulty, tmp_path) as running:
        running.backend.caches[running.project_id] = [CachedFile(path="hub/model.bin", size_bytes=3)]
        yield running


SCREENS: dict[str, tuple[tuple[str, ...], str]] = {
    "home": ((), "job00001"),
    "job": (("enter",), "RUNNING"),
    "capacity": (("Q",), "H100"),
}
CELLS = (
    ("home", "401"),
    ("home", "html"),
    ("home", "reset"),
    ("job", "401"),
    ("job", "503"),
    ("capacity", "429"),
    ("capacity", "503"),
)
"""Waits are real here, so each screen meets some: all of them hear of faults through the same session."""


@pytest.mark.parametrize(("screen", "fault"), CELLS)
async def test_a_fault_is_told_and_over_when_it_ends(
    screen: str, fault: str, served: Served, faulty: FaultyServer
) -> None:
    keys, words = SCREENS[screen]
    faulty.set_faults()
    app = BtTuiApp(remote_of(faulty))
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "job00001" in text_of(app))
        faulty.set_faults(fault)
        await pilot.press(*keys, "r")
        await until(pilot, lambda: FAULTS[fault] in text_of(app))
        faulty.set_faults()
        await until(pilot, lambda: FAULTS[fault] not in text_of(app) and words in text_of(app))
