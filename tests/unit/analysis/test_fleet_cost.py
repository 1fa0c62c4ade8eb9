"""What lists of jobs have cost, against sums done by hand."""

from datetime import timedelta

import pytest

from support.worlds import ONE_O_CLOCK, job
from tui.analysis.cost import charge, charges_cost


def test_gpu_hours_and_money_of_all_that_ran() -> None:
    jobs = [
        job("runs", hours_ago=2.0, node_count=4),  # 4 × 8 GPUs for two hours
        job("ended", "COMPLETED", hours_ago=30, took_hours=3.0, node_count=1),  # 8 for three
        job("waits", "PENDING", hours_ago=5.0),
        job("cpu", hours_ago=1.0, gpus=(None, 0), node_count=1),
    ]
    cost = charges_cost((charge(one, ONE_O_CLOCK) for one in jobs), {"H100:8": 0.5})
    assert cost.gpu_hours == pytest.approx(4 * 8 * 2 + 8 * 3)
    assert cost.usd == pytest.approx(0.5 * 60 * (4 * 2 + 3))
    assert (cost.jobs, cost.unpriced) == (3, 1)


def test_no_price_no_money() -> None:
    cost = charges_cost([charge(job("runs", hours_ago=1.0), ONE_O_CLOCK + timedelta(hours=1))], {})
    assert cost.gpu_hours == pytest.approx(4 * 8 * 2)
    assert cost.usd is None
