"""An emulator that goes on without whoever started it: found, started and stopped by its data folder."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from api_client.emulator.child import READY_TIMEOUT_S, EmulatorFailed, child_environment
from api_client.emulator.data_folder import running_address

STOP_TIMEOUT_S = 15.0
LOOK_EVERY_S = 0.1
CHUNK_BYTES = 4096
LARGEST_REASON = 2000


def ensure_running(data_dir: Path, *, world: str = "empty", port: int = 0) -> dict[str, Any]:
    """The address of the emulator on that folder, which is started if it does not run.

    Raises EmulatorFailed with the emulator's own words.
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
            process.returncode = 0  # it goes on, and is not ours to wait for
            return ready
        complaints.seek(0)
        words = complaints.read().decode(errors="replace").strip()[-LARGEST_REASON:]
    # Somebody else may have started one at the same time: then that is the one.
    address = running_address(data_dir)
    if address is None:
        raise EmulatorFailed(f"the emulator did not start: {words or 'it did not answer in time'}")
    return address


def stop_running(data_dir: Path) -> bool:
    """Stop the emulator on that folder and wait until it is gone; whether there was one.

    Raises EmulatorFailed if it does not go.
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
    """Whether it ended in time.

    One that has ended stays in the list of processes for as long as a dashboard that started it lives.
    """
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while process.status() != psutil.STATUS_ZOMBIE:
        try:
            process.wait(LOOK_EVERY_S)
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
