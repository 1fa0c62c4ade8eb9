"""The samples of the charts shown, saved from a run's screen."""

import csv
from pathlib import Path

from support.dashboard import job_view, settle
from support.sick_runs import sick_run
from support.waiting import until
from tui.screens.job.chart_grid import ChartGrid


async def test_the_file_holds_the_samples_that_are_drawn(tmp_path: Path) -> None:
    app = job_view(sick_run("nan"), tab="metrics", lines=())
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        tables = app.screen.query_one(ChartGrid).current_data()
        await pilot.press("E")
        await settle(pilot)
        app.screen.query_one("#file").value = str(tmp_path / "charts.csv")  # type: ignore[attr-defined]
        await pilot.press("enter")
        await until(pilot, (tmp_path / "charts.csv").exists)
    with (tmp_path / "charts.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for table in tables:
        of_chart = [row for row in rows if row["chart"] == table.spec.title]
        for line in table.series:
            written = [row["value"] for row in of_chart if row["series"] == line.name]
            shown = [str(value) for value in line.values if value == value or not table.unit]
            assert written == shown
    assert "nan" in {row["value"] for row in rows}
    assert any(row["time"].endswith("Z") for row in rows)
