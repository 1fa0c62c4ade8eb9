"""``bt-tui cache summarize -o json`` of 100,000 files against bare Python and the official CLI.

The bare Python program uses only httpx and json; it does not compute totals, or format times and sizes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from commands import command_figures
from harness import Figure
from large_world import CACHE_PROJECT, LargeWorld
from terminal import fresh_user_environ

BARE = """
import httpx, json, os, sys
headers = {"Authorization": "Bearer " + os.environ["BASETEN_API_KEY"]}
with httpx.Client(base_url=os.environ["BASETEN_REMOTE_URL"], headers=headers, timeout=60) as client:
    projects = client.get("/v1/training_projects").json()["training_projects"]
    project = next(item["id"] for item in projects if item["name"] == sys.argv[1])
    summary = client.get(f"/v1/training_projects/{project}/cache/summary").json()
print(json.dumps(summary, indent=2))
"""


def figures() -> Iterator[Figure]:
    """Compare the listing of a cache with 100,000 files."""
    command = ["cache", "summarize", CACHE_PROJECT, "-o", "json"]
    with (
        LargeWorld(cache_files=100_000).emulator() as emulator,
        fresh_user_environ(os.environ | emulator.remote_environ()) as environ,
    ):
        yield from command_figures(
            "100,000 files",
            emulator,
            environ,
            ours=command,
            bare=[BARE, CACHE_PROJECT],
            official=["train", *command],
            at_most={"truss": (0.35, 0.5)},
            cause="profiled: a third is the local time and size of each file, a quarter imports, the rest"
            " totals of directories and JSON",
        )
