"""Weights from the Hugging Face Hub, by its own library, which is an optional part of this package."""

from __future__ import annotations

import importlib
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from api_client.emulator.runner.weights_order import FetchFailed, FetchOrder, Progress
from api_client.emulator.runner.weights_placing import READ_ONLY_FILE, place

LIBRARY = "huggingface_hub"
DATASETS = "datasets/"
MAXIMUM_NAME_PARTS = 2


def fetch_from_hub(order: FetchOrder, progress: Progress) -> None:
    """Fetch a repository at its revision into the mirror, and hand out what the patterns let through."""
    try:
        library: Any = importlib.import_module(LIBRARY)
    except ImportError as error:
        raise FetchFailed(
            f"hf:// needs a package: {shlex.quote(sys.executable)} -m pip install huggingface-hub,"
            " and start the emulator again"
        ) from error
    is_dataset = order.location.startswith(DATASETS)
    repository = order.location.removeprefix(DATASETS).strip("/")
    if len(repository.split("/")) > MAXIMUM_NAME_PARTS:
        raise FetchFailed(f"a repository is called owner/name, not {repository!r}")
    snapshot = Path(
        library.snapshot_download(
            repository,
            repo_type="dataset" if is_dataset else "model",
            revision=order.revision,
            allow_patterns=list(order.allow) or None,
            ignore_patterns=list(order.ignore) or None,
            token=order.secret if order.secret is not None else False,  # never the user's own login
            cache_dir=Path(order.mirror) / "hub",
        )
    )
    for parent, _, names in os.walk(snapshot):
        for file_name in sorted(names):
            path = Path(parent) / file_name
            name = path.relative_to(snapshot).as_posix()
            if order.wants(name):
                stored = path.resolve()
                stored.chmod(READ_ONLY_FILE)
                place(stored, Path(order.destination), name, link=True)
                progress.add(stored.stat().st_size)
