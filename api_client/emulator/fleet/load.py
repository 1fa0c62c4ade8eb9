"""How hard the machines of a scripted run work: the shapes behind its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from api_client.emulator.fleet.pace import Pace

LOADING_SHARE = 0.7
"""GPUs idle over this share of the warm-up (weights are read), then ramp up over the rest."""
PAUSED_UTILIZATION = 0.12
HUNG_UTILIZATION = 0.997
"""Ranks that wait in a collective spin: a hang looks like full work (API facts say nothing; NCCL does)."""
IDLE_UTILIZATION = 0.004
FULL = 0.995


@dataclass(frozen=True, slots=True)
class Load:
    """Fractions of what a node has, by the seconds since the run started.

    ``node_factor`` slows or spares single nodes; ``idle_after_s`` is when the GPUs fall idle;
    the growths are fractions a second (leaks, filling disks). Nodes in ``vanishes`` have no samples from
    so many seconds on; between the pairs of ``breaks`` nothing works.
    """

    pace: Pace
    gpu: float = 0.965
    gpu_noise: float = 0.022
    gpu_memory: float = 0.84
    gpu_memory_growth: float = 0.0
    cpu: float = 0.18
    host_memory: float = 0.31
    host_memory_growth: float = 0.0
    disk: float = 0.14
    disk_growth: float = 0.0
    node_factor: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))
    idle_after_s: float | None = None
    vanishes: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))
    breaks: tuple[tuple[float, float], ...] = ()

    def _ramp(self, since_start_s: float) -> float:
        """0 while weights are read, then up to 1 at the end of the warm-up."""
        loading_s = self.pace.warmup_s * LOADING_SHARE
        if since_start_s <= loading_s:
            return 0.0
        return min(1.0, (since_start_s - loading_s) / max(1.0, self.pace.warmup_s - loading_s))

    def gpu_utilization(self, node: int, since_start_s: float) -> float:
        """The mean over the node's GPUs, 0 to 1."""
        if self.idle_after_s is not None and since_start_s >= self.idle_after_s:
            return IDLE_UTILIZATION
        if any(start <= since_start_s < end for start, end in self.breaks):
            return IDLE_UTILIZATION
        if self.pace.has_halted(since_start_s):
            return HUNG_UTILIZATION
        if self.pace.is_pausing(since_start_s):
            return PAUSED_UTILIZATION
        return self.gpu * self._ramp(since_start_s) * self.node_factor.get(node, 1.0)

    def gpu_noise_at(self, since_start_s: float) -> float:
        """How far single GPUs stray from the mean."""
        return 0.003 if self.pace.has_halted(since_start_s) else self.gpu_noise

    def gpu_memory_share(self, since_start_s: float) -> float:
        """Part of the GPU's memory in use."""
        loading_s = max(1.0, self.pace.warmup_s * LOADING_SHARE)
        loaded = min(1.0, since_start_s / loading_s) * 0.6 + 0.4 * self._ramp(since_start_s)
        return min(FULL, 0.006 + self.gpu_memory * loaded + self.gpu_memory_growth * since_start_s)

    def cpu_share(self, node: int, since_start_s: float) -> float:
        """Part of the node's cores in use."""
        if self.pace.has_halted(since_start_s) or (
            self.idle_after_s is not None and since_start_s >= self.idle_after_s
        ):
            return 0.02
        loading = 0.35 * (1 - self._ramp(since_start_s))
        saving = 0.1 if self.pace.is_pausing(since_start_s) else 0.0
        slow = 0.12 if node in self.node_factor else 0.0
        return min(FULL, self.cpu + loading + saving + slow)

    def host_memory_share(self, since_start_s: float) -> float:
        """Part of the node's memory in use."""
        filled = min(1.0, since_start_s / max(1.0, self.pace.warmup_s))
        return min(FULL, 0.03 + self.host_memory * filled + self.host_memory_growth * since_start_s)

    def disk_share(self, since_start_s: float) -> float:
        """Part of the node's disk in use."""
        filled = min(1.0, since_start_s / max(1.0, self.pace.warmup_s))
        return min(FULL, 0.02 + self.disk * filled + self.disk_growth * since_start_s)
