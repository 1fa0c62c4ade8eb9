"""A job that runs for a while on a clock of the test's: its status, log, metrics, and a deployment of it."""

from __future__ import annotations

from datetime import UTC, datetime

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from support.log_server import NS_PER_S, FakeLog, FastClock, ServedLine

BEFORE_S, LASTING_S = 3600.0, 24.0
SAMPLE_EVERY_S = 20
MODEL, DEPLOYMENT = "model1", "deployment1"


def lines_of_a_run(begin_ns: int) -> list[ServedLine]:
    """1,010 in one millisecond an hour ago, then a line each second: some equal, some late, to the end."""

    def at(seconds: float, message: str, late_s: float = 0.0, plus_ns: int = 0) -> ServedLine:
        stamp_ns = begin_ns + int(seconds * NS_PER_S) + plus_ns
        return ServedLine(stamp_ns, message, arrives_ns=stamp_ns + int(late_s * NS_PER_S))

    lines = [at(-BEFORE_S, f"at once {number}", plus_ns=number * 700) for number in range(1_010)]
    lines += [at(-1800, "the same") for _ in range(5)]
    for second in range(-60, int(LASTING_S)):
        lines.append(at(second, f"step {second}", 7.0 if second % 9 == 0 else 0.0))
        lines += [at(second, "equal") for _ in range(second % 3)]
    return lines


class RunningJob:
    """An ASGI application with one job (``job1`` of ``proj1``), and what it must have said in the end."""

    def __init__(self, clock: FastClock) -> None:
        self.clock = clock
        self.begin_ns = clock.server_ns()
        self.end_ns = self.begin_ns + int(LASTING_S * NS_PER_S)
        self.log = FakeLog(lines_of_a_run(self.begin_ns), clock.server_ns, self.begin_ns, self.end_ns)
        self.app = Starlette(
            routes=[
                Route("/v1/training_projects/proj1/jobs/job1", self._job),
                Route("/v1/training_projects/proj1/jobs/job1/logs", self._logs),
                Route("/v1/training_projects/proj1/jobs/job1/metrics", self._metrics),
                Route(f"/v1/models/{MODEL}/deployments/{DEPLOYMENT}", self._deployment),
                Route(f"/v1/models/{MODEL}/deployments/{DEPLOYMENT}/logs", self._logs),
            ]
        )

    @property
    def sample_times(self) -> set[datetime]:
        """When samples were taken, to the end of the job."""
        first_s, last_s = self.begin_ns // NS_PER_S - BEFORE_S, self.end_ns // NS_PER_S
        return {
            datetime.fromtimestamp(second, UTC)
            for second in range(int(first_s), int(last_s) + 1, SAMPLE_EVERY_S)
        }

    async def _job(self, _request: Request) -> Response:
        return JSONResponse({"training_job": self.log.job()})

    async def _logs(self, request: Request) -> Response:
        page = self.log.page(dict(request.query_params))
        if page is None:
            return JSONResponse({"code": "VALIDATION_ERROR", "message": "no such window"}, 400)
        return JSONResponse({"logs": page})

    async def _metrics(self, request: Request) -> Response:
        now_s = self.clock.server_ns() / NS_PER_S
        start_s = int(request.query_params.get("start_epoch_millis", 0)) / 1000
        samples = [
            {"timestamp": each.isoformat(), "value": 0.5}
            for each in sorted(self.sample_times)
            if start_s <= each.timestamp() <= now_s
        ]
        return JSONResponse({"gpu_utilization": {"0": samples}, "training_job": self.log.job()})

    async def _deployment(self, _request: Request) -> Response:
        serves = self.clock.server_ns() >= self.end_ns
        created = datetime.fromtimestamp(self.begin_ns / NS_PER_S - BEFORE_S, UTC).isoformat()
        status = "ACTIVE" if serves else "DEPLOYING"
        return JSONResponse(
            {"id": DEPLOYMENT, "model_id": MODEL, "name": "d", "status": status, "created_at": created}
        )
