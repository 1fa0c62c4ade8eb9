"""Nothing of a job outlives its end, whichever end it is."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path

import psutil
from local_world import LocalWorld, job_spec, living, local_world

from api_client.models import JobStatus

PATIENCE_S = 60.0

ESCAPING = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("escaped", flush=True)
        time.sleep(1000)
    os._exit(0)
time.sleep(1000)
"""


def marked_sleep(marker: str) -> str:
    return f"{sys.executable} -c 'import time; print(\"up\", flush=True); time.sleep(1000)' {marker}"


async def test_stop_ends_the_whole_tree(tmp_path: Path, world: LocalWorld) -> None:
    marker = uuid.uuid4().hex
    (tmp_path / "escape.py").write_text(ESCAPING)
    commands = f"{marked_sleep(marker)} & {sys.executable} {tmp_path}/escape.py {marker}"
    await world.create("job1", job_spec(commands, nodes=2))
    for word in ("up", "escaped"):  # two processes write to one pipe: their words may share a line
        await world.until(lambda word=word: "".join(world.messages("job1")).count(word) == 2)
    assert len(living(marker)) >= 6
    assert (await world.backend.stop("job1")).current_status == JobStatus.STOPPED
    assert living(marker) == []


async def test_a_job_that_ignores_the_request_is_killed_after_its_grace(tmp_path: Path) -> None:
    marker = uuid.uuid4().hex
    async with local_world(tmp_path, stop_grace_s=0.2) as world:
        await world.create("job1", job_spec(f"trap '' TERM; echo up; {marked_sleep(marker)}"))
        await world.until(lambda: world.messages("job1").count("up") == 2)
        await world.backend.stop("job1")
        assert (await world.finished("job1")).current_status == JobStatus.STOPPED
        assert living(marker) == []


async def test_what_a_finished_node_leaves_behind_is_killed(world: LocalWorld) -> None:
    marker = uuid.uuid4().hex
    # read waits for the background process to be up before the node ends
    command = f"mkfifo up; {marked_sleep(marker)} > up & read word < up; echo $word"
    job = await world.run("job1", job_spec(command))
    assert job.current_status == JobStatus.COMPLETED
    assert world.messages("job1") == ["up"]
    assert living(marker) == []


def is_supervisor(process: psutil.Process) -> bool:
    try:
        return any("supervisor" in part for part in process.cmdline())
    except psutil.ZombieProcess:  # of another test, not reaped yet
        return False


async def test_a_lost_supervisor_fails_the_job_and_leaves_nothing(world: LocalWorld) -> None:
    marker = uuid.uuid4().hex
    await world.create("job1", job_spec(marked_sleep(marker)))
    await world.said("job1", "up")
    (supervisor,) = (child for child in psutil.Process().children() if is_supervisor(child))
    supervisor.kill()
    assert (await world.finished("job1")).error_message == "node-0: exit code 137 (SIGKILL)"
    # The system tells them of their parent's death when it comes to it.
    _gone, alive = psutil.wait_procs(map(psutil.Process, living(marker)), timeout=PATIENCE_S)
    assert alive == []
