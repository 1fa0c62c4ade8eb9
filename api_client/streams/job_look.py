"""Looks at the job of a followed log now and then, without ever holding up the log."""

from __future__ import annotations

from api_client.clock import Clock
from api_client.errors import RequestError
from api_client.models import TrainingJob
from api_client.streams.patience import INVALID_ANSWERS_IN_A_ROW, is_no_answer, may_pass
from api_client.streams.records import NS_PER_S, FetchJob

LONG_OVER_S = 240.0
"""A job whose last sign of life is this old, by our clock (two minutes off at most), has no stragglers."""


LONGEST_UNREADABLE_S = 600.0
"""A job that could be read before is not given up sooner: a page that announces repairs is HTML, too."""


class JobLook:
    """The job as last seen: ``job`` (None before the first answer), ``finished_s`` since it was seen to end.

    ``finished_s`` is monotonic, and None while the job runs.
    """

    def __init__(self, fetch_job: FetchJob, *, clock: Clock, interval_s: float) -> None:
        self.job: TrainingJob | None = None
        self.finished_s: float | None = None
        self._fetch_job = fetch_job
        self._clock = clock
        self._interval_s = interval_s
        self._looked_s: float | None = None
        self._unreadable = 0
        self._readable_s = clock.monotonic()

    @property
    def finished_job(self) -> TrainingJob | None:
        """The job if it has ended."""
        return self.job if self.finished_s is not None else None

    async def look_when_due(self, *, at_once: bool = False) -> None:
        """Look again if the last look is old enough (or ``at_once``) and the job still ran then."""
        now_s = self._clock.monotonic()
        is_due = self._looked_s is None or now_s - self._looked_s >= self._interval_s
        if (is_due or at_once) and self.finished_s is None:
            await self.look()

    async def look(self) -> None:
        """Look now. Errors that may pass change nothing; raises the others."""
        self._looked_s = self._clock.monotonic()
        try:
            self.job = await self._fetch_job()
        except RequestError as error:
            self._unreadable = self._unreadable + 1 if is_no_answer(error) else 0
            if not may_pass(error) or self._is_given_up():
                raise
            return
        self._unreadable = 0
        self._readable_s = self._clock.monotonic()
        if not self.job.is_finished:
            self.finished_s = None  # a platform may retry a job in place
        elif self.finished_s is None:
            self.finished_s = self._clock.monotonic()

    def _is_given_up(self) -> bool:
        """Whether answers that cannot be read are no accident any more."""
        if self._unreadable < INVALID_ANSWERS_IN_A_ROW:
            return False
        return self.job is None or self._clock.monotonic() - self._readable_s > LONGEST_UNREADABLE_S

    def is_long_over(self, newest_line_ns: int | None) -> bool:
        """Whether the job and its log ended so long ago that nothing can be on its way any more."""
        job = self.finished_job
        if job is None or job.updated_at is None:
            return False
        last_sign_s = max(job.updated_at.timestamp(), (newest_line_ns or 0) / NS_PER_S)
        return self._clock.now().timestamp() - last_sign_s > LONG_OVER_S
