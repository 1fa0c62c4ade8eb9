"""The environment of the sender, part of a job's request: versions, and the git commit."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pydantic

from api_client.http.connection import user_agent

GIT_TIMEOUT_S = 10.0  # if a repository takes longer, the job is submitted without its commit


def describe_environment(source_dir: Path) -> dict[str, Any]:
    """Return a job's ``truss_user_env``, with our own name and version in place of the official client's.

    Runs ``git`` in ``source_dir``; blocks.
    """
    return {
        "truss_client_version": user_agent().split(" ", 1)[0],
        "python_version": ".".join(str(part) for part in sys.version_info[:3]),
        "pydantic_version": pydantic.VERSION,
        "mypy_version": _version_of("mypy"),
        "git_info": _git_info(source_dir),
    }


def _version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _git_info(folder: Path) -> dict[str, Any] | None:
    """Return the commit, the latest tag before it, and a dirty flag; None outside of a repository."""
    sha = _git(folder, "rev-parse", "HEAD")
    if not sha:
        return None
    tag = _git(folder, "describe", "--tags", "--abbrev=0") or None
    since = _git(folder, "rev-list", f"{tag}..HEAD", "--count") if tag else None
    return {
        "latest_commit_sha": sha,
        "latest_tag": tag,
        "commits_since_tag": int(since) if since and since.isdigit() else None,
        "has_uncommitted_changes": bool(_git(folder, "status", "--porcelain")),
    }


def _git(folder: Path, *arguments: str) -> str | None:
    # Reading must not lock or refresh the index, nor prompt.
    environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace").strip()
