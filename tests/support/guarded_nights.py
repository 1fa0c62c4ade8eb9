"""A night of the emulator's simulated runs, with time that passes only while a guard waits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from api_client.client import TrainingClient
from api_client.clock import Clock
from api_client.emulator.app import build_app
from api_client.emulator.fleet.plans import End, JobPlan
from api_client.emulator.fleet.world import DEMO_SCRIPT, DemoScript, ProjectPlan, demo_id
from api_client.emulator.platform import Platform
from api_client.emulator.server import create_world
from api_client.emulator.store.blobs import Signer
from api_client.emulator.store.database import Database
from api_client.errors import RequestError
from api_client.http.retry import LASTING, is_transient, retrying
from api_client.models import JobStatus, TrainingJob
from support.faulty import KEY, FaultyServer
from support.log_server import FastClock
from support.remotes import remote_of
from tui.alerts.alert import Alert
from tui.alerts.delivery import AlertDelivery
from tui.guard.memory import GuardMemory
from tui.guard.rules import GuardRules
from tui.guard.watch import Guard, Reporting, UndeliveredAlerts, background_delivery

EVENING = datetime(2026, 3, 1, 21, 0, tzinfo=UTC)
HOUR_S = 3600.0
BEGAN_AGO_S = 1500
PLANS = {plan.name: plan for plan in DEMO_SCRIPT.plans}


def plan(name: str, like: str, *, hours: float, outcome: str = "COMPLETED", **changes: Any) -> JobPlan:
    """A run like one of the demo's that ends in some hours. It has begun lately: its log is short."""
    changes = {"name": name, "project": "llama-sft", "priority": 0, "ago_s": BEGAN_AGO_S, **changes}
    model = replace(PLANS[like], **changes)
    end = End(JobStatus(f"TRAINING_JOB_{outcome}"), model.ago_s + hours * HOUR_S, None, 0)
    return replace(model, end=end)


class Killed(BaseException):
    """The guard's process is gone."""


class Threads(ThreadPoolExecutor):
    """Threads that count what they have not done yet."""

    def __init__(self) -> None:
        super().__init__()
        self.busy = 0

    def submit(self, *call: Any, **options: Any) -> Future[Any]:
        self.busy += 1
        work = super().submit(*call, **options)
        work.add_done_callback(self._count_done)
        return work

    def _count_done(self, _work: Future[Any]) -> None:
        self.busy -= 1


class MortalClock(FastClock):
    """A clock that goes on once all runs of a guard wait, and kills it at some moments.

    ``kills_at_s`` are the seconds that have passed then. ``in_flight`` requests and ``threads`` take no time.
    """

    def __init__(self) -> None:
        super().__init__(begin_s=EVENING.timestamp())
        self.in_flight = 0
        self.threads = Threads()
        self.kills_at_s: list[float] = []
        self._sleepers: list[tuple[float, int, asyncio.Event]] = []

    async def sleep(self, seconds: float) -> None:
        sleeper = (self.passed_s + max(seconds, 0.0), len(self.slept_s), asyncio.Event())
        self.slept_s.append(seconds)
        self._sleepers.append(sleeper)
        try:
            await sleeper[-1].wait()
        finally:
            self._sleepers.remove(sleeper)
        if self.kills_at_s and self.passed_s >= self.kills_at_s[0]:
            del self.kills_at_s[0]
            raise Killed

    async def run(self) -> None:
        """Let time pass, until cancelled."""
        while True:
            await asyncio.sleep(0.0005)  # real time for sockets and threads
            if self.in_flight or self.threads.busy:
                continue
            watching = sum(task.get_name().startswith("guard ") for task in asyncio.all_tasks())
            asleep = [sleeper for sleeper in self._sleepers if not sleeper[-1].is_set()]
            if len(asleep) == len(self._sleepers) >= max(1, watching):
                first = min(asleep)
                self.passed_s = max(self.passed_s, first[0])
                first[-1].set()


@dataclass
class Night:
    """A world, its clock, and what guards said of it."""

    server: FaultyServer
    platform: Platform
    clock: MortalClock
    state: Path
    alerts: list[Alert] = field(default_factory=list)
    kills_after_stop: bool = False
    """Kill the guard once it has had a run stopped, before it can note that."""
    webhook: str | None = None
    starts: int = 0

    def job_id(self, name: str) -> str:
        return demo_id("job", name)

    def told(self, name: str) -> list[str]:
        """What was told of a run, without changes of its status."""
        told = []
        for alert in self.alerts:
            if alert.job is not None and alert.job.name == name and alert.event != "status":
                about = str(alert.finding.kind) if alert.finding else ""
                told.append(f"{alert.event} {about}".strip())
        return told

    async def guard(self, names: list[str], rules: GuardRules, **options: Any) -> None:
        """Run a guard until all runs have ended; it is started again whenever it is killed."""
        asyncio.get_running_loop().set_default_executor(self.clock.threads)
        passing = asyncio.create_task(self.clock.run())
        try:
            await self._guard(names, rules, options)
        finally:
            passing.cancel()

    async def _guard(self, names: list[str], rules: GuardRules, options: dict[str, Any]) -> None:
        while True:
            self.starts += 1
            client = TrainingClient(remote_of(self.server), clock=self.clock)
            self._count_requests(client)
            if self.kills_after_stop:
                self._kill_after_stop(client)
            try:
                memory = GuardMemory(self.state, self.alerts.append)
                reporting = Reporting(self.alerts.append, _delivery(self.webhook, memory, self.clock))
                guard = Guard(client, rules, memory, reporting, **options)
                self._client = client
                ids = [self.job_id(name) for name in names]
                for job_id in ids:
                    known = guard.known_jobs().get(job_id)
                    if known is not None and known.resume is not None and known.resume.job_id:
                        ids.append(known.resume.job_id)
                jobs = await guard.find(partial(self._jobs, client, ids))
                async with background_delivery(reporting.delivery):
                    await guard.run(jobs)
                return
            except Killed:
                continue
            finally:
                await client.aclose()

    def _count_requests(self, client: TrainingClient) -> None:
        attempt = client._transport._attempt

        async def counted(*call: Any) -> Any:
            self.clock.in_flight += 1
            try:
                return await attempt(*call)
            finally:
                self.clock.in_flight -= 1

        client._transport._attempt = counted  # type: ignore[method-assign]

    async def job(self, name: str) -> TrainingJob:
        """Return a job, for those that act for the guard."""
        return await self._find(self._client, self.job_id(name))

    def _kill_after_stop(self, client: TrainingClient) -> None:
        stop = client.jobs.stop

        async def stop_and_die(project_id: str, job_id: str) -> TrainingJob:
            self.kills_after_stop = False
            with suppress(RequestError):
                await stop(project_id, job_id)
            raise Killed

        client.jobs.stop = stop_and_die  # type: ignore[method-assign]

    def saved_between_plan_and_stop(self, name: str) -> bool:
        """True if the run stored a checkpoint after its stop was planned."""
        (planned_at,) = [alert.at for alert in self.alerts if alert.event == "stop-planned"]
        ended = [alert for alert in self.alerts if alert.event == "job-ended"]
        (ended_at,) = [alert.at for alert in ended if alert.job and alert.job.name == name]
        job_id = self.job_id(name)
        stored = self.platform.backend_of(job_id).checkpoints(job_id)
        return any(planned_at < each.created_at < ended_at for each in stored if each.created_at)

    @property
    def stop_requests(self) -> int:
        return self.server.handled("POST", "/stop")

    async def _jobs(self, client: TrainingClient, ids: Iterable[str]) -> list[TrainingJob]:
        return [await client.jobs.find(job_id) for job_id in ids]

    async def _find(self, client: TrainingClient, job_id: str) -> TrainingJob:
        return await retrying(
            lambda: client.jobs.find(job_id), LASTING, sleep=self.clock.sleep, may_repeat=is_transient
        )


def _delivery(webhook: str | None, memory: GuardMemory, clock: Clock) -> AlertDelivery | None:
    if webhook is None:
        return None
    return AlertDelivery((), webhook, lambda _words: None, {}, unsent=UndeliveredAlerts(memory, clock))


@contextmanager
def night(server: FaultyServer, folder: Path, *plans: JobPlan) -> Iterator[Night]:
    """Serve a world of these plans until the block ends."""
    clock = MortalClock()
    database = Database(folder / "emulator.db")
    script = DemoScript((ProjectPlan("llama-sft", 30),), plans, {})
    platform = create_world(
        "demo",
        database=database,
        data_dir=folder,
        signer=Signer(b"signing secret"),
        clock=clock,
        speed=1.0,
        script=script,
    )
    server.set_faults()
    server.app = build_app(platform, key=KEY)
    server.layer.clock = clock
    try:
        yield Night(server, platform, clock, folder / "guard.json")
    finally:
        database.close()
