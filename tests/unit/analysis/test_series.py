import math

from hypothesis import given, strategies as st

from tui.analysis.series import Series, SeriesBuffer, column_extremes, even_means, mean_between

NAN = math.nan
times_and_values = st.dictionaries(st.integers(0, 400), st.floats(-1e6, 1e6) | st.just(NAN), max_size=60)


def series_of(points: dict[int, float]) -> Series:
    ordered = sorted(points)
    return Series("s", tuple(map(float, ordered)), tuple(points[time] for time in ordered))


def finite(values):
    return [value for value in values if value == value]


def same(one: Series, other: Series) -> bool:
    return one.times == other.times and [repr(v) for v in one.values] == [repr(v) for v in other.values]


@given(times_and_values, st.integers(1, 50), st.integers(-10, 390), st.integers(1, 450))
def test_columns_keep_every_extreme(points, columns, start, length):
    series = series_of(points)
    end = start + length
    reduced = column_extremes(series, start, end, columns)
    assert len(reduced) == columns
    inside = finite(value for time, value in points.items() if start <= time <= end)
    kept = [bound for pair in reduced if pair for bound in pair]
    assert bool(kept) == bool(inside)
    if inside:
        assert (min(kept), max(kept)) == (min(inside), max(inside))


@given(times_and_values, st.integers(1, 16), st.sampled_from([2, 4, 8]))
def test_coarse_columns_are_the_union_of_fine_ones(points, columns, factor):
    series = series_of(points)
    coarse = column_extremes(series, 0, 512, columns)
    fine = column_extremes(series, 0, 512, columns * factor)
    for place, pair in enumerate(coarse):
        bounds = [bound for part in fine[place * factor : (place + 1) * factor] if part for bound in part]
        assert pair == ((min(bounds), max(bounds)) if bounds else None)


@given(
    st.lists(st.tuples(st.integers(0, 60), st.none() | st.floats(-9, 9)), max_size=80),
    st.randoms(use_true_random=False),
    st.lists(st.integers(0, 80), max_size=5),
)
def test_a_buffer_depends_on_what_it_holds_not_on_the_order_it_came_in(samples, random, looks):
    held = dict(samples)
    shuffled = list(held.items())
    random.shuffle(shuffled)
    one, other, fresh = (SeriesBuffer("s") for _ in range(3))
    for buffer, added in ((one, samples), (other, shuffled)):
        for place, (time, value) in enumerate(added):
            buffer.add(float(time), value)
            if place in looks:
                buffer.snapshot()
    fresh.extend((float(time), held[time]) for time in sorted(held))
    assert same(one.snapshot(), other.snapshot())
    assert same(one.snapshot(), fresh.snapshot())
    shown = dict(zip(one.snapshot().times, one.snapshot().values, strict=True))
    for time, value in held.items():
        assert repr(shown[float(time)]) == repr(NAN if value is None else value)
    assert list(one.snapshot().times) == sorted(shown)


def test_a_hole_in_the_samples_is_a_gap_and_coarse_history_before_fine_ones_is_none():
    holed, coarse = [0, 5, 10, 15, 100, 105, 110, 115], [*range(0, 600, 60), *range(600, 660, 5)]
    for times, holes in ((holed, [57.5]), (coarse, [])):
        buffer = SeriesBuffer("s")
        buffer.extend((float(time), 1.0) for time in times)
        shown = buffer.snapshot()
        assert [
            time for time, value in zip(shown.times, shown.values, strict=True) if value != value
        ] == holes


def test_a_buffer_is_bounded_and_drops_the_oldest():
    buffer = SeriesBuffer("s", max_points=100)
    for time in range(1000):
        buffer.add(float(time), float(time))
    assert len(buffer) <= 100
    assert list(buffer.snapshot().times) == [float(t) for t in range(1000 - len(buffer), 1000)]
    assert not buffer.add(-5.0, 1.0) or len(buffer) <= 100


def test_the_value_near_a_time():
    buffer = SeriesBuffer("s")
    buffer.extend([(10.0, 1.0), (20.0, None), (30.0, 3.0)])
    near = {12.0: 1.0, 16.0: None, 21.0: None, 9.0: None, 30.0: 3.0}
    assert {at: buffer.value_near(at, 5.0) for at in near} == near


def test_sample_at_an_edge_belongs_to_one_part() -> None:
    series = Series("use", (0.0, 1.0, 2.0, 3.0, 4.0), (1.0, 1.0, 4.0, 1.0, 1.0))
    assert even_means(series, 2) == (2.0, 1.0)
    assert mean_between(series, 2.0, 4.0) == 1.0
