"""Which checkpoints were written while the loss was broken, and which are the best of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from api_client.models import Checkpoint, TrainingJob
from api_client.models.logs import LogLine
from support.log_server import FastClock
from tui.analysis.checkpoints.facts import CheckpointFacts, facts_of_run
from tui.analysis.health.checkpoint_faults import checkpoint_faults
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.run.checkpoints import KeptLosses
from tui.analysis.run.snapshot import RunSnapshot
from tui.readers.watcher import RunWatcher

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(hours=10)
JOB = TrainingJob.model_validate({"id": "j", "current_status": "TRAINING_JOB_RUNNING"})
STEP_S = 10.0
Loss = Callable[[int], float | str]


def steady(step: int) -> float:
    return 2.0 - step / 2000 + 0.01 * (step % 3)


def nan_from(first: int, until: int = 10**9) -> Loss:
    return lambda step: "nan" if first <= step < until else steady(step)


def exploding_from(first: int, until: int = 10**9) -> Loss:
    return lambda step: 40.0 + step % 3 if first <= step < until else steady(step)


def lines(loss: Loss, steps: range, begin_s: float = 0.0) -> list[tuple[float, str]]:
    texts = (f"step={step}/1000 loss={loss(step)} grad_norm=0.5" for step in steps)
    return [(begin_s + STEP_S * place, text) for place, text in enumerate(texts)]


def saved(step: int, at_s: float | None = None, **more: object) -> Checkpoint:
    at_s = STEP_S * step + 25 if at_s is None else at_s
    fields = {"checkpoint_id": f"checkpoint-{step}", "created_at": NOON + timedelta(seconds=at_s)}
    return Checkpoint.model_validate(fields | more)


def facts(
    log: list[tuple[float, str]], checkpoints: Sequence[Checkpoint], kept: KeptLosses | None = None
) -> tuple[CheckpointFacts, ...]:
    folding = ProgressFold()
    start_ns = int(NOON.timestamp() * 1e9)
    folding.add(LogLine(start_ns + int(at_s * 1e9), text, "node-0", None) for at_s, text in log)
    run = RunSnapshot(JOB, LATER, LATER, checkpoints=tuple(checkpoints), log_read=True)
    run = replace(run, progress=folding.snapshot(), kept_losses=kept or KeptLosses())
    return facts_of_run(replace(run, faults=checkpoint_faults(run)))


def steps_of(found: Iterable[CheckpointFacts]) -> str:
    return " ".join(one.name.removeprefix("checkpoint-") for one in found)


def diverging(step: int) -> float:
    return steady(step) if step < 200 else 1.9 + (step - 200) / 100


FOUR = [saved(step) for step in (100, 200, 300, 400)]
ALL = range(450)
AGAIN_S = STEP_S * 350 + 300
BROKEN = lines(nan_from(250), ALL)
RESTARTED = lines(steady, range(201, 450), AGAIN_S)
AGAIN = [*lines(nan_from(250), range(350)), *RESTARTED]
UNNAMED = [saved(0, 1000, checkpoint_id="first"), saved(0, 3000, checkpoint_id="final")]
JUDGED: dict[str, tuple[list[tuple[float, str]], list[Checkpoint], str, str]] = {
    "nan": (BROKEN, FOUR, "300 400", "200"),
    "listed after the loss broke, written before": (
        lines(nan_from(250), range(300)), [saved(100), saved(200, STEP_S * 290)], "", "200"),
    "first readings": (lines(exploding_from(199), range(260)), FOUR[:2], "200", "100"),
    "a single nan": (lines(nan_from(200, 201), ALL), FOUR, "200", "400"),
    "restarted, written again": (AGAIN, [*FOUR[:2], saved(300, AGAIN_S + STEP_S * 99 + 25)], "", "300"),
    "restarted, abandoned": (AGAIN, FOUR[:3], "300", "200"),
    "restarted after an explosion": (
        [*lines(exploding_from(250), range(350)), *RESTARTED], FOUR[:3], "300", "200"),
    "an explosion that passes": (lines(exploding_from(199, 215), ALL), FOUR, "200", "400"),
    "no step in the name": (BROKEN, UNNAMED, "final", ""),
    "still uploading": (lines(steady, ALL), [*FOUR[:3], saved(400, sync_status="SYNCING")], "", "300"),
    "a slow divergence": (lines(diverging, range(330)), [saved(100), saved(260)], "260", "100"),
    "of a policy": ([(at_s, f"{text} reward=0.5") for at_s, text in lines(steady, ALL)], FOUR, "", ""),
    "below zero": (lines(lambda step: steady(step) - 2, ALL), FOUR, "", ""),
    "one that is not seen so far": (lines(diverging, range(262)), [saved(100), saved(260)], "", "100"),
}  # fmt: skip


@pytest.mark.parametrize("name", JUDGED)
@pytest.mark.proves("docs/health.md", "Checkpoints after a bad loss")
def test_which_checkpoints_are_faulty_and_which_is_the_best(name: str) -> None:
    log, checkpoints, faulty, best = JUDGED[name]
    found = facts(log, checkpoints)
    assert steps_of(one for one in found if one.fault is not None) == faulty
    assert steps_of(one for one in found if one.is_best) == best


def test_a_checkpoint_without_a_loss_near_it_is_not_judged() -> None:
    assert steps_of(one for one in facts(lines(steady, range(150)), FOUR) if one.is_checked) == "100 200"


def test_losses_that_were_kept_by_the_trainer_go_first_and_faulty_ones_are_left_out() -> None:
    kept = KeptLosses(evaluation=((100, 1.9), (200, 1.6), (300, 1.2), (400, 1.1)))
    (best,) = (one for one in facts(lines(nan_from(350), ALL), FOUR, kept) if one.is_best)
    assert best.score is not None and best.score.words == "eval loss 1.20 at step 300"


async def test_checkpoints_are_checked_again_only_after_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[RunSnapshot] = []

    def check(run: RunSnapshot, *rules: Any) -> object:
        checked.append(run)
        return checkpoint_faults(run, *rules)

    monkeypatch.setattr("tui.readers.watcher.checkpoint_faults", check)
    client: Any = SimpleNamespace(clock=FastClock(begin_s=LATER.timestamp()))
    watcher = RunWatcher(client, JOB)
    start_ns = int(NOON.timestamp() * 1e9)
    watcher.progress.add(LogLine(start_ns + int(at_s * 1e9), text, "node-0", None) for at_s, text in BROKEN)
    watcher.update(checkpoints=tuple(FOUR), log_read=True)
    for _ in range(2):
        await watcher.check_checkpoints()
    assert len(checked) == 1
    watcher.change(checkpoints=tuple(FOUR[:2]))
    await watcher.check_checkpoints()
    assert len(checked) == 2
