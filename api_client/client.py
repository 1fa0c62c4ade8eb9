"""The client for one remote, with all of its resources."""

from __future__ import annotations

import asyncio
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

from api_client.clock import Clock, SystemClock
from api_client.events import RequestListener
from api_client.http.retry import RetryPolicy
from api_client.http.transport import Transport
from api_client.remotes import Remote
from api_client.resources.account import Account, Capacity
from api_client.resources.checkpoints import Checkpoints
from api_client.resources.graphql import Graphql
from api_client.resources.jobs import Jobs, Sessions
from api_client.resources.logs_and_metrics import Logs, Metrics
from api_client.resources.models import Models
from api_client.resources.projects import Cache, Projects

if TYPE_CHECKING:
    import httpx

    from api_client.checkpoints.reading import CheckpointContents
    from api_client.definitions import TrainingProject
    from api_client.replay import Replay
    from api_client.submission.archive import ArchivePlan
    from api_client.submission.payload import Overrides
    from api_client.submission.submitting import OnProgress, Submission
    from api_client.transfers.downloads import Downloads
    from api_client.transfers.objects import Objects
    from api_client.transfers.uploads import Blobs


class TrainingClient:
    """Client for Baseten Training at one remote.

    ::

        async with TrainingClient(resolve_remote(environ=os.environ)) as client:
            for project in await client.projects.list():
                print(project.name)

    The client connects on the first request. ``on_event`` is called for every request sent, every response
    and every wait. ``http_transport`` replaces the network in tests. ``read_only_by`` describes the setting
    that forbids changes: requests that are not reads then raise ReadOnlyError and are never sent. With
    ``replay``, responses come from recordings instead of the network. Raises ConfigurationError if the
    remote's addresses or key cannot be used.
    """

    def __init__(
        self,
        remote: Remote,
        *,
        clock: Clock | None = None,
        retry: RetryPolicy | None = None,
        on_event: RequestListener | None = None,
        http_transport: httpx.AsyncBaseTransport | None = None,
        read_only_by: str = "",
        replay: Replay | None = None,
    ) -> None:
        clock = clock or (SystemClock() if replay is None else replay.clock)
        self._replay = replay
        transport = Transport(
            remote,
            clock=clock,
            retry=retry or RetryPolicy(),
            on_event=on_event,
            http_transport=http_transport,
            read_only_by=read_only_by if replay is None else read_only_by or "the recording",
            answer=None if replay is None else replay.answer,
        )
        self._transport = transport
        self.destinations = transport.destinations
        self.clock, self.remote = clock, remote
        self.projects = Projects(transport)
        self.jobs = Jobs(transport)
        self.logs = Logs(transport)
        self.metrics = Metrics(transport)
        self.checkpoints = Checkpoints(transport)
        self.cache = Cache(transport)
        self.sessions = Sessions(transport)
        self.capacity = Capacity(transport)
        self.account = Account(transport)
        self.models = Models(transport)
        self.graphql = Graphql(transport)

    # Transfers are imported and created on first use, because most commands only send API requests.

    @cached_property
    def blobs(self) -> Blobs:
        """Uploads to the object store behind the API."""
        from api_client.transfers.uploads import Blobs

        return Blobs(self._transport)

    @cached_property
    def objects(self) -> Objects:
        """Reads of presigned URLs, sent without the key."""
        from api_client.transfers.objects import Objects

        if self._replay is not None:
            return self._replay.objects
        return Objects(self.clock, self._transport.retry, self.destinations)

    @cached_property
    def downloads(self) -> Downloads:
        """Downloads of checkpoints, single files and the job's code."""
        from api_client.transfers.downloads import Downloads

        return Downloads(self.objects, self.jobs, self.checkpoints, self.clock, self._transport.retry)

    @cached_property
    def checkpoint_contents(self) -> CheckpointContents:
        """Reads of files inside checkpoints, without downloading them."""
        from api_client.checkpoints.reading import CheckpointContents

        return CheckpointContents(self.checkpoints, self.objects)

    def __repr__(self) -> str:
        return f"TrainingClient({self.remote.name!r}, {self.remote.api_url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections. Pending requests fail, and later requests are refused."""
        if "objects" in self.__dict__:
            await self.objects.aclose()
        await self._transport.aclose()

    def check_may_change(self, change: str) -> None:
        """Raise ReadOnlyError, naming ``change``, if changes are forbidden.

        Call it before prompting for a change or preparing it.
        """
        self._transport.check_may_change(change)

    async def push(
        self,
        config: Path | str | TrainingProject,
        *,
        source_dir: Path | None = None,
        team: str | None = None,
        overrides: Overrides | None = None,
        on_progress: OnProgress | None = None,
        plan: ArchivePlan | None = None,
    ) -> Submission:
        """Submit a job, from a config file (which is executed) or from a project built in code.

        The code is archived from the config file's folder, or from ``source_dir`` (default: the working
        directory) for a project built in code. For the other arguments see ``api_client.submit``. Raises
        ConfigurationError and its subclasses, UploadFailed and other subclasses of RequestError.
        """
        self.check_may_change("submitting a job")
        # Most commands never submit a job, so this is imported only when needed.
        from api_client.submission.config_file import load_training_project
        from api_client.submission.submitting import folder_of, submit

        if isinstance(config, Path | str):
            source_dir = source_dir or folder_of(config)
            project = await asyncio.to_thread(load_training_project, config)
        else:
            project = config
        return await submit(
            self,
            project,
            source_dir=source_dir or Path(),
            team=team,
            overrides=overrides,
            on_progress=on_progress,
            plan=plan,
        )

    def job_link(self, project_id: str, job_id: str) -> str:
        """Return the URL of the job's page in the web app."""
        project, job = quote(project_id, safe=""), quote(job_id, safe="")
        return f"{self.remote.app_url.rstrip('/')}/training/{project}/logs/{job}"
