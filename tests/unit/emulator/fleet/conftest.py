from collections.abc import Iterator
from pathlib import Path

import pytest
from fleet_worlds import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "state.db")
    yield made
    made.database.close()


@pytest.fixture(scope="module")
def still_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One world for tests that only read, ten minutes into it."""
    made = World(tmp_path_factory.mktemp("fleet") / "state.db").after(600)
    yield made
    made.database.close()
