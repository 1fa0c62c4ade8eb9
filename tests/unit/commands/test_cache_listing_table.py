"""What is quick for a hundred thousand files says the same as what is plain for one."""

import time
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api_client.models.cache import ListedPath
from tui.commands.cache.listing import table_lines
from tui.commands.support.output import Output
from tui.commands.support.tables import Cell, TextColumn, render_table
from tui.text.times import LocalStamps, local_stamp
from tui.text.units import bytes_iec

TWO_DIGITS = st.integers(0, 99).map("{:02}".format)
STAMPS = st.builds(
    "{}-{}-{}T{}:{}:{}{}".format,
    st.sampled_from(("0001", "1912", "1965", "1972", "2026", "2100", "9999")),
    st.integers(0, 13).map("{:02}".format),
    st.integers(0, 32).map("{:02}".format),
    st.integers(0, 25).map("{:02}".format),
    TWO_DIGITS,
    TWO_DIGITS,
    st.sampled_from(
        ("Z", "+00:00", ".5Z", ".123456789+00:00", "+02:00", "", "when?", "\N{ARABIC-INDIC DIGIT TWO}")
    ),
) | st.text(max_size=25)


@pytest.fixture(
    params=["UTC", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Monrovia", "America/New_York"],
    scope="module",
)
def zone(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


@given(stamps=st.lists(STAMPS, min_size=1, max_size=50))
def test_times_by_the_hour_are_the_times_one_by_one(zone: str, stamps: list[str]) -> None:
    times = LocalStamps()
    assert [times.of(stamp) for stamp in stamps] == [local_stamp(stamp) for stamp in stamps]


FILES = st.builds(
    ListedPath,
    st.text(max_size=9),
    st.integers(-5, 2**62),
    st.just("2026-03-01T12:00:00Z") | st.text(max_size=30),
    st.sampled_from(("file", "directory", "")) | st.text(max_size=5),
    st.sampled_from(("-rw-r--r--", "")) | st.text(max_size=15),
)
COLUMNS = (
    TextColumn("SIZE", right=True),
    TextColumn("MODIFIED"),
    TextColumn("TYPE"),
    TextColumn("PERMISSIONS"),
    TextColumn("PATH"),
)


@given(st.lists(FILES, min_size=1, max_size=8))
def test_the_lines_are_those_of_any_other_table(files: list[ListedPath]) -> None:
    output = Output(StringIO(), StringIO(), {})
    rows = [
        [
            Cell(bytes_iec(file.size_bytes)),
            Cell(local_stamp(file.modified)),
            Cell(file.file_type or "Unknown"),
            Cell(file.permissions or "Unknown"),
            Cell(file.path),
        ]
        for file in files
    ]
    expected = render_table(COLUMNS, rows, width_cells=None, paint=output.paint).splitlines()
    assert [line.rstrip() for line in "".join(table_lines(files, output)).splitlines()] == expected
