"""The charts by keyboard and mouse: which time, which lines, what is read; and the nodes at large."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from textual.events import Leave, MouseScrollUp
from textual.pilot import Pilot
from textual.widgets import Input

from api_client.models import JobMetrics
from support.dashboard import Dashboard, job_view, opened, pressed, published, resized, settle, text_of
from support.sick_runs import sick_run
from support.waiting import until
from support.worlds import ONE_O_CLOCK, job_metrics, run
from tui.analysis.series import Series
from tui.screens.charts.builder import ChartData, full_range, is_flat
from tui.screens.charts.grid import ChartGrid
from tui.screens.job.screen import JobScreen
from tui.widgets.charts.line_chart import LineChart
from tui.widgets.charts.spec import ChartSpec
from tui.widgets.charts.ticks import Window, XAxis
from tui.widgets.gpu_matrix import GpuMatrix
from tui.widgets.tones import SERIES

WIDE = (120, 40)
NOW = ONE_O_CLOCK.timestamp()


def metrics_tab(sickness: str = "straggler", **options: Any) -> Dashboard:
    return job_view(sick_run(sickness, **options), tab="metrics", lines=())


def deck(pilot: Pilot[Any]) -> ChartGrid:
    return pilot.app.screen.query_one(ChartGrid)


def screen(pilot: Pilot[Any]) -> JobScreen:
    return cast(JobScreen, pilot.app.screen)


def chart_of(pilot: Pilot[Any], chart_id: str = "") -> LineChart:
    """Return a chart, without an id the first one."""
    return cast(LineChart, deck(pilot).widget_of(chart_id or deck(pilot).shown_charts[0].id))


def cursor(pilot: Pilot[Any]) -> float:
    """Return the time of the readout, zero without one."""
    return screen(pilot).metrics.view.cursor or 0.0


def window(pilot: Pilot[Any]) -> tuple[float, float]:
    spec = deck(pilot).shown_charts[0].spec
    return spec.start, spec.end


async def press(pilot: Pilot[Any], *keys: str) -> str:
    await pilot.press(*keys)
    await pilot.pause()
    return text_of(cast(Dashboard, pilot.app))


def nodes_of(text: str) -> dict[str, str]:
    return {line.split()[0]: line for line in text.splitlines() if line.startswith(" node-")}


async def test_one_cursor_reads_all_charts_at_once_and_lines_are_switched_off_and_shown_alone() -> None:
    async with opened(metrics_tab(), WIDE) as pilot:

        def drawn() -> list[str]:
            return [one.name for one in deck(pilot).visible_samples()[0].series]

        assert "· node-1" in await press(pilot, "m", "v", "down", "down", "space")
        assert [table.id for table in deck(pilot).shown_charts] == ["util"]
        assert screen(pilot).metrics.view.hidden == {"node-1"}
        assert drawn() == ["node-0", "node-2", "node-3"]
        await press(pilot, "a", "i")
        assert drawn() == ["node-1"]
        lines = (await press(pilot, "i")).splitlines()
        assert len(drawn()) == 4
        y = next(y for y, text in enumerate(lines) if y > 5 and "━ node-2" in text)
        await pilot.click(offset=(lines[y].rindex("━ node-2") + 3, y))
        await settle(pilot)
        assert screen(pilot).metrics.view.hidden == {"node-2"}
        newest, at = await press(pilot, "a", "plus", "plus", "left", "left"), cursor(pilot)
        assert NOW - 200 < at < NOW and "at │" in newest
        assert await press(pilot, "shift+left") != newest
        farther = cursor(pilot)
        assert farther < at
        await press(pilot, "v", "v")
        assert {chart.spec.cursor for chart in deck(pilot).shown_charts} == {farther} and len(
            deck(pilot).shown_charts
        ) > 3
        await press(pilot, "escape")
        assert not cursor(pilot)
        await press(pilot, "m", "v")
        await until(pilot, lambda: chart_of(pilot).size.width > WIDE[0] // 2)  # it has the width for itself
        axis = next(line for line in (await pressed(pilot)).splitlines() if "└" in line)
        await pilot.click(offset=(axis.rindex("◆"), 8))
        await until(pilot, lambda: "◆ checkpoint-4000" in text_of(pilot.app))


async def test_the_grid_has_its_first_chart_widest_flat_ones_low_at_its_end_and_one_alone_on_enter() -> None:
    async with opened(metrics_tab(), WIDE) as pilot:
        for size in (WIDE, (200, 55)):
            await resized(pilot, *size)
            shown = [chart.id for chart in deck(pilot).shown_charts]
            assert set(shown[-3:]) == {"gpu-memory", "memory", "disk"}
            sizes = [chart_of(pilot, one).size for one in shown]
            assert sizes[-1].height == 5 < sizes[0].height
            assert max(sizes).width <= sizes[0].width + 1
            assert len([one for one in sizes if one.height > 5]) >= 6
        for back in ("enter", "escape"):
            text = await press(pilot, "enter")
            assert [chart.id for chart in deck(pilot).shown_charts] == ["loss"]
            assert not nodes_of(text)
            await press(pilot, back)
            assert len(deck(pilot).shown_charts) > 3


async def test_number_of_charts_is_shown_where_not_all_have_room() -> None:
    async with opened(metrics_tab(), (80, 24)) as pilot:
        assert re.search(r"[4-6] of (\d+) charts", text_of(pilot.app))
        assert not re.search(r"of \d+ charts", await resized(pilot, 200, 55))


async def test_the_log_of_a_past_range_does_not_claim_to_follow() -> None:
    async with opened(metrics_tab("healthy"), WIDE) as pilot:
        await press(pilot, "plus", "plus", "less_than_sign", "2")
        await until(pilot, lambda: "end of the range" in text_of(pilot.app))


async def test_the_window_is_panned_and_zoomed_by_key_wheel_and_drag_and_the_pointer_reads() -> None:
    async with opened(metrics_tab("healthy"), WIDE) as pilot:
        begin = full_range(screen(pilot).snapshot)[0]  # type: ignore[arg-type]
        await press(pilot, "plus")
        for key, start, end, said in (
            ("plus", NOW - 3600, NOW, "run  6 h  1 h  15 min  5 min"),
            ("less_than_sign", NOW - 5400, NOW - 1800, "1 h to "),
            ("plus", NOW - 2700, NOW - 1800, ""),
            ("plus", NOW - 2100, NOW - 1800, ""),
            ("g", begin, begin + 300, ""),
            ("G", NOW - 300, NOW, ""),
        ):
            assert said in await press(pilot, key)
            assert window(pilot) == pytest.approx((start, end), abs=10)
        await press(pilot, *("minus",) * 6)
        assert window(pilot) == pytest.approx((begin, NOW), abs=60)
        whole_s = NOW - begin
        assert screen(pilot)._feed.spans[-1] is None  # type: ignore[attr-defined]
        newest, chart = await press(pilot, "v"), chart_of(pilot)
        middle = chart._picture().left + chart.raster_cells // 2
        await pilot.hover(chart, offset=(middle, 5))
        assert await press(pilot) != newest
        chart.post_message(Leave(chart))
        assert await press(pilot) == newest
        await pilot._post_mouse_events([MouseScrollUp], chart, offset=(middle, 5), button=0)
        await settle(pilot)
        start, end = window(pilot)
        assert end - start == pytest.approx(0.8 * whole_s, rel=0.01)
        assert (start + end) / 2 == pytest.approx((begin + NOW) / 2, rel=0.01 * whole_s / NOW)
        await pilot.mouse_down(chart, offset=(middle, 5))
        await pilot.hover(chart, offset=(middle + 4, 5))
        await pilot.mouse_up(chart, offset=(middle + 4, 5))
        await settle(pilot)
        dragged = window(pilot)
        assert dragged[1] - dragged[0] == pytest.approx(end - start)
        assert start - dragged[0] == pytest.approx(4 * (end - start) / chart.raster_cells, rel=0.05)
        assert not cursor(pilot)


async def test_smoothing_logarithms_and_steps_change_the_picture_and_are_said() -> None:
    async with opened(metrics_tab("healthy"), WIDE) as pilot:
        plain = await press(pilot, "v")
        smooth = await press(pilot, "M")
        assert smooth != plain and "smooth 0.6" in smooth
        assert "log" in (await press(pilot, "M", "M", "M", "L")).splitlines()[5]
        assert await press(pilot, "L") == plain
        await press(pilot, "v", "v")
        text = await press(pilot, "x", "x", "x", "left")
        charts = {chart.id: chart for chart in deck(pilot).visible_samples()}
        assert (charts["loss"].spec.x_axis, charts["util"].spec.x_axis) == ("step", "relative")
        times = charts["loss"].series[0].times
        assert times[-1] == 4119 and len(times) == 720
        assert "step 4,1" in text and "by step" in text
        metrics = screen(pilot).metrics
        metrics.view = replace(metrics.view, window=Window(1800.0, charts["util"].spec.end - 1800))
        past = next(chart for chart in deck(pilot).visible_samples() if chart.id == "util")
        assert past.spec.x_axis == "clock", "an axis of the past has no now"


async def test_a_chart_for_each_line_has_one_scale_and_pages() -> None:
    async with opened(metrics_tab(nodes=64, gpus=1)) as pilot:
        await press(pilot, "m", "v", "v")
        shown = deck(pilot).shown_charts
        assert [chart.names for chart in shown][:2] == [("node-0",), ("node-1",)]
        assert len({(chart.spec.y_min, chart.spec.y_max) for chart in shown}) == 1
        await press(pilot, "up")
        assert deck(pilot).shown_charts[-1].names == ("node-63",)


async def test_the_nodes_at_large_over_time_worst_first_and_into_one() -> None:
    async with opened(metrics_tab(), WIDE) as pilot:
        text = await press(pilot, "n", "S")
        assert next(iter(nodes_of(text))) == "node-2"
        assert "559 GiB" in text and "40%" in text
        assert "-1h" in await press(pilot, "plus", "plus", "H")
        text = await press(pilot, "enter")
        assert "gpu 7" in text and "GPU use, node-" in text
        assert "GPU memory" in await press(pilot, "enter", "u")
        assert pilot.app.screen.query_one(GpuMatrix).selected in {"node-0", "node-2"}
        await press(pilot, "escape")
        assert not screen(pilot).metrics.nodes_large


async def test_few_nodes_above_the_charts_take_their_place_and_give_it_back() -> None:
    async with opened(job_view(sick_run("straggler"), tab="metrics", lines=()), WIDE) as pilot:
        before = text_of(pilot.app)
        assert "GPU memory" in before.split("GPU use now")[1]
        large = await pressed(pilot, "n")
        assert "GPU memory" not in large
        assert "3 others" in large  # over time, below them
        assert await pressed(pilot, "n") == before


WORDS = {
    "healthy": "✓ healthy",
    "hang": "✗ no step or log line for 24m",
    "straggler": "▲ node-2 slow: GPU 55% vs 93%",
    "nan": "✗ loss is NaN for 9m",
    "explode": "✗ loss diverging for 8m: 8.45, was 0.927",
    "leak": "▲ GPU memory of node-2 GPU 7 full in 52m",
    "disk": "✗ disk of node-2 is 95% full",
    "silent": "▲ node-2 silent for 15m",
    "idle": "ℹ node-2: GPUs idle",
    "overdue": "▲ no checkpoint for 2h 42m",
    "restarts": "▲ restarted 3 times, last 19m ago",
    "errors": "ℹ 2 errors: NCCL watchdog",
}


@pytest.mark.proves("README.md", "Try it")
async def test_each_sickness_is_read_at_80_by_24_without_any_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(job_view(sick_run("healthy"), lines=())) as pilot:
        for sickness, words in WORDS.items():
            state, health, progress, *_ = (await published(pilot, sick_run(sickness))).splitlines()
            assert "● llama-70b-sft-v3" in state and "RUNNING 6h 12m" in state and "GPU·h ≈ $" in state
            assert words in health
            saved = "checkpoint-2700 2h ago" if sickness == "overdue" else "checkpoint-4000 12m ago"
            assert saved in health
            assert ("no ETA" in progress) == (sickness in {"hang", "nan"}) and "ETA" in progress
        assert "A node-0" in await pressed(pilot, "3", "m", "v", "b")


async def test_on_live_a_finding_marks_its_node_at_once_and_the_node_is_picked_and_left_again() -> None:
    sick = sick_run("straggler")
    async with opened(job_view(replace(sick, findings=()), lines=())) as pilot:
        assert "▲" not in text_of(pilot.app)
        assert "▲" in nodes_of(await published(pilot, sick))["node-2"][:31]
        reading = pilot.app.focused
        await press(pilot, "p", "down", "down", "enter")
        assert isinstance(pilot.app.focused, GpuMatrix)
        assert screen(pilot).node == pilot.app.focused.selected == "node-2"
        await press(pilot, "escape")
        assert pilot.app.focused is reading
        await press(pilot, "p", "p")
        assert pilot.app.focused is reading
        await press(pilot, "escape")
        assert screen(pilot).node is None


async def test_gpus_of_the_only_node_have_a_line_each_on_live_if_they_fit() -> None:
    async with opened(job_view(run(metrics=job_metrics((0.9,)))), (60, 20)) as pilot:
        assert nodes_of(text_of(pilot.app))["node-0"].count("▇") == 8
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: "gpu 7 " in text_of(pilot.app))
        await pilot.resize_terminal(60, 20)
        await until(pilot, lambda: "node-0" in nodes_of(text_of(pilot.app)))


async def test_a_node_that_appears_late_and_one_with_half_the_gpus() -> None:
    answer = job_metrics((0.9, 0.9, 0.9))
    late, half = answer.per_node_metrics[1].metrics, answer.per_node_metrics[2].metrics
    for series in late.gpu_utilization.values():
        del series[:-5]
    for gpu in ("4", "5", "6", "7"):
        del half.gpu_utilization[gpu], half.gpu_memory_usage_bytes[gpu]
    async with opened(job_view(run(metrics=answer), tab="metrics"), WIDE) as pilot:
        rows = nodes_of(await press(pilot, "n"))
        assert rows["node-0"].count("▇") == rows["node-1"].count("▇") == 8
        assert rows["node-2"].count("▇") == 4
        rows = nodes_of(await press(pilot, "plus", "plus", "H"))
        assert rows["node-1"].count("·") > rows["node-1"].count("▇") > 0
        assert "·" not in rows["node-0"]


async def test_every_key_works_with_nothing_to_show_at_any_size() -> None:
    empty = run(metrics=JobMetrics(), progress=None, checkpoints=None)
    keys = ("left", "right", "shift+left", "less_than_sign", "greater_than_sign", "g", "G", "down", "up")
    keys += ("space", "i", "a", "M", "L", "x", "x", "x", "x", "v", "v", "v", "n", "S", "H", "m", "n", "u")
    async with opened(job_view(empty, tab="metrics", lines=()), (60, 20)) as pilot:
        await press(pilot, *keys)
        await pilot.resize_terminal(12, 4)
        await press(pilot, *keys)
        assert isinstance(pilot.app.screen, JobScreen)


def colours(chart: LineChart) -> set[object]:
    rows = [chart.render_line(y) for y in range(1, chart.size.height)]
    dots = (segment for row in rows for segment in row if any(sign >= "\u2801" for sign in segment.text))
    braille = (one for one in dots if all(sign <= "\u28ff" for sign in one.text))
    of_lines = {chart.get_component_rich_style(name).color for name in SERIES.classes("line-chart--series")}
    return {segment.style.color for segment in braille if segment.style is not None} & of_lines


def highlighted(pilot: Pilot[Any]) -> list[int]:
    matrix = pilot.app.screen.query_one(GpuMatrix)
    styles = [next(iter(matrix.render_line(1 + row))).style for row in range(4)]
    return [row for row, style in enumerate(styles) if style is not None and style.underline]


async def test_one_node_alone_is_the_same_node_in_the_same_colour_everywhere() -> None:
    async with opened(metrics_tab(), WIDE) as pilot:
        chart, matrix = chart_of(pilot, "cpu"), pilot.app.screen.query_one(GpuMatrix)
        assert highlighted(pilot) == []
        everyone, seen = colours(chart), []
        for number in range(4):
            assert f"GPU use, node-{number}" in await pressed(pilot, "right_square_bracket")
            assert screen(pilot).node == matrix.selected == f"node-{number}"
            assert highlighted(pilot) == [number]
            seen += colours(chart)
        assert len(set(seen)) == 3  # the slow node has the color of its finding instead
        assert everyone & set(seen) == set()
        await pressed(pilot, *("left_square_bracket",) * 4)
        assert highlighted(pilot) == []
        while deck(pilot).shown_charts[0].id != "cpu":
            await press(pilot, "m")
        await pressed(pilot, "j", "j", "j", "i")
        assert matrix.selected == "node-2"
        assert highlighted(pilot) == [2]


@pytest.mark.parametrize("axis", ["step", "relative"])
async def test_samples_shown_are_exported_with_time_and_step(axis: XAxis, tmp_path: Path) -> None:
    async with opened(metrics_tab("nan"), WIDE) as pilot:
        metrics = screen(pilot).metrics
        metrics.view = replace(metrics.view, x_axis=axis)
        tables = deck(pilot).visible_samples()
        await pressed(pilot, "E")
        pilot.app.screen.query_one("#file", Input).value = str(tmp_path / "charts.csv")
        await pilot.press("enter")
        await until(pilot, (tmp_path / "charts.csv").exists)
    with (tmp_path / "charts.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    shown = [
        (table.spec.title, line.name, str(value))
        for table in tables
        for line in table.series
        for value in line.values
        if value == value or not table.unit
    ]
    assert shown == [(row["chart"], row["series"], row["value"]) for row in rows]
    assert "nan" in {row["value"] for row in rows}
    loss = [row for row in rows if row["chart"] == "loss"]
    assert loss and all(row["time"].endswith("Z") and row["step"].isdigit() for row in loss)


async def test_many_nodes_and_their_chart_have_their_place_at_the_first_layout() -> None:
    async with opened(job_view(sick_run("straggler", nodes=64), tab="metrics"), (120, 36)) as pilot:
        text = text_of(pilot.app)
        assert "low 58% node-2" in text and "GPU use  ━ node-2 58%" in text


@pytest.mark.parametrize(
    ("values", "options", "flat"),
    [
        ((1.0,) * 11, {"y_min": 0.0}, True),
        ((0.0, 0.5, *(1.0,) * 9), {"y_min": 0.0}, True),
        ((*(1.0,) * 9, 1.5, 1.0), {"y_min": 0.0}, False),
        ((*(1.0,) * 10, 1.01), {"min_relative_range": 0.25}, True),
        ((*(1.0,) * 10, 1.01), {}, False),
        ((1.0,) * 11, {}, True),
    ],
)
def test_chart_is_flat_if_nothing_moved_since_the_start(
    values: tuple[float, ...], options: dict[str, float], flat: bool
) -> None:
    spec = ChartSpec(start=0.0, end=10.0, **options)  # type: ignore[arg-type]
    one = Series("node-0", tuple(map(float, range(11))), values)
    other = replace(one, name="node-1", values=tuple(value / 2 for value in values))
    assert is_flat(ChartData("id", (one,), spec)) is flat
    assert not is_flat(ChartData("id", (one, other), spec)), "nodes differ"
    assert not is_flat(ChartData("id", (one,), spec, stays_in_front=True))


def test_chart_that_is_not_on_its_axis_yet_is_judged_by_all_samples() -> None:
    by_step = ChartSpec(start=500.0, end=900.0)
    moving, level = (Series("kl", (1.0, 2.0), values) for values in ((0.1, 0.2), (0.1, 0.1)))
    assert not is_flat(ChartData("kl", (moving,), by_step, finish=replace))
    assert is_flat(ChartData("kl", (level,), by_step, finish=replace))
