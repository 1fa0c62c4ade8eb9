"""A chart as text: exact size, honest axes, a legend as long as there is room."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from widget_text import draw

from tui.analysis.series import Series
from tui.text.units import percent
from tui.widgets.charts.spec import ChartSpec, block, trace

END = 1_700_000_000.0
SPAN_S = 1800.0


def ramp(name: str, low: float = 0.0, high: float = 1.0, count: int = 60) -> Series:
    times = tuple(END - SPAN_S + index * SPAN_S / (count - 1) for index in range(count))
    return Series(name, times, tuple(low + (high - low) * index / (count - 1) for index in range(count)))


def spec(title: str = "GPU utilisation", **options: object) -> ChartSpec:
    return ChartSpec(title, END - SPAN_S, END, **options)  # type: ignore[arg-type]


def text(series: list[Series], chart: ChartSpec, width: int, height: int) -> list[str]:
    return ["".join(piece for piece, _ in line) for line in draw(series, chart, width, height)]


@given(
    st.integers(0, 70),
    st.integers(0, 14),
    st.integers(0, 9),
    st.text(max_size=30),
    st.text(max_size=12),
    st.booleans(),
    st.sampled_from(["relative", "clock"]),
)
def test_a_chart_fills_its_size_exactly(
    width: int, height: int, count: int, title: str, name: str, letters: bool, axis: str
) -> None:
    series = [ramp(f"{name}{index}", index, index + 1, 20) for index in range(count)]
    lines = text(series, spec(title, letters=letters, x_axis=axis, note="stale"), width, height)
    assert len(lines) == (height if width else 0)
    assert all(cell_len(line) == width for line in lines)
    assert not any(character < " " or character == "\x7f" for line in lines for character in line)


def test_axes_say_what_the_lines_mean() -> None:
    lines = text([ramp("node-0")], spec(unit=percent, y_min=0.0, y_max=1.0), 60, 12)
    assert lines[0].startswith("GPU utilisation  100 %  0 % … 100 %")
    assert lines[1].startswith("100 %┤")
    assert lines[9].startswith("  0 %┤")
    assert lines[10].startswith("     └")
    assert lines[11].split() == ["-30m", "-20m", "-10m", "now"]
    assert lines[9][6] in "⡀⣀⢀⠤⡠⢠"  # it begins at the bottom left
    assert lines[1].rstrip()[-1] in "⠁⠉⠈⠋⠊⠔⠤⠒"  # and ends at the top right


def test_legend_shortens_step_by_step() -> None:
    series = [ramp(f"node-{index}", high=0.5 + index / 10) for index in range(4)]
    chart = spec(unit=percent, y_min=0.0, y_max=1.0)
    assert "━ node-0 50 %  ━ node-1 60 %" in text(series, chart, 90, 5)[0]
    assert "━ 0 50 %  ━ 1 60 %  ━ 2 70 %  ━ 3 80 %" in text(series, chart, 60, 5)[0]
    assert "━ 0  ━ 1  ━ 2  ━ 3" in text(series, chart, 40, 5)[0]
    many = [ramp(f"node-{index}") for index in range(40)]
    header = text(many, chart, 60, 5)[0]
    named = header.count("━")
    assert header.rstrip().endswith(f"+{40 - named}")


def test_all_are_named_while_cut_names_still_differ_and_the_cursor_says_whose_the_ends_are() -> None:
    jobs = [ramp("llama-70b-sft-v3"), ramp("qwen3-grpo-7"), ramp("whisper-ft")]
    assert text(jobs, spec("loss"), 44, 6)[0].rstrip() == "loss  ━ llama-70…  ━ qwen3-gr…  ━ whisper-…"
    assert text(jobs, spec("loss"), 26, 6)[0].rstrip().endswith("+3")  # cut shorter, nobody knew them
    nodes = [ramp(f"node-{index}", 0.5 - index / 10, 0.5 - index / 10) for index in range(4)]
    reading = spec("GPU use", unit=percent, cursor=END - 60.0)
    assert text(nodes, reading, 36, 6)[0].rstrip() == "GPU use  ━ 3 20 % … ━ 0 50 %"
    assert text(nodes, reading, 24, 6)[0].rstrip() == "GPU use  20 % … 50 %"


@pytest.mark.parametrize(("width", "height"), [(40, 8), (60, 8), (120, 20)])
def test_long_names_are_told_apart_in_every_legend(width: int, height: int) -> None:
    series = [ramp(f"baseten-training-job-lqz4o0q-multinode-{rank}", rank, rank + 1) for rank in range(3)]
    drawn = draw(series, spec("use"), width, height)
    named = {
        rank: "".join(
            piece for line in drawn for piece, role in line if role == rank and "━" in piece
        ).strip()
        for rank in range(3)
    }
    assert [name[-1:] for name in named.values()] == ["0", "1", "2"]


def test_later_series_lie_on_top_and_cells_are_not_shared() -> None:
    below, above = ramp("below", 0.5, 0.5), ramp("above", 0.5, 0.5)
    lines = draw([below, above], spec(y_min=0.0, y_max=1.0), 40, 8)
    drawn = {role for line in lines[1:-1] for _, role in line if isinstance(role, int)}
    assert drawn == {1}


def test_without_colours_lines_carry_letters() -> None:
    series = [ramp("a", 0.1, 0.1), ramp("b", 0.9, 0.9)]
    lines = text(series, spec(y_min=0.0, y_max=1.0, letters=True), 40, 10)
    assert "A a" in lines[0]
    assert "B b" in lines[0]
    raster = [line[5:] for line in lines[1:8]]
    assert [index for index, line in enumerate(raster) if "B" in line] < [
        index for index, line in enumerate(raster) if "A" in line
    ]


def test_empty_charts_say_so() -> None:
    lines = text([], spec(empty_text="no GPU data yet"), 40, 9)
    assert lines[0].startswith("GPU utilisation")
    assert any(line.strip() == "no GPU data yet" for line in lines)
    only_gaps = Series("s", (END - 5,), (math.nan,))
    assert any("no data" in line for line in text([only_gaps], spec(), 40, 9))


@pytest.mark.parametrize("place", [0.0, 0.001, 0.5, 1.0])
@pytest.mark.parametrize("value", [0.0, 0.97, 2.5])
def test_a_single_sample_is_a_spot_that_is_seen_wherever_it_lies(place: float, value: float) -> None:
    chart = spec("loss", y_min=0.0)
    at = chart.start + place * (chart.end - chart.start)
    cells = "".join(text([Series("loss", (at,), (value,))], chart, 40, 9)[1:-1])
    dots = sum((ord(cell) - 0x2800).bit_count() for cell in cells if 0x2800 < ord(cell) < 0x2900)
    assert dots == 4


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_a_chart_of_nothing_finite_says_so(value: float) -> None:
    chart = spec("loss")
    assert "no finite values" in "\n".join(text([Series("loss", (chart.end,), (value,))], chart, 40, 9))


def test_small_charts_become_a_trace_or_a_number() -> None:
    one = text([ramp("node-0")], spec("util", unit=percent, y_min=0.0, y_max=1.0), 30, 1)
    assert one[0].startswith("util ▁")
    assert one[0].rstrip().endswith("█ 100 %")
    assert text([ramp("node-0")], spec("util", unit=percent), 6, 1) == ["100 % "]
    two = text([ramp("node-0")], spec("util", unit=percent), 16, 2)
    assert two[0] == "util       100 %"
    assert two[1].startswith("▁")


def test_server_text_stays_text() -> None:
    hostile = ramp("\x1b[31mred\x1b]0;title\x07[bold]x[/]\nnext")
    header = text([hostile, ramp("b")], spec("[red]t[/]\x1b[2J"), 100, 5)[0]
    assert "\x1b" not in header
    assert "\n" not in header
    assert header.startswith("[red]t[/]")
    assert "[bold]x[/]" in header


@pytest.mark.parametrize("value", [5.0, 0.0, -3.0])
def test_a_constant_series_has_an_axis_around_it(value: float) -> None:
    lines = text([ramp("s", value, value)], spec("loss"), 40, 10)
    assert any(0x2800 < ord(character) < 0x2900 for line in lines for character in line)


def test_trace_spans_its_values() -> None:
    assert trace([0.0, 1.0], 2) == "▁█"
    assert trace([0.0, None, math.nan, 1.0], 4, low=0, high=1) == "▁··█"
    assert trace([], 5) == ""
    assert trace([0.5] * 100, 10, low=0, high=1) == "▅" * 10
    assert len(trace(list(range(100)), 8)) == 8
    assert trace([1.0, 2.0], 10) == "▁█"
    assert block(2.0) == "█"
    assert block(-1.0) == "▁"
    assert block(math.inf) == "█"
