"""A server with faults on request, for each module of tests."""

from collections.abc import Iterator

import pytest

from support.faulty import FaultyServer, faulty_server


@pytest.fixture(scope="module")
def faulty() -> Iterator[FaultyServer]:
    with faulty_server() as server:
        yield server
