"""Run an emulator in a child process that never outlives its parent, or a shared one in the background.

``EmulatorChild`` is for the demo. ``ensure_running`` starts the background emulator unless it runs already,
and ``stop_running`` stops it.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Self

import psutil

from api_client.emulator.data_folder import remove_tree, running_address

READY_TIMEOUT_S = 30.0
TERM_TIMEOUT_S = 6.0
KILL_TIMEOUT_S = 2.0
OWN_VARIABLES_PREFIX = "BASETEN_"
LARGEST_REASON = 2000


class EmulatorFailed(Exception):
    """The child process failed to start; the message includes its own error output."""


class EmulatorChild:
    """Starts ``python -m api_client.emulator`` in a session of its own and stops it again.

    The child's standard input is its lifeline: a pipe whose other end only this process holds. When this
    process ends, even by ``kill -9``, the pipe closes and the child ends itself and its jobs. Without a
    ``data_dir`` the child uses a temporary folder, which is deleted when it stops. ``program`` are Python's
    arguments for another program that takes the emulator's options. All properties are available once it
    is ready.
    """

    def __init__(
        self,
        *,
        world: str = "demo",
        speed: float = 1.0,
        data_dir: Path | None = None,
        port: int = 0,
        url_lifetime_s: int | None = None,
        program: Sequence[str] = ("-m", "api_client.emulator"),
    ) -> None:
        self._program = tuple(program)
        self._url_lifetime_s = url_lifetime_s
        self._world = world
        self._speed = speed
        self._data_dir = data_dir
        self._port = port
        self._temporary: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._error_output: IO[bytes] | None = None
        self._reading = threading.Lock()
        self._ready: dict[str, Any] = {}

    @property
    def url(self) -> str:
        return str(self._ready["url"])

    @property
    def objects_url(self) -> str:
        """Base URL of presigned URLs."""
        return str(self._ready["objects_url"])

    @property
    def pid(self) -> int:
        return int(self._ready["pid"])

    @property
    def data_dir(self) -> Path:
        return Path(self._ready["data_dir"])

    @property
    def key_file(self) -> Path:
        return Path(self._ready["key_file"])

    @property
    def key(self) -> str:
        return self.key_file.read_text().strip()

    def remote_environ(self) -> dict[str, str]:
        """Return the environment variables that point a client at this emulator."""
        return {
            "BASETEN_API_KEY": self.key,
            "BASETEN_REMOTE_URL": self.url,
            "BASETEN_MANAGEMENT_API_URL_OVERRIDE": self.url,
        }

    def launch(self) -> None:
        """Start the process without waiting for it to become ready."""
        if self._data_dir is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="bt-tui-demo-"))
        folder = self._data_dir or self._temporary
        command = [sys.executable, "-P", *self._program, "--data", str(folder)]
        command += ["--port", str(self._port), "--world", self._world, "--speed", str(self._speed)]
        command += ["--lifeline-fd", "0", "--ready-fd", "1"]
        if self._url_lifetime_s is not None:
            command += ["--url-lifetime", str(self._url_lifetime_s)]
        if self._temporary is not None:
            command.append("--ephemeral")
        self._error_output = tempfile.TemporaryFile()  # noqa: SIM115 – closed when the child has ended
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._error_output,
            env=child_environment(),
            start_new_session=True,
        )

    def wait_ready(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Block until the emulator answers; raise ``EmulatorFailed`` if it exits or times out."""
        with self._reading:
            line = self._first_line(time.monotonic() + timeout_s)
        try:
            self._ready = json.loads(line)
        except ValueError:
            raise EmulatorFailed(self._reason()) from None

    def shut_down(self) -> None:
        """Stop the emulator and wait for it to exit; do nothing if it is not running."""
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(TERM_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                process.wait(KILL_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        with self._reading:
            assert process.stdout is not None
            process.stdout.close()
        self._process = None
        if self._error_output is not None:
            self._error_output.close()
        if self._temporary is not None:
            remove_tree(self._temporary)

    async def start(self) -> Self:
        self.launch()
        await asyncio.to_thread(self.wait_ready)
        return self

    async def stop(self) -> None:
        await asyncio.to_thread(self.shut_down)

    async def __aenter__(self) -> Self:
        try:
            return await self.start()
        except BaseException:
            await self.stop()
            raise

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def __enter__(self) -> Self:
        try:
            self.launch()
            self.wait_ready()
        except BaseException:
            self.shut_down()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.shut_down()

    def _first_line(self, deadline: float) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        line = b""
        while not line.endswith(b"\n"):
            left_s = deadline - time.monotonic()
            readable, _, _ = select.select([descriptor], [], [], max(0.0, left_s))
            chunk = os.read(descriptor, 4096) if readable else b""
            if not chunk:
                return b""
            line += chunk
        return line

    def _reason(self) -> str:
        assert self._process is not None
        assert self._error_output is not None
        self._error_output.seek(0)
        words = self._error_output.read().decode(errors="replace").strip()
        if words:
            return f"the emulator did not start: {words[-LARGEST_REASON:]}"
        if self._process.poll() is None:
            return "the emulator did not respond in time"
        return f"the emulator exited with code {self._process.returncode} during startup"


def child_environment() -> dict[str, str]:
    """Return the environment for the child, without variables that name a remote.

    Jobs must not find an API key there. ``PYTHONPATH`` makes the child import this very package, however
    this process found it. Together with ``-P`` nothing is imported from the working directory.
    """
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(OWN_VARIABLES_PREFIX)
    }
    root = str(Path(__file__).resolve().parents[2])
    inherited = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = root if not inherited else root + os.pathsep + inherited
    return environment


STOP_TIMEOUT_S = 15.0
POLL_EVERY_S = 0.1
CHUNK_BYTES = 4096


def ensure_running(data_dir: Path, *, world: str = "empty", port: int = 0) -> dict[str, Any]:
    """Return the address of the emulator on that folder, starting it if necessary.

    Raises EmulatorFailed with the emulator's own error output.
    """
    address = running_address(data_dir)
    if address is not None:
        return address
    command = [sys.executable, "-P", "-m", "api_client.emulator", "--data", str(data_dir)]
    command += ["--port", str(port), "--world", world, "--ready-fd", "1"]
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaints,
            env=child_environment(),
            start_new_session=True,
        )
        assert process.stdout is not None
        with process.stdout:
            line = _first_line(process.stdout.fileno(), time.monotonic() + READY_TIMEOUT_S)
        try:
            ready: dict[str, Any] = json.loads(line)
        except ValueError:
            process.kill()
            process.wait()
        else:
            process.returncode = 0  # detached on purpose: Popen must not wait for it or warn
            return ready
        complaints.seek(0)
        words = complaints.read().decode(errors="replace").strip()[-LARGEST_REASON:]
    # Another process may have started an emulator at the same time; use that one.
    address = running_address(data_dir)
    if address is None:
        raise EmulatorFailed(f"the emulator did not start: {words or 'no response in time'}")
    return address


def stop_running(data_dir: Path) -> bool:
    """Stop the emulator on that folder and wait for it to exit; return False if none was running.

    Raises EmulatorFailed if it does not exit.
    """
    address = running_address(data_dir)
    if address is None:
        return False
    try:
        process = psutil.Process(int(address["pid"]))
        process.terminate()
        gone = _wait(process)
    except psutil.NoSuchProcess:
        gone = True
    except psutil.AccessDenied:
        gone = False
    if not gone:
        raise EmulatorFailed(f"the emulator (process {address['pid']}) does not stop")
    return True


def _wait(process: psutil.Process) -> bool:
    """Return True if the process exited in time.

    A zombie counts as exited: it stays in the process list as long as the dashboard that started it runs.
    """
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while process.status() != psutil.STATUS_ZOMBIE:
        try:
            process.wait(POLL_EVERY_S)
        except psutil.TimeoutExpired:
            if time.monotonic() > deadline:
                return False
        else:
            return True
    return True


def _first_line(descriptor: int, deadline: float) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        readable, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        chunk = os.read(descriptor, CHUNK_BYTES) if readable else b""
        if not chunk:
            return b""
        line += chunk
    return line
