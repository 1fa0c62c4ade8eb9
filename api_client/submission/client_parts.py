"""The parts of ``TrainingClient`` that a submission needs; the client itself imports this package."""

from __future__ import annotations

from typing import Protocol

from api_client.remotes import Remote
from api_client.resources.account import Account
from api_client.resources.cache import Cache
from api_client.resources.capacity import Capacity
from api_client.resources.graphql import Graphql
from api_client.resources.jobs import Jobs
from api_client.resources.projects import Projects
from api_client.transfers.uploads import Blobs


class SubmissionClient(Protocol):
    """A ``TrainingClient``, as far as it is used."""

    @property
    def remote(self) -> Remote: ...  # noqa: D102
    @property
    def account(self) -> Account: ...  # noqa: D102
    @property
    def blobs(self) -> Blobs: ...  # noqa: D102
    @property
    def cache(self) -> Cache: ...  # noqa: D102
    @property
    def capacity(self) -> Capacity: ...  # noqa: D102
    @property
    def graphql(self) -> Graphql: ...  # noqa: D102
    @property
    def jobs(self) -> Jobs: ...  # noqa: D102
    @property
    def projects(self) -> Projects: ...  # noqa: D102
