"""Which span and step a metrics request means, and the answer to it."""

from __future__ import annotations

from datetime import datetime

from api_client.emulator.store.job_logs import replica_name
from api_client.emulator.store.job_metrics import MetricStore
from api_client.models import JobMetrics, NodeMetrics, NodeSeries, TrainingJob

WANTED_POINTS = 250
"""Points of a series when the request leaves the step to us."""
STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400)
SECOND_S = 1.0


def step_for(span_s: float) -> int:
    """The smallest round step, in seconds, that gives no more than the wanted number of points."""
    for step_s in STEPS_S:
        if span_s / step_s <= WANTED_POINTS:
            return step_s
    return STEPS_S[-1]


def answer_metrics(
    store: MetricStore,
    job: TrainingJob,
    *,
    now: datetime,
    start_s: float | None,
    end_s: float | None,
    step_s: int | None,
) -> JobMetrics:
    """The series of a job; a span left open is the whole run, up to its end or to now."""
    recorded = store.span_s(job.id)
    first_s, last_s = recorded or (now.timestamp(), now.timestamp())
    if end_s is None:
        end_s = last_s + SECOND_S if job.is_finished else now.timestamp()
    if start_s is None:
        start_s = min(first_s, end_s)
    step = step_s if step_s and step_s > 0 else step_for(end_s - start_s)
    if start_s <= first_s:
        start_s = first_s - step  # the first step begins before the first sample
    series = store.read(job.id, start_s=start_s, end_s=end_s, step_s=step)
    leader = series.nodes.get(0) or NodeSeries()
    return JobMetrics.model_construct(
        gpu_memory_usage_bytes=leader.gpu_memory_usage_bytes,
        gpu_utilization=leader.gpu_utilization,
        cpu_usage=leader.cpu_usage,
        cpu_memory_usage_bytes=leader.cpu_memory_usage_bytes,
        ephemeral_storage=leader.ephemeral_storage,
        cache=series.cache,
        training_job=job,
        per_node_metrics=[
            NodeMetrics.model_construct(node_id=replica_name(rank), metrics=node)
            for rank, node in series.nodes.items()
        ],
    )
