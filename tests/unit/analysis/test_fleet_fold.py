"""Home's rows: what the fold need not make anew, that nothing is missed by that, and what its jobs cost."""

from dataclasses import replace
from datetime import timedelta
from math import nan

import pytest

from api_client.models import TrainingProject
from api_client.models.logs import NS_PER_S
from support.worlds import ONE_O_CLOCK, job
from tui.analysis.cost import Bill, Billed
from tui.analysis.fleet.snapshot import (
    NO_PREVIEW,
    UNREAD,
    FleetFold,
    FleetSnapshot,
    JobPreview,
    JobRow,
    job_row,
    short_reason,
)
from tui.analysis.health.registry import KINDS
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.finding import HealthFinding
from tui.analysis.series import Series
from tui.tables.fleet import header_facts, job_columns

PROJECTS = [TrainingProject(id=f"p-{name}", name=name) for name in ("quiet", "llama-sft", "evals")]


def test_ages_of_ended_jobs_go_on_each_time_all_jobs_are_listed() -> None:
    ended = [job(f"j{n}", "COMPLETED", hours_ago=1 + n, took_hours=0.5) for n in range(50)]
    fold = FleetFold()
    for days in (0, 0.01, 2):
        now = ONE_O_CLOCK + timedelta(days=days)
        fold.warm(ended, {}, now)
        folded, fresh = fold.fold(PROJECTS, [], {}, now), FleetFold().fold(PROJECTS, ended, {}, now)
        assert [(row, row.age_s) for row in folded.jobs] == [(row, row.age_s) for row in fresh.jobs]


def test_a_job_that_ended_since_is_shown_once_and_takes_its_place() -> None:
    running, queued = job("j3"), job("j4", "PENDING", project="evals")
    ended = [job(f"j{n}", "COMPLETED", hours_ago=n) for n in range(5, 10)]
    fold = FleetFold()
    fold.warm([running, queued, *ended], {}, ONE_O_CLOCK)
    failed = job("j3", "FAILED", error_message="CUDA out of memory")
    snapshot = fold.fold(PROJECTS, [queued, failed], {}, ONE_O_CLOCK)
    assert snapshot == FleetFold().fold(PROJECTS, [queued, failed, *ended], {}, ONE_O_CLOCK)
    assert snapshot.running == 0
    fold.warm([queued, failed, *ended[1:]], {}, ONE_O_CLOCK)  # one was deleted meanwhile
    # The one that failed runs: as a server that is restored from an older state might say.
    again = fold.fold(PROJECTS, [queued, running], {}, ONE_O_CLOCK)
    assert again == FleetFold().fold(PROJECTS, [queued, running, *ended[1:]], {}, ONE_O_CLOCK)
    listed = [(row.name, row.jobs, row.running) for row in again.projects]
    assert listed == [("llama-sft", 5, 1), ("evals", 1, 0), ("quiet", 0, 0)], "the busiest first"


@pytest.mark.parametrize(
    ("of_jobs", "why_not", "preview", "shown", "of_row"),
    [
        ({}, "", UNREAD, "⋯ spent", "⋯"),
        ({}, "", NO_PREVIEW, "≈ $240 spent", "$240"),
        ({}, "", JobPreview(idle_s=1800.0, reading=True), "⋯ spent", "$180"),
        ({"runs": Billed(150.0, 300)}, "", UNREAD, "⋯ spent", "⋯"),
        ({"runs": Billed(150.0, 300)}, "", JobPreview(idle_s=1800.0), "≈ $180 spent", "$180"),
        ({}, "no right\x1b[31m", NO_PREVIEW, "≈ $240 spent · estimate: no right", "$240"),
    ],
)
def test_cost_has_one_sign_and_is_awaited_until_the_start_of_the_run_is_known(
    of_jobs: dict[str, Billed], why_not: str, preview: JobPreview, shown: str, of_row: str
) -> None:
    bill = Bill(ONE_O_CLOCK - timedelta(days=30), of_jobs, unreadable_reason=why_not)
    jobs = [job("runs", hours_ago=2.0), job("never-ran", "DEPLOY_FAILED", hours_ago=9.0, took_hours=8.0)]
    folded = FleetFold().fold([], jobs, {"runs": preview}, ONE_O_CLOCK, {"H100:8": 0.5}, bill)
    snapshot = replace(folded, is_read=not preview.reading)
    facts, _ = header_facts(
        "acme", snapshot, snapshot.jobs, marked_count=0, compare_key="c", filter_key="/", query="", project=""
    )
    assert " · ".join("".join(text for text, _ in fact) for fact in facts).endswith(shown)
    assert cell("cost", snapshot.jobs[0], snapshot) == of_row and not cell("cost", snapshot.jobs[1], snapshot)


@pytest.mark.parametrize("status", ["RUNNING", "COMPLETED"])
def test_no_cell_of_a_job_that_is_still_being_read_looks_empty(status: str) -> None:
    jobs = [job("reads", status), job("waits", "PENDING")]
    unread = FleetFold().fold([], jobs, {"reads": UNREAD}, ONE_O_CLOCK)
    half = FleetFold().fold(
        [], jobs, {"reads": JobPreview(ProgressSnapshot(loss=2.0), reading=True)}, ONE_O_CLOCK
    )
    read = FleetFold().fold(
        [], jobs, {"reads": JobPreview(log_read=True)}, ONE_O_CLOCK, bill=Bill(ONE_O_CLOCK)
    )
    for snapshot, loss, others in ((unread, "⋯", "⋯"), (half, "2.00", "⋯"), (read, "", "")):
        reads, waits = sorted(snapshot.jobs, key=lambda row: row.name)
        assert [cell(name, reads, snapshot) for name in ("loss", "note", "cost")] == [loss, others, others]
        assert not any(cell(name, waits, snapshot) for name in ("loss", "use", "cost"))


def test_what_a_problem_has_lost_is_awaited_until_its_log_is_read() -> None:
    since = ONE_O_CLOCK - timedelta(hours=1)
    idle = HealthFinding(KINDS["stalled"], "critical", "no step")
    rows = [
        FleetFold().fold([], [job("runs")], {"runs": preview}, ONE_O_CLOCK, {"H100:8": 0.5}).jobs[0]
        for preview in (
            JobPreview(findings=(idle,), reading=True),
            JobPreview(findings=(replace(idle, since=since),)),
            JobPreview(findings=(idle,)),
        )
    ]
    assert [cell("lost", row) for row in rows] == ["⋯", "−$120", ""]


def cell(column_id: str, row: JobRow, snapshot: FleetSnapshot | None = None) -> str:
    column = next(column for column in job_columns(lambda: snapshot) if column.id == column_id)
    return "".join(text for text, _ in column.cell(row)).strip()


def test_step_of_a_job_is_shown_in_one_of_its_cells() -> None:
    for total, cells in ((None, ("step 880", "")), (2000, ("44%", "880/2,000"))):
        preview = JobPreview(ProgressSnapshot(step=880, total_steps=total))
        row = job_row(job("runs"), preview, ONE_O_CLOCK)
        assert (cell("progress", row).split("  ")[-1].strip(), cell("step", row)) == cells


def test_reinforcement_learning_shows_its_reward_and_an_ended_job_its_evaluation_loss() -> None:
    at_s = ONE_O_CLOCK.timestamp()
    grpo = ProgressSnapshot(loss=0.003, metrics={"critic/rewards/mean": Series("", (at_s,), (0.77,))})
    sft = ProgressSnapshot(
        loss=0.91,
        eval_loss_series=Series("", (at_s,), (1.02,)),
        saves=(("checkpoint-1800", int(at_s * NS_PER_S)),),
    )
    previews = {"grpo": JobPreview(grpo), "sft": JobPreview(sft)}
    jobs = [job("grpo"), job("sft", "COMPLETED")]
    rows = {row.id: row for row in FleetFold().fold(PROJECTS, jobs, previews, ONE_O_CLOCK).jobs}

    assert cell("loss", rows["grpo"]) == "rew 0.770" and cell("loss", rows["sft"]) == "0.910"
    assert cell("note", rows["sft"]) == "eval 1.02 · checkpoint-1800"


def test_best_evaluation_of_an_ended_job_is_shown_once_its_whole_log_is_read() -> None:
    evaluations = Series("", (1.0, 2.0, 3.0), (1.4, 0.98, nan))
    sft = ProgressSnapshot(loss=0.91, eval_loss_series=evaluations)
    for is_read, note in ((False, "eval 0.980"), (True, "best eval 0.980")):
        row = job_row(job("sft", "COMPLETED"), JobPreview(sft, log_read=is_read), ONE_O_CLOCK)
        assert row.saved == note
    worse = JobPreview(replace(sft, eval_loss_series=Series("", (1.0, 2.0), (0.98, 1.4))), log_read=True)
    assert job_row(job("sft", "COMPLETED"), worse, ONE_O_CLOCK).saved == "best eval 0.980"


@pytest.mark.parametrize(
    ("message", "short"),
    [
        ("node-0: exit code 137 (killed by SIGKILL)", "killed by SIGKILL, exit code 137 on node-0"),
        ("node-3: exit code 1", "exit code 1 on node-3"),
        ("node-1: exit code 1: torch.OutOfMemoryError: CUDA out of memory", "CUDA out of memory, exit 1"),
        ("node-0: exit code 137 (out of memory)", "out of memory, exit 137"),
        ("Failed to pull image", "Failed to pull image"),
    ],
)
def test_end_of_a_job_is_shortened_to_its_reason_first(message: str, short: str) -> None:
    assert short_reason(message) == short
