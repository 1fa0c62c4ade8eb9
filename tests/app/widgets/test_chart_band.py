"""A restless line is drawn as its band and its mean, and loses no extreme by it."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from widget_text import draw

from tui.analysis.series import Series
from tui.widgets.charts import braille
from tui.widgets.charts.braille import Grid
from tui.widgets.charts.raster import dotted, is_band, mean_spans
from tui.widgets.charts.spec import ChartSpec

NOISE = Series(
    "loss",
    tuple(n / 10 for n in range(6000)),
    tuple(2 - n / 6000 + 0.4 * math.sin(n * n) for n in range(6000)),
)
CALM = Series("loss", NOISE.times, tuple(2 - n / 6000 for n in range(6000)))


def drawn(series: Series, **options: object) -> tuple[str, str]:
    """The cells of the line and those of what lies faintly below it."""
    spec = ChartSpec(title="loss", start=0, end=600, **options)  # type: ignore[arg-type]
    lines = draw([series], spec, 60, 14)
    body = [run for line in lines[1:] for run in line]
    return "".join(text for text, role in body if role == 0), "".join(
        t for t, role in body if role == "faint"
    )


def test_a_restless_line_has_a_band_and_a_mean_and_a_calm_one_has_none() -> None:
    line, band = drawn(NOISE)
    assert len(band.strip()) > len(line.strip()) > 40
    assert drawn(CALM)[1] == ""
    assert len(drawn(CALM)[0].strip()) > 40


def test_a_person_s_own_smoothing_goes_before() -> None:
    assert drawn(NOISE, smoothing=0.9)[0] != drawn(NOISE)[0]


@given(st.dictionaries(st.integers(0, 50), st.integers(1, 2**40), min_size=1))
def test_a_dotted_band_keeps_the_ends_of_every_column(bits: dict[int, int]) -> None:
    found = dotted(bits, Grid.over(0, 100, 60))
    assert found.keys() == bits.keys()
    for column, dots in found.items():
        assert dots & ~bits[column] == 0
        assert dots.bit_length() == bits[column].bit_length()
        assert dots & -dots == bits[column] & -bits[column]


def test_the_mean_lies_between_and_stops_at_gaps() -> None:
    values = [n % 2 + 0.0 for n in range(100)]
    values[50] = math.nan
    values[20] = math.inf
    series = Series("s", tuple(n / 10 for n in range(100)), tuple(values))
    spans = mean_spans(series, Grid.over(0, 10, 20))
    assert all(0.3 <= low == high <= 0.7 for _, low, high, _, _, _ in spans)
    assert [joined for *_, joined in spans].count(False) == 2


def test_a_single_spike_makes_no_band() -> None:
    series = Series("s", CALM.times, (*CALM.values[:3000], 9.0, *CALM.values[3001:]))
    spans = braille.reduce_to_spans(series, Grid.over(0, 600, 100))
    assert not is_band(spans, 40, 0.0, 9.0)
