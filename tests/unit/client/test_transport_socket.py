"""The client on a real socket whose other end misbehaves."""

import asyncio
import threading
from collections.abc import Iterator
from itertools import product

import pytest
from client_support import make_remote

from api_client import RequestError, RequestEvent, RetryPolicy, TrainingClient
from api_client.http import connection
from support.fake_baseten import Answer, FakeBaseten, ReceivedRequest
from support.log_server import FastClock


@pytest.fixture
def server() -> Iterator[FakeBaseten]:
    with FakeBaseten() as running:
        yield running


def client_of(server: FakeBaseten, events: list[RequestEvent], **addresses: str) -> TrainingClient:
    remote = make_remote(**{"app_url": server.url, "api_url": server.url, **addresses})
    server.key = remote.key.get_secret_value()
    return TrainingClient(remote, clock=FastClock(), retry=RetryPolicy(), on_event=events.append)


PROXY = "http://127.0.0.1:9"


async def test_connections_are_kept(server: FakeBaseten) -> None:
    async with client_of(server, []) as client:
        for _ in range(10):
            await client.projects.list()
    assert (server.connections, len(server.asked)) == (1, 10)


@pytest.mark.parametrize(
    ("variables", "proxy"),
    [
        *product([["http_proxy"], ["all_proxy"], ["ALL_PROXY"]], [PROXY, "socks5://127.0.0.1:9", "nonsense"]),
        (["http_proxy", "https_proxy"], PROXY),
    ],
)
async def test_no_proxy_sees_requests_to_this_machine(
    monkeypatch: pytest.MonkeyPatch, server: FakeBaseten, variables: list[str], proxy: str
) -> None:
    for variable in variables:
        monkeypatch.setenv(variable, proxy)
    # The app's host may need the proxy that this machine does not.
    other = {"app_url": "https://app.example.test"} if "https_proxy" in variables else {}
    async with client_of(server, [], **other) as client:
        assert len(await client.projects.list()) == 1


async def test_requests_cancelled_at_any_moment_leave_room_for_others(
    monkeypatch: pytest.MonkeyPatch, server: FakeBaseten
) -> None:
    monkeypatch.setattr(connection, "KEEP_ALIVE_S", 0.0)  # each request first closes an expired connection
    async with client_of(server, []) as client:
        for moment in range(60):
            tasks = [asyncio.create_task(client.projects.list()) for _ in range(4)]
            for _ in range(moment):
                await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        assert len(await client.projects.list()) == 1


async def test_closing_ends_requests_under_way(server: FakeBaseten) -> None:
    has_asked = threading.Event()

    def hang(_asked: ReceivedRequest) -> Answer:
        has_asked.set()
        return Answer(hangs=True)

    server.on("POST", ".*", hang)
    async with client_of(server, []) as client:
        request = asyncio.create_task(client.projects.upsert("name"))
        async with asyncio.timeout(10):
            await asyncio.to_thread(has_asked.wait)
            await client.aclose()
            with pytest.raises(RequestError, match="the client is closed"):
                await request
