"""A chart as text: its size, axes and legend; smoothing, logarithms, marks; and what the cursor reads."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from rich.cells import cell_len
from widget_text import draw

from tui.analysis.series import Series, logarithmic, smoothed
from tui.text.units import percent
from tui.widgets.charts import legend
from tui.widgets.charts.series_groups import Entry, series_of
from tui.widgets.charts.spec import ChartSpec, Line, Mark, Readout, Role, read_series, value_at
from tui.widgets.charts.ticks import log_ticks

END = 1_700_000_000.0
SPAN_S = 1800.0


def line(name: str, values: Sequence[float]) -> Series:
    step = SPAN_S / (len(values) - 1)
    return Series(name, tuple(END - SPAN_S + index * step for index in range(len(values))), tuple(values))


def ramp(name: str, low: float = 0.0, high: float = 1.0, count: int = 60) -> Series:
    return line(name, [low + (high - low) * index / (count - 1) for index in range(count)])


def level(name: str, value: float) -> Series:
    return ramp(name, value, value + 0.01)


def spec(title: str = "GPU utilisation", **options: object) -> ChartSpec:
    return ChartSpec(title, END - SPAN_S, END, **options)  # type: ignore[arg-type]


def text(series: list[Series], chart: ChartSpec, width: int, height: int) -> list[str]:
    return ["".join(piece for piece, _ in line) for line in draw(series, chart, width, height)]


@settings(max_examples=30)
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
    lines = text(series, spec(title, has_letters=letters, x_axis=axis, note="stale"), width, height)
    assert len(lines) == (height if width else 0)
    assert all(cell_len(line) == width for line in lines)
    assert not any(character < " " or character == "\x7f" for line in lines for character in line)


def test_all_are_named_while_cut_names_still_differ_and_a_cursor_has_values() -> None:
    jobs = [ramp("llama-70b-sft-v3"), ramp("qwen3-grpo-7"), ramp("whisper-ft")]
    assert text(jobs, spec("loss"), 44, 6)[0].rstrip() == "loss  ━ llama-70…  ━ qwen3-gr…  ━ whisper-…"
    assert text(jobs, spec("loss"), 26, 6)[0].rstrip().endswith("+3")  # cut shorter, nobody knew them
    nodes = [ramp(f"node-{index}", 0.5 - index / 10, 0.5 - index / 10) for index in range(4)]
    reading = spec("GPU use", unit=percent, cursor=END - 60.0)
    assert text(nodes, reading, 36, 6)[0].rstrip() == "GPU use  ━ 0 50%  ━ 1 40%  +2"
    assert text(nodes, reading, 24, 6)[0].rstrip() == "GPU use  ━ 0 50%  +3"


def test_legend_of_many_series_measures_no_more_names_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []

    def measure(text: str) -> int:
        measured.append(text)
        return cell_len(text)

    monkeypatch.setattr(legend, "cell_len", measure)
    readout = Readout(0.5, 0.0, 1.0)
    entries = [Entry("━", f"node-{index}", index, lambda: readout) for index in range(400)]
    line = "".join(piece for piece, _ in legend.header_line("GPU use", entries, 60, percent, spec()))
    assert line.startswith("GPU use  ━ 0  ━ 1 ") and line.rstrip().endswith("+391")
    assert len(measured) < 30 * len(entries)


@pytest.mark.parametrize(("width", "height"), [(40, 8), (60, 8), (120, 20)])
def test_long_names_are_told_apart_in_every_legend(width: int, height: int) -> None:
    series = [ramp(f"baseten-training-job-lqz4o0q-multinode-{rank}", rank, rank + 1) for rank in range(3)]
    drawn = draw(series, spec("use"), width, height)
    pieces = [(role, piece.strip()) for line in drawn for piece, role in line if "━" in piece]
    assert [[piece[-1] for role, piece in pieces if role == rank][-1] for rank in range(3)] == ["0", "1", "2"]


def test_empty_charts_say_so() -> None:
    lines = text([], spec(empty_text="no GPU data yet"), 40, 9)
    assert lines[0].startswith("GPU utilisation")
    assert any(line.strip() == "no GPU data yet" for line in lines)
    for value, words in (
        (math.nan, "no data"),
        (math.inf, "no finite values"),
        (-math.inf, "no finite values"),
    ):
        assert words in "\n".join(text([Series("s", (END - 5,), (value,))], spec(), 40, 9))


@pytest.mark.parametrize("place", [0.0, 0.001, 0.5, 1.0])
@pytest.mark.parametrize("value", [0.0, 0.97, 2.5])
def test_a_single_sample_is_a_spot_that_is_seen_wherever_it_lies(place: float, value: float) -> None:
    chart = spec("loss", y_min=0.0)
    at = chart.start + place * (chart.end - chart.start)
    cells = "".join(text([Series("loss", (at,), (value,))], chart, 40, 9)[1:-1])
    dots = sum((ord(cell) - 0x2800).bit_count() for cell in cells if 0x2800 < ord(cell) < 0x2900)
    assert dots == 4


def use(**options: object) -> ChartSpec:
    return ChartSpec("use", END - SPAN_S, END, unit=percent, **options)  # type: ignore[arg-type]


def test_the_mean_is_not_pulled_to_zero_and_gaps_stay_gaps() -> None:
    assert smoothed(line("s", [5.0] * 10), 0.9).values == pytest.approx([5.0] * 10)
    mean = smoothed(Series("s", (1.0, 2.0, 3.0, 4.0), (1.0, math.nan, math.inf, 2.0)), 0.5).values
    assert mean[0] == 1.0 and math.isnan(mean[1]) and math.isinf(mean[2])
    assert mean[3] == pytest.approx((1.0 * 0.5 + 2.0) / 1.5)


def test_logarithms_leave_out_what_has_none() -> None:
    values = logarithmic(line("s", [100.0, 0.0, -1.0, 10.0])).values
    assert values[0] == 2.0 and math.isnan(values[1]) and math.isnan(values[2]) and values[3] == 1.0


@given(st.floats(-8, 8), st.floats(0.0, 12), st.integers(2, 9))
def test_logarithmic_ticks_enclose_the_data(low: float, span: float, most: int) -> None:
    ticks = log_ticks(low, low + span, most)
    assert ticks[0] <= low + 1e-6 and ticks[-1] >= low + span - 1e-6
    assert list(ticks) == sorted(set(ticks)) and len(ticks) <= most + 1


def test_marks_lie_on_the_axis_and_the_worst_is_seen() -> None:
    marks = (
        Mark(END - 900, "◆", "good", "checkpoint-1"),
        Mark(END - 901, "✗", "bad", "CUDA error"),
        Mark(END - 902, "↻", "caution"),
        Mark(END - 9999, "◆", "good", "long ago"),
    )
    for height in (12, 6):
        rows = text([line("s", [0.5] * 9)], use(marks=marks), 60, height)
        assert sum(row.count("✗") for row in rows) == 1
        assert not any(sign in "".join(rows) for sign in "◆↻")
        assert all(cell_len(row) == 60 for row in rows)


@pytest.mark.parametrize("width", [30, 60, 120])
@pytest.mark.parametrize("height", [5, 20])
def test_labels_of_the_x_axis_cover_no_mark_and_have_one_line_at_every_height(width, height) -> None:
    marks = (Mark(END - 900, "◆", "good"), Mark(END - 1200, "▲", "caution"))
    rows = text([line("s", [0.5] * 9)], use(marks=marks), width, height)
    axis = rows[-1]
    assert axis.lstrip().startswith("└") and all(sign in axis for sign in "◆▲")
    assert "└" not in "".join(rows[:-1]) and "m " in axis


@pytest.mark.parametrize(("minutes", "shown"), [((7, 14, 24), 3), (range(2, 30, 2), 0)])
def test_x_axis_marks_all_checkpoints_beside_half_of_its_labels_or_none(
    minutes: Sequence[int], shown: int
) -> None:
    marks = tuple(Mark(END - 60.0 * minute, "◆", "good") for minute in minutes)
    axis = text([line("s", [0.5] * 9)], use(marks=(*marks, Mark(END - 1500, "▲", "caution"))), 60, 6)[-1]
    assert axis.count("◆") == shown and all(part in axis for part in ("▲", "-20m", "-10m", "now"))


@pytest.mark.parametrize("minute", range(30))
def test_time_at_the_cursor_hides_only_the_checkpoints_that_it_covers(minute: int) -> None:
    marks = tuple(Mark(END - 60.0 * minute, "◆", "good") for minute in (10, 20))
    shown = use(marks=marks, cursor=END - 60.0 * minute)
    assert "◆" in text([line("s", [0.5] * 9)], shown, 60, 6)[-1]


def test_values_are_read_at_the_nearest_sample_and_not_in_gaps() -> None:
    series = Series("s", (0.0, 10.0, 20.0, 30.0), (1.0, 2.0, math.nan, 4.0))
    assert [value_at(series, x) for x in (0, 4, 6, 14, 16, 29, 39, 45)] == [1, 1, 2, 2, None, 4, 4, None]
    assert value_at(Series("s"), 1.0) is None
    said = read_series(series, 0, 25, None)
    assert (said.value, said.low, said.high) == (2.0, 1.0, 2.0)


@pytest.mark.parametrize(("share", "least", "most"), [(0.0, 10, 20), (0.25, 1, 5)])
def test_noise_does_not_fill_an_axis_with_a_least_range(share: float, least: int, most: int) -> None:
    speed = line("it/s", [0.0872, 0.0890, 0.0875, 0.0888] * 5)
    rows = draw([speed], use(min_relative_range=share), 60, 20)
    assert least <= sum(any(role == 0 for _, role in row) for row in rows[1:]) <= most


BANDED = [level("node-0", 0.95), level("node-1", 0.9), level("node-2", 0.3), level("node-3", 0.8)]
SIZES = [(40, 6), (80, 20), (120, 30)]


def roles(lines: list[Line]) -> set[Role]:
    return {role for line in lines for piece, role in line if piece.strip()}


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("smoothing", [0.0, 0.6])
@pytest.mark.parametrize("hidden", [(), ("node-1",)])
def test_legend_of_a_band_names_each_part_that_is_drawn_once(width, height, smoothing, hidden) -> None:
    chart = spec(
        "GPU use",
        unit=percent,
        y_min=0.0,
        y_max=1.0,
        has_band=True,
        emphasis=frozenset({"node-2"}),
        smoothing=smoothing,
        hidden=frozenset(hidden),
    )
    title, *rows = draw(BANDED, chart, width, height)
    in_title = [(piece, role) for piece, role in title if piece[:1] in "━·"]
    in_table = [(piece, role) for line in rows for piece, role in line if piece[:1] in "━·"]
    off = [(f"· {name}", -2) for name in hidden]
    parts = [("━ node-2", 2), (f"━ {3 - len(hidden)} others", "median"), *off]
    assert in_title == parts[: len(in_title)] and in_table in ([], parts)
    assert bool(in_table) != (len(in_title) >= 2)
    assert bool(in_table) == (width > 40 and len(parts) > 2)
    assert roles(rows) & {0, 1, 3} == set()


@pytest.mark.parametrize("smoothing", [0.0, 0.6])
def test_band_does_not_reach_to_the_line_drawn_beside_it(smoothing) -> None:
    chart = spec(
        "use", y_min=0.0, y_max=1.0, has_band=True, emphasis=frozenset({"node-2"}), smoothing=smoothing
    )
    lines = draw(BANDED, chart, 100, 42)[1:41]
    gray = [row for row, line in enumerate(lines) for piece, role in line if role == "band"]
    assert gray and max(gray) <= 0.25 * 40  # the band is between 80 and 96 %


def test_title_keeps_its_values_beside_a_table() -> None:
    chart = spec("GPU use", unit=percent, has_band=True, emphasis=frozenset({"node-2"}))
    assert text(BANDED, chart, 120, 20)[0].rstrip() == "GPU use  ━ node-2 31%  ━ 3 others 91%"
    chart = spec("loss")
    title = text([level("loss", 0.5), level("eval loss", 0.25)], chart, 120, 20)[0].rstrip()
    assert title == "loss  ━ loss 0.510  ━ eval loss 0.260"


@pytest.mark.parametrize("width", range(20, 60))
def test_legend_leaves_a_cell_to_the_next_chart(width: int) -> None:
    assert text(BANDED, spec("use"), width, 8)[0].endswith(" ")


def test_series_drawn_in_gray_are_gray_in_the_legend_and_can_be_clicked() -> None:
    crowd = [level(f"node-{rank}", rank / 20) for rank in range(12)]
    lines = draw(crowd, spec("use", emphasis=frozenset({"node-7"})), 120, 20)
    named = [(piece.strip(), role) for line in lines[1:] for piece, role in line if piece[:1] == "━"]
    assert named[0] == ("━ node-7", 7)
    assert all(series_of(role) == int(piece[len("━ node-") :]) for piece, role in named)
    assert not any(isinstance(role, int) for _, role in named[1:])


def test_all_below_a_line_that_is_alone_or_leads_is_shaded_in_its_color() -> None:
    rows = draw([ramp("loss")], spec("loss", is_shaded=True), 60, 12)[1:11]
    cells = [[str(role) for piece, role in row for _ in piece] for row in rows]
    for column in zip(*cells, strict=True):
        drawn = [row for row, role in enumerate(column) if role == "0" or re.fullmatch("area:0:.:0", role)]
        if drawn:
            below, above = {*column[max(drawn) + 1 :]}, {*column[: min(drawn)]}
            assert below <= {"area:0:4:blank", "area:0:4:band:0"} and above <= {"blank", "band:0"}
    assert sum(row.count("area:0:4:blank") for row in cells) > 100
    crossed = {role for row in cells for role in row if role.endswith(":0") and "band" not in role}
    assert crossed == {f"area:0:{below}:0" for below in (1, 2, 3)}  # never a whole cell

    def shades(lines: Sequence[Series], **options: Any) -> set[str]:
        shaded = draw(lines, spec(is_shaded=True, **options), 60, 12)
        return {str(role)[:6] for role in roles(shaded) if "area" in str(role)}

    read_at = spec(is_shaded=True, cursor=END - SPAN_S / 2)
    assert sum(line.count("│") for line in text([ramp("loss")], read_at, 60, 12)) > 15  # axis and cursor
    two = [ramp("loss"), ramp("eval loss", high=2.0)]
    assert shades(two, has_main_line=True) == {"area:0"} and not shades(two)
    crowd = [level(f"node-{rank}", 0.9) for rank in range(6)]
    assert shades(crowd, has_band=True) == {"area:m"} and not shades(
        crowd, has_band=True, emphasis=frozenset({"node-2"})
    )


def test_nothing_is_shaded_below_a_flat_line() -> None:
    begins, flat = Series("use", (END - SPAN_S,), (0.0,)), ramp("use", 0.98, 0.98)
    rising = Series("use", (*begins.times, *flat.times[1:]), (*begins.values, *flat.values[1:]))
    stalled = replace(ramp("use", 0.86, 0.86, 100), values=(0.86,) * 97 + (1.0,) * 3)
    for line in (flat, rising, stalled):
        drawn = draw([line], spec(is_shaded=True, y_min=0.0, y_max=1.0), 60, 12)
        assert "area" not in {str(role)[:4] for row in drawn for _, role in row}


@pytest.mark.parametrize("smoothing", [0.0, 0.9])
def test_noise_is_read_as_a_line_in_its_band_and_not_shaded(smoothing: float) -> None:
    def roles_of(fall: float) -> set[str]:
        steps = ramp("loss", count=600)
        noisy = tuple(fall * (step < 300) + 0.01 * (step % 7 - 3) for step in range(600))
        shown = spec("loss", is_shaded=True, has_main_line=True, smoothing=smoothing)
        return {str(role)[:4] for role in roles(draw([replace(steps, values=noisy)], shown, 60, 12))}

    assert "band" in roles_of(0.02) and "area" not in roles_of(0.02)
    assert "area" in roles_of(1.0)


def test_a_shaded_line_keeps_its_dots_above_the_shade() -> None:
    plain, shaded = (text([ramp("loss")], spec("loss", is_shaded=on), 60, 12) for on in (False, True))
    assert plain == shaded


def test_a_plain_number_at_the_cursor_has_five_digits_beside_its_line() -> None:
    reading = spec("loss", cursor=END - SPAN_S / 2)
    title, *rows = text([ramp("loss", 1.0, 1.5)], reading, 60, 12)
    assert any("│1.2542" in row for row in rows) and title.startswith("loss  1.2542")


def test_evaluations_are_points_that_do_not_hide_the_line_they_belong_to() -> None:
    loss, every_fifth = ramp("loss", count=600), slice(None, None, 100)
    evaluated = Series("eval loss", loss.times[every_fifth], loss.values[every_fifth])
    rows = draw([loss, evaluated], spec("loss", has_main_line=True), 80, 12)[1:11]
    cells = [[role for piece, role in row for _ in piece] for row in rows]
    columns = list(zip(*cells, strict=True))
    assert 5 <= sum(1 in column for column in columns) <= 12
    assert sum(0 in column for column in columns) >= 55


def test_of_lines_that_coincide_all_are_seen() -> None:
    whole = ramp("whole", count=600)
    half = Series("half", whole.times[:300], whole.values[:300])
    point = Series("point", whole.times[:1], whole.values[:1])

    def roles(*series: Series, **options: object) -> list[Role]:
        rows = draw(series, spec("loss", **options), 80, 12)[1:11]
        return [role for row in rows for piece, role in row for _ in piece]

    cells = {role: roles(whole, half).count(role) for role in (0, 1)}
    assert cells[0] > cells[1] >= 15
    assert roles(whole, point).count(1) == 1
    assert roles(whole, half, selected="half").count(1) > 30


LOSSES = [ramp("loss", 2.0, 0.999), ramp("eval loss", 2.0, 1.0246)]


def test_values_at_the_cursor_do_not_cover_each_other() -> None:
    raster = [row[8:] for row in text(LOSSES, spec("loss", has_main_line=True, cursor=END), 60, 6)[1:5]]
    found = [number for row in raster for number in re.findall(r"[0-9.]+", row)]
    assert found and set(found) <= {"0.99900", "1.0246"}


def test_the_greater_value_at_the_cursor_is_above_and_letters_name_both() -> None:
    reading = spec("loss", has_main_line=True, has_letters=True, cursor=END)
    shown = "\n".join(text(LOSSES, reading, 60, 12)[1:])
    assert 0 < shown.find("B 1.0246") < shown.find("A 0.99900")
    assert shown.count("A") == shown.count("B") == 1  # what is named beside its value is not named again
