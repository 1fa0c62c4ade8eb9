"""The machine's GPUs through NVML, where there are any and ``nvidia-ml-py`` is installed."""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from api_client.emulator.store.job_metrics import GpuReading

_PERCENT = 100.0


class Gpus:
    """GPUs by the names that CUDA_VISIBLE_DEVICES uses. Safe from any thread; NVML is opened once."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._visible = environ.get("CUDA_VISIBLE_DEVICES")
        self._lock = threading.Lock()
        self._handles: dict[str, Any] | None = None
        self._nvml: Any = None

    def names(self) -> list[str]:
        """Indexes or UUIDs of the GPUs that this process may use; empty without NVML."""
        with self._lock:
            if self._handles is None:
                self._handles = self._open()
            return list(self._handles)

    def read(self, names: Sequence[str]) -> tuple[GpuReading, ...]:
        """One reading each, ranked in the order of the names; what a GPU does not tell is left out."""
        self.names()
        readings = []
        for rank, name in enumerate(names):
            handle = (self._handles or {}).get(name)
            if handle is None:
                continue
            utilization = memory = None
            with contextlib.suppress(self._nvml.NVMLError):
                memory = int(self._nvml.nvmlDeviceGetMemoryInfo(handle).used)
            with contextlib.suppress(self._nvml.NVMLError):
                utilization = self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu / _PERCENT
            readings.append(GpuReading(rank, utilization, memory))
        return tuple(readings)

    def close(self) -> None:
        """Let go of NVML."""
        with self._lock:
            if self._nvml is not None:
                with contextlib.suppress(self._nvml.NVMLError):
                    self._nvml.nvmlShutdown()
            self._nvml, self._handles = None, {}

    def _open(self) -> dict[str, Any]:
        try:
            nvml: Any = importlib.import_module("pynvml")
        except ImportError:
            return {}
        handles: dict[str, Any] = {}
        with contextlib.suppress(nvml.NVMLError):
            nvml.nvmlInit()
            self._nvml = nvml
            if self._visible is None:
                names = [str(index) for index in range(nvml.nvmlDeviceGetCount())]
            else:
                names = [name.strip() for name in self._visible.split(",") if name.strip()]
            for name in names:
                handles[name] = (
                    nvml.nvmlDeviceGetHandleByIndex(int(name))
                    if name.isdigit()
                    else nvml.nvmlDeviceGetHandleByUUID(name)
                )
        return handles


def share_of(names: Sequence[str], *, gpus_per_node: int, node_count: int, rank: int) -> list[str]:
    """Which GPUs a node gets: its own ones if there are enough for all nodes, else shared ones."""
    if gpus_per_node * node_count <= len(names):
        return list(names[rank * gpus_per_node : (rank + 1) * gpus_per_node])
    return list(names[:gpus_per_node])
