"""Deployments after they were made: the checkpoints they serve, how they started, and changes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from api_client.models import Deployment, Startup
from api_client.models.deployments import CHANGING_STATUSES, FAILED_STATUSES, SERVING_STATUSES
from tui.text.sanitize import sanitize
from tui.text.units import duration


class ListedDeployment(Deployment):
    """A deployment with the name of its model."""

    model_name: str = ""


def status_tone(status: str) -> str:
    if status in SERVING_STATUSES:
        return "good"
    if status in CHANGING_STATUSES:
        return "starting"
    return "bad" if status in FAILED_STATUSES or status == "UNHEALTHY" else "muted"


def status_word(status: str) -> str:
    """Return the status as people read it: ``loading model``."""
    return sanitize(status).lower().replace("_", " ") or "unknown"


class ServedCheckpoint(NamedTuple):
    """A checkpoint that a deployment serves."""

    job_id: str
    name: str


def served_checkpoints(config: Mapping[str, Any] | None) -> tuple[ServedCheckpoint, ...]:
    """Return the checkpoints that a truss config names; none if it does not serve training checkpoints."""
    of_training = (config or {}).get("training_checkpoints")
    references = of_training.get("artifact_references") if isinstance(of_training, Mapping) else None
    served: list[ServedCheckpoint] = []
    for reference in references if isinstance(references, list) else []:
        if not isinstance(reference, Mapping):
            continue
        paths = reference.get("paths")
        for path in paths if isinstance(paths, list) else []:
            # ``rank-0/checkpoint-100/``; the root checkpoint is ``rank-0/``
            name = str(path).partition("/")[2].strip("/") or "."
            served.append(ServedCheckpoint(str(reference.get("training_job_id") or ""), name))
    return tuple(dict.fromkeys(served))


def transcribes(config: Mapping[str, Any] | None) -> bool:
    server = (config or {}).get("docker_server")
    return isinstance(server, Mapping) and "transcriptions" in str(server.get("predict_endpoint"))


def startup_text(startups: Sequence[Startup]) -> str:
    """Describe the newest start: ``11s: scheduling 1s · image pull 2s · …``; empty without any."""
    if not startups:
        return ""
    newest = max(startups, key=lambda item: item.started_at_epoch_millis or 0)
    phases = [
        f"{status_word(item.phase)} {_length(item.duration_ms) if item.duration_ms is not None else '✗'}"
        for item in newest.phase_summary
    ]
    outcome = "" if newest.outcome == "SUCCESS" else f" ({status_word(newest.outcome)})"
    return f"{_length(newest.duration_ms)}{outcome}" + (f": {' · '.join(phases)}" if phases else "")


def _length(milliseconds: int | None) -> str:
    if milliseconds is None:
        return duration(None)
    return "<1s" if 0 <= milliseconds < 1000 else duration(milliseconds / 1000)


class DeploymentVerb(StrEnum):
    """A change of a deployment."""

    PROMOTE = "promote"
    ACTIVATE = "activate"
    DEACTIVATE = "deactivate"
    RETRY = "retry"


VERBS = frozenset(DeploymentVerb)

_QUESTIONS = {
    DeploymentVerb.PROMOTE: "Promote {} to production?",
    DeploymentVerb.ACTIVATE: "Activate {}?",
    DeploymentVerb.DEACTIVATE: "Deactivate {}?",
    DeploymentVerb.RETRY: "Retry {}?",
}
_CONSEQUENCES = {
    DeploymentVerb.PROMOTE: "Requests to production go to it; the deployment before it scales down.",
    DeploymentVerb.ACTIVATE: "Starts again. Billed while running.",
    DeploymentVerb.DEACTIVATE: "Stops its replicas: requests to it fail until it is activated again.",
    DeploymentVerb.RETRY: "Builds and starts again. Billed while running.",
}
_PARTICIPLES = {
    DeploymentVerb.PROMOTE: ("promoted", "promoting"),
    DeploymentVerb.ACTIVATE: ("activated", "activating"),
    DeploymentVerb.DEACTIVATE: ("deactivated", "deactivating"),
    DeploymentVerb.RETRY: ("retried", "retrying"),
}
_STOPPED = frozenset({"INACTIVE", "DEACTIVATING"})
_IMPOSSIBLE = {
    DeploymentVerb.PROMOTE: FAILED_STATUSES,
    DeploymentVerb.ACTIVATE: (SERVING_STATUSES | CHANGING_STATUSES | FAILED_STATUSES) - _STOPPED,
    DeploymentVerb.DEACTIVATE: _STOPPED,
    DeploymentVerb.RETRY: SERVING_STATUSES | CHANGING_STATUSES | _STOPPED,
}
"""Statuses in which a change makes no sense. In others, newer ones too, the server decides."""


@dataclass(frozen=True, slots=True)
class DeploymentChange:
    """A change that a user requested."""

    verb: DeploymentVerb
    deployment: Deployment
    model_name: str = ""

    @property
    def name(self) -> str:
        """Name of the deployment, with its model and id."""
        of_model = f" of {sanitize(self.model_name)}" if self.model_name else ""
        return f"{sanitize(self.deployment.name or 'deployment')}{of_model} ({sanitize(self.deployment.id)})"

    @property
    def question(self) -> str:
        return _QUESTIONS[self.verb].format(self.name)

    @property
    def consequence(self) -> str:
        return _CONSEQUENCES[self.verb]

    @property
    def done(self) -> str:
        return _PARTICIPLES[self.verb][0]

    @property
    def doing(self) -> str:
        return _PARTICIPLES[self.verb][1]

    @property
    def refusal(self) -> str:
        """Why this cannot be done now; empty if it can."""
        if self.verb is DeploymentVerb.PROMOTE and self.deployment.is_production:
            return f"{self.name} is the production deployment already"
        if self.deployment.status in _IMPOSSIBLE[self.verb]:
            return f"can't {self.verb} {self.name}: it is {status_word(self.deployment.status)}"
        return ""
