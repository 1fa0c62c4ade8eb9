import math

import pytest
from metrics_payloads import START_S, payload, samples, series

from api_client.models.metrics import JobMetrics
from tui.analysis.node_metrics import MetricsFold, MetricsSnapshot, metrics_until

MINUTE = range(0, 60, 5)
TEN_MINUTES = range(0, 600, 5)


def fold(*answers: JobMetrics) -> MetricsSnapshot:
    folding = MetricsFold()
    for answer in answers:
        folding.fold(answer)
    return folding.snapshot


def names(snapshot: MetricsSnapshot) -> list[str]:
    return [node.name for node in snapshot.nodes]


def test_nodes_and_gpus_stand_in_natural_order():
    snapshot = fold(payload(dict.fromkeys(("node-10", "node-2", "node-0"), series(MINUTE, gpus=12))))
    assert names(snapshot) == ["node-0", "node-2", "node-10"]
    assert snapshot.nodes[0].gpus == tuple(str(gpu) for gpu in range(12))


def test_an_answer_without_nodes_shows_the_leader_until_nodes_are_named():
    leader_only = JobMetrics.model_validate(series(MINUTE))
    named = payload({"node-0": series(MINUTE), "node-1": series(MINUTE)})
    assert names(fold(leader_only)) == ["leader"]
    # An answer for a stretch in which nothing was sampled by node does not bring the leader back.
    assert names(fold(leader_only, named)) == names(fold(named, leader_only)) == ["node-0", "node-1"]


def test_series_that_are_null_or_missing_are_empty_and_a_null_value_is_a_gap():
    empty = ("gpu_utilization", "ephemeral_storage", "cache", "per_node_metrics")
    known = {"gpu_memory_usage_bytes": {"0": None}, "cpu_usage": samples(MINUTE, 1.0)}
    (node,) = fold(JobMetrics.model_validate(dict.fromkeys(empty) | known)).nodes
    assert (node.gpus, node.gpu_utilization_now, node.mean_utilization_now) == (("0",), (None,), None)
    assert (node.cpu_now, len(node.disk_usage)) == (1.0, 0)
    (node,) = fold(payload({"node-0": series(MINUTE, lambda time: None if time == 55 else 0.5)})).nodes
    assert math.isnan(node.gpu_utilization[0].values[-1])
    assert node.gpu_utilization_now == (None, None)


def test_overlapping_and_unordered_answers_give_the_same_as_one():
    def answer(times):
        return payload({"node-0": series(times, lambda time: time / 1000)})

    parts = (range(start, start + 120, 5) for start in (300, 0, 60, 480, 180, 240, 390))
    assert fold(*map(answer, parts)) == fold(answer(TEN_MINUTES))


def test_a_node_that_vanished_keeps_its_history_and_says_nothing_about_now():
    both = payload({"node-0": series(MINUTE), "node-1": series(MINUTE)})
    assert fold(both).nodes[1].mean_utilization_now is not None
    gone = fold(both, payload({"node-0": series(TEN_MINUTES)})).nodes[1]
    assert (gone.mean_utilization_now, gone.gpu_memory_now) == (None, (None, None))
    assert len(gone.mean_utilization) == 12


def test_a_gpu_that_appears_later_joins_the_mean():
    more = series(range(60, 120, 5), 0.4, gpus=1)
    more["gpu_utilization"]["1"] = samples(range(60, 120, 5), 0.8)
    (node,) = fold(payload({"node-0": series(MINUTE, 0.4, gpus=1)}), payload({"node-0": more})).nodes
    assert node.gpus == ("0", "1")
    mean = node.mean_utilization.values
    assert (mean[0], mean[-1]) == (0.4, pytest.approx(0.6))


@pytest.mark.parametrize(("thins", "lowest"), [(False, 0.1), (True, 0.9)])
def test_a_server_that_ignores_the_distance_asked_for_hides_no_history(thins, lowest):
    def use(at: float) -> float | None:
        return None if 6000 <= at < 6300 else 0.1 if at == 9000 else 0.9

    hours, step_s = 3 * 3600, 45.0
    folding = MetricsFold(max_points=400, keeps_first_per_step=thins)
    for times in (range(0, hours, 4), *(range(end - 120, end, 4) for end in range(hours, hours + 120, 20))):
        folding.fold(payload({"node-0": series(times, use)}), step_s)
    shown = folding.snapshot.nodes[0].gpu_utilization[0]
    assert shown.times[0] - START_S < 2 * step_s
    assert min(value for value in shown.values if value == value) == pytest.approx(lowest, abs=0.001)
    gap = [t - START_S for t, value in zip(shown.times, shown.values, strict=True) if value != value]
    assert gap and all(6000 - 2 * step_s <= at < 6300 + 2 * step_s for at in gap)
    assert folding.snapshot.at is not None and folding.snapshot.at <= START_S + hours + 99
    assert list(shown.times) == sorted(set(shown.times))


def test_samples_as_far_apart_as_asked_for_are_all_kept_though_they_come_twice():
    times = [at for at in range(0, 6000, 60) for _ in range(2)]
    folding = MetricsFold()
    folding.fold(payload({"node-0": series(times, lambda at: at / 6000)}), 60.0)
    assert len(folding.snapshot.nodes[0].gpu_utilization[0]) == 100


def test_metrics_until_a_time_are_those_of_answers_until_then():
    def answer(*ends):
        nodes = {f"node-{number}": series(range(0, end, 5), float) for number, end in enumerate(ends)}
        late = {"node-9": series(range(400, ends[0], 5))} if ends[0] > 400 else {}
        return payload(nodes | late) if ends[0] else payload({})

    whole = fold(answer(600, 200))
    assert metrics_until(whole, START_S + 600) == whole
    assert metrics_until(whole, START_S + 299) == fold(answer(300, 200))
    assert metrics_until(whole, START_S - 1).nodes == ()
