"""A served platform for each test, and the official client on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from baseten.client import ManagementClient

from support.faulty import FaultyServer, faulty_server
from support.served_platform import KEY, Served, served_platform


@pytest.fixture(scope="session")
def front() -> Iterator[FaultyServer]:
    with faulty_server() as answering:
        yield answering


@pytest.fixture
def served(front: FaultyServer, tmp_path: Path) -> Iterator[Served]:
    """The routes over a backend in memory, fresh for each test."""
    with served_platform(front, tmp_path) as running:
        yield running


@pytest.fixture(scope="session")
def _keyed_client(front: FaultyServer) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {KEY}"}
    with httpx.Client(base_url=front.url, headers=headers, trust_env=False) as client:
        yield client


@pytest.fixture(scope="session")
def anyone() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False) as client:
        yield client


@pytest.fixture
def http(_keyed_client: httpx.Client, served: Served) -> httpx.Client:
    return _keyed_client


@pytest.fixture
def official(_keyed_client: httpx.Client, served: Served) -> ManagementClient:
    """The official ``baseten`` client, whose models are generated from the published API."""
    return ManagementClient(api_key=KEY, http_client_override=_keyed_client)
