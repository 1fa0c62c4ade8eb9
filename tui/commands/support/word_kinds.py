"""Map parameters to the kind of server names that they accept."""

from __future__ import annotations

import re
from collections.abc import Mapping

JOBS, PROJECTS, PROJECT_IDS, CHECKPOINTS, REMOTES = (
    "jobs",
    "projects",
    "project ids",
    "checkpoints",
    "remotes",
)

KINDS: Mapping[str, str] = {
    "job_id": JOBS,
    "job_ids": JOBS,
    "job": JOBS,
    "job_argument": JOBS,
    "job_option": JOBS,
    "named_id": JOBS,
    "named_ids": JOBS,
    "named_job": JOBS,
    "checkpoint_from_job": JOBS,
    "project": PROJECTS,
    "project_name": PROJECTS,
    "named_project": PROJECTS,
    "project_id": PROJECT_IDS,
    "checkpoint": CHECKPOINTS,
    "checkpoints": CHECKPOINTS,
    "checkpoint_name": CHECKPOINTS,
    "checkpoint_names": CHECKPOINTS,
    "remote": REMOTES,
}
"""Parameter name → kind of its values; a test checks all commands."""

_HARMLESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/@+-]*\Z")


def is_harmless(word: str) -> bool:
    """Return True if a shell may insert the word unquoted: it would run text such as ``$(…)``."""
    return _HARMLESS.match(word) is not None
