"""The interface between the REST routes and the two job backends.

The backends are the local runner (real processes) and the simulated fleet (a demo world on a clock). They
have the same methods; ``Platform`` combines them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from api_client.models import (
    JobMetrics,
    NodeMetrics,
    NodeSeries,
    StorageMetrics,
    TrainingJob,
)

Direction = Literal["asc", "desc"]


@dataclass(frozen=True, slots=True)
class LogQuery:
    """A request for up to ``limit`` lines with ``start_ns <= timestamp < end_ns``, in one direction.

    If ``levels`` is None, all lines match; otherwise only lines with one of these levels do.
    """

    start_ns: int
    end_ns: int
    direction: Direction
    limit: int
    levels: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A checkpoint file: stored at ``path``, or made of the bytes that ``generate(start, end)`` returns."""

    relative_name: str
    node_rank: int
    size_bytes: int
    modified: str
    path: Path | None = None
    generate: Callable[[int, int], bytes] | None = None


STANDARD_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400)


def default_step_s(span_s: float) -> int:
    """Return the smallest standard step that gives at most 250 samples per series."""
    return next((step_s for step_s in STANDARD_STEPS_S if span_s / step_s <= 250), STANDARD_STEPS_S[-1])


def job_metrics(
    job: TrainingJob, nodes: Mapping[int, NodeSeries], cache: StorageMetrics | None = None
) -> JobMetrics:
    """Build the metrics response from each node's series; its top-level series are the leader's (rank 0)."""
    leader = nodes.get(0) or NodeSeries(ephemeral_storage=StorageMetrics())
    return JobMetrics.model_construct(
        **{name: getattr(leader, name) for name in NodeSeries.model_fields},
        cache=cache,
        training_job=job,
        per_node_metrics=[
            NodeMetrics.model_construct(node_id=f"node-{rank}", metrics=series)
            for rank, series in nodes.items()
        ],
    )
