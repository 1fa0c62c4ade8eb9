"""An emulator with a large account: many copies of the demo's jobs, and a few extreme jobs.

``LargeWorld(jobs=10_000).emulator()`` starts it. As a program, this module expects a ``LargeWorld`` as JSON,
then the emulator's options.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

import httpx

from api_client.emulator.__main__ import main
from api_client.emulator.fleet.files import CacheTree
from api_client.emulator.fleet.logs import periodic_lines
from api_client.emulator.fleet.plans import JobPlan, LineSource, Saves, SimRun
from api_client.emulator.fleet.training import NS_PER_S, TrainingCurves, mix
from api_client.emulator.fleet.world import DEMO_SCRIPT, DemoScript, ProjectPlan
from api_client.emulator.processes import EmulatorChild
from api_client.models import JobStatus

HOUR_S = 3600.0
RUNNING_JOBS = [plan for plan in DEMO_SCRIPT.plans if plan.since == JobStatus.RUNNING]
PAST_JOBS = [plan for plan in DEMO_SCRIPT.plans if plan.since == "ENDED"]
TITAN = next(plan for plan in RUNNING_JOBS if plan.name == "qwen3-14b-titan")
JOBS_PER_RUNNING_JOB = 250
"""One in this many jobs is running: 40 of 10,000, as in an old account."""
SUBMISSION_INTERVAL_S = 360.0
"""Interval between submissions, so that 10,000 jobs cover six weeks."""
YOUNGEST_PROJECT_DAYS, PROJECT_AGES_DAYS = 45, 300
BUSY_NODES = 64
CACHE_PROJECT, CACHE_FOLDER_FILES = "pretraining", 1000


@dataclass(frozen=True)
class LargeWorld:
    """The numbers of objects that are added to the demo world.

    ``cache_files`` are in the cache of the project ``CACHE_PROJECT``. ``many_nodes`` adds a running job with
    that many nodes of eight GPUs, ``log_lines_per_s`` a running job that logs at that rate, and
    ``checkpoints`` an ended job with that many checkpoints.
    """

    jobs: int = 0
    projects: int = 0
    cache_files: int = 0
    many_nodes: int = 0
    log_lines_per_s: int = 0
    checkpoints: int = 0

    def emulator(self) -> EmulatorChild:
        """Return an emulator of this world, to be started as a child process."""
        return EmulatorChild(world="demo", program=(__file__, json.dumps(asdict(self))))

    def script(self) -> DemoScript:
        """Return the script of the demo world with the additions."""
        projects = tuple(self._project(number) for number in range(self.projects))
        jobs = [_job_plan(number, projects) for number in range(self.jobs)]
        if self.many_nodes:
            name = f"titan-{self.many_nodes}-nodes"
            jobs.append(replace(TITAN, name=name, nodes=self.many_nodes, ago_s=9 * HOUR_S))
        if self.log_lines_per_s:
            name, log = f"titan-{self.log_lines_per_s}-lines", partial(_log_sources, self.log_lines_per_s)
            busy_scenario = replace(TITAN.scenario, log=log, saves=None)
            nodes = min(BUSY_NODES, self.log_lines_per_s)
            jobs.append(replace(TITAN, name=name, nodes=nodes, ago_s=120.0, scenario=busy_scenario))
        if self.checkpoints:
            # A finished run that saved a checkpoint after each of its steps.
            name, curves = f"titan-{self.checkpoints}-saves", TrainingCurves(self.checkpoints, 30.0, 90)
            saves = Saves(1, TITAN.name, write_s=1.0)
            saving_scenario = replace(TITAN.scenario, key="many checkpoints", curves=curves, saves=saves)
            jobs.append(replace(TITAN, name=name, ago_s=HOUR_S, since="ENDED", scenario=saving_scenario))
        caches = {CACHE_PROJECT: _cache_tree(self.cache_files)} if self.cache_files else {}
        return DemoScript(
            (*DEMO_SCRIPT.projects, *projects),
            (*DEMO_SCRIPT.plans, *jobs),
            {**DEMO_SCRIPT.caches, **caches},
        )

    def _project(self, number: int) -> ProjectPlan:
        template = DEMO_SCRIPT.projects[number % len(DEMO_SCRIPT.projects)]
        return ProjectPlan(f"{template.name}-{number:04}", YOUNGEST_PROJECT_DAYS + number % PROJECT_AGES_DAYS)


def _job_plan(number: int, projects: Sequence[ProjectPlan]) -> JobPlan:
    is_running = number % JOBS_PER_RUNNING_JOB == 0
    templates = RUNNING_JOBS if is_running else PAST_JOBS
    template = templates[(number // JOBS_PER_RUNNING_JOB if is_running else number) % len(templates)]
    return replace(
        template,
        name=f"{template.name}-{number:05}",
        project=projects[number % len(projects)].name if projects else template.project,
        ago_s=template.ago_s if is_running else template.ago_s + number * SUBMISSION_INTERVAL_S,
        is_spot=is_running or template.is_spot,  # spot jobs do not count against the GPU limit
    )


def _log_sources(lines_per_s: int, run: SimRun) -> Sequence[LineSource]:
    """Return log lines of all nodes, interleaved, with ``lines_per_s`` in total."""
    period_ns = len(run.nodes) * NS_PER_S // lines_per_s
    return [
        periodic_lines(
            node, "INFO", run.start_ns, None, period_ns, run.seed + node, partial(_log_text, node, run)
        )
        for node in run.nodes
    ]


def _log_text(node: int, run: SimRun, number: int) -> str:
    loss = run.curves.loss(1 + number % run.curves.steps)
    return (
        f"[rank{8 * node}]: micro-step {number}: loss {loss:.4f}, 8,192 tokens in 0.41 s, 3 buckets reduced"
    )


def job_id(emulator: EmulatorChild, name: str) -> str:
    """Return the id of the job with this name."""
    jobs = httpx.post(
        f"{emulator.url}/v1/training_jobs/search",
        headers={"Authorization": f"Bearer {emulator.key}"},
        json={},
        trust_env=False,
    ).json()["training_jobs"]
    return next(str(job["id"]) for job in jobs if job["name"] == name)


def _cache_tree(count: int) -> CacheTree:
    """Return files of tokenized text, 1,000 per directory, as in a real corpus."""
    return tuple(
        (
            f"user_artifacts/fineweb-edu/dump-{start // CACHE_FOLDER_FILES:03}/tokens-{{n:05}}.bin",
            min(CACHE_FOLDER_FILES, count - start),
            1_048_576 + mix(start, count) % 67_108_864,
            7_919,
        )
        for start in range(0, count, CACHE_FOLDER_FILES)
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[2:], LargeWorld(**json.loads(sys.argv[1])).script()))
