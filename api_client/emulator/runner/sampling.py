"""Samples of all running nodes, once a second."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import psutil

from api_client.clock import Clock
from api_client.emulator.runner.changes import Changes
from api_client.emulator.runner.gpus import Gpus
from api_client.emulator.runner.usage import ProcessUsage, children_by_parent, disk_usage
from api_client.emulator.store.job_metrics import MetricStore, NodeReading

SAMPLE_INTERVAL_S = 1.0
DISK_INTERVAL_S = 10.0
"""Walking a folder costs more than a sample, so it is done this rarely at most."""
DISK_PATIENCE = 20
"""… and never for more than one part in this many of the time."""

_MS_PER_S = 1000
_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Watched:
    job_id: str
    rank: int
    usage: ProcessUsage
    folder: Path
    cache: Path | None
    gpu_names: list[str]
    next_walk_s: float = 0.0
    disk: tuple[int, float] | None = None
    cache_use: tuple[int, float] | None = None


class Sampling:
    """Measures the nodes that it was told of; costs nothing while there are none."""

    def __init__(self, store: MetricStore, clock: Clock, gpus: Gpus, changes: Changes) -> None:
        self._store = store
        self._clock = clock
        self._gpus = gpus
        self._changes = changes
        self._watched: dict[tuple[str, int], _Watched] = {}
        self._task: asyncio.Task[None] | None = None

    def watch(
        self,
        job_id: str,
        rank: int,
        *,
        supervisor_pid: int,
        folder: Path,
        cache: Path | None,
        gpu_names: list[str],
    ) -> None:
        """Measure a node from now on; ``cache`` is given for one node of a job, as it is the job's."""
        usage = ProcessUsage(supervisor_pid, self._clock.monotonic())
        self._watched[(job_id, rank)] = _Watched(job_id, rank, usage, folder, cache, gpu_names)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._sample_while_watched(), name="sampling")

    def unwatch(self, job_id: str) -> None:
        """Leave a job's nodes alone."""
        self._watched = {key: node for key, node in self._watched.items() if key[0] != job_id}

    async def close(self) -> None:
        """Stop measuring."""
        self._watched.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _sample_while_watched(self) -> None:
        while self._watched:
            await self._clock.sleep(SAMPLE_INTERVAL_S)
            nodes = list(self._watched.values())
            if not nodes:
                return
            try:
                await asyncio.to_thread(self._sample, nodes)
            except (sqlite3.Error, psutil.Error, OSError):
                # One lost sample is a gap in a chart; the next second tries again.
                _logger.exception("a sample was lost")
            self._changes.notify()

    def _sample(self, nodes: list[_Watched]) -> None:
        children = children_by_parent()
        now_s = self._clock.monotonic()
        at_ms = int(self._clock.now().timestamp() * _MS_PER_S)
        readings = []
        for node in nodes:
            cores, resident_bytes = node.usage.read(children, now_s)
            if now_s >= node.next_walk_s:
                self._walk(node, now_s)
            readings.append(
                NodeReading(
                    node.job_id,
                    at_ms,
                    node.rank,
                    cpu_cores=cores,
                    memory_bytes=resident_bytes,
                    disk_bytes=node.disk[0] if node.disk else None,
                    disk_fraction=node.disk[1] if node.disk else None,
                    cache_bytes=node.cache_use[0] if node.cache_use else None,
                    cache_fraction=node.cache_use[1] if node.cache_use else None,
                    gpus=self._gpus.read(node.gpu_names) if node.gpu_names else (),
                )
            )
        self._store.append(readings)

    def _walk(self, node: _Watched, now_s: float) -> None:
        with contextlib.suppress(OSError):
            node.disk = disk_usage(node.folder)
            if node.cache is not None:
                node.cache_use = disk_usage(node.cache)
        took_s = self._clock.monotonic() - now_s
        node.next_walk_s = now_s + max(DISK_INTERVAL_S, DISK_PATIENCE * took_s)
