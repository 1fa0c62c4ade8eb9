"""A time that is gone to is shown with the lines before it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from api_client.models.logs import NS_PER_S, LogLine
from support.dashboard import job_view, opened, settle
from support.sick_runs import sick_run
from support.waiting import until


@pytest.mark.parametrize("tab", ["logs", "metrics"])
async def test_line_at_a_time_stands_a_third_down_whichever_tab_was_shown(tab: str) -> None:
    run = sick_run("hang")
    since = run.findings[0].since
    assert since is not None
    begin_s = int((since - timedelta(minutes=60)).timestamp())
    lines = tuple(
        LogLine((begin_s + 10 * number) * NS_PER_S, f"line {number}", "node-0", None) for number in range(720)
    )
    async with opened(job_view(run, tab=tab, lines=lines), (120, 40)) as pilot:
        screen = pilot.app.screen
        screen._show_log_from(since, None)
        await settle(pilot)
        viewport = screen.log_pane.view.viewport
        await until(pilot, lambda: viewport.height > 20)
        rows = [position.row for position in viewport.page()]
        assert rows.index(screen.log_pane.view.model.cursor_row) == pytest.approx(len(rows) / 3, abs=2)
