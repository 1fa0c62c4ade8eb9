"""Run a whole emulator in a process of its own, for tests without any stubs."""

from __future__ import annotations

from pathlib import Path

from api_client.emulator.processes import EmulatorChild


def running_emulator(
    world: str = "empty", *, data_dir: Path | None = None, url_lifetime_s: int | None = None
) -> EmulatorChild:
    """A context manager of one that answers, with ``url``, ``key`` and ``remote_environ()``."""
    return EmulatorChild(world=world, data_dir=data_dir, url_lifetime_s=url_lifetime_s)
