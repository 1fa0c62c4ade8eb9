"""The curves of rewards, KL and whatever else a trainer prints with a name."""

from __future__ import annotations

import math
import pickle
import random

import pytest

from api_client.models.logs import LogLine
from tui.analysis.progress.fold import MAX_CURVES, MAX_METRICS, ProgressFold
from tui.analysis.progress.lines.custom import ProgressPattern
from tui.analysis.progress.metrics import headline_metrics
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


RUNS: dict[str, tuple[list[str], dict[str, tuple[float, ...]]]] = {
    "GRPO": (
        [GRPO.format(reward=0.1 * n, epoch=0.01 * n) for n in (1, 2)],
        {"completions/mean_length": (212.4, 212.4), "kl": (3.1e-4, 3.1e-4), "reward": (0.1, 0.2),
         "rewards/accuracy_reward/mean": (0.43, 0.43)}),
    "a table": (
        ["epoch  train_loss  valid_loss  accuracy  time", "0  0.62  0.58  0.71  00:12"], {"accuracy": (0.71,)}),
    "no progress": (["the reward: 0.5", "step 3 of the plan: reward = 4", "curl: (7) port=443"], {}),
    "ranks that print the same": (
        [*(f"[rank{rank}]: step {step}/9 loss: 2.0 kl: 0.{rank}" for step in (1, 2) for rank in (0, 1)),
         *(f"[rank1]: step {step}/9 lr: 1 kl: 0.1" for step in (3, 4)), "[rank0]: step 3/9 loss: 2.0"],
        {"kl": (0.0, 0.0)}),
    "another rank": (["[rank0]: step 1/9 loss: 2.0", "[rank1]: step 1/9 loss: 2.0 kl: 0.5"], {"kl": (0.5,)}),
}  # fmt: skip


@pytest.mark.parametrize("run", RUNS)
def test_named_numbers_of_a_run_are_curves(run: str) -> None:
    lines, metrics = RUNS[run]
    assert values(fold(*lines)) == metrics


def test_metrics_keep_their_names_times_and_steps() -> None:
    progress = fold(*(VERL.format(step=step) for step in (3, 7)))
    assert list(progress.metrics) == ["critic/score/mean", "response_length/mean"]
    curve = progress.metrics["critic/score/mean"]
    assert curve.times == (START_S, START_S + 1)
    assert over_steps(curve, progress).times == (3, 7)


@pytest.mark.parametrize(
    ("line", "metrics"),
    [
        ("step {} | loss 2.0 | acc 0.5 | kl=nan", {"acc": 0.5, "kl": math.nan}),
        ("step {}/9: loss=2.0, acc (%): 51, {} of them", {"acc": 51}),
        ("Epoch {}/9, train: loss 2.0 acc: 0.5, val: loss 1.9 acc: 0.4", {"acc": 0.5, "eval/acc": 0.4}),
        ("iteration {}/9 | lm loss: 2.0 | number of nan iterations: 0 |", {}),
        ("INFO:train.py:77: step {}: loss=2.0, step_{}/9", {}),
        ("step {}/9, loss 2.0, checkpoint 3/4, memory 12:30", {}),
        ("epoch 1 | train.py:77 | step {}/9 loss: 2.0", {}),
        ("epoch 1, Steps: {}%|███   | {}/9 [00:10<00:12, 1.0it/s, loss=2.0]", {}),
        ("At step {} we measured, with a temperature: 7 as it was, loss: 2.0 and more of it all", {}),
        ("[pid: 4711] step {}/9 loss: 2.0", {}),
        ("Steps: {}%|███   | {}/9 [00:10<00:12, 1.0it/s, loss=2.0, reward=0.5]", {"reward": 0.5}),
        ('{{"kl": 0.5, "step": {}, "loss": 2.0, "name": "7"}}', {"kl": 0.5, "name": 7}),
    ],
)
def test_numbers_with_names_are_metrics(line: str, metrics: dict[str, float]) -> None:
    progress = fold(*(line.format(step, step) for step in range(1, 6)))
    assert progress.loss == 2.0
    assert {name: series.values[-1] for name, series in progress.metrics.items()} == pytest.approx(
        metrics, nan_ok=True
    )


def test_any_group_of_a_pattern_is_a_metric() -> None:
    pattern = ProgressPattern("mine", r"it (?P<step>\d+): R (?P<reward>\S+)")
    folding = ProgressFold(patterns=[pattern])
    folding.add(LogLine((START_S + n) * 10**9, f"it {n}: R {n / 2}", "node-0", None) for n in (1, 2))
    folding.add([LogLine((START_S + 9) * 10**9, "it 3: R none", "node-0", None)])
    assert folding.snapshot().step == 3
    assert values(folding.snapshot()) == {"reward": (0.5, 1.0)}
    alone = ProgressFold(patterns=[ProgressPattern("mine", r"return (?P<reward>\S+)")])
    alone.add([LogLine(START_S * 10**9, "return 0.5", "node-0", None)])
    assert values(alone.snapshot()) == {"reward": (0.5,)}


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
    names = [f"m{_letters(number)}" for number in range(MAX_METRICS + 1)]
    pattern = ProgressPattern("mine", "".join(rf"(?P<{name}>\S+) " for name in names))
    folding = ProgressFold(max_points=10_000, patterns=[pattern])
    values = "1 " * len(names)
    folding.add(
        LogLine((START_S + at) * 10**9, values, f"node-{node}", None)
        for at in range(300)
        for node in range(8)
    )
    progress = folding.snapshot()
    assert progress.refused_metrics == 1
    assert len(progress.metrics) == MAX_METRICS
    assert {len(series) for series in progress.metrics.values()} <= set(range(64, 201))


def test_fold_with_metrics_survives_a_copy() -> None:
    folding = ProgressFold()
    folding.add([LogLine(START_S * 10**9, VERL.format(step=1), "node-0", None)])
    copy = pickle.loads(pickle.dumps(folding))
    assert copy.snapshot() == folding.snapshot()
    assert copy.snapshot().metrics


@pytest.mark.parametrize(
    ("names", "headlines"),
    [
        (["loss_scale", "kl", "completions/mean_length"], []),
        (["reward_std", "reward", "rewards/accuracy/mean", "kl", "completions/mean_length"],
         ["reward", "kl", "completions/mean_length"]),
        (["critic/score/mean", "critic/rewards/mean", "critic/rewards/max", "actor/kl_coef", "actor/kl_loss"],
         ["critic/rewards/mean", "actor/kl_loss"]),
        (["rewards/margins", "rewards/chosen", "rewards/accuracies"], []),
        (["rollout/ep_rew_mean", "rollout/ep_len_mean"], ["rollout/ep_rew_mean"]),
        (["reward", "total_length", "response_length"], ["reward", "response_length"]),
        (["Mean reward", "Mean episode length"], ["Mean reward"]),
    ],
)  # fmt: skip
def test_headlines_of_reinforcement_learning_are_whole_values(names: list[str], headlines: list[str]) -> None:
    assert headline_metrics(names) == headlines
