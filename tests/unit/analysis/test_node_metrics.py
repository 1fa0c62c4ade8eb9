import math

import pytest
from metrics_payloads import START_S, node_series, payload, samples

from api_client.models.metrics import JobMetrics
from tui.analysis.node_metrics import MetricsFold, MetricsSnapshot

MINUTE = range(0, 60, 5)
TEN_MINUTES = range(0, 600, 5)


def fold(*answers: JobMetrics) -> MetricsSnapshot:
    folding = MetricsFold()
    for answer in answers:
        folding.fold(answer)
    return folding.snapshot


def test_nodes_and_gpus_stand_in_natural_order():
    series = node_series(MINUTE, gpus=12)
    snapshot = fold(payload(dict.fromkeys(("node-10", "node-2", "node-0"), series)))
    assert [node.name for node in snapshot.nodes] == ["node-0", "node-2", "node-10"]
    assert snapshot.nodes[0].gpus == tuple(str(gpu) for gpu in range(12))
    assert snapshot.node("node-2") is snapshot.nodes[1]
    assert snapshot.node("node-3") is None


def test_an_answer_without_nodes_shows_the_leader_until_nodes_are_named():
    leader_only = JobMetrics.model_validate(node_series(MINUTE))
    folding = MetricsFold()
    assert [node.name for node in folding.fold(leader_only).nodes] == ["leader"]
    named = payload({"node-0": node_series(MINUTE), "node-1": node_series(MINUTE)})
    assert [node.name for node in folding.fold(named).nodes] == ["node-0", "node-1"]
    # An answer for a stretch in which nothing was sampled by node does not bring the leader back.
    assert [node.name for node in folding.fold(leader_only).nodes] == ["node-0", "node-1"]


def test_series_that_are_null_or_missing_are_empty():
    answer = JobMetrics.model_validate(
        {
            "gpu_utilization": None,
            "gpu_memory_usage_bytes": {"0": None},
            "cpu_usage": samples(MINUTE, 1.0),
            "ephemeral_storage": None,
            "cache": None,
            "per_node_metrics": None,
        }
    )
    (node,) = fold(answer).nodes
    assert node.gpus == ("0",)
    assert node.gpu_utilization_now == (None,)
    assert node.mean_utilization_now is None
    assert node.cpu_now == 1.0
    assert len(node.disk_usage) == 0


def test_a_null_value_is_a_gap():
    (node,) = fold(payload({"node-0": node_series(MINUTE, lambda time: None if time == 55 else 0.5)})).nodes
    assert math.isnan(node.gpu_utilization[0].values[-1])
    assert node.gpu_utilization_now == (None, None)


def test_overlapping_and_unordered_answers_give_the_same_as_one():
    level = lambda time: time / 1000  # noqa: E731
    whole = fold(payload({"node-0": node_series(TEN_MINUTES, level)}))
    parts = [
        payload({"node-0": node_series(range(start, start + 120, 5), level)})
        for start in (300, 0, 60, 480, 180, 240, 390)
    ]
    assert fold(*parts) == whole


def test_a_node_that_vanished_keeps_its_history_and_says_nothing_about_now():
    folding = MetricsFold()
    both = {"node-0": node_series(MINUTE), "node-1": node_series(MINUTE)}
    assert folding.fold(payload(both)).nodes[1].mean_utilization_now is not None
    gone = folding.fold(payload({"node-0": node_series(TEN_MINUTES)})).nodes[1]
    assert gone.mean_utilization_now is None
    assert gone.gpu_memory_now == (None, None)
    assert len(gone.mean_utilization) == 12


def test_a_gpu_that_appears_later_joins_the_mean():
    folding = MetricsFold()
    folding.fold(payload({"node-0": node_series(MINUTE, 0.4, gpus=1)}))
    more = node_series(range(60, 120, 5), 0.4, gpus=1)
    more["gpu_utilization"]["1"] = samples(range(60, 120, 5), 0.8)
    (node,) = folding.fold(payload({"node-0": more})).nodes
    assert node.gpus == ("0", "1")
    assert node.mean_utilization.values[0] == 0.4
    assert node.mean_utilization.values[-1] == pytest.approx(0.6)


@pytest.mark.parametrize(("thins", "lowest"), [(False, 0.1), (True, 0.9)])
def test_a_server_that_ignores_the_distance_asked_for_hides_no_history(thins, lowest):
    def use(at: float) -> float | None:
        return None if 6000 <= at < 6300 else 0.1 if at == 9000 else 0.9

    hours, step_s = 3 * 3600, 45.0
    folding = MetricsFold(max_points=400, thins=thins)
    folding.fold(payload({"node-0": node_series(range(0, hours, 4), use)}), step_s)
    for newest in range(hours, hours + 120, 20):
        folding.fold(payload({"node-0": node_series(range(newest - 120, newest, 4), use)}), step_s)
    series = folding.snapshot.nodes[0].gpu_utilization[0]
    assert series.times[0] - START_S < 2 * step_s
    known = [value for value in series.values if value == value]
    assert min(known) == pytest.approx(lowest, abs=0.001)
    gap = [t - START_S for t, value in zip(series.times, series.values, strict=True) if value != value]
    assert gap and all(6000 - 2 * step_s <= at < 6300 + 2 * step_s for at in gap)
    assert folding.snapshot.at is not None and folding.snapshot.at <= START_S + hours + 99
    assert list(series.times) == sorted(set(series.times))


def test_samples_as_far_apart_as_asked_for_are_all_kept_though_they_come_twice():
    times = [at for at in range(0, 6000, 60) for _ in range(2)]
    folding = MetricsFold()
    folding.fold(payload({"node-0": node_series(times, lambda at: at / 6000)}), 60.0)
    assert len(folding.snapshot.nodes[0].gpu_utilization[0]) == 100
