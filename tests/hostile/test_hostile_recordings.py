"""Recordings that somebody wrote with care: each opens at a small cost, or is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from api_client.recordings.reading import Recording
from support.recorded import BEGIN, END, by_hand, iso, line, messages, ndjson, ns_of, shown

OUT_OF_RANGE = (
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    "9999-12-31T23:59:59.999999Z",
    "1969-12-31T23:59:59Z",
)


@pytest.mark.parametrize("time", [*OUT_OF_RANGE, "9" * 19, "9" * 5_000])
def test_times_out_of_range_are_no_times(tmp_path: Path, time: str) -> None:
    gap = {"gap": {"start": iso(1), "end": time}}
    log = ndjson(line(5, "before"), {"timestamp": time, "message": "x"}, gap, line(9, "after"))
    rows = ndjson({"timestamp": time, "cpu_usage": 1.0}, {"timestamp": iso(7), "cpu_usage": 2.0})
    members = {"logs.ndjson": log, "metrics.ndjson": rows}
    with Recording(by_hand(tmp_path / "run.btrun", members)) as recording:
        unreadable = "[a line of the recording can't be read]"
        assert messages(recording) == ["before", unreadable, unreadable, "after"]
        assert [one.value for one in recording.metrics.select(0, 2**63, step_s=1).cpu_usage] == [2.0]
        assert (recording.begin, recording.until) == (BEGIN, END)


@pytest.mark.parametrize("value", ["9" * 400, "-1e400", "NaN", "1e300", "true", '"1"', "[]"])
def test_values_out_of_range_are_no_samples(tmp_path: Path, value: str) -> None:
    row = f'{{"timestamp": "{iso(5)}", "cpu_usage": {value}, "gpu_utilization": {{"0": {value}, "1": 0.5}}}}'
    with Recording(by_hand(tmp_path / "run.btrun", {"metrics.ndjson": row})) as recording:
        found = recording.metrics.select(0, 2**62, step_s=1)
    assert (found.cpu_usage, [one.value for one in found.gpu_utilization["1"]]) == ([], [0.5])


def test_recording_of_a_thousand_years_is_short(tmp_path: Path) -> None:
    log = ndjson(line(5, "one"), {"timestamp": str(ns_of(END) + 10**18), "message": "in 30 years"})
    old = ndjson({"timestamp": "0", "message": "in 1970"}, line(5, "one"))
    for members in ({"logs.ndjson": log}, {"logs.ndjson": old}):
        with Recording(by_hand(tmp_path / "run.btrun", members)) as recording:
            assert (recording.until - recording.begin).days <= 3_660
            assert "one" in shown(recording, recording.until)
            assert "long before or after the run" in recording.problems[0]
