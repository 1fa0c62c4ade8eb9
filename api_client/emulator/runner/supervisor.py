"""The parent of a node's processes; runs as a standalone script with only the standard library.

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
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

STOP = b"T"
"""Ask every process to exit (SIGTERM) and kill the remaining ones after the grace period."""
KILL = b"K"
CANNOT_START = 126
"""Exit code if the node's first process could not be started."""

_PR_SET_CHILD_SUBREAPER = 36
_KILL_ROUNDS = 200
_KILL_ROUND_S = 0.01
_STOP_POLL_S = 0.05
_SIGNAL_EXIT_BASE = 128
_READ_BYTES = 65536


def adopt_orphans() -> None:
    """Become the parent of orphaned descendants; does nothing on systems other than Linux."""
    if sys.platform != "linux":
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def parents_and_groups() -> list[tuple[int, int, int]]:
    """Return ``(pid, parent, process group)`` of all visible processes except zombies."""
    found = []
    proc = Path("/proc")
    if (proc / "self/stat").exists():
        for entry in proc.iterdir():
            if not entry.name.isdigit():
                continue
            try:
                stat = (entry / "stat").read_bytes()
            except OSError:
                continue  # the process has exited
            # The name is in parentheses and may itself contain parentheses and spaces.
            state, parent, group = stat[stat.rindex(b")") + 2 :].split(maxsplit=3)[:3]
            if state not in (b"Z", b"X"):
                found.append((int(entry.name), int(parent), int(group)))
        return found
    listing = subprocess.run(  # macOS has no /proc
        ["/bin/ps", "-A", "-o", "pid=,ppid=,pgid=,stat="], capture_output=True, text=True, check=False
    )
    for line in listing.stdout.splitlines():
        pid, parent_pid, group_id, condition = line.split(maxsplit=3)
        if not condition.startswith("Z"):
            found.append((int(pid), int(parent_pid), int(group_id)))
    return found


def descendants(root: int, group: int) -> list[int]:
    """Return every process below ``root`` and every member of the process group, children last."""
    children: dict[int, list[int]] = {}
    members = []
    for pid, parent, process_group in parents_and_groups():
        children.setdefault(parent, []).append(pid)
        if process_group == group:
            members.append(pid)
    found: dict[int, None] = {}
    queue = children.get(root, []) + members
    while queue:
        pid = queue.pop()
        if pid not in found and pid != root:
            found[pid] = None
            queue.extend(children.get(pid, []))
    return list(found)


def send(number: int, pids: list[int]) -> None:
    """Send a signal to processes; ignore those that have exited."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def reap() -> dict[int, int]:
    """Reap exited children; return pid → exit code (128 + N for signal N)."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        code = os.waitstatus_to_exitcode(status)
        ended[pid] = code if code >= 0 else _SIGNAL_EXIT_BASE - code


class Node:
    """The processes of a node."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.grace_s = float(order["grace_s"])
        self.exit_code: int | None = None
        self._first = subprocess.Popen(
            order["argv"],
            cwd=order["cwd"],
            env=order["env"],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.pid = self._first.pid

    def collect(self) -> None:
        """Reap exited children and record the exit code of the first process."""
        code = reap().get(self.pid)
        if code is not None:
            self.exit_code = code
            self._first.returncode = code  # otherwise Popen would wait for it again

    def living(self) -> list[int]:
        return descendants(os.getpid(), self.pid)

    def kill(self) -> None:
        """Kill until nothing is left; processes forked meanwhile are caught in the next round."""
        for _ in range(_KILL_ROUNDS):
            living = self.living()
            if living:
                send(signal.SIGKILL, living)
            self.collect()
            if not living:
                return
            time.sleep(_KILL_ROUND_S)

    def stop(self, requests: Requests) -> None:
        """Ask all processes to exit; kill them after the grace period, or at once on a ``KILL`` request."""
        send(signal.SIGTERM, self.living())
        deadline = time.monotonic() + self.grace_s
        while self.living() and time.monotonic() < deadline:
            if KILL in requests.wait(_STOP_POLL_S) or requests.over:
                break
            self.collect()
        self.kill()


class Requests:
    """Requests that arrive on standard input, and wake-ups when a child exits."""

    def __init__(self) -> None:
        self.over = False
        self._wakeup, writer = os.pipe()
        os.set_blocking(writer, False)
        os.set_blocking(self._wakeup, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        self._asked_to_stop = False
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    def _on_signal(self, *_: object) -> None:
        self._asked_to_stop = True

    def wait(self, timeout_s: float | None = None) -> bytes:
        """Wait for a request, an exited child or the timeout; return the request, empty if there is none."""
        watched = [self._wakeup] if self.over else [self._wakeup, 0]
        ready, _, _ = select.select(watched, [], [], timeout_s)
        if self._wakeup in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wakeup, _READ_BYTES)
        asked = b""
        if 0 in ready:
            asked = os.read(0, _READ_BYTES)
            self.over = not asked
        if self._asked_to_stop:
            self._asked_to_stop = False
            asked += STOP
        return asked


def read_order() -> dict[str, Any]:
    """Read the first line of standard input byte by byte, so that no request after it is consumed."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            raise SystemExit(CANNOT_START)
        line += byte
    order: dict[str, Any] = json.loads(line)
    return order


def main() -> int:
    adopt_orphans()
    order = read_order()
    requests = Requests()
    try:
        node = Node(order)
    except (OSError, ValueError) as error:
        os.write(1, f"[emulator] cannot start: {error}\n".encode())
        return CANNOT_START
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    while node.exit_code is None:
        asked = requests.wait()
        if requests.over or KILL in asked:
            node.kill()
        elif STOP in asked:
            node.stop(requests)
        node.collect()
    node.kill()
    return node.exit_code


if __name__ == "__main__":
    sys.exit(main())
