"""Sample the CPU, memory, disk and GPU usage of a job's nodes, and divide this machine's GPUs among nodes."""

from __future__ import annotations

import contextlib
import importlib
import logging
import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from threading import Event
from typing import Any

import psutil

from api_client.clock import Clock
from api_client.emulator.runner.environment import walk
from api_client.emulator.store.database import MetricStore, SampleRow


def disk_usage(folder: Path) -> tuple[int, float]:
    """Return the bytes that a folder uses on disk, and their fraction of the disk's size."""
    used_bytes = sum(status.st_blocks * 512 for _, status in walk(folder))
    return used_bytes, used_bytes / shutil.disk_usage(folder).total


class Gpus:
    """The machine's GPUs, by their names in CUDA_VISIBLE_DEVICES.

    NVML, which may be slow, is opened on first use.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._visible_gpus = environ.get("CUDA_VISIBLE_DEVICES")

    def names(self) -> list[str]:
        """Return indexes or UUIDs of the GPUs that this process may use; empty without NVML."""
        return list(self._handles)

    def read(self, names: Sequence[str]) -> dict[str, float]:
        """Return the GPUs' values by series, such as ``gpu_utilization.0`` for the first of ``names``."""
        value_by_series: dict[str, float] = {}
        for rank, name in enumerate(names):
            if name in self._handles:
                nvml, handle = self._nvml, self._handles[name]
                with contextlib.suppress(nvml.NVMLError):
                    value_by_series[f"gpu_memory_usage_bytes.{rank}"] = nvml.nvmlDeviceGetMemoryInfo(
                        handle
                    ).used
                with contextlib.suppress(nvml.NVMLError):
                    gpu_percent = nvml.nvmlDeviceGetUtilizationRates(handle).gpu
                    value_by_series[f"gpu_utilization.{rank}"] = gpu_percent / 100
        return value_by_series

    @cached_property
    def _nvml(self) -> Any:
        try:
            return importlib.import_module("pynvml")
        except ImportError:
            return None

    @cached_property
    def _handles(self) -> dict[str, Any]:
        nvml, handles = self._nvml, {}
        if nvml is None:
            return {}
        with contextlib.suppress(nvml.NVMLError):
            nvml.nvmlInit()
            if self._visible_gpus is None:
                names = [str(index) for index in range(nvml.nvmlDeviceGetCount())]
            else:
                names = [name.strip() for name in self._visible_gpus.split(",") if name.strip()]
            for name in names:
                handles[name] = (
                    nvml.nvmlDeviceGetHandleByIndex(int(name))
                    if name.isdigit()
                    else nvml.nvmlDeviceGetHandleByUUID(name)
                )
        return handles


def gpus_of_node(names: Sequence[str], *, gpus_per_node: int, node_count: int, rank: int) -> list[str]:
    """Return a node's GPUs: exclusive GPUs if there are enough for all nodes, otherwise shared GPUs."""
    if gpus_per_node * node_count <= len(names):
        return list(names[rank * gpus_per_node : (rank + 1) * gpus_per_node])
    return list(names[:gpus_per_node])


SAMPLE_INTERVAL_S = 1.0

_logger = logging.getLogger(__name__)


class SampledNode:
    """A node to sample; its processes are the descendants of ``supervisor_pid``.

    ``volumes`` are the folders whose disk usage is measured, by the name of the series.
    """

    def __init__(
        self,
        job_id: str,
        rank: int,
        supervisor_pid: int,
        volumes: Mapping[str, Path],
        gpu_names: Sequence[str],
    ) -> None:
        self._job_id = job_id
        self._rank = rank
        self._supervisor_pid = supervisor_pid
        self._volumes = volumes
        self._gpu_names = gpu_names
        self._sampled_at_s: float | None = None
        self._cpu_s_by_process: dict[psutil.Process, float] = {}
        self._next_disk_scan_s = 0.0
        self._storage: dict[str, float] = {}

    def read(self, clock: Clock, gpus: Gpus) -> list[SampleRow]:
        """Take a sample; return an empty list if the node's processes have ended."""
        now_s, at_ms = clock.monotonic(), int(clock.now().timestamp() * 1000)
        cores, resident_bytes = self._read_processes(now_s)
        if not self._cpu_s_by_process:
            return []
        if now_s >= self._next_disk_scan_s:
            for name, folder in self._volumes.items():
                with contextlib.suppress(OSError):
                    used_bytes, fraction = disk_usage(folder)
                    self._storage |= {f"{name}.usage_bytes": used_bytes, f"{name}.utilization": fraction}
            # Disk scans are slow, so they get at most a twentieth of the time.
            self._next_disk_scan_s = now_s + max(10.0, 20 * (clock.monotonic() - now_s))
        values = {"cpu_usage": cores, "cpu_memory_usage_bytes": resident_bytes, **self._storage}
        values |= gpus.read(self._gpu_names)
        return [(self._job_id, at_ms, self._rank, metric, value) for metric, value in values.items()]

    def _read_processes(self, now_s: float) -> tuple[float, int]:
        """Return the mean cores used since the last call and the resident bytes now.

        Shared pages count once per process.
        """
        resident_bytes = 0
        cpu_s: dict[psutil.Process, float] = {}
        with contextlib.suppress(psutil.Error):
            for process in psutil.Process(self._supervisor_pid).children(recursive=True):
                with contextlib.suppress(psutil.Error), process.oneshot():
                    times = process.cpu_times()
                    resident_bytes += process.memory_info().rss
                    cpu_s[process] = times.user + times.system
        # A process that is new since the last call counts with all of its CPU time.
        used_cpu_s = sum(
            max(0.0, process_cpu_s - self._cpu_s_by_process.get(process, 0.0))
            for process, process_cpu_s in cpu_s.items()
        )
        elapsed_s = now_s - (self._sampled_at_s or now_s - SAMPLE_INTERVAL_S)
        self._sampled_at_s, self._cpu_s_by_process = now_s, cpu_s
        return (used_cpu_s / elapsed_s if elapsed_s > 0 else 0.0), resident_bytes


def sample_until(
    stop_event: Event, nodes: Sequence[SampledNode], store: MetricStore, clock: Clock, gpus: Gpus
) -> None:
    """Store a sample of each node every second."""
    while not stop_event.wait(SAMPLE_INTERVAL_S):
        try:
            store.append([row for node in nodes for row in node.read(clock, gpus)])
        except (sqlite3.Error, psutil.Error, OSError):
            # A lost sample is only a gap in a chart; the next sample follows a second later.
            _logger.exception("a sample could not be taken or stored")
