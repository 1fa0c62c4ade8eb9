"""CPU time and memory of ``bt-tui jobs -o json``, compared with the official CLI and bare Python."""

from __future__ import annotations

import os
from collections.abc import Iterator

from commands import command_figures
from harness import Figure
from terminal import fresh_user_environ

from api_client.emulator.processes import EmulatorChild

BARE = """
import json, os, httpx
headers = {"Authorization": "Bearer " + os.environ["BASETEN_API_KEY"]}
url = os.environ["BASETEN_REMOTE_URL"] + "/v1/training_jobs/search"
response = httpx.post(url, json={}, headers=headers, timeout=60)
print(json.dumps(response.json()["training_jobs"], indent=2))
"""


def figures() -> Iterator[Figure]:
    """Compare listing the jobs of the demo world."""
    with EmulatorChild() as emulator, fresh_user_environ(os.environ | emulator.remote_environ()) as environ:
        yield from command_figures(
            "jobs -o json",
            emulator,
            environ,
            ours=["jobs", "-o", "json"],
            bare=[BARE],
            official=["train", "view"],
            at_most={"bare Python": (2.0, 2.0), "truss": (0.22, 0.5)},
            rounds=5,
            memory="peak memory",
            cause="imports: pydantic and the models, httpx, anyio, h11, click, asyncio",
        )
