import math
from functools import partial

import pytest
from hypothesis import given, strategies as st

from tui.text import units

KIB, MIB, GIB = 1024, 1024**2, 1024**3
READINGS = {
    units.bytes_iec: {
        0: "0 B", 1023: "1023 B", 1024: "1.00 KiB", 1234567: "1.18 MiB", 999.7 * MIB: "1000 MiB", -2048: "-2.00 KiB",
        1023.7 * KIB: "1.00 MiB", 61.2 * GIB: "61.2 GiB", 141 * GIB: "141 GiB", 2**75: "32768 EiB", 10**400: "–",
    },
    units.duration: {
        0: "0s", 59.9: "59s", 60: "1m", 41 * 60 + 30: "41m", 3600: "1h 00m", 22320: "6h 12m", 86399: "23h 59m",
        86400: "1d 0h", 273600: "3d 4h", -5: "0s",
    },
    units.number: {
        0.9132: "0.913", 12.41: "12.4", 1.9e-5: "1.9e-05", 0.0: "0", 4120: "4,120", -0.0123: "-0.0123", 9.996: "10.0",
        1234567.0: "1.23e+06", math.inf: "inf", -math.inf: "-inf",
    },
    units.percent: {0.463: "46%", 0: "0%", 1: "100%"},
    units.cores: {0: "0", 0.0012: "<0.01", 0.25: "0.25", 12.34: "12.3", 110.4: "110"},
    units.rate: {0.18: "0.18 it/s", 12.34: "12.3 it/s", 4120: "4,120 it/s", 0.05: "20.0 s/it"},
    partial(units.rate, like=0.09): {0.1: "10.0 s/it", 0.05: "20.0 s/it"},
    units.count: {4120: "4,120", 0: "0", 1e6: "1,000,000"},
    units.money: {0.42: "$0.42", 12.5: "$12.50", 99.999: "$100", 1012.4: "$1,012", -3: "-$3.00"},
}  # fmt: skip


@pytest.mark.parametrize("show", READINGS)
def test_readings(show):
    assert {value: show(value) for value in READINGS[show]} == READINGS[show]
    assert (show(None), show(math.nan)) == ("–", "nan" if show is units.number else "–")


def test_counted_words_agree_with_the_number():
    assert [units.counted(number, "file") for number in (0, 1, 1204)] == ["0 files", "1 file", "1,204 files"]
    assert [units.counted(number, "job is", "jobs are") for number in (1, 2)] == ["1 job is", "2 jobs are"]


@given(st.integers(0, 2**60))
def test_bytes_are_true_to_three_digits(size):
    number, unit = units.bytes_iec(size).split()
    power = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].index(unit)
    assert float(number) * 1024**power == pytest.approx(size, rel=0.0051)
    assert len(number.replace(".", "")) <= 4


def seconds_of(shown: str) -> int:
    factors = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    return sum(int(part[:-1]) * factors[part[-1]] for part in shown.split())


@given(st.floats(0, 1e8), st.floats(0, 1e8))
def test_a_longer_time_never_reads_as_shorter(one, other):
    less, more = sorted((one, other))
    for show in (units.duration, units.age):
        assert seconds_of(show(less)) <= seconds_of(show(more)) <= more
