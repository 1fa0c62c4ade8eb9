"""Run an emulator in a child process that never outlives its parent, or as a shared background process.

``EmulatorChild`` is for the demo. ``ensure_running`` starts the background emulator unless it runs already,
and ``stop_running`` stops it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import psutil

from api_client.emulator.data_folder import EmulatorAddress, published_address, remove_tree, running_address
from api_client.errors import ApiClientError


class EmulatorFailed(ApiClientError):
    """An emulator failed to start or to stop; the message includes its stderr text, if any."""


class EmulatorChild:
    """Starts ``python -m api_client.emulator`` in a session of its own, and stops it again.

    The child's standard input is its lifeline: a pipe that only this process can write to. When this process
    ends, even by ``kill -9``, the pipe closes and the child ends itself and its jobs. A shared child has no
    lifeline, so that it can outlive this process. Without a ``data_dir``, the child uses a temporary folder,
    which is deleted when it stops. ``program`` replaces Python's first arguments, to run another program with
    the emulator's options. ``url``, ``pid``, ``data_dir`` and ``key_file`` are set once the child is ready.
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
        is_shared: bool = False,
    ) -> None:
        self._arguments = [*program, "--port", str(port), "--world", world, "--speed", str(speed)]
        if not is_shared:
            self._arguments += ["--lifeline-fd", "0"]
        if url_lifetime_s is not None:
            self._arguments += ["--url-lifetime", str(url_lifetime_s)]
        self._is_shared = is_shared
        self._is_temporary = data_dir is None
        self._process: subprocess.Popen[bytes] | None = None
        self.url, self.pid = "", 0
        self.data_dir, self.key_file = data_dir or Path(), Path()

    @property
    def key(self) -> str:
        return self.key_file.read_text().strip()

    def remote_environ(self) -> dict[str, str]:
        return {
            "BASETEN_API_KEY": self.key,
            "BASETEN_REMOTE_URL": self.url,
            "BASETEN_MANAGEMENT_API_URL_OVERRIDE": self.url,
        }

    def launch(self) -> None:
        arguments = self._arguments
        if self._is_temporary:
            self.data_dir = Path(tempfile.mkdtemp(prefix="bt-tui-demo-"))
            arguments = [*arguments, "--ephemeral"]
        self._stderr_file = tempfile.TemporaryFile()  # noqa: SIM115 – closed in ``shut_down``
        self._process = subprocess.Popen(
            [sys.executable, "-P", *arguments, "--data", str(self.data_dir)],
            stdin=subprocess.DEVNULL if self._is_shared else subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._stderr_file,
            env=child_environment(),
            start_new_session=True,
        )

    def wait_ready(self) -> EmulatorAddress:
        """Block until the emulator responds; raise ``EmulatorFailed`` with its stderr text."""
        process = self._process
        assert process is not None
        deadline = time.monotonic() + 30.0
        while process.poll() is None and time.monotonic() < deadline:
            address = published_address(self.data_dir)
            if address is not None and address.pid == process.pid:
                self.url, self.pid = address.url, address.pid
                self.data_dir, self.key_file = Path(address.data_dir), Path(address.key_file)
                return address
            time.sleep(0.02)
        self._stderr_file.seek(0)
        if message := self._stderr_file.read().decode(errors="replace").strip():
            raise EmulatorFailed(f"the emulator did not start: {message[-2000:]}")
        if process.returncode is None:
            raise EmulatorFailed("the emulator did not respond in time")
        raise EmulatorFailed(f"the emulator exited with code {process.returncode} during startup")

    def shut_down(self) -> None:
        """Stop the emulator and wait for it to exit; do nothing if it is not running."""
        if self._process is None:
            return
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(0.0 if self._is_shared else 6.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stderr_file.close()
        self._process = None
        if self._is_temporary:
            remove_tree(self.data_dir)

    def leave_running(self) -> None:
        """Let a shared emulator outlive this process."""
        assert self._process is not None
        self._process.returncode = 0  # detached on purpose: Popen must not wait for it or warn
        self._stderr_file.close()

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


def child_environment() -> dict[str, str]:
    """Return the environment for the child, without variables that name a remote.

    Jobs inherit the environment and must not find an API key in it. ``PYTHONPATH`` makes the child import the
    same copy of this package as this process; with ``-P``, nothing is imported from the working directory.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("BASETEN_")}
    root = str(Path(__file__).resolve().parents[2])
    inherited = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = root if not inherited else root + os.pathsep + inherited
    return environment


def ensure_running(data_dir: Path) -> EmulatorAddress:
    """Return the address of the emulator on that folder, starting an emulator without a demo if necessary.

    Raises EmulatorFailed with the emulator's stderr text.
    """
    address = running_address(data_dir)
    if address is not None:
        return address
    child = EmulatorChild(world="empty", data_dir=data_dir, is_shared=True)
    child.launch()
    try:
        address = child.wait_ready()
        child.leave_running()
    except EmulatorFailed:
        child.shut_down()
        # Another process may have started an emulator at the same time; use that one.
        address = running_address(data_dir)
        if address is None:
            raise
    return address


def stop_running(data_dir: Path) -> bool:
    """Stop the emulator on that folder and wait for it to exit; return False if none was running.

    Raises EmulatorFailed if it does not exit.
    """
    address = running_address(data_dir)
    if address is None:
        return False
    try:
        process = psutil.Process(address.pid)
        process.terminate()
        deadline = time.monotonic() + 15.0
        # A zombie has exited: it stays in the list as long as the dashboard that started it runs.
        while process.status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() > deadline:
                raise EmulatorFailed(f"the emulator (process {process.pid}) does not stop")
            time.sleep(0.1)
    except psutil.NoSuchProcess:
        pass
    except psutil.AccessDenied:
        raise EmulatorFailed(f"the emulator (process {address.pid}) belongs to another user") from None
    return True
