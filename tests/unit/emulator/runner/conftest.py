"""A started local runner for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from local_world import LocalWorld, local_world


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[LocalWorld]:
    async with local_world(tmp_path) as started:
        yield started
