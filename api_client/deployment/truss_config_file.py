"""The truss config that a deployment returns, kept as a file where the official CLI keeps it."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path

from api_client.deployment.sending import DeploymentResult
from api_client.files import write_file

FOLDER = Path("truss_configs")
FILE_NAME = "config.yaml"

_UNSAFE = re.compile(r"[^0-9A-Za-z_.-]+")
_LONGEST_NAME = 120


def truss_config_path(result: DeploymentResult, directory: Path | None, now: datetime) -> Path:
    """Where it goes: ``directory``, else a folder named after the deployment or, in a dry run, ``now``.

    ``now`` is local time, as in the official CLI's names.
    """
    if directory is not None:
        return directory / FILE_NAME
    if result.version_id is None:
        return FOLDER / f"dry_run_{now:%Y%m%d_%H%M%S}" / FILE_NAME
    # The server's words must not lead out of the folder.
    name = _UNSAFE.sub("_", f"{result.name}_{result.version_id}")[-_LONGEST_NAME:].lstrip(".")
    return FOLDER / (name or "deployment") / FILE_NAME


def write_truss_config(result: DeploymentResult, directory: Path | None, now: datetime) -> Path | None:
    """Write it and return its path; None if the server returned no config. Raises OSError."""
    if not result.truss_config:
        return None
    path = truss_config_path(result, directory, now)
    text = truss_config_yaml(result.truss_config)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, text.encode())
    return path


def truss_config_yaml(truss_config: str) -> str:
    """The returned JSON as YAML; what is no JSON stays as it is."""
    import yaml

    try:
        content = json.loads(truss_config)
    except ValueError:
        return truss_config
    text: str = yaml.safe_dump(content, sort_keys=True, allow_unicode=True)
    return text
