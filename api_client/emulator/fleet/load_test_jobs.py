"""A large account: the demo's jobs multiplied over many projects, plus a few extreme jobs.

Every job made here can be opened like any other: its log, metrics and checkpoints follow from its plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from api_client.emulator.fleet.clock import NS_PER_S
from api_client.emulator.fleet.log_generator import node_name
from api_client.emulator.fleet.log_lines import LineSource, PeriodicLines
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
from api_client.emulator.fleet.training import StepSchedule, TrainingCurves
from api_client.emulator.fleet.world import PROJECTS, ProjectPlan
from api_client.emulator.world_size import WorldSize

RUNNING_ONE_IN = 250
"""Share of running jobs: 40 of 10,000, as in an account that has been in use for a long time."""
SUBMISSION_INTERVAL_S = 6 * MINUTE_S
"""Interval between submissions: ten thousand jobs cover six weeks."""
YOUNGEST_PROJECT_DAYS, PROJECT_AGES_DAYS = 45, 300
BUSY_NODES = 64
SAVING_STEP_S = 30.0


def load_test_projects(size: WorldSize) -> tuple[ProjectPlan, ...]:
    return tuple(
        ProjectPlan(
            f"{PROJECTS[number % len(PROJECTS)].name}-{number:04}",
            YOUNGEST_PROJECT_DAYS + number % PROJECT_AGES_DAYS,
        )
        for number in range(size.projects)
    )


def load_test_jobs(size: WorldSize) -> tuple[JobPlan, ...]:
    projects = load_test_projects(size)
    jobs = [_member(number, projects) for number in range(size.jobs)]
    if size.many_nodes:
        jobs.append(on_many_nodes(size.many_nodes))
    if size.log_lines_per_s:
        jobs.append(high_volume_run(size.log_lines_per_s))
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
        born_s=like.born_s if runs_now else like.born_s - number * SUBMISSION_INTERVAL_S,
        # Spot jobs do not count against the GPU limit.
        availability="spot" if runs_now else like.availability,
    )


def high_volume_run(lines_per_s: int) -> JobPlan:
    """Return a live run that logs ``lines_per_s`` lines a second, spread evenly over its nodes."""
    scenario = replace(
        runs.PRETRAINING_64_NODES,
        key="very talkative",
        log_generator=HighVolumeLogs(lines_per_s),
        family=None,
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
class HighVolumeLogs:
    """Logs ``lines_per_s`` lines a second in total, with the nodes interleaved."""

    lines_per_s: int

    def lines(self, run: RunFacts, run_ns: int, training_curves: TrainingCurves) -> Sequence[LineSource]:
        nodes = run.node_count
        period_ns = nodes * NS_PER_S // self.lines_per_s
        return [
            PeriodicLines(
                node_name(node),
                "INFO",
                run_ns,
                None,
                period_ns,
                run.seed + node,
                partial(_said, node, training_curves),
            )
            for node in range(nodes)
        ]


def _said(node: int, training_curves: TrainingCurves, number: int) -> str:
    loss = training_curves.loss(1 + number % training_curves.pace.total_steps)
    return (
        f"[rank{8 * node}]: micro-step {number}: loss {loss:.4f}, 8,192 tokens in 0.41 s, 3 buckets reduced"
    )


def saving(checkpoints: int) -> JobPlan:
    """Return a finished run that saved a checkpoint after each of its ``checkpoints`` steps."""
    like: Scenario = runs.TITAN
    pace = StepSchedule(total_steps=checkpoints, step_s=SAVING_STEP_S)
    training_curves = replace(like.training_curves, pace=pace)
    scenario = replace(
        like,
        key="many checkpoints",
        training_curves=training_curves,
        load=replace(like.load, pace=pace),
        save_every=1,
        write_s=1.0,
    )
    name = f"titan-{checkpoints}-saves"
    return finished(name, "pretraining", H100X8, 1, GRACE, scenario, ago_s=HOUR_S)
