"""The guard: it reads each run every half minute, and carries out what the rules decide.

Each decision is in the state file before it is printed, sent or carried out. So a guard that was killed at
any time continues where it stopped.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from urllib.parse import urlsplit

from api_client import Clock, ErrorAnswer, InvalidAnswer, NotFound, RequestError, TrainingClient
from api_client.http.retry import LASTING, is_transient, retrying
from api_client.models import TrainingJob
from tui.alerts.alert import Alert
from tui.alerts.delivery import WEBHOOK_TIMEOUT_S, AlertDelivery, Destination
from tui.alerts.payloads import Record
from tui.analysis.connection import ClockOffset
from tui.analysis.run.snapshot import RunSnapshot
from tui.guard.memory import GuardMemory, GuardState, RunMemory, UnsentAlert
from tui.guard.rules import (
    OUTAGE_REPORT_DELAY_S,
    Deadline,
    Decision,
    GuardRules,
    Poll,
    decide,
    is_worth_sending,
    record_resume_response,
    record_server,
    record_stop_response,
)
from tui.readers.billing import BILL_INTERVAL_S
from tui.readers.watcher import CHECKPOINTS_AGE_S, POLL_EVERY_S, RunWatcher
from tui.settings.model import NotificationSettings
from tui.settings.runs import DEFAULT, RunSettings
from tui.text.units import counted, duration

MAX_POLL_S = 90.0
"""The result of a poll that took longer is outdated: it never stops a run."""
CLAIM_S = WEBHOOK_TIMEOUT_S + 5.0
"""Seconds for which a guard that tries to deliver an alert keeps other guards from delivering it."""
LAST_DELIVERY_S = 30.0
"""Seconds for which a guard, before it exits, waits for its alerts to be delivered."""

Resumer = Callable[[TrainingJob, datetime, Collection[str]], Awaitable[TrainingJob]]
"""Resumes a job and returns the new job. Raises RequestError and NotResumed.

The other arguments are a time and IDs of jobs that resume other jobs: if a job not among these IDs has
resumed the job since that time, that job is returned.
"""


class NotResumed(Exception):
    """A run could not be resumed; the message is the reason."""


@dataclass
class Reporting:
    """Where alerts go: all alerts to ``show``; the alerts that the settings want also to ``delivery``."""

    show: Callable[[Alert], object]
    delivery: AlertDelivery | None = None
    settings: NotificationSettings = field(default_factory=NotificationSettings)

    def is_wanted(self, alert: Alert) -> bool:
        return alert.is_wanted(self.settings.min_severity, job_end=self.settings.job_end)


class Guard:
    """Watches runs until they end. ``find_more`` is called at intervals and returns further jobs to watch."""

    def __init__(
        self,
        client: TrainingClient,
        rules: GuardRules,
        memory: GuardMemory,
        reporting: Reporting,
        *,
        settings: RunSettings = DEFAULT,
        find_more: Callable[[], Awaitable[Sequence[TrainingJob]]] | None = None,
        resume: Resumer | None = None,
        heartbeat_s: float | None = None,
    ) -> None:
        self._client = client
        self._clock = client.clock
        self._rules = rules
        self._memory = memory
        self._reporting = reporting
        self._settings = settings
        self._find_more = find_more
        self._resume = resume
        self._heartbeat_s = heartbeat_s
        self._started_s = self._clock.monotonic()
        self._last_done_s: dict[str, float] = {}
        """When each periodic task was last done (monotonic)."""
        self._clock_offset = ClockOffset()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._watchers: dict[str, RunWatcher] = {}
        self._unreadable_ids: set[str] = set()
        """IDs of the jobs whose outage was reported and is not over."""
        self.last_polls: dict[str, Poll] = {}
        """The newest poll of each run, by job ID."""

    async def run(self, jobs: Iterable[TrainingJob]) -> None:
        """Watch the jobs, and the jobs that resume them, until all have ended."""
        self._queue_unsent()
        try:
            for job in jobs:
                self._watch(job)
            while running := [task for task in self._tasks.values() if not task.done()]:
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def find(self, find: Callable[[], Awaitable[list[TrainingJob]]]) -> list[TrainingJob]:
        """Call ``find``, retrying until the server responds; report an outage like the outage of a run.

        The outage is saved under an empty job ID, since no run may be known yet.
        """

        def record(problem: str) -> None:
            runs = (run for job_id, run in self.known_jobs().items() if job_id)
            newest = max(runs, key=lambda run: run.seen_s, default=RunMemory())
            if not newest.blind_reported:
                now_s = self._clock.now().timestamp()
                since_s = newest.blind_since_s or now_s
                self._save_and_report("", lambda memory: record_server(memory, now_s, problem, since_s))

        jobs = await retrying(
            find,
            LASTING,
            sleep=self._clock.sleep,
            may_repeat=is_transient,
            on_wait=lambda error, _delay_s: record(str(error)),
        )
        record("")
        return jobs

    async def poll_once(self, jobs: Iterable[TrainingJob]) -> None:
        """Poll each job once, and carry out the decisions."""
        self._queue_unsent()
        await asyncio.gather(*(self._poll_and_act(job) for job in jobs))

    def known_jobs(self) -> dict[str, RunMemory]:
        """Return the saved state of this server's runs by job ID."""
        prefix = f"{self._server}/"
        return {
            key.removeprefix(prefix): run
            for key, run in self._memory.state.runs.items()
            if key.startswith(prefix)
        }

    @property
    def unsent_count(self) -> int:
        """Number of alerts that have not been delivered."""
        return len(self._memory.state.unsent)

    # Looking

    def _watch(self, job: TrainingJob) -> None:
        if job.id not in self._tasks:
            self._tasks[job.id] = asyncio.create_task(self._watch_one(job), name=f"guard {job.id}")

    async def _watch_one(self, job: TrainingJob) -> None:
        while not await self._poll_and_act(job):
            await self._run_periodic_tasks()
            running_count = sum(not task.done() for task in self._tasks.values())
            is_complete = self.last_polls[job.id].is_complete
            pause_s = POLL_EVERY_S if is_complete else 5.0
            # More than ten runs are read less often, to limit requests.
            await self._clock.sleep(pause_s * max(1.0, running_count / 10))
        self._watchers.pop(job.id, None)
        resume = self.known_jobs().get(job.id, RunMemory()).resume
        if resume is not None and resume.job_id:
            find = partial(self._client.jobs.find, resume.job_id)
            with suppress(NotFound):
                self._watch(await retrying(find, LASTING, sleep=self._clock.sleep, may_repeat=is_transient))

    async def _run_periodic_tasks(self) -> None:
        """Send a heartbeat, and list more jobs to watch, if the interval of each has passed."""
        if self._heartbeat_s is not None and self._is_due("heartbeat", self._heartbeat_s):
            self._send_heartbeat()
        if self._find_more is not None and self._is_due("list", 300.0):
            with suppress(RequestError):
                for job in await self._find_more():
                    self._watch(job)

    def _is_due(self, task_name: str, interval_s: float) -> bool:
        now_s = self._clock.monotonic()
        last_done_s = self._last_done_s.setdefault(task_name, self._started_s)
        if now_s - last_done_s < interval_s:
            return False
        self._last_done_s[task_name] = now_s
        return True

    def _watcher_of(self, job: TrainingJob) -> RunWatcher:
        if job.id not in self._watchers:
            self._save_and_report(job.id, lambda memory: Decision(_with_initial_status(memory, job)))
            self._watchers[job.id] = RunWatcher(
                self._client, job, self._settings, clock_offset=self._clock_offset
            )
        return self._watchers[job.id]

    async def _poll_and_act(self, job: TrainingJob) -> bool:
        """Poll a run and carry out the decision; return True if the run need not be read again."""
        poll = await self._poll_with_time_limit(self._watcher_of(job))
        self.last_polls[poll.run.job.id] = poll
        decision = self._decide(poll)
        if decision.action == "stop":
            await self._stop(poll)
        elif decision.action == "resume":
            return await self._resume_run(poll, decision.memory)
        return decision.is_over

    async def _poll_with_time_limit(self, watcher: RunWatcher) -> Poll:
        """Poll a run with a time limit: the log's stream retries endlessly, which would hide an outage."""
        started_s = self._clock.monotonic()
        poll_task = asyncio.create_task(self._poll(watcher))
        try:
            while not poll_task.done() and self._clock.monotonic() - started_s < OUTAGE_REPORT_DELAY_S:
                await asyncio.wait((poll_task,), timeout=1.0)
            if poll_task.done():
                return poll_task.result()
            problem = f"the run can't be read within {duration(OUTAGE_REPORT_DELAY_S)}"
        except Exception as error:  # noqa: BLE001 - the other runs are still watched
            problem = f"{type(error).__name__}: {error}"
        finally:
            poll_task.cancel()
            await asyncio.gather(poll_task, return_exceptions=True)
        del self._watchers[watcher.job.id]  # the watcher may have folded only a part of the new lines
        return Poll(watcher.update(), problem, is_judged=False)

    async def _poll(self, watcher: RunWatcher) -> Poll:
        try:
            await watcher.read_status()
        except RequestError as error:
            return Poll(watcher.update(), str(error), is_judged=False, is_gone=isinstance(error, NotFound))
        if watcher.job.is_finished:
            return Poll(watcher.update(findings=(), history_known=True))
        age_s = 0.0 if self._rules.after_checkpoint else CHECKPOINTS_AGE_S
        try:
            await watcher.poll(watcher.log.read_newest_then_older, checkpoints_age_s=age_s)
            await self._read_costs(watcher)
        except RequestError as error:
            return Poll(watcher.update(), str(error), is_judged=False)
        await watcher.check()
        return Poll(watcher.snapshot, self._problem_text(watcher.snapshot))

    def _problem_text(self, run: RunSnapshot) -> str:
        """Return which data could not be read, or that reading took too long; empty without a problem."""
        if run.failing:
            return f"can't read {' and '.join(sorted(run.failing))}"
        took_s = (self._clock.now() - run.at).total_seconds()
        return f"reading the run took {duration(took_s)}" if took_s > MAX_POLL_S else ""

    async def _read_costs(self, watcher: RunWatcher) -> None:
        """Read the price once, and if there is a budget, the bill at intervals."""
        with suppress(ErrorAnswer, InvalidAnswer):
            if watcher.snapshot.price_per_minute is None:
                await watcher.read_price()
            if self._rules.budget_usd is not None:
                await watcher.read_bill(age_s=BILL_INTERVAL_S)

    # Deciding

    @property
    def _server(self) -> str:
        return urlsplit(self._client.remote.api_url).netloc

    def _decide(self, poll: Poll) -> Decision:
        job_id = poll.run.job.id
        outage_end_s = max((run.sighted_s for run in self.known_jobs().values()), default=0.0)

        def change(memory: RunMemory) -> Decision:
            if 0 < memory.seen_s - poll.run.at.timestamp() < MAX_POLL_S:
                return Decision(memory)  # another guard's poll is newer
            memory, rules = self._with_deadline(memory, poll.run.at)
            return decide(memory, poll, rules, outage_end_s=outage_end_s)

        return self._save_and_report(job_id, change)

    def _with_deadline(self, memory: RunMemory, now: datetime) -> tuple[RunMemory, GuardRules]:
        """Return state and rules with the run's saved deadline, if an earlier guard had the same deadline."""
        until = self._rules.until
        if until is None or self._rules.dry_run:
            return memory, self._rules
        saved_deadline = until._replace(at=datetime.fromtimestamp(memory.deadline_s, UTC))
        # Up to 12 h after a saved 06:00, "06:00" typed again means the time that has passed.
        if memory.typed_deadline == until.typed and now - saved_deadline.at < timedelta(hours=12):
            until = saved_deadline
        updated = replace(memory, typed_deadline=until.typed, deadline_s=until.at.timestamp())
        return updated, replace(self._rules, until=until)

    def has_saved_deadline(self, until: Deadline) -> bool:
        """Return True if an earlier guard was started with the same deadline."""
        return any(run.typed_deadline == until.typed for run in self.known_jobs().values())

    def rules_for(self, jobs: Iterable[TrainingJob]) -> GuardRules:
        """Return the rules of the job with the earliest deadline."""
        runs, now = self.known_jobs(), self._clock.now()
        rules_of_jobs = [self._with_deadline(runs.get(job.id, RunMemory()), now)[1] for job in jobs]
        return min(
            rules_of_jobs, key=lambda rules: rules.until.at if rules.until else now, default=self._rules
        )

    def forget_deadlines(self) -> None:
        """Discard the saved deadlines of the runs that this guard has read."""
        keys = {f"{self._server}/{job_id}" for job_id in self.last_polls}

        def change(state: GuardState) -> tuple[GuardState, None]:
            runs = {
                key: replace(run, typed_deadline="") if key in keys else run
                for key, run in state.runs.items()
            }
            return replace(state, runs=runs), None

        self._memory.change(change)

    def _save_and_report(self, job_id: str, change: Callable[[RunMemory], Decision]) -> Decision:
        """Save a decision and its undelivered alerts together, then show and queue the alerts."""
        key = f"{self._server}/{job_id}"

        def changed(state: GuardState) -> tuple[GuardState, tuple[Decision, list[UnsentAlert]]]:
            before = state.runs.get(key, RunMemory())
            decision = change(before)
            unsent = self._alerts_to_send(before, decision.alerts)
            runs = state.runs | {key: decision.memory}
            after = replace(state, runs=runs, unsent=[*state.unsent, *unsent])
            return after, (decision, unsent)

        decision, unsent = self._memory.change(changed)
        if decision.memory.blind_reported and not decision.is_over:
            self._unreadable_ids.add(job_id)
        else:
            self._unreadable_ids.discard(job_id)
        for alert in decision.alerts:
            self._reporting.show(alert)
        self._queue(unsent)
        return decision

    def _alerts_to_send(self, before: RunMemory, alerts: Iterable[Alert]) -> list[UnsentAlert]:
        delivery = self._reporting.delivery
        if delivery is None:
            return []
        sent_alerts = [
            alert
            for alert in alerts
            if is_worth_sending(before, alert)
            and self._reporting.is_wanted(alert)
            and not self._is_shared_outage(alert)
        ]
        return [
            UnsentAlert(way=destination, record=delivery.record(alert))
            for alert in sent_alerts
            for destination in delivery.destinations
        ]

    def _is_shared_outage(self, alert: Alert) -> bool:
        """Return True if the alert is about an outage of a run while another run has a reported outage."""
        other_ids = self._unreadable_ids - {alert.job.id} if alert.job is not None else set()
        return alert.event in ("blind", "sighted") and bool(other_ids)

    # Stopping and resuming

    async def _stop(self, poll: Poll) -> None:
        job, problem = poll.run.job, ""
        try:
            await self._client.jobs.stop(job.project_id, job.id)
        except RequestError as error:
            if error.may_have_happened:
                return  # the next poll shows whether the run has stopped
            problem = str(error)
        self._save_and_report(job.id, lambda memory: record_stop_response(memory, poll.run, problem))

    async def _resume_run(self, poll: Poll, memory: RunMemory) -> bool:
        """Resume a run; return False if this must be tried again."""
        assert self._resume is not None and memory.resume is not None
        run, resume_count, job, problem = poll.run, memory.resumes + 1, None, ""
        since = datetime.fromtimestamp(memory.resume.at_s, UTC)
        resumes = [known_run.resume for known_run in self.known_jobs().values()]
        other_ids = [resume.job_id for resume in resumes if resume is not None]
        try:
            with self._memory.resume_lock():
                job = await self._resume(run.job, since, other_ids)
        except TimeoutError:
            return False  # another guard is resuming a run, maybe the same run
        except RequestError as error:
            if is_transient(error):
                return False
            problem = str(error)
        except NotResumed as error:
            problem = str(error)
        except Exception as error:  # noqa: BLE001 - the other runs are still watched
            problem = f"{type(error).__name__}: {error}"
        if job is not None:
            self._save_and_report(job.id, lambda memory: Decision(replace(memory, resumes=resume_count)))
        self._save_and_report(run.job.id, lambda memory: record_resume_response(memory, run, job, problem))
        return True

    # Sending

    def _queue(self, unsent: Iterable[UnsentAlert]) -> None:
        delivery = self._reporting.delivery
        if delivery is not None:
            for alert in unsent:
                delivery.queue("webhook" if alert.way == "webhook" else "command", alert.record)

    def _queue_unsent(self) -> None:
        self._queue(self._memory.state.unsent)

    def _send_heartbeat(self) -> None:
        polls = [poll for poll in self.last_polls.values() if not poll.run.job.is_finished]
        problem_count = sum(
            any(finding.severity != "info" for finding in poll.run.findings) for poll in polls
        )
        incomplete_count = sum(not poll.is_complete for poll in polls)
        facts = [
            f"watching {counted(len(polls), 'run')}",
            f"{problem_count} with problems" if problem_count else "",
        ]
        message = ", ".join(
            filter(None, [*facts, f"{incomplete_count} could not be read" if incomplete_count else ""])
        )
        alert = Alert(None, "info", self._clock.now(), guard_event="heartbeat", message=message)
        self._memory.change(_without_heartbeats)  # an old heartbeat that could not be sent is useless
        self._save_and_report("", lambda memory: Decision(memory, (alert,)))


def _with_initial_status(memory: RunMemory, job: TrainingJob) -> RunMemory:
    """Record a running job's status, so that its end is reported even if it ends before the first poll."""
    if memory.status or job.is_finished:
        return memory
    return replace(memory, status=job.current_status)


@asynccontextmanager
async def background_delivery(delivery: AlertDelivery | None) -> AsyncIterator[None]:
    """Deliver alerts until the block ends, and for a while afterwards."""
    if delivery is None:
        yield
        return
    task = asyncio.create_task(delivery.run())
    timeout_s = 2.0  # after an interruption, wait only for deliveries in progress
    try:
        yield
        timeout_s = LAST_DELIVERY_S
    finally:
        await delivery.drain(timeout_s)
        task.cancel()


class UndeliveredAlerts:
    """The undelivered alerts in the state file, shared by all running guards."""

    def __init__(self, memory: GuardMemory, clock: Clock) -> None:
        self._memory = memory
        self._clock = clock
        self._guard_id = secrets.token_hex(8)

    async def claim(self, destination: Destination, record: Record) -> bool:
        while (wait_s := self._memory.change(partial(self._with_claim, destination, record))) > 0:
            await self._clock.sleep(wait_s)
        return wait_s == 0

    def _with_claim(
        self, destination: Destination, record: Record, state: GuardState
    ) -> tuple[GuardState, float]:
        """Return the state with this guard's claim of an alert, and 0.

        If another guard has claimed it, return the seconds until that claim ends; if delivered, -1.
        """
        index = _index_of_alert(state.unsent, destination, record)
        if index is None:
            return state, -1.0
        entry, now_s = state.unsent[index], self._clock.now().timestamp()
        since_s = now_s - entry.tried_s
        if entry.guard not in ("", self._guard_id) and 0 <= since_s < CLAIM_S:
            return state, CLAIM_S - since_s
        claim = UnsentAlert(way=destination, record=dict(record), guard=self._guard_id, tried_s=now_s)
        unsent = [*state.unsent[:index], claim, *state.unsent[index + 1 :]]
        return replace(state, unsent=unsent), 0.0

    def forget(self, destination: Destination, record: Record) -> None:
        def change(state: GuardState) -> tuple[GuardState, None]:
            index = _index_of_alert(state.unsent, destination, record)
            remaining = [entry for other, entry in enumerate(state.unsent) if other != index]
            return replace(state, unsent=remaining), None

        self._memory.change(change)


def _without_heartbeats(state: GuardState) -> tuple[GuardState, None]:
    unsent = [entry for entry in state.unsent if entry.record.get("event") != "heartbeat"]
    return replace(state, unsent=unsent), None


def _index_of_alert(unsent: Sequence[UnsentAlert], destination: Destination, record: Record) -> int | None:
    """Return the index of an alert in ``unsent``; None if it has been delivered or dropped."""
    entries = enumerate(unsent)
    return next(
        (index for index, entry in entries if (entry.way, entry.record) == (destination, record)), None
    )
