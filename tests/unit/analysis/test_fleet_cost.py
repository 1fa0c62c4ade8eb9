"""What lists of jobs have cost, against sums done by hand."""

from datetime import timedelta

import pytest

from support.worlds import ONE_O_CLOCK, job
from tui.analysis.billing import Bill, Billed
from tui.analysis.cost import charge, charges_cost, total_cost
from tui.analysis.fleet.snapshot import FleetFold
from tui.screens.home.columns import header_facts


def test_of_what_is_billed_only_the_rest_is_estimated() -> None:
    jobs = [
        job("runs", hours_ago=2.0, node_count=4),  # 480 node-minutes, of which 300 are billed
        job("ended", "COMPLETED", hours_ago=30, took_hours=3.0, node_count=1),  # billed, at a discount
        job("other", hours_ago=1.0, node_count=1),  # not in the bill: all of it is estimated
        job("odd", hours_ago=2.0, node_count=4),  # a price that says nothing about nodes
        job("waits", "PENDING", hours_ago=5.0),
    ]
    of = {"runs": Billed(150.0, 300), "ended": Billed(70.0, 180), "odd": Billed(3.0, 10)}
    charged = [(one, charge(one, ONE_O_CLOCK)) for one in jobs]
    cost = total_cost(charged, {"H100:8": 0.5}, Bill(ONE_O_CLOCK - timedelta(days=31), of), ONE_O_CLOCK)
    assert (cost.billed, cost.usd, cost.unpriced) == (Billed(223.0, 490), pytest.approx(180 * 0.5 + 30), 1)
    assert cost.gpu_hours == pytest.approx(8 * (8 + 3 + 1 + 8))
    cpu = charge(job("cpu", hours_ago=1.0, gpus=(None, 0), node_count=1), ONE_O_CLOCK)
    cost = charges_cost([*(charged for _, charged in charged), cpu], {"H100:8": 0.5})
    assert (cost.usd, cost.jobs, cost.unpriced) == (pytest.approx(0.5 * 60 * (8 + 3 + 1 + 8)), 5, 1)


@pytest.mark.parametrize(
    ("of_jobs", "why_not", "shown"),
    [
        ({}, "", "≤ 64 GPU·h ≈ $240"),
        ({"runs": Billed(150.0, 300)}, "", "≤ 64 GPU·h $150 billed + ≈ $90.00"),
        ({}, "no right\x1b[31m", "≤ 64 GPU·h ≈ $240 · estimate: no right"),
    ],
)
def test_home_tells_what_is_billed_from_what_is_estimated(
    of_jobs: dict[str, Billed], why_not: str, shown: str
) -> None:
    bill = Bill(ONE_O_CLOCK - timedelta(days=30), of_jobs, why_not=why_not)
    snapshot = FleetFold().fold([], [job("runs", hours_ago=2.0)], {}, ONE_O_CLOCK, {"H100:8": 0.5}, bill)
    facts, _ = header_facts(
        "acme", snapshot, snapshot.jobs, marked=0, compare_key="c", filter_key="/", query="", project=""
    )
    assert " · ".join("".join(text for text, _ in fact) for fact in facts).endswith(shown)
