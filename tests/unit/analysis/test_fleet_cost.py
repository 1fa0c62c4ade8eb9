"""What Home says of the cost of its jobs."""

from datetime import timedelta

import pytest

from support.worlds import ONE_O_CLOCK, job
from tui.analysis.billing import Bill, Billed
from tui.analysis.fleet.snapshot import FleetFold
from tui.screens.home.columns import header_facts


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
