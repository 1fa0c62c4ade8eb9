"""Run a whole emulator in a process of its own, for tests without any stubs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from api_client.emulator.processes import EmulatorChild


@contextmanager
def running_emulator(
    world: str = "empty",
    *,
    speed: float = 1.0,
    data_dir: Path | None = None,
    url_lifetime_s: int | None = None,
) -> Iterator[EmulatorChild]:
    """An emulator that answers, with ``url``, ``key`` and ``remote_environ()``; gone afterwards."""
    with EmulatorChild(world=world, speed=speed, data_dir=data_dir, url_lifetime_s=url_lifetime_s) as child:
        yield child
