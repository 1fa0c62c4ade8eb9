"""Command lines of the official CLIs in our words, and the JSON documents that the baseten CLI prints.

``bt-tui`` takes the place of ``baseten`` and ``truss``: what follows ``train`` is a command of ours, except
for the phrases below. Our commands accept the official options themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Shape = Callable[[Any], Any]


def _downloaded(document: Any) -> dict[str, Any]:
    target = "out_dir" if document["is_unpacked"] else "out_file"
    return {"job_id": document["job_id"], target: document["path"]}


def _cached(document: Any) -> dict[str, Any]:
    return {
        "project_id": document["project_id"],
        "timestamp": document["timestamp"],
        "file_summaries": [
            {
                "path": file["path"],
                "size_bytes": file["size_bytes"],
                "file_type": file["type"],
                "modified": file["modified"],
                "permissions": file["permissions"],
            }
            for file in document["files"]
        ],
    }


@dataclass(frozen=True, slots=True)
class Spelling:
    """Translation of an official phrase."""

    ours: str
    shape: Shape | None = None
    """Makes the baseten CLI's JSON of our document, where they differ."""


OFFICIAL: Mapping[str, Spelling] = {
    "checkpoint": Spelling("checkpoints"),
    "deploy": Spelling("deploy_checkpoints"),
    "deploy-checkpoints": Spelling("deploy_checkpoints"),
    "deploy_checkpoint": Spelling("deploy_checkpoints"),
    "get_checkpoint_urls": Spelling("checkpoints urls"),
    "isession": Spelling("sessions --messages"),
    "ssh setup": Spelling("ssh-config --install"),
    "train cache summarize": Spelling("cache summarize --files"),
    "train capacity describe": Spelling("capacity view"),
    "train capacity update": Spelling("capacity update", lambda changed: {"team_gpu_capacity": changed}),
    "train checkpoint deploy": Spelling("deploy_checkpoints"),
    "train checkpoint files": Spelling("checkpoints files --urls", lambda document: document["files"]),
    "train checkpoint list": Spelling("checkpoints list --order desc"),
    "train job describe": Spelling(
        "job", lambda job: {"training_job": job, "training_project": job.training_project}
    ),
    "train job download": Spelling("download", _downloaded),
    "train job list": Spelling("jobs --direction desc", lambda jobs: {"training_jobs": jobs}),
    "train job logs": Spelling("logs"),
    "train job metrics": Spelling("metrics"),
    "train job recreate": Spelling("recreate"),
    "train job session describe": Spelling("sessions --messages"),
    "train job stop": Spelling("stop", lambda jobs: {"training_job": jobs[0] if jobs else None}),
    "train job update": Spelling("update", lambda job: {"training_job": job}),
    "train project cache describe": Spelling("cache summarize --sort size --order desc", _cached),
    "train project list": Spelling("projects", lambda projects: {"training_projects": projects}),
    "train workstation create": Spelling("workstation"),
}
"""Words of the official CLIs that differ from ours: they work but are not listed."""


def _with_last(arguments: Sequence[str]) -> list[str]:
    """Replace ``--tail 20``, meant as in kubectl, by ``--last 20``; ``--tail`` alone follows."""
    words = list(arguments)
    for index, number in enumerate(words[1:], start=1):
        if words[index - 1] == "--tail" and number.isdecimal() and "logs" in words[: index - 1]:
            words[index - 1] = "--last"
    return words


def translated(arguments: Sequence[str]) -> tuple[list[str], Shape | None]:
    """Return the command line in our words, and the shape of its JSON if that differs."""
    rest = _with_last(arguments)
    for count in range(len(rest), 0, -1):
        spelling = OFFICIAL.get(" ".join(rest[:count]))
        if spelling is not None:
            return [*spelling.ours.split(), *rest[count:]], spelling.shape
    if rest[0] == "train" and len(rest) > 1:
        return translated(rest[1:])
    return rest, None
