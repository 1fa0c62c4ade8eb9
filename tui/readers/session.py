"""The dashboard's one client, what it says of the connection, and the changes that people ask for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

from api_client.client import TrainingClient
from api_client.clock import Clock, SystemClock
from api_client.errors import BadRequest, NotFound, RateLimited, RequestError
from api_client.events import RequestEvent
from api_client.http.retry import RetryPolicy
from api_client.models import TrainingJob
from api_client.remotes import ENVIRONMENT_REMOTE, Remote
from tui.analysis.connection import Connection, Refusal
from tui.text.sanitize import inert

CHECK_S = 8.0
"""A server that says nothing for so long is not there."""
LONGEST_WAIT_S = 2.0
"""Before a request is sent again: somebody is looking at the screen."""


class Session:
    """A client and its connection state.

    ``on_connection`` is called with the new state whenever it changes in more than the time of the
    last answer. ``read_only_by`` names the setting that forbids changes, if one does.
    """

    def __init__(
        self,
        remote: Remote,
        *,
        clock: Clock | None = None,
        on_connection: Callable[[Connection], None] | None = None,
        read_only_by: str = "",
    ) -> None:
        self.clock: Clock = clock or SystemClock()
        self.connection = Connection()
        self._on_connection = on_connection
        retry = RetryPolicy(cap_s=LONGEST_WAIT_S)
        self.polling = retry.for_polling()
        """For what is asked again and again: a request that hangs must not hold Home up."""
        self.client = TrainingClient(
            remote,
            clock=self.clock,
            retry=retry,
            on_event=self._note,
            read_only_by=read_only_by,
        )

    @property
    def remote(self) -> Remote:
        """Whom the client talks to."""
        return self.client.remote

    @property
    def place(self) -> str:
        """What people call the remote: its name, or the host where it has none of its own."""
        remote = self.remote
        named = remote.name and remote.name != ENVIRONMENT_REMOTE
        return inert(remote.name if named else urlsplit(remote.api_url).netloc)

    def secrets(self) -> tuple[str, ...]:
        """What no message may hold: the key, and a login's tokens."""
        remote = self.remote
        keys = [remote.key.get_secret_value()] if remote.key else []
        return tuple(filter(None, keys + (remote.login.secrets() if remote.login else [])))

    def asked_in_vain(self, what: str, error: RequestError) -> None:
        """A feed did not get what it keeps asking for ("the log"), for a reason that will not just pass.

        Screens that show it say so, until ``got`` is told the same. Of errors that pass by themselves the
        connection's own state tells.
        """
        if error.retryable:
            if self.connection.refusals:
                self._change(self.connection.granted(what))
        else:
            self._change(self.connection.refused(Refusal(what, inert(str(error)), self.clock.now())))

    def got(self, what: str) -> None:
        """The feed got it, or ends."""
        if self.connection.refusals or self.connection.troubles:
            self._change(self.connection.forgotten(what))

    def _note(self, event: RequestEvent) -> None:
        self._change(self.connection.after(event))

    def _change(self, connection: Connection) -> None:
        self.connection = connection
        if self._on_connection is not None:
            self._on_connection(self.connection)

    async def stop_job(self, job: TrainingJob) -> TrainingJob:
        """Stop a job; raises the client's errors."""
        return await self.client.jobs.stop(job.project_id, job.id)

    async def recreate_job(self, job: TrainingJob) -> TrainingJob:
        """Start a new job of the same configuration; raises the client's errors."""
        return await self.client.jobs.recreate(job.project_id, job.id)

    async def delete_job(self, job: TrainingJob) -> None:
        """Delete a job for good; raises the client's errors."""
        await self.client.jobs.delete(job.project_id, job.id)

    async def find_job(self, job_id: str) -> TrainingJob:
        """The job of that id, whatever its project; raises the client's errors."""
        return await self.client.jobs.find(job_id)

    def job_link(self, job: TrainingJob) -> str:
        """The job's page in the browser."""
        return self.client.job_link(job.project_id, job.id)

    def say_no_more(self) -> None:
        """Another session is shown from now on: what becomes of this one's requests is no news."""
        self._on_connection = None

    def speak(self, on_connection: Callable[[Connection], None]) -> None:
        """The one that is shown is this one from now on: tell how it stands, and all changes."""
        self._on_connection = on_connection
        on_connection(self.connection)

    async def check(self) -> None:
        """Ask once whether there is a server that takes the key; raises the client's errors if not."""
        with suppress(NotFound, BadRequest, RateLimited):  # these are answers, too
            await self.client.projects.list(retry=RetryPolicy(max_attempts=1, silence_s=CHECK_S))

    async def aclose(self) -> None:
        """Close the client."""
        await self.client.aclose()
