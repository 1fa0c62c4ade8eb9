"""Poll a job until it ends, and estimate the server's clock, which may be minutes off from ours."""

from __future__ import annotations

from collections.abc import AsyncIterator

from api_client.clock import Clock, epoch_ms
from api_client.errors import RequestError
from api_client.http.retry import ENDLESS, InvalidStreak, is_transient, retrying
from api_client.models import TrainingJob
from api_client.models.logs import MS_PER_S, NS_PER_MS, NS_PER_S, FetchJob

CLOCK_MARGIN_MS = 24 * 3600 * MS_PER_S  # added to end bounds, because clocks may be wrong


class ServerTime:
    """Lower bound of the server's time: the newest line's timestamp, plus the time since its arrival."""

    def __init__(self, clock: Clock) -> None:
        self.newest_ns: int | None = None
        self._clock = clock
        self._lower_ns = 0
        self._lower_set_s = 0.0

    def observe_line(self, stamp_ns: int) -> None:
        """Record that a line with this timestamp has just arrived."""
        if self.newest_ns is not None and stamp_ns <= self.newest_ns:
            return
        if stamp_ns > (self.lower_ns() or 0):
            self._lower_ns = stamp_ns
            self._lower_set_s = self._clock.monotonic()
        self.newest_ns = stamp_ns

    def lower_ns(self) -> int | None:
        """Return the lower bound of the server's clock; None before the first line."""
        if self.newest_ns is None:
            return None
        # Our clock may run a little faster than the server's, so count a little less than the elapsed time.
        elapsed_s = (self._clock.monotonic() - self._lower_set_s) * 0.999
        return self._lower_ns + int(elapsed_s * NS_PER_S)

    def cautious_ns(self) -> int | None:
        """Return ``lower_ns``, but at most our current time, because a node's clock may be ahead."""
        lower_ns = self.lower_ns()
        return None if lower_ns is None else min(lower_ns, epoch_ms(self._clock.now()) * NS_PER_MS)


JOB_INTERVAL_S = 7.5  # time between polls of a job


class JobPoller:
    """Polls a job; stores its newest state, and when a poll first found that the job has ended.

    ``job`` is None before the first response. ``finished_s`` is monotonic time, and None while the job runs.
    """

    def __init__(self, fetch_job: FetchJob, *, clock: Clock) -> None:
        self.job: TrainingJob | None = None
        self.finished_s: float | None = None
        self._fetch_job = fetch_job
        self._clock = clock
        self._last_poll_s: float | None = None
        self._invalid_streak = InvalidStreak(clock)

    @property
    def finished_job(self) -> TrainingJob | None:
        return self.job if self.finished_s is not None else None

    async def poll_when_due(self, *, at_once: bool = False) -> None:
        """Poll the job if its interval has passed, or, with ``at_once``, if it is not known to have ended."""
        now_s = self._clock.monotonic()
        is_due = self._last_poll_s is None or now_s - self._last_poll_s >= JOB_INTERVAL_S
        # Ended jobs are polled, too: if a job is restarted, the wait for late lines has to start over.
        if is_due or (at_once and self.finished_s is None):
            await self.poll()

    async def poll(self) -> None:
        """Poll the job now. Transient errors are ignored; raises all others."""
        self._last_poll_s = self._clock.monotonic()
        try:
            self.job = await self._fetch_job()
        except RequestError as error:
            self._invalid_streak.note_error(error)
            if not is_transient(error) or self._invalid_streak.is_final:
                raise
            return
        self._invalid_streak.note_valid_response()
        if not self.job.is_finished:
            self.finished_s = None  # the platform may restart a job under its id
        elif self.finished_s is None:
            self.finished_s = self._clock.monotonic()

    def is_long_finished(self, newest_line_ns: int | None) -> bool:
        """Return True if the job and its log ended so long ago that no more lines can arrive."""
        job = self.finished_job
        if job is None or job.updated_at is None:
            return False
        last_activity_s = max(job.updated_at.timestamp(), (newest_line_ns or 0) / NS_PER_S)
        # No late lines are expected so long after a job's last activity.
        return self._clock.now().timestamp() - last_activity_s > 240.0


async def watch_job(fetch_job: FetchJob, *, clock: Clock, interval_s: float) -> AsyncIterator[TrainingJob]:
    """Yield the job now and every ``interval_s`` seconds; the last item is the finished job.

    Transient errors are retried. Raises Unauthorized, NotFound and other RequestErrors that are permanent.
    """
    while True:
        job = await retrying(fetch_job, ENDLESS, sleep=clock.sleep)
        yield job
        if job.is_finished:
            return
        await clock.sleep(interval_s)
