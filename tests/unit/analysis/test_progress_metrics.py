"""The curves of rewards, KL and whatever else a trainer prints with a name."""

from __future__ import annotations

import math
import pickle
import random

import pytest

from api_client.models.logs import LogLine
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.progress.lines.custom import ProgressPattern
from tui.analysis.progress.metrics import MAX_CURVES, MAX_METRICS, MetricCurves
from tui.analysis.progress.snapshot import ProgressSnapshot, over_steps

START_S = 1_700_000_000

GRPO = (
    "{{'loss': '0.0012', 'grad_norm': '0.13', 'completions/mean_length': '212.4', 'reward': '{reward}',"
    " 'rewards/accuracy_reward/mean': '0.43', 'kl': '3.1e-04', 'epoch': '{epoch}'}}"
)
VERL = (
    "(TaskRunner pid=16292) step:{step} - actor/pg_loss:0.002 - actor/lr:0.000 - critic/score/mean:0.5"
    " - response_length/mean:322.117 - perf/throughput:1424.1"
)


def fold(*messages: str, replica: str = "node-0", **options: int) -> ProgressSnapshot:
    folding = ProgressFold(**options)
    folding.add(
        LogLine((START_S + at) * 10**9, message, replica, None) for at, message in enumerate(messages)
    )
    return folding.snapshot()


def values(progress: ProgressSnapshot) -> dict[str, tuple[float, ...]]:
    return {name: series.values for name, series in progress.metrics.items()}


def test_metrics_of_a_grpo_run_are_curves() -> None:
    progress = fold(*(GRPO.format(reward=0.1 * n, epoch=0.01 * n) for n in (1, 2)))
    assert values(progress) == {
        "completions/mean_length": (212.4, 212.4),
        "kl": (3.1e-4, 3.1e-4),
        "reward": (0.1, 0.2),
        "rewards/accuracy_reward/mean": (0.43, 0.43),
    }
    assert progress.metrics["reward"].times == (START_S, START_S + 1)


def test_metrics_of_verl_keep_their_names_and_steps() -> None:
    progress = fold(*(VERL.format(step=step) for step in (3, 7)))
    assert list(progress.metrics) == ["critic/score/mean", "response_length/mean"]
    assert over_steps(progress.metrics["critic/score/mean"], progress).times == (3, 7)


@pytest.mark.parametrize(
    ("line", "metrics"),
    [
        ("step {} | loss 2.0 | acc 0.5 | kl=nan", {"acc": 0.5, "kl": math.nan}),
        ("step {}/9: loss=2.0, acc (%): 51, {} of them", {"acc": 51}),
        ("Epoch {}/9, train: loss 2.0 acc: 0.5, val: loss 1.9 acc: 0.4", {"acc": 0.5, "eval/acc": 0.4}),
        ("iteration {}/9 | lm loss: 2.0 | number of nan iterations: 0 |", {}),
        ("INFO:train.py:77: step {}: loss=2.0, step_{}/9", {}),
        ("step {}/9, loss 2.0, checkpoint 3/4, memory 12:30", {}),
        ("[pid: 4711] step {}/9 loss: 2.0", {}),
        ("Steps: {}%|███   | {}/9 [00:10<00:12, 1.0it/s, loss=2.0, reward=0.5]", {"reward": 0.5}),
        ('{{"kl": 0.5, "step": {}, "loss": 2.0, "name": "7"}}', {"kl": 0.5, "name": 7}),
    ],
)
def test_numbers_with_names_are_metrics(line: str, metrics: dict[str, float]) -> None:
    progress = fold(*(line.format(step, step) for step in (1, 2)))
    assert progress.loss == 2.0
    assert {name: series.values[-1] for name, series in progress.metrics.items()} == pytest.approx(
        metrics, nan_ok=True
    )


def test_metrics_of_a_table_are_curves() -> None:
    progress = fold("epoch  train_loss  valid_loss  accuracy  time", "0  0.62  0.58  0.71  00:12")
    assert values(progress) == {"accuracy": (0.71,)}


def test_metrics_of_lines_that_are_no_progress_are_not_believed() -> None:
    assert values(fold("the reward: 0.5", "step 3 of the plan: reward = 4", "curl: (7) port=443")) == {}


def test_any_group_of_a_pattern_is_a_metric() -> None:
    pattern = ProgressPattern("mine", r"it (?P<step>\d+): R (?P<reward>\S+)")
    folding = ProgressFold(patterns=[pattern])
    folding.add(LogLine((START_S + n) * 10**9, f"it {n}: R {n / 2}", "node-0", None) for n in (1, 2))
    folding.add([LogLine((START_S + 9) * 10**9, "it 3: R none", "node-0", None)])
    assert folding.snapshot().step == 3
    assert values(folding.snapshot()) == {"reward": (0.5, 1.0)}


def test_ranks_that_print_the_same_give_one_curve() -> None:
    lines = [f"[rank{rank}]: step {step}/9 loss: 2.0 kl: 0.{rank}" for step in (1, 2) for rank in (0, 1)]
    progress = fold(*lines)
    assert progress.stream == "node-0[0]"
    assert values(progress) == {"kl": (0.0, 0.0)}


def test_metric_that_another_rank_prints_is_shown() -> None:
    progress = fold("[rank0]: step 1/9 loss: 2.0", "[rank1]: step 1/9 loss: 2.0 kl: 0.5")
    assert progress.stream == "node-0[0]"
    assert values(progress) == {"kl": (0.5,)}


def test_first_names_are_kept_if_there_are_too_many() -> None:
    progress = fold(*(f"step {n}/3000 loss: 2.0 m{'x' * (n % 7)}{_letters(n)}: 1" for n in range(3_000)))
    assert len(progress.metrics) == MAX_METRICS
    assert f"m{_letters(0)}" in progress.metrics
    assert progress.refused_metrics == MAX_CURVES


def _letters(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def test_thinned_metric_keeps_its_extremes() -> None:
    rewards = [random.Random(7).gauss(0, 1) for _ in range(5_000)]
    rewards[1_000], rewards[2_000] = 50.0, -50.0
    progress = fold(
        *(f"step {n}/5000 loss: 2.0 kl: {value}" for n, value in enumerate(rewards)), max_points=500
    )
    kept = progress.metrics["kl"].values
    assert len(kept) <= 500
    assert (max(kept), min(kept)) == (50.0, -50.0)


def test_curves_of_all_streams_share_their_space() -> None:
    curves = MetricCurves(20_000, max_total_points=100_000)
    names = [f"m{number}" for number in range(MAX_METRICS + 1)]
    for at in range(300):
        for rank in range(8):
            curves.add(("node-0", rank), float(at), [(name, float(at)) for name in names])
    assert curves.refused_count == 1
    assert {len(series) for series in curves.shown(("node-0", 3)).values()} <= set(range(100, 201))


def test_fold_with_metrics_survives_a_copy() -> None:
    folding = ProgressFold()
    folding.add([LogLine(START_S * 10**9, VERL.format(step=1), "node-0", None)])
    copy = pickle.loads(pickle.dumps(folding))
    assert copy.snapshot() == folding.snapshot()
    assert copy.snapshot().metrics
