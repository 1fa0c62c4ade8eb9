"""Training jobs: list, search, create, change, stop, delete; their queue, code and interactive sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any

from api_client import routes
from api_client.errors import ErrorAnswer, InvalidAnswer, NotFound
from api_client.http.decoding import Reasons, without_unreadable
from api_client.http.retry import RetryPolicy
from api_client.models import (
    AuthCode,
    InteractiveSessionUpdate,
    JobTombstone,
    QueueContext,
    SignedSshCertificate,
    TrainingJob,
)
from api_client.resources import Resource
from api_client.streams.job_poller import watch_job

JobList = list[TrainingJob]


class Jobs(Resource):
    """Training jobs and actions on them. Every method raises RequestError."""

    async def list(self, project_id: str, *, unreadable: Reasons | None = None) -> JobList:
        """Return all jobs of a project, in the server's order (the API has no paging here).

        Raises InvalidAnswer for an invalid job. If ``unreadable`` is given, invalid jobs are left out
        instead, and the reasons are added to it; then only a response without any valid job is an error.
        """
        return await self._transport.request(without_unreadable(routes.JOBS, unreadable), project_id)

    async def search(
        self,
        *,
        project_id: str | None = None,
        job_id: str | None = None,
        statuses: Iterable[str] | None = None,
        retry: RetryPolicy | None = None,
        unreadable: Reasons | None = None,
    ) -> JobList:
        """Return the organization's jobs that match all given filters, newest first.

        ``statuses`` are the API's own names; ``unreadable`` is as in ``list``. This is a POST, but it only
        reads, so it is retried like a GET.
        """
        names = None if statuses is None else [str(status) for status in statuses]
        filters = {"project_id": project_id, "job_id": job_id, "statuses": names}
        body: dict[str, Any] = {"order_by": [{"field": "created_at", "order": "desc"}]}
        body |= {name: value for name, value in filters.items() if value is not None}
        route = without_unreadable(routes.SEARCH_JOBS, unreadable)
        return await self._transport.request(route, body=body, retry=retry)

    async def get(self, project_id: str, job_id: str, *, retry: RetryPolicy | None = None) -> TrainingJob:
        """Return a job."""
        return await self._transport.request(routes.JOB, project_id, job_id, retry=retry)

    async def find(self, job_id: str) -> TrainingJob:
        """Find a job by its id: with a search, or project by project if the server has no search.

        Raises NotFound if the job does not exist.
        """
        unreadable: Reasons = []
        try:
            candidates = await self.search(job_id=job_id, unreadable=unreadable)
        except ErrorAnswer as error:
            if not error.lacks_route:
                raise
            candidates = await self._jobs_in_project_of(job_id, unreadable)
        for job in candidates:
            # A server that does not know the filter returns other jobs too.
            if job.id == job_id:
                return job
        method, path = routes.SEARCH_JOBS.method, routes.SEARCH_JOBS.path
        if unreadable:
            problem = f"can't find job '{job_id}': the data of some jobs is invalid ({unreadable[0]})"
            raise InvalidAnswer(problem, method=method, path=path)
        raise NotFound(
            f"no training job with id '{job_id}', or this key can't see it",
            status=HTTPStatus.NOT_FOUND,
            method=method,
            path=path,
        )

    async def _jobs_in_project_of(self, job_id: str, unreadable: Reasons) -> JobList:
        """List project by project; return all jobs of the project that has this job, or an empty list."""
        for project in await self._transport.request(without_unreadable(routes.PROJECTS, unreadable)):
            jobs = await self.list(project.id, unreadable=unreadable)
            if any(job.id == job_id for job in jobs):
                return jobs
        return []

    async def create(self, project_id: str, training_job: Mapping[str, Any]) -> TrainingJob:
        """Start a job; ``training_job`` has the API's own structure (image, compute, runtime …)."""
        body = {"training_job": dict(training_job)}
        return await self._transport.request(routes.CREATE_JOB, project_id, body=body)

    async def update(
        self,
        project_id: str,
        job_id: str,
        *,
        priority: int | None = None,
        availability_model: str | None = None,
    ) -> TrainingJob:
        """Update a waiting job; None leaves a value unchanged. Raises ValueError if nothing is given."""
        changes = {"priority": priority, "availability_model": availability_model}
        body = {name: value for name, value in changes.items() if value is not None}
        if not body:
            raise ValueError("nothing to change: give a priority or an availability_model")
        return await self._transport.request(routes.UPDATE_JOB, project_id, job_id, body=body)

    async def stop(self, project_id: str, job_id: str) -> TrainingJob:
        """Stop a job."""
        return await self._transport.request(routes.STOP_JOB, project_id, job_id, body={})

    async def recreate(self, project_id: str, job_id: str) -> TrainingJob:
        """Start a new job with the same configuration and return it."""
        return await self._transport.request(routes.RECREATE_JOB, project_id, job_id)

    async def delete(self, project_id: str, job_id: str) -> JobTombstone:
        """Delete a job, stopping it first if it runs. Cannot be undone."""
        return await self._transport.request(routes.DELETE_JOB, project_id, job_id)

    async def download_urls(self, project_id: str, job_id: str) -> Sequence[str]:
        """Return presigned URLs of the job's uploaded code; the first is the archive. Fetch without a key."""
        return await self._transport.request(routes.JOB_CODE, project_id, job_id)

    async def queue_context(self, job_id: str) -> QueueContext:
        """Return why a job waits, and its history. Organization admins only; other users get Unauthorized."""
        return await self._transport.request(routes.JOB_QUEUE, job_id)

    def watch(self, project_id: str, job_id: str, *, interval_s: float = 5.0) -> AsyncIterator[TrainingJob]:
        """Yield the job now and every ``interval_s`` seconds, until it has ended."""
        policy = self._transport.retry.for_polling()
        fetch_job = partial(self.get, project_id, job_id, retry=policy)
        return watch_job(fetch_job, clock=self._transport.clock, interval_s=interval_s)


class Sessions(Resource):
    """Interactive sessions. Every method raises RequestError."""

    async def auth_codes(self, project_id: str, job_id: str) -> list[AuthCode]:
        """Return the sign-in codes, one per replica; none for a job without a session."""
        return await self._transport.request(routes.AUTH_CODES, project_id, job_id)

    async def update(
        self,
        project_id: str,
        job_id: str,
        session_id: str,
        *,
        timeout_minutes: int | None = None,
        trigger: str | None = None,
    ) -> InteractiveSessionUpdate:
        """Update a session; None leaves a value unchanged, -1 minutes is about ten years.

        Never retried automatically: the API may add the minutes to the remaining time. Raises ValueError
        if nothing is given.
        """
        changes = {"timeout_minutes": timeout_minutes, "trigger": trigger}
        body = {name: value for name, value in changes.items() if value is not None}
        if not body:
            raise ValueError("nothing to change: give timeout_minutes or a trigger")
        return await self._transport.request(routes.UPDATE_SESSION, project_id, job_id, session_id, body=body)

    async def sign_ssh(
        self, project_id: str, job_id: str, *, public_key: str, replica_id: str | None = None
    ) -> SignedSshCertificate:
        """Return a certificate for one SSH connection to a node (``replica_id`` "0", "1" …)."""
        body = {"public_key": public_key}
        if replica_id is not None:
            body["replica_id"] = replica_id
        return await self._transport.request(routes.SIGN_SSH, project_id, job_id, body=body)
