"""What a node's processes and files use."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from api_client.emulator.runner.supervisor import parents_and_groups

_BLOCK_BYTES = 512


def children_by_parent() -> dict[int, list[int]]:
    """The machine's process tree at this moment."""
    children: dict[int, list[int]] = {}
    for pid, parent, _ in parents_and_groups():
        children.setdefault(parent, []).append(pid)
    return children


def below(root: int, children: Mapping[int, Sequence[int]]) -> list[int]:
    """Every process below ``root``, itself left out."""
    found = []
    queue = list(children.get(root, ()))
    while queue:
        pid = queue.pop()
        found.append(pid)
        queue.extend(children.get(pid, ()))
    return found


class ProcessUsage:
    """CPU and memory of all processes below one; keeps what it needs for the next difference."""

    def __init__(self, root: int, now_s: float) -> None:
        self._root = root
        self._measured_at_s = now_s
        self._processes: dict[int, psutil.Process] = {}
        self._cpu_s: dict[int, float] = {}

    def read(self, children: Mapping[int, Sequence[int]], now_s: float) -> tuple[float, int]:
        """Mean cores used since the last call, and resident bytes now (shared pages count each time)."""
        used_s, resident_bytes = 0.0, 0
        cpu_s: dict[int, float] = {}
        for pid in below(self._root, children):
            with contextlib.suppress(psutil.Error):
                process = self._processes.get(pid) or psutil.Process(pid)
                with process.oneshot():
                    times = process.cpu_times()
                    resident_bytes += process.memory_info().rss
                cpu_s[pid] = times.user + times.system
                # A process not seen before was born since the last call: all its time counts.
                used_s += max(0.0, cpu_s[pid] - self._cpu_s.get(pid, 0.0))
                self._processes[pid] = process
        elapsed_s = now_s - self._measured_at_s
        self._measured_at_s = now_s
        self._cpu_s = cpu_s
        self._processes = {pid: self._processes[pid] for pid in cpu_s}
        return (used_s / elapsed_s if elapsed_s > 0 else 0.0), resident_bytes


def disk_usage(folder: Path) -> tuple[int, float]:
    """Bytes that a folder's files take on the disk, and their share of that disk. Links are not followed."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # gone meanwhile
                total += (Path(parent) / name).lstat().st_blocks * _BLOCK_BYTES
    try:
        size = shutil.disk_usage(folder).total
    except OSError:
        return total, 0.0
    return total, total / size if size else 0.0
