import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.text import units

KIB, MIB, GIB = 1024, 1024**2, 1024**3


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 B"), (1, "1 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (1536, "1.50 KiB"),
        (1234567, "1.18 MiB"), (10 * MIB, "10.0 MiB"), (999.7 * MIB, "1000 MiB"), (1023.7 * KIB, "1.00 MiB"),
        (61.2 * GIB, "61.2 GiB"), (141 * GIB, "141 GiB"), (2**40, "1.00 TiB"), (2**75, "32768 EiB"),
        (-2048, "-2.00 KiB"), (None, "–"), (math.nan, "–"), (math.inf, "–"), (10**400, "–"),
    ],
)  # fmt: skip
def test_bytes(size, shown):
    assert units.bytes_iec(size) == shown


def size_of(shown: str) -> float:
    number, unit = shown.split()
    return float(number) * 1024 ** ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].index(unit)


@given(st.integers(0, 2**60))
def test_bytes_are_true_to_three_digits(size):
    shown = units.bytes_iec(size)
    assert size_of(shown) == pytest.approx(size, rel=0.0051)
    assert len(shown.split()[0].replace(".", "")) <= 4


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0s"), (9, "9s"), (59.9, "59s"), (60, "1m"), (41 * 60 + 30, "41m"), (3600, "1h 00m"),
        (22320, "6h 12m"), (86399, "23h 59m"), (86400, "1d 0h"), (273600, "3d 4h"), (-5, "0s"), (None, "–"),
        (math.nan, "–"),
    ],
)  # fmt: skip
def test_duration(seconds, shown):
    assert units.duration(seconds) == shown


def seconds_of(shown: str) -> int:
    factors = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    return sum(int(part[:-1]) * factors[part[-1]] for part in shown.split())


@given(st.floats(0, 1e8), st.floats(0, 1e8))
def test_a_longer_time_never_reads_as_shorter(one, other):
    less, more = sorted((one, other))
    for show in (units.duration, units.age):
        assert seconds_of(show(less)) <= seconds_of(show(more))
        assert seconds_of(show(more)) <= more


def test_small_readings():
    assert [units.percent(v) for v in (0.463, 0, 1, None, math.nan)] == ["46 %", "0 %", "100 %", "–", "–"]
    assert [units.cores(v) for v in (0.25, 12.34, 110.4, None)] == ["0.25", "12.3", "110", "–"]
    assert [units.rate(v) for v in (0.18, 12.34, 4120, 0.05, None)] == [
        "0.18 it/s", "12.3 it/s", "4,120 it/s", "20.0 s/it", "–",
    ]  # fmt: skip
    assert [units.count(v) for v in (4120, 0, 1e6, None)] == ["4,120", "0", "1,000,000", "–"]
    assert [units.money(v) for v in (0.42, 12.5, 99.999, 1012.4, -3, None)] == [
        "$0.42", "$12.50", "$100", "$1,012", "-$3.00", "–",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.9132, "0.913"), (12.41, "12.4"), (1.9e-5, "1.9e-05"), (0.0, "0"), (4120, "4,120"),
        (-0.0123, "-0.0123"), (math.nan, "nan"), (math.inf, "inf"), (-math.inf, "-inf"), (None, "–"), (9.996, "10.0"),
        (1234567.0, "1.23e+06"),
    ],
)  # fmt: skip
def test_number(value, shown):
    assert units.number(value) == shown
