"""The parent of a node's processes; runs as a script of its own.

It ensures that a job can neither outlive the emulator nor lose a process to a double fork:

- Its standard input is a pipe that only the emulator holds open. The first line is the launch order,
  a JSON object with ``argv``, ``cwd``, ``env`` and ``grace_s``; later bytes are requests (``STOP``,
  ``KILL``). The end of the pipe means that the emulator has died, and kills the node.
- On Linux it adopts orphans (PR_SET_CHILD_SUBREAPER), so that every descendant can be found, even one
  that called setsid or daemonized itself.
- When the node's first process exits, its remaining processes are killed, as in a container.

Standard output is passed to the node and then released here, so that the emulator sees its end. The exit
code is the node's own, or 128 + N if signal N ended it.
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

STOP = b"T"
"""Ask every process to exit (SIGTERM) and kill the remaining ones after the grace period."""
KILL = b"K"
CANNOT_START = 126
"""Exit code if the node's first process could not be started."""
SIGNAL_EXIT_BASE = 128


class Node:
    """The processes of a node: all descendants."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.grace_s = float(order["grace_s"])
        self.exit_code: int | None = None
        self._own = psutil.Process()
        self._first = subprocess.Popen(
            order["argv"],
            cwd=order["cwd"],
            env=order["env"],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def collect(self) -> bool:
        """Reap exited children, record the first one's exit code; return True if any process is left."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self._first.pid:
                    code = os.waitstatus_to_exitcode(status)
                    self._first.returncode = code  # otherwise Popen would wait for it again
                    self.exit_code = code if code >= 0 else SIGNAL_EXIT_BASE - code
        return False

    def send(self, number: int) -> None:
        for process in self._own.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                process.send_signal(number)

    def kill(self) -> None:
        """Kill until nothing is left; processes forked meanwhile are caught in the next round."""
        for _ in range(200):
            if not self.collect():
                return
            self.send(signal.SIGKILL)
            time.sleep(0.01)

    def stop(self) -> None:
        """Ask all processes to exit; kill them after the grace period, or at once on a ``KILL`` request."""
        self.send(signal.SIGTERM)
        deadline = time.monotonic() + self.grace_s
        while self.collect() and time.monotonic() < deadline and KILL not in next_request():
            pass
        self.kill()


def next_request() -> bytes:
    """Return a request, empty if there is none for a moment; the end of the pipe is a ``KILL``."""
    ready, _, _ = select.select([0], [], [], 0.1)
    return (os.read(0, 65536) or KILL) if ready else b""


def main() -> int:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    with open(0, "rb", buffering=0, closefd=False) as orders:  # unbuffered: later requests stay in the pipe
        line = orders.readline()
    if not line:
        return CANNOT_START
    try:
        node = Node(json.loads(line))
    except (OSError, ValueError) as error:
        os.write(1, f"[emulator] cannot start: {error}\n".encode())
        return CANNOT_START
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    while node.exit_code is None:
        request = next_request()
        if KILL in request:
            node.kill()
        elif STOP in request:
            node.stop()
        node.collect()
    node.kill()
    return node.exit_code


if __name__ == "__main__":
    sys.exit(main())
