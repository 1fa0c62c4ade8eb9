"""Clients without a key that hold connections: the emulator and its jobs live, and it is logged once."""

from __future__ import annotations

import asyncio
import errno
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp

from api_client.emulator.data_folder import EmulatorAddress, published_address
from api_client.emulator.processes import child_environment
from api_client.emulator.server import EmulatorServer, listen
from api_client.listening import ConnectionLimit

FEW_DESCRIPTORS = 64
CROWD = 80
PATIENCE_S = 20.0
HEAD = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
PIECE = b"x" * 65_536


class SmallEmulator:
    """An emulator that may open few files."""

    def __init__(self, process: subprocess.Popen[bytes], ready: EmulatorAddress) -> None:
        self.process = process
        self.address = ("127.0.0.1", urlsplit(ready.url).port)
        self.log = Path(ready.data_dir, "emulator.log")
        key = Path(ready.key_file).read_text().strip()
        self._headers = {"Authorization": f"Bearer {key}"}
        self._url = ready.url

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self._url, headers=self._headers, trust_env=False, timeout=PATIENCE_S)


@contextmanager
def small_emulator(folder: Path) -> Iterator[SmallEmulator]:
    limited = f'ulimit -n {FEW_DESCRIPTORS}; exec "$@"'
    command = [sys.executable, "-P", "-m", "api_client.emulator", "--world", "empty"]
    with (folder / "stderr").open("wb") as errors:
        process = subprocess.Popen(
            ["sh", "-c", limited, "sh", *command, "--data", str(folder / "data")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=child_environment(),
        )
    try:
        eventually(lambda: published_address(folder / "data") is not None)
        address = published_address(folder / "data")
        assert address is not None
        yield SmallEmulator(process, address)
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def connect(address: tuple[str, int | None], within: ExitStack) -> socket.socket:
    connection = within.enter_context(socket.create_connection(address, PATIENCE_S))  # type: ignore[arg-type]
    connection.settimeout(PATIENCE_S)
    return connection


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        threading.Event().wait(0.05)


def overcrowd(address: tuple[str, int | None]) -> None:
    """Open more connections than the emulator has descriptors; wait until it has refused one."""
    with ExitStack() as opened, ThreadPoolExecutor(CROWD) as crowd:
        connections = list(crowd.map(connect, [address] * CROWD, [opened] * CROWD))
        closed, _, _ = select.select(connections, [], [], PATIENCE_S)
        assert closed


def submit(client: httpx.Client, command: str) -> str:
    project = client.post("/v1/training_projects", json={"training_project": {"name": "lab"}}).json()
    jobs = f"/v1/training_projects/{project['training_project']['id']}/jobs"
    spec = {"image": {"base_image": "python:3.11"}, "runtime": {"start_commands": [command]}}
    made = client.post(jobs, json={"training_job": {**spec, "compute": {"node_count": 1}}})
    return f"{jobs}/{made.json()['training_job']['id']}"


def test_emulator_and_job_survive_more_connections_than_descriptors(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with small_emulator(tmp_path) as emulator, emulator.client() as client:

        def status() -> str:
            return str(client.get(path).json()["training_job"]["current_status"])

        path = submit(client, f"until test -e {gate}; do sleep 0.1; done; echo survived")
        eventually(lambda: status() == "TRAINING_JOB_RUNNING")
        overcrowd(emulator.address)
        assert emulator.process.poll() is None
        gate.touch()
        eventually(lambda: status() == "TRAINING_JOB_COMPLETED")
        (line,) = emulator.log.read_text().splitlines()
        assert "connections are open; more are refused" in line
    assert (tmp_path / "stderr").read_bytes() == b""


def test_client_that_leaves_before_its_request_ends_is_not_logged(tmp_path: Path) -> None:
    with small_emulator(tmp_path) as emulator, emulator.client() as client:
        head = b"POST /v1/training_jobs/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n"
        authorization = f"Authorization: {client.headers['authorization']}\r\n\r\n"
        with ExitStack() as opened:
            connect(emulator.address, opened).sendall(head + authorization.encode() + b"{")
        client.get("/v1/teams").raise_for_status()
    assert emulator.log.read_text() == ""


@contextmanager
def impatient_server(app: ASGIApp) -> Iterator[tuple[str, int]]:
    """Serve with a keep-alive of almost nothing."""
    started = threading.Event()
    with listen(0) as listener:
        server = EmulatorServer(app, on_started=started.set, keep_alive_s=0.05)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
        thread.start()
        started.wait(PATIENCE_S)
        try:
            yield listener.getsockname()
        finally:
            server.should_exit = True
            thread.join()


@pytest.mark.parametrize("sent", [b"", HEAD, HEAD + b"\r\n" + HEAD], ids=["nothing", "half", "second half"])
def test_connection_is_closed_without_whole_request_head(sent: bytes) -> None:
    with impatient_server(PlainTextResponse("answer")) as address, ExitStack() as opened:
        connection = connect(address, opened)
        connection.sendall(sent)
        received = b""
        while piece := connection.recv(1024):
            received += piece
        assert received.count(b"answer") == sent.count(b"\r\n\r\n")


def test_connection_is_closed_if_client_reads_nothing() -> None:
    ended = threading.Event()

    async def large(_scope: object, _receive: object, send: Callable[..., Any]) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(1000):  # more than the sockets take
            await send({"type": "http.response.body", "body": PIECE, "more_body": True})
        ended.set()

    with impatient_server(large) as address, ExitStack() as opened:
        connect(address, opened).sendall(HEAD + b"\r\n")
        assert ended.wait(PATIENCE_S)


async def test_shortage_of_descriptors_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.get_running_loop()
    ConnectionLimit(idle_s=1.0).handle_accept_errors(loop)
    for _ in range(3):
        loop.call_exception_handler(
            {"message": "accept", "exception": OSError(errno.EMFILE, "no more files")}
        )
    loop.call_exception_handler({"message": "something else"})
    assert [record.getMessage() for record in caplog.records] == [
        "can't accept connections: no more files; trying again every second",
        "something else",
    ]
