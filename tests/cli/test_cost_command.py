"""What ``bt-tui cost`` says of billed and estimated money, against sums done by hand."""

from datetime import UTC, datetime, timedelta

import pytest

from support.cli import RunCli
from support.fake_baseten import Answer, FakeBaseten, ReceivedRequest, billed, job

PRICE = 0.5
"""USD per node and minute; the machine has 8 GPUs."""


def ago(now: datetime | None = None, **span: float) -> str:
    return ((now or datetime.now(UTC)) - timedelta(**span)).isoformat()


@pytest.fixture
def account(baseten: FakeBaseten) -> FakeBaseten:
    """A job that runs since three hours on two nodes, one that ended last week, and one of long ago."""
    now = datetime.now(UTC)
    ended = {"created_at": ago(now, days=7, hours=2), "updated_at": ago(now, days=7)}
    baseten.jobs = [
        job("runs", "RUNNING", node_count=2, created_at=ago(hours=3), updated_at=ago(hours=3)),
        job("ended", node_count=2, **ended),
        job("waits", "PENDING", created_at=ago(hours=1)),
        job("ancient"),
    ]
    prices = [{"instance_type": baseten.jobs[0]["instance_type"], "price": PRICE}]
    baseten.on("GET", "/v1/instance_type_prices", Answer({"instance_types": prices}))
    return baseten


@pytest.mark.proves("docs/commands.md", "`compare`")
def test_what_is_billed_is_not_estimated_again(cli: RunCli, account: FakeBaseten) -> None:
    # 3 h × 2 nodes = 360 node-minutes, of which 240 are billed: 120 × $0.50 are not.
    # What ended last week is billed, at a discount: nothing more is expected.
    account.send_bill(
        billed("runs", "120.00", 240), billed("ended", 84.5, 240), billed("gone", 7, 14, is_deleted=True)
    )
    result = cli("cost", "-o", "json")
    assert [each["id"] for each in result.json] == ["runs", "ended", "waits"], "the most expensive first"
    costs = {each["id"]: each for each in result.json}
    assert costs.keys() == {"runs", "ended", "waits"}
    shown = ("gpu_hours", "billed_usd", "billed_minutes", "estimated_usd")
    assert [costs["ended"][name] for name in shown] == [32.0, 84.5, 240, 0.0]
    assert [costs["runs"][name] for name in shown[1:]] == [120.0, 240, pytest.approx(60, abs=1)]
    assert costs["runs"]["estimate_of"].endswith("time since creation, less the billed minutes")
    assert [costs["waits"][name] for name in shown] == [None] * 4
    assert "total: $204 for 480 min billed, and ≈ $60" in result.err
    assert "also billed for deleted jobs: $7.00 for 14 min" in result.err


@pytest.mark.parametrize(
    ("status", "why"), [(403, "only organization admins can read the bill"), (404, "this server has no bill")]
)
@pytest.mark.proves("docs/health.md", "Cost")
def test_without_the_bill_it_is_an_estimate(cli: RunCli, account: FakeBaseten, status: int, why: str) -> None:
    account.on("GET", "/v1/billing/.*", Answer({"code": "NO", "message": "no"}, status=status))
    result = cli("cost", "ended", "-o", "csv")
    (record,) = result.csv
    assert (record["billed_usd"], record["estimated_usd"]) == ("", "120.0")  # 2 nodes × 120 min × $0.50
    assert result.err == f"bt-tui: total: ≈ $120, an estimate: {why}\n"


def test_ranges_of_a_month_that_share_a_day_count_it_once(cli: RunCli, account: FakeBaseten) -> None:
    account.jobs = [job("long", "RUNNING", node_count=1, created_at=ago(days=40))]
    asked: list[tuple[datetime, datetime]] = []

    def bill(request: ReceivedRequest) -> Answer:
        """A dollar and 2.5 minutes for every day of the range, its last one included."""
        start, end = (datetime.fromisoformat(request.query[name]) for name in ("start_date", "end_date"))
        asked.append((start, end))
        days = [(start + timedelta(days=n)).date() for n in range((end.date() - start.date()).days + 1)]
        daily = [{"date": str(day), "subtotal": "1.00", "minutes": "2.5"} for day in days]
        item = billed("long", len(days), 2 * len(days)) | {"daily": daily}
        return Answer({"training_usage": {"minutes": 2.5 * len(days), "breakdown": [item]}})

    account.on("GET", "/v1/billing/usage_summary", bill)
    (found,) = cli("cost long -o json").json
    assert (found["billed_usd"], found["billed_minutes"]) == (41.0, 102.5)
    assert len(asked) == 2
    assert all(timedelta(0) < end - start <= timedelta(days=31) for start, end in asked)


@pytest.mark.proves("docs/commands.md", "`compare`")
def test_the_jobs_of_a_project_and_of_a_time(cli: RunCli, account: FakeBaseten) -> None:
    account.send_bill(billed("runs", 120, 240))
    header, runs, ended, *_, total = cli("cost", "--project", "llama-sft").out.splitlines()
    assert header.endswith("GPU·H  BILLED  MINUTES  NOT BILLED YET")
    assert "$120" in runs and "240" in runs and "≈ $60" in runs
    assert "–" in ended
    assert total.startswith("total: $120 for 240 min billed, and ≈ $")
    assert {each["id"] for each in cli("cost --since 2d -o json").json} == {"runs", "waits"}
    cli("cost ended --since 2d", code=2)
