"""Prices of the user's own come before the listed ones, on Home and in the totals of a project."""

from __future__ import annotations

import asyncio

import pytest

from support.emulator import running_emulator
from support.remotes import remote_of
from tui.analysis.cost import charge, charges_cost, price_of
from tui.analysis.fleet.snapshot import FleetSnapshot
from tui.feeds.fleet import FleetFeed
from tui.readers.session import Session

PATIENCE_S = 60.0


async def test_home_totals_by_ones_own_price_where_there_is_one() -> None:
    with running_emulator("demo") as emulator:
        session = Session(remote_of(emulator))
        listed = {one.instance_type.name: one for one in await session.client.account.instance_type_prices()}
        mine = next(name for name in listed if "H100" in name)
        priced: asyncio.Future[FleetSnapshot] = asyncio.get_running_loop().create_future()

        def take(fleet: FleetSnapshot) -> None:
            if len(fleet.prices) > 1 and fleet.jobs and not priced.done():
                priced.set_result(fleet)

        task = asyncio.create_task(FleetFeed(session, take, prices={mine: 0.125}).run())
        try:
            fleet = await asyncio.wait_for(priced, PATIENCE_S)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await session.client.aclose()
    on_mine = [row.job for row in fleet.jobs if row.job.instance_type.name == mine and row.running]
    others = [
        row.job
        for row in fleet.jobs
        if row.job.instance_type.name not in (mine, "") and not row.job.is_finished
    ]
    assert on_mine and others
    assert {price_of(job, fleet.prices) for job in on_mine} == {0.125}
    assert all(price_of(job, fleet.prices) == listed[job.instance_type.name].price for job in others)
    # By hand: minutes since each was created × nodes × the price.
    minutes = sum((fleet.at - job.created_at).total_seconds() / 60 * (job.node_count or 1) for job in on_mine)
    charges = [charge(job, fleet.at) for job in on_mine]
    assert charges_cost(charges, fleet.prices).usd == pytest.approx(minutes * 0.125)
