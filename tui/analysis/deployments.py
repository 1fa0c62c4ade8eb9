"""Existing deployments: the checkpoints that they serve, their newest start, and changes to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    """Return the display text of a status, such as ``loading model`` for ``LOADING_MODEL``."""
    return sanitize(status).lower().replace("_", " ") or "unknown"


class ServedCheckpoint(NamedTuple):
    """A checkpoint that a deployment serves."""

    job_id: str
    name: str


def served_checkpoints(config: Mapping[str, Any] | None) -> tuple[ServedCheckpoint, ...]:
    """Return the training checkpoints that a truss config refers to; empty if it serves none."""
    training_checkpoints = (config or {}).get("training_checkpoints")
    references = (
        training_checkpoints.get("artifact_references") if isinstance(training_checkpoints, Mapping) else None
    )
    checkpoints: list[ServedCheckpoint] = []
    for reference in references if isinstance(references, list) else []:
        if not isinstance(reference, Mapping):
            continue
        paths = reference.get("paths")
        for path in paths if isinstance(paths, list) else []:
            # A path is ``rank-0/checkpoint-100/``; only ``rank-0/`` is the checkpoint ``.``.
            name = str(path).partition("/")[2].strip("/") or "."
            checkpoints.append(ServedCheckpoint(str(reference.get("training_job_id") or ""), name))
    return tuple(dict.fromkeys(checkpoints))


def serves_transcriptions(config: Mapping[str, Any] | None) -> bool:
    server = (config or {}).get("docker_server")
    return isinstance(server, Mapping) and "transcriptions" in str(server.get("predict_endpoint"))


def startup_text(startups: Sequence[Startup]) -> str:
    """Return ``11s: scheduling 1s · image pull 2s · …`` for the newest start; empty if there is none."""
    if not startups:
        return ""
    newest = max(startups, key=lambda startup: startup.started_at_epoch_millis or 0)
    phases = [
        f"{status_word(phase.phase)} {'✗' if (ms := phase.duration_ms) is None else _duration_text(ms)}"
        for phase in newest.phase_summary
    ]
    outcome = "" if newest.outcome == "SUCCESS" else f" ({status_word(newest.outcome)})"
    return f"{_duration_text(newest.duration_ms)}{outcome}" + (f": {' · '.join(phases)}" if phases else "")


def _duration_text(milliseconds: int | None) -> str:
    if milliseconds is None:
        return duration(None)
    return "<1s" if 0 <= milliseconds < 1000 else duration(milliseconds / 1000)


@dataclass(frozen=True, slots=True)
class DeploymentVerb:
    """A kind of change to a deployment, and its texts."""

    name: str
    """The name of the command and of the action."""
    help: str
    question: str
    """The confirmation question, with ``{}`` for the name of the deployment."""
    consequence: str
    done: str
    """The past participle of the name, such as ``promoted``."""
    doing: str
    """The present participle of the name, such as ``promoting``."""
    impossible: frozenset[str]
    """Statuses in which the change is impossible. In all other statuses, the server decides."""


_STOPPED = frozenset({"INACTIVE", "DEACTIVATING"})
PROMOTE = DeploymentVerb(
    "promote",
    "Make a deployment the production deployment of its model.",
    "Promote {} to production?",
    "Requests to production go to it; the deployment before it scales down.",
    "promoted",
    "promoting",
    FAILED_STATUSES,
)
DEACTIVATE = DeploymentVerb(
    "deactivate",
    "Stop a deployment; it can be activated again.",
    "Deactivate {}?",
    "Stops its replicas: requests to it fail until it is activated again.",
    "deactivated",
    "deactivating",
    _STOPPED,
)
ACTIVATE = DeploymentVerb(
    "activate",
    "Start an inactive deployment again.",
    "Activate {}?",
    "Starts again. Billed while running.",
    "activated",
    "activating",
    (SERVING_STATUSES | CHANGING_STATUSES | FAILED_STATUSES) - _STOPPED,
)
RETRY = DeploymentVerb(
    "retry",
    "Start one again that has failed.",
    "Retry {}?",
    "Builds and starts again. Billed while running.",
    "retried",
    "retrying",
    SERVING_STATUSES | CHANGING_STATUSES | _STOPPED,
)
VERBS = {verb.name: verb for verb in (PROMOTE, DEACTIVATE, ACTIVATE, RETRY)}


@dataclass(frozen=True, slots=True)
class DeploymentChange:
    """A change to a deployment that a user requested."""

    verb: DeploymentVerb
    deployment: Deployment
    model_name: str = ""

    @property
    def name(self) -> str:
        """The deployment's display name, with its model and id."""
        model_note = f" of {sanitize(self.model_name)}" if self.model_name else ""
        return (
            f"{sanitize(self.deployment.name or 'deployment')}{model_note} ({sanitize(self.deployment.id)})"
        )

    @property
    def question(self) -> str:
        return self.verb.question.format(self.name)

    @property
    def refusal(self) -> str:
        """The reason why the change is impossible now; empty if it is possible."""
        if self.verb is PROMOTE and self.deployment.is_production:
            return f"{self.name} is the production deployment already"
        if self.deployment.status in self.verb.impossible:
            return f"can't {self.verb.name} {self.name}: it is {status_word(self.deployment.status)}"
        return ""
