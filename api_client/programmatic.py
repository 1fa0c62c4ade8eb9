"""``push`` for scripts: one synchronous call that needs no event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from api_client.client import TrainingClient
from api_client.definitions import TrainingProject
from api_client.errors import ConfigurationError
from api_client.remotes import Environment, Remote, resolve_remote
from api_client.submission.payload import Overrides

DEFAULT_REMOTE = "baseten"  # push's documented default; also used if the script names no remote


def push(
    config: Path | str | TrainingProject,
    remote: str = DEFAULT_REMOTE,
    *,
    source_dir: Path | None = None,
    team_id: str | None = None,
    team: str | None = None,
    overrides: Overrides | None = None,
) -> dict[str, Any]:
    """Submit a job; return the job's fields, and also ``training_project`` and ``training_job``.

    The official SDK returns the job's fields, but its documentation promises the two objects; scripts written
    for either find what they expect.

    ``config`` is the path of a config file, which is executed, or a project built in code, whose code is
    archived from ``source_dir`` (default: the working directory). ``remote`` names a section of
    ``~/.trussrc``. The team is given by id or by name. Raises ConfigurationError and its subclasses,
    UploadFailed and the other subclasses of RequestError.
    """
    remote_to_use = choose_remote(remote, os.environ)

    async def submit_once() -> dict[str, Any]:
        async with TrainingClient(remote_to_use) as client:
            submission = await client.push(
                config, source_dir=source_dir, team=team_id or team, overrides=overrides
            )
        objects = submission.as_dict()
        return {**objects["training_job"], **objects}

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(submit_once())
    # A notebook cell runs inside an event loop, which cannot run another one.
    with ThreadPoolExecutor(max_workers=1) as executor:
        return executor.submit(asyncio.run, submit_once()).result()


def choose_remote(name: str, environ: Mapping[str, str]) -> Remote:
    """Return the remote with that name; for the default name, a remote in the environment takes precedence.

    A script written for the official SDK names no remote. If the environment points it to another server, it
    must not submit to production just because a section has the default name. Raises ConfigurationError.
    """
    if name != DEFAULT_REMOTE:
        return resolve_remote(name, environ=environ)
    if Environment(environ).names_other_remote:
        return resolve_remote(None, environ=environ)
    try:
        return resolve_remote(name, environ=environ)
    except ConfigurationError:
        return resolve_remote(None, environ=environ)
