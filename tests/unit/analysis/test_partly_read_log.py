"""Values at a step are those of the whole log, or unknown, whatever part of it has been read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest
from hypothesis import given, settings, strategies as st

from api_client.models import Checkpoint
from api_client.models.logs import LogEntry, LogGap, LogLine
from support.worlds import run
from tui.analysis.checkpoints.facts import CheckpointFacts, facts_of_run
from tui.analysis.comparison import ComparedRun, comparison_rows
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.progress.snapshot import over_steps
from tui.analysis.run.checkpoints import KeptLosses

BEGIN = datetime(2026, 3, 1, 12, tzinfo=UTC)
STEPS = tuple(range(10, 610, 10))
RESTARTED = (*range(10, 410, 10), *range(210, 610, 10))


def line(second: float, message: str) -> LogLine:
    return LogLine(int((BEGIN.timestamp() + second) * 1e9), message, "node-0", None)


def loss_at(number: int, step: int) -> float:
    return round(3 - step / 300 + number % 7 / 100, 4)


def bars(steps: Sequence[int]) -> list[LogLine]:
    """Return the lines of a trainer whose losses name no step, evaluations among them."""
    lines = []
    for number, step in enumerate(steps):
        lines.append(line(10 * number, f" 46%|####5     | {step}/900 [6:10:38<7:17:27,  5.39s/it]"))
        lines.append(line(10 * number + 3, f"{{'loss': {loss_at(number, step)}, 'grad_norm': 0.71}}"))
        if step % 100 == 0:
            lines.append(line(10 * number + 4, f"{{'eval_loss': {loss_at(number, step) + 1:.4f}}}"))
    return lines


def named(steps: Sequence[int]) -> list[LogLine]:
    texts = (f"step {step}/900 loss {loss_at(number, step)}" for number, step in enumerate(steps))
    return [line(10 * number, text) for number, text in enumerate(texts)]


def numbered(steps: Sequence[int]) -> list[LogLine]:
    texts = (f"{{'loss': {loss_at(number, step)}, 'grad_norm': 0.71}}" for number, step in enumerate(steps))
    return [line(10 * number, text) for number, text in enumerate(texts)]


def epochs(steps: Sequence[int]) -> list[LogLine]:
    """Return the lines of a trainer that counts the steps of each epoch from one."""
    lines = []
    for number, step in enumerate(steps):
        epoch, in_epoch = divmod(step - 1, 200)
        if in_epoch < 10:
            lines.append(line(10 * number, f"Epoch {epoch + 1}/3"))
        bar = f"{in_epoch + 1}/200 ━━━━━━━━━━ 12s 290ms/step - loss: {loss_at(number, step)}"
        lines.append(line(10 * number + 1, bar))
    return lines


def facts(
    entries: Sequence[LogEntry], *, whole: bool, checkpoints: Sequence[int] = range(50, 650, 50)
) -> list[CheckpointFacts]:
    fold = ProgressFold()
    fold.add(entries)
    listed = tuple(
        Checkpoint(checkpoint_id=f"checkpoint-{step}", created_at=BEGIN + timedelta(seconds=step))
        for step in checkpoints
    )
    return facts_of_run(
        run(checkpoints=listed, progress=fold.snapshot(), log_read=whole, kept_losses=KeptLosses(), faults={})
    )


@cache
def whole_facts(
    lines_of: Callable[[Sequence[int]], list[LogLine]], steps: Sequence[int]
) -> list[CheckpointFacts]:
    return facts(lines_of(steps), whole=True)


def losses(found: Sequence[CheckpointFacts]) -> dict[int | None, tuple[float | None, float | None]]:
    return {one.step: (one.loss and one.loss.value, one.evaluation and one.evaluation.value) for one in found}


def assert_right_or_silent(part: Sequence[CheckpointFacts], whole: Sequence[CheckpointFacts]) -> None:
    wrong = {
        known.step: (seen, true)
        for known, complete in zip(part, whole, strict=True)
        for seen, true in ((known.loss, complete.loss), (known.evaluation, complete.evaluation))
        if seen is not None and seen != true
    }
    assert wrong == {}, wrong
    best = [one.name for one in part if one.is_best]
    assert best in ([], [one.name for one in whole if one.is_best])


def newest(lines: list[LogLine], first: int, count: int) -> tuple[list[LogEntry], bool]:
    return [*lines[-(first + 1) :]], False


def oldest(lines: list[LogLine], first: int, count: int) -> tuple[list[LogEntry], bool]:
    return [*lines[: first + 1]], False


def around_gap(lines: list[LogLine], first: int, count: int) -> tuple[list[LogEntry], bool]:
    lost = lines[first : first + count]
    gap = LogGap(lost[0].timestamp_ns, lost[-1].timestamp_ns + 1, "not found")
    return [*lines[:first], gap, *lines[first + count :]], True


@pytest.mark.parametrize(
    ("part_of", "steps"),
    [(newest, STEPS), (newest, RESTARTED), (oldest, STEPS), (around_gap, STEPS)],
    ids=["newest", "newest of a restarted run", "oldest", "around a gap"],
)
@pytest.mark.parametrize("lines_of", [bars, named, numbered, epochs])
@settings(max_examples=10)
@given(st.integers(0, 10_000), st.integers(1, 40))
def test_loss_of_a_checkpoint_is_right_or_unknown(
    lines_of: Callable[[Sequence[int]], list[LogLine]],
    part_of: Callable[[list[LogLine], int, int], tuple[list[LogEntry], bool]],
    steps: Sequence[int],
    first: int,
    count: int,
) -> None:
    lines = lines_of(steps)
    entries, whole = part_of(lines, first % len(lines), count)
    assert_right_or_silent(facts(entries, whole=whole), whole_facts(lines_of, steps))


def test_losses_appear_as_the_log_is_read_back() -> None:
    lines = bars(STEPS)
    tail = losses(facts(lines[-60:], whole=False))
    whole = losses(facts(lines, whole=True))
    assert tail[50] == tail[300] == (None, None)
    assert tail[500] == whole[500] and tail[550] == whole[550] and tail[500][0] is not None
    assert all(loss is not None for loss, _ in whole.values())


def test_first_checkpoint_has_no_loss_of_the_tail_before_a_step_is_read() -> None:
    tail = [one for one in bars(STEPS)[-4:] if "loss" in one.message]
    assert losses(facts(tail, whole=False))[50] == (None, None)


def test_loss_is_known_once_its_gap_has_been_filled() -> None:
    lines = named(STEPS)
    gap = LogGap(lines[25].timestamp_ns, lines[35].timestamp_ns, "not found")
    fold = ProgressFold()
    fold.add([*lines[:25], gap, *lines[35:]])
    assert fold.snapshot().gaps == ((gap.start_ns / 1e9, gap.end_ns / 1e9),)
    fold.forget(gap)
    fold.add(lines[25:35])
    whole = ProgressFold()
    whole.add(lines)
    assert fold.snapshot() == whole.snapshot()


def test_best_checkpoint_is_unknown_while_a_lower_loss_may_be_in_a_gap() -> None:
    lines = named(STEPS)
    gap = LogGap(lines[15].timestamp_ns, lines[25].timestamp_ns, "not found")
    assert [one.name for one in facts(lines, whole=True) if one.is_best] == ["checkpoint-600"]
    assert not any(one.is_best for one in facts([*lines[:15], gap, *lines[25:]], whole=True))


def test_no_loss_is_known_if_the_run_restarted_in_a_gap() -> None:
    entries, whole = around_gap(named(RESTARTED), first=35, count=7)
    assert {loss for loss, _ in losses(facts(entries, whole=whole)).values()} == {None}


def test_losses_that_the_trainer_kept_stand_in_for_those_not_read() -> None:
    checkpoints = tuple(
        Checkpoint(checkpoint_id=f"checkpoint-{step}", created_at=BEGIN) for step in (100, 500)
    )
    fold = ProgressFold()
    fold.add(bars(STEPS)[-30:])
    kept = KeptLosses(training=((90, 2.5), (100, 2.4), (490, 1.9)))
    found = facts_of_run(
        run(checkpoints=checkpoints, progress=fold.snapshot(), kept_losses=kept, log_read=False)
    )
    assert [one.loss and one.loss.at_step for one in found] == [100, 500]


def test_values_before_the_first_step_read_are_at_no_step() -> None:
    fold = ProgressFold()
    fold.add(bars(STEPS)[-29:])  # begins with a loss
    progress = fold.snapshot()
    assert min(over_steps(progress.loss_series, progress, whole=False).times) > 400
    assert min(over_steps(progress.loss_series, progress).times) == 0


def test_comparison_claims_no_best_loss_across_a_gap() -> None:
    lines = named(STEPS)
    gap = LogGap(lines[25].timestamp_ns, lines[35].timestamp_ns, "not found")

    def compared(entries: Sequence[LogEntry]) -> dict[str, object]:
        fold = ProgressFold()
        fold.add(entries)
        shown = run(progress=fold.snapshot())
        rows = comparison_rows([ComparedRun(shown.job, "read", shown)])
        return {row.id: row.values[0] for row in rows}

    assert {"best_loss", "best_loss_step"} <= compared(lines).keys()
    assert not {"best_loss", "best_loss_step"} & compared([*lines[:25], gap, *lines[35:]]).keys()
