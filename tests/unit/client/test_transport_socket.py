"""The client on a real socket whose other end misbehaves."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from client_support import KEY, SleeplessClock, make_remote

from api_client import RequestError, RequestEvent, RetryPolicy, TimedOut, TrainingClient, Unreachable

BODY = b'{"training_projects": [{"id": "p"}]}'
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY

Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(OK)


async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def cut_short(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(OK[:-10])
    writer.close()


async def talk_nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")
    writer.close()


async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


class Socket:
    """A server that behaves in turn as told, the last way for ever; counts what came."""

    def __init__(self, behaviours: list[Behaviour]) -> None:
        self.behaviours = behaviours
        self.heads: list[bytes] = []
        self.connections = 0
        self.handlers: list[asyncio.Future[None]] = []
        self.url = ""
        self.asked = asyncio.Event()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.handlers.append(asyncio.ensure_future(self.serve(reader, writer)))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while not writer.is_closing():
                self.heads.append(await reader.readuntil(b"\r\n\r\n"))
                self.asked.set()
                behave = self.behaviours.pop(0) if len(self.behaviours) > 1 else self.behaviours[0]
                await behave(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


@asynccontextmanager
async def listening(*behaviours: Behaviour) -> AsyncIterator[Socket]:
    server_socket = Socket(list(behaviours))
    server = await asyncio.start_server(server_socket.accept, "127.0.0.1", 0)
    server_socket.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield server_socket
    finally:
        server.close()
        await server.wait_closed()
        for handler in server_socket.handlers:
            handler.cancel()
        await asyncio.gather(*server_socket.handlers, return_exceptions=True)


def client_of(url: str, events: list[RequestEvent], **changes: int) -> TrainingClient:
    return TrainingClient(
        make_remote(app_url=url, api_url=url),
        clock=SleeplessClock(),
        retry=RetryPolicy(**changes),
        on_event=events.append,
    )


@pytest.mark.parametrize("misbehave", [reset, hang_up, cut_short, talk_nonsense])
async def test_a_broken_answer_is_asked_for_again(misbehave: Behaviour) -> None:
    events: list[RequestEvent] = []
    async with listening(misbehave, misbehave, answer) as server, client_of(server.url, events) as client:
        assert [project.id for project in await client.projects.list()] == ["p"]
    assert [event.kind for event in events] == ["sent", "waiting", "sent", "waiting", "sent", "answered"]
    assert len(server.heads) == 3


@pytest.mark.parametrize("misbehave", [reset, hang_up, cut_short, talk_nonsense])
async def test_a_change_with_a_broken_answer_is_not_repeated(misbehave: Behaviour) -> None:
    async with listening(misbehave, answer) as server, client_of(server.url, []) as client:
        with pytest.raises(Unreachable, match=r"127\.0\.0\.1:\d+ broke off its response"):
            await client.projects.upsert("name")
    assert len(server.heads) == 1


async def test_a_refused_connection_is_called_refused() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    events: list[RequestEvent] = []
    async with client_of(url, events) as client:
        with pytest.raises(Unreachable, match=r"can't reach 127\.0\.0\.1:\d+: connection refused"):
            await client.projects.upsert("name")
    assert [event.kind for event in events].count("sent") == 5


async def test_silence_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api_client.http.connection.READ_TIMEOUT_S", 0.05)
    async with listening(say_nothing) as server, client_of(server.url, [], max_attempts=2) as client:
        with pytest.raises(TimedOut, match="no complete response in time"):
            await client.projects.list()
    assert len(server.heads) == 2


async def test_connections_are_kept() -> None:
    async with listening(answer) as server, client_of(server.url, []) as client:
        for _ in range(10):
            await client.projects.list()
    assert (server.connections, len(server.heads)) == (1, 10)


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "socks5://127.0.0.1:9", "nonsense"])
@pytest.mark.parametrize("variable", ["http_proxy", "all_proxy", "ALL_PROXY"])
async def test_no_proxy_sees_requests_to_this_machine(
    monkeypatch: pytest.MonkeyPatch, variable: str, proxy: str
) -> None:
    monkeypatch.setenv(variable, proxy)
    async with listening(answer) as server, client_of(server.url, []) as client:
        assert len(await client.projects.list()) == 1


async def test_nor_if_the_other_host_needs_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    async with listening(answer) as server:
        remote = make_remote(app_url="https://app.example.test", api_url=server.url)
        async with TrainingClient(remote, clock=SleeplessClock()) as client:
            assert len(await client.projects.list()) == 1


async def test_closing_ends_requests_under_way() -> None:
    async with listening(say_nothing) as server, client_of(server.url, []) as client:
        request = asyncio.create_task(client.projects.upsert("name"))
        async with asyncio.timeout(10):
            await server.asked.wait()
            await client.aclose()
            with pytest.raises(RequestError, match="the client is closed"):
                await request


async def test_the_key_is_on_the_wire_and_in_no_event() -> None:
    events: list[RequestEvent] = []
    async with listening(answer) as server, client_of(server.url, events) as client:
        await client.projects.list()
    assert f"Bearer {KEY}".encode() in server.heads[0]
    assert KEY not in repr(events)
