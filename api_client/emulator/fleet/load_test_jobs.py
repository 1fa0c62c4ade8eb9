"""A large account: the demo's jobs multiplied over many projects, plus a few extreme jobs.

Every job made here can be opened like any other: its log, metrics and checkpoints follow from its plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from api_client.emulator.fleet.clock import NS_PER_S
from api_client.emulator.fleet.log_generator import node_name
from api_client.emulator.fleet.log_lines import LineSource, Regular
from api_client.emulator.fleet.plans import JobPlan, RunFacts, Scenario
from api_client.emulator.fleet.scenarios import runs
from api_client.emulator.fleet.scenarios.jobs import (
    GRACE,
    H100X8,
    HOUR_S,
    KAI,
    MINUTE_S,
    finished,
    running,
)
from api_client.emulator.fleet.scenarios.live import RUNNING_JOBS, on_many_nodes
from api_client.emulator.fleet.scenarios.past import PAST_JOBS
from api_client.emulator.fleet.training import Course, Pace
from api_client.emulator.fleet.world import PROJECTS, ProjectPlan
from api_client.emulator.world_size import WorldSize

RUNNING_ONE_IN = 250
"""Share of running jobs: 40 of 10,000, as in an account that has been in use for a long time."""
APART_S = 6 * MINUTE_S
"""Interval between submissions: ten thousand jobs cover six weeks."""
YOUNGEST_PROJECT_DAYS, PROJECT_AGES_DAYS = 45, 300
BUSY_NODES = 64
SAVING_STEP_S = 30.0


def crowd_projects(size: WorldSize) -> tuple[ProjectPlan, ...]:
    return tuple(
        ProjectPlan(
            f"{PROJECTS[number % len(PROJECTS)].name}-{number:04}",
            YOUNGEST_PROJECT_DAYS + number % PROJECT_AGES_DAYS,
        )
        for number in range(size.projects)
    )


def crowd_jobs(size: WorldSize) -> tuple[JobPlan, ...]:
    projects = crowd_projects(size)
    jobs = [_member(number, projects) for number in range(size.jobs)]
    if size.many_nodes:
        jobs.append(on_many_nodes(size.many_nodes))
    if size.log_lines_per_s:
        jobs.append(talkative(size.log_lines_per_s))
    if size.checkpoints:
        jobs.append(saving(size.checkpoints))
    return tuple(jobs)


def _member(number: int, projects: Sequence[ProjectPlan]) -> JobPlan:
    runs_now = number % RUNNING_ONE_IN == 0
    kinds = RUNNING_JOBS if runs_now else PAST_JOBS
    like = kinds[(number // RUNNING_ONE_IN if runs_now else number) % len(kinds)]
    name = f"{like.name}-{number:05}"
    return replace(
        like,
        key=f"crowd:{name}",
        name=name,
        project=projects[number % len(projects)].name if projects else like.project,
        born_s=like.born_s if runs_now else like.born_s - number * APART_S,
        # Spot jobs do not count against the GPU limit.
        availability="spot" if runs_now else like.availability,
    )


def talkative(lines_per_s: int) -> JobPlan:
    """Return a live run that logs ``lines_per_s`` lines a second, spread evenly over its nodes."""
    scenario = replace(
        runs.PRETRAINING_64_NODES, key="very talkative", narrator=Talkative(lines_per_s), family=None
    )
    return running(
        f"titan-{lines_per_s}-lines",
        "pretraining",
        H100X8,
        min(BUSY_NODES, lines_per_s),
        KAI,
        scenario,
        since_s=2 * MINUTE_S,
        availability="spot",
    )


@dataclass(frozen=True, slots=True)
class Talkative:
    """Logs ``lines_per_s`` lines a second in total, with the nodes interleaved."""

    lines_per_s: int

    def lines(self, run: RunFacts, run_ns: int, course: Course) -> Sequence[LineSource]:
        nodes = run.node_count
        period_ns = nodes * NS_PER_S // self.lines_per_s
        return [
            Regular(
                node_name(node),
                "INFO",
                run_ns,
                None,
                period_ns,
                run.seed + node,
                partial(_said, node, course),
            )
            for node in range(nodes)
        ]


def _said(node: int, course: Course, number: int) -> str:
    loss = course.loss(1 + number % course.pace.total_steps)
    return (
        f"[rank{8 * node}]: micro-step {number}: loss {loss:.4f}, 8,192 tokens in 0.41 s, 3 buckets reduced"
    )


def saving(checkpoints: int) -> JobPlan:
    """Return a finished run that saved a checkpoint after each of its ``checkpoints`` steps."""
    like: Scenario = runs.TITAN
    pace = Pace(total_steps=checkpoints, step_s=SAVING_STEP_S)
    course = replace(like.course, pace=pace)
    scenario = replace(
        like,
        key="many checkpoints",
        course=course,
        load=replace(like.load, pace=pace),
        save_every=1,
        write_s=1.0,
    )
    name = f"titan-{checkpoints}-saves"
    return finished(name, "pretraining", H100X8, 1, GRACE, scenario, ago_s=HOUR_S)
