"""Runs for ``FakeBaseten``: trainer logs, node samples and capacity as plain dicts."""

import time

from support.fake_baseten import Answer, FakeBaseten, job, line

HOUR_S = 3600


def iso(epoch_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch_s))


def training_log(
    baseten: FakeBaseten, job_id: str, begin_s: float, losses: list[float | str], **more: object
) -> None:
    """A line a step, ten seconds apart, as many trainers print them; ``metrics`` end each line."""
    baseten.logs[job_id] = [
        line(
            f"step {step}/{more.get('total', 100)} loss={loss} lr=1e-4"
            f" tokens_per_sec={more.get('speed', 1000)}{more.get('metrics', '')}",
            at_ms=int((begin_s + 10 * step) * 1000),
        )
        for step, loss in enumerate(losses, 1)
    ]


def finished_run(
    baseten: FakeBaseten, job_id: str, *, hours: float = 2, losses: list[float | str], **more: object
) -> None:
    """A job that ended an hour ago, with its log."""
    end_s = time.time() - HOUR_S
    begin_s = end_s - hours * HOUR_S
    fields = {
        name: value for name, value in more.items() if name not in ("total", "speed", "status", "metrics")
    }
    baseten.jobs.append(
        job(
            job_id,
            str(more.get("status", "COMPLETED")),
            **{"created_at": iso(begin_s), "updated_at": iso(end_s), "node_count": 2} | fields,
        )
    )
    training_log(baseten, job_id, begin_s, losses, **more)


def samples(values: list[float | None], *, end_s: float, step_s: float = 60) -> list[dict]:
    """Samples up to a time, the newest first: the API promises no order."""
    ages = enumerate(reversed(values))
    return [{"timestamp": iso(end_s - step_s * age), "value": value} for age, value in ages]


def node(name: str, use: list[float | None], *, end_s: float, gpus: int = 2) -> dict:
    def same(value: float) -> list[dict]:
        return samples([value] * len(use), end_s=end_s)

    return {
        "node_id": name,
        "metrics": {
            "gpu_utilization": {str(gpu): samples(use, end_s=end_s) for gpu in range(gpus)},
            "gpu_memory_usage_bytes": {str(gpu): same(64 * 2**30) for gpu in range(gpus)},
            "cpu_usage": same(12.5),
            "cpu_memory_usage_bytes": same(100 * 2**30),
            "ephemeral_storage": {"usage_bytes": same(2**40), "utilization": same(0.25)},
        },
    }


def metrics_of(*nodes: dict, **more: object) -> dict:
    """The answer of the metrics route; the series at the top are the first node's, as published."""
    first = nodes[0]["metrics"] if nodes else {}
    return {**first, "cache": None, "per_node_metrics": list(nodes)} | more


def serve_metrics(baseten: FakeBaseten, answer: dict) -> None:
    baseten.on("GET", r"/v1/training_projects/[^/]+/jobs/[^/]+/metrics", Answer(answer))


STEADY: list[float | str] = [3.0 - step / 200 for step in range(360)]


def live_run(
    baseten: FakeBaseten,
    job_id: str,
    losses: list[float | str] = STEADY,
    *,
    silent_s: float = 0.0,
    use: float = 0.95,
) -> None:
    """A job that runs, with a line a step up to ``silent_s`` ago, on eight GPUs of that use."""
    now_s = time.time()
    begin_s = now_s - silent_s - 10 * len(losses)
    baseten.jobs.append(job(job_id, "RUNNING", created_at=iso(begin_s), updated_at=iso(now_s), node_count=1))
    training_log(baseten, job_id, begin_s, losses, total=10_000)
    serve_metrics(baseten, metrics_of(node("node-0", [use] * 60, end_s=now_s, gpus=8)))


CAPACITY = {
    "gpu_capacities": [
        {"gpu_type": "H100", "baseline": 8, "limit": 64, "usage_count": 40, "dedicated_usage_count": None,
         "spot_usage_count": 8},
        {"gpu_type": "A10G", "baseline": 0, "limit": 4, "usage_count": 1},
    ],
    "team_gpu_capacities": [
        {"team_id": "t1", "team_name": "=cmd()", "gpu_type": "H100", "baseline": 0, "limit": 16,
         "usage_count": 16, "dedicated_usage_count": 16, "spot_usage_count": 0},
    ],
}  # fmt: skip


def serve_capacity(baseten: FakeBaseten, answer: dict | None = None) -> None:
    baseten.on("GET", "/v1/training/capacity", Answer(CAPACITY if answer is None else answer))
