"""The worlds of an emulator: the demo (simulated fleet and one real job) or an empty workspace."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

from api_client.clock import Clock
from api_client.emulator.backend import Backend
from api_client.emulator.fleet.backend import FleetBackend
from api_client.emulator.fleet.clock import open_sim_clock
from api_client.emulator.fleet.world import DEMO_SCRIPT, TEAM_NAME, DemoScript
from api_client.emulator.platform import Platform
from api_client.emulator.presign import Signer
from api_client.emulator.runner.backend import LocalBackend
from api_client.emulator.store.database import Database
from api_client.emulator.store.stores import Stores

DEMO_JOB = Path(__file__).resolve().parent / "demo_job" / "train.py"


def demo_job_spec(
    *, steps: int | None = None, pace_s: float | None = None, node_count: int = 2
) -> dict[str, Any]:
    """Return a payload that trains on the digits on this machine; the default run takes about 23 minutes.

    ``pace_s`` is the minimum time per step in seconds.
    """
    variables = {}
    if steps is not None:
        variables["STEPS"] = str(steps)
    if pace_s is not None:
        variables["PACE_S"] = str(pace_s)
    return {
        "name": "digits-mlp",
        "image": {"base_image": "python:3.11-slim", "docker_auth": None},
        "compute": {"node_count": node_count, "cpu_count": 1, "memory": "2Gi", "accelerator": None},
        "runtime": {
            "start_commands": [shlex.join([sys.executable, "-P", str(DEMO_JOB)])],
            "environment_variables": variables,
            "checkpointing_config": {"enabled": True, "checkpoint_path": None, "volume_size_gib": None},
        },
    }


WORLDS = ("demo", "empty")
"""``demo``: simulated jobs of a whole team and one real job. ``empty``: only submitted jobs."""

REAL_JOB_PROJECT = "digits"
"""The demo's project whose job really runs on this machine."""


async def start_real_job(platform: Platform) -> None:
    """Start the demo's real job when this world is first served; a deleted one is not recreated."""
    team = platform.stores.teams.default()
    if not platform.stores.projects.was_named(REAL_JOB_PROJECT, team.id):
        project = platform.upsert_project(REAL_JOB_PROJECT, team)
        await platform.create_job(project.id, demo_job_spec())


def create_world(
    kind: str,
    *,
    database: Database,
    data_dir: Path,
    signer: Signer,
    clock: Clock,
    speed: float,
    script: DemoScript | None = None,
) -> Platform:
    """Create the world of this kind from the data folder.

    ``speed`` applies to the simulated jobs; ``script`` replaces those of the demo world.
    """
    stores = Stores(database, data_dir)
    stores.teams.ensure("Research", clock.now())
    local = LocalBackend(stores, data_dir, clock)
    simulated: tuple[Backend, ...] = ()
    if kind == "demo":
        simulated = (_fleet(stores, database, clock, speed, script or DEMO_SCRIPT),)
    return Platform(
        stores=stores,
        data_dir=data_dir,
        signer=signer,
        clock=clock,
        local=local,
        backends=simulated,
        workspace_name={"demo": "Demo (emulator)", "empty": "Emulator"}[kind],
    )


def _fleet(
    stores: Stores, database: Database, clock: Clock, speed: float, script: DemoScript
) -> FleetBackend:
    """Return the simulated jobs; also add their projects."""
    sim_clock = open_sim_clock(database, now=clock.now(), speed=speed)
    fleet = FleetBackend(database, sim_clock=sim_clock, now=clock.now, script=script)
    team = stores.teams.ensure(TEAM_NAME, clock.now())
    for project in fleet.stored_projects(team.id):
        stores.projects.add(project)
    return fleet
