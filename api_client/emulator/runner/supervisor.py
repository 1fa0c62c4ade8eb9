"""The parent of a node's processes; runs as a script of its own.

It ensures that a job can neither outlive the emulator nor lose a process to a double fork:

- Its standard input is a pipe that only the emulator holds open. The first line is the launch request,
  a JSON object with ``argv``, ``cwd``, ``env`` and ``grace_s``; later bytes are requests (``STOP_REQUEST``,
  ``KILL_REQUEST``). The end of the pipe means that the emulator has died, and kills the node.
- On Linux it adopts orphans (PR_SET_CHILD_SUBREAPER), so that every descendant can be found, even one
  that called setsid or daemonized itself.
- When the node's first process exits, its remaining processes are killed, as in a container.

The node inherits standard output; the supervisor closes its own copy, so that the emulator sees when the
output ends. The exit code is that of the node's first process, or 128 + N if signal N ended it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from typing import Any

import psutil

STOP_REQUEST = b"T"
"""Ask every process to exit (SIGTERM) and kill the remaining processes after the grace period."""
KILL_REQUEST = b"K"
CANNOT_START = 126
"""Exit code if the node's first process could not be started."""
SIGNAL_EXIT_BASE = 128


class Node:
    """The processes of a node: all descendants of this process."""

    def __init__(self, launch_request: dict[str, Any]) -> None:
        self.grace_s = float(launch_request["grace_s"])
        self.exit_code: int | None = None
        self._supervisor = psutil.Process()
        self._first_process = subprocess.Popen(
            launch_request["argv"],
            cwd=launch_request["cwd"],
            env=launch_request["env"],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def reap(self) -> bool:
        """Reap exited children, record the first one's exit code; return True if any process is left."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self._first_process.pid:
                    code = os.waitstatus_to_exitcode(status)
                    self._first_process.returncode = code  # otherwise Popen would wait for it again
                    self.exit_code = code if code >= 0 else SIGNAL_EXIT_BASE - code
        return False

    def send_signal(self, number: int) -> None:
        for process in self._supervisor.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                process.send_signal(number)

    def kill(self) -> None:
        """Kill until no process is left; processes forked meanwhile are killed in the next round."""
        for _ in range(200):
            if not self.reap():
                return
            self.send_signal(signal.SIGKILL)
            time.sleep(0.01)

    def stop(self) -> None:
        """Ask all processes to exit; kill them after the grace period, or at once on ``KILL_REQUEST``."""
        self.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + self.grace_s
        while self.reap() and time.monotonic() < deadline and KILL_REQUEST not in next_request():
            pass
        self.kill()


def next_request() -> bytes:
    """Return the next request, empty after 0.1 s without any; the end of the pipe is a ``KILL_REQUEST``."""
    ready, _, _ = select.select([0], [], [], 0.1)
    return (os.read(0, 65536) or KILL_REQUEST) if ready else b""


def main() -> int:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    with open(0, "rb", buffering=0, closefd=False) as stdin:  # unbuffered: later requests stay in the pipe
        launch_request = stdin.readline()
    if not launch_request:
        return CANNOT_START
    try:
        node = Node(json.loads(launch_request))
    except (OSError, ValueError) as error:
        os.write(1, f"[emulator] cannot start: {error}\n".encode())
        return CANNOT_START
    null_device = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null_device, 1)
    os.dup2(null_device, 2)
    while node.exit_code is None:
        request = next_request()
        if KILL_REQUEST in request:
            node.kill()
        elif STOP_REQUEST in request:
            node.stop()
        node.reap()
    node.kill()
    return node.exit_code


if __name__ == "__main__":
    sys.exit(main())
