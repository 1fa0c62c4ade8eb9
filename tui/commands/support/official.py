"""Command lines of the official CLIs in our words, and the JSON documents that the baseten CLI prints.

``bt-tui`` takes the place of ``baseten`` and ``truss``: what follows ``train`` is a command of ours, except
for the phrases below. Our commands accept the official options themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Shape = Callable[[Any], Any]

PHRASES: Mapping[str, str] = {
    "ssh setup": "ssh-config --install",
    "train": "",
    "train capacity describe": "capacity view",
    "train checkpoint deploy": "deploy_checkpoints",
    "train checkpoint files": "checkpoints files --urls",
    "train checkpoint list": "checkpoints list --order desc",
    "train job describe": "job",
    "train job download": "download",
    "train job list": "jobs --direction desc",
    "train job logs": "logs",
    "train job metrics": "metrics",
    "train job recreate": "recreate",
    "train job session describe": "isession",
    "train job stop": "stop",
    "train job update": "update",
    "train project cache describe": "cache summarize --sort size --order desc",
    "train project list": "projects",
    "train workstation create": "workstation",
}
"""Words of the official CLIs → ours."""
LONGEST_PHRASE = max(len(phrase.split()) for phrase in PHRASES)


def _downloaded(document: Any) -> dict[str, Any]:
    target = "out_dir" if document["is_unpacked"] else "out_file"
    return {"job_id": document["job_id"], target: document["path"]}


def _cached(document: Any) -> dict[str, Any]:
    names = {"path": "path", "size_bytes": "size_bytes", "type": "file_type"}
    names |= {"modified": "modified", "permissions": "permissions"}
    files = [{theirs: file[ours] for ours, theirs in names.items()} for file in document["files"]]
    return {
        "project_id": document["project_id"],
        "timestamp": document["timestamp"],
        "file_summaries": files,
    }


SHAPES: Mapping[str, Shape] = {
    "train capacity update": lambda changed: {"team_gpu_capacity": changed},
    "train checkpoint files": lambda document: document["files"],
    "train job describe": lambda job: {"training_job": job, "training_project": job.training_project},
    "train job download": _downloaded,
    "train job list": lambda jobs: {"training_jobs": jobs},
    "train job stop": lambda jobs: {"training_job": jobs[0] if jobs else None},
    "train job update": lambda job: {"training_job": job},
    "train project cache describe": _cached,
    "train project list": lambda projects: {"training_projects": projects},
}
"""Where the baseten CLI's JSON differs from ours: how to make it of our document."""


def in_our_words(arguments: Sequence[str]) -> tuple[list[str], Shape | None]:
    """Return the command line in our words, and the shape of its JSON if that differs."""
    words = list(arguments)
    beginnings = [" ".join(words[:count]) for count in range(LONGEST_PHRASE, 0, -1)]
    shape = next((SHAPES[each] for each in beginnings if each in SHAPES), None)
    phrase = next((each for each in beginnings if each in PHRASES), "")
    ours = PHRASES.get(phrase, "").split() + words[len(phrase.split()) :]
    return ours or words, shape
