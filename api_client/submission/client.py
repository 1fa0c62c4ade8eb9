"""The part of a client that a submission needs."""

from __future__ import annotations

from typing import Protocol

from api_client.remotes import Remote
from api_client.resources.account import Account, Capacity
from api_client.resources.jobs import Jobs
from api_client.resources.projects import Projects
from api_client.transfers.uploads import Blobs


class SubmissionClient(Protocol):
    """The parts of ``TrainingClient`` that a submission needs; the client itself imports this package."""

    remote: Remote
    account: Account

    @property
    def blobs(self) -> Blobs: ...

    capacity: Capacity
    jobs: Jobs
    projects: Projects
