"""Host names of nodes, as the official client has them: ``training-job-<job>-<node>.ssh.baseten.co``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from api_client.errors import ConfigurationError

SUFFIX = ".ssh.baseten.co"
PREFIX = "training-job-"
PATTERN = f"{PREFIX}*{SUFFIX}"
"""Every such host, as ssh_config writes it."""

_LABEL = r"[A-Za-z0-9_-]+"
_HOST = re.compile(
    rf"{re.escape(PREFIX)}(?P<job>{_LABEL})-(?P<node>[0-9]{{1,6}})(?:\.(?P<remote>{_LABEL}))?{re.escape(SUFFIX)}"
)


@dataclass(frozen=True, slots=True)
class NodeHost:
    """A node of a job, and the remote that the name mentions, if any."""

    job_id: str
    node: int
    remote_name: str | None = None

    @property
    def name(self) -> str:
        """The host's name."""
        remote = f".{self.remote_name}" if self.remote_name else ""
        return f"{PREFIX}{self.job_id}-{self.node}{remote}{SUFFIX}"


def parse_host(name: str) -> NodeHost:
    """The node that a host's name means. Raises ConfigurationError."""
    match = _HOST.fullmatch(name)
    if match is None:
        raise ConfigurationError(f"{name!r} is no node's host name: {PREFIX}JOB-NODE{SUFFIX}")
    return NodeHost(match["job"], int(match["node"]), match["remote"])


def node_host(job_id: str, node: int) -> NodeHost:
    """The host of a node. Raises ConfigurationError for a job id that no host name can hold."""
    return parse_host(NodeHost(job_id, node).name)
