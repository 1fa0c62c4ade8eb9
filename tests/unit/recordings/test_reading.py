"""A recording opens, whoever wrote it, and shows what was known at each moment of the run."""

from __future__ import annotations

import json
import re
import zipfile
from copy import copy
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from api_client.clock import epoch_ns
from api_client.models.logs import stamp_ns
from api_client.recordings.archive import MAX_TOTAL_BYTES, RecordingError
from api_client.recordings.reading import JOB, MANIFEST, NOT_RECORDED, Recording
from support.recorded import BEGIN, DOCUMENTS, at, by_hand, iso, line, messages, ndjson, sample, shown

BLOCK = f"logs/000001_{line(10, '')['timestamp']}_{line(20, '')['timestamp']}.ndjson"
PAGE = Path(__file__).parents[3] / "docs" / "recordings.md"


@pytest.mark.proves("docs/recordings.md", "Format")
@pytest.mark.proves("docs/recordings.md", "Write one yourself")
def test_the_lines_of_the_documentation_make_a_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert code is not None
    monkeypatch.chdir(tmp_path)
    exec(compile(code[1], str(PAGE), "exec"), {})
    with Recording(tmp_path / "example.btrun") as recording:
        assert messages(recording)[-1] == "step 199/200 loss=1.005"
        found = recording.metrics.select(0, 2**62, step_s=1)
        assert len(found.per_node_metrics[0].metrics.gpu_utilization["0"]) == 60
        assert recording.problems == []


def test_lines_are_shown_from_their_arrival_and_gaps_are_kept(tmp_path: Path) -> None:
    gap = {"gap": {"start": iso(30), "end": iso(40), "reason": "refused"}}
    log = ndjson(line(10, "first"), gap, line(50, "newer"), line(20, "late", late=True), line(60, "last"))
    with Recording(by_hand(tmp_path / "run.btrun", {"logs.ndjson": log})) as recording:
        assert shown(recording, at(25)) == ["first"]
        assert shown(recording, at(49)) == ["first", "[refused]"]
        assert shown(recording, at(50)) == ["first", "late", "newer", "[refused]"]
        assert shown(recording, recording.until, 2, newest_first=True) == ["last", "newer", "[refused]"]


@pytest.mark.parametrize(
    ("seconds", "status", "checkpoints"),
    [(30, "CREATED", 0), (60, "RUNNING", 0), (1000, "RUNNING", 1), (3499, "RUNNING", 3), (3500, "FAILED", 3)],
)
def test_job_checkpoints_and_history_are_what_they_were_then(
    tmp_path: Path, seconds: float, status: str, checkpoints: int
) -> None:
    with Recording(by_hand(tmp_path / "run.btrun", {})) as recording:
        job, queue = recording.job_at(at(seconds)), recording.queue_at(at(seconds))
        assert job.current_status == f"TRAINING_JOB_{status}"
        assert job.error_message == ("out of memory" if status == "FAILED" else None)
        assert len(recording.checkpoints_at(at(seconds)) or ()) == checkpoints
        assert queue is not None and queue.events[-1].status == job.current_status
    running = DOCUMENTS[JOB] | {"current_status": "TRAINING_JOB_RUNNING", "updated_at": None}
    with Recording(by_hand(tmp_path / "run.btrun", {JOB: running})) as recording:
        after = (recording.job_at(recording.until + timedelta(seconds=late)) for late in (0, 1))
        assert [one.current_status for one in after] == ["TRAINING_JOB_RUNNING", NOT_RECORDED]
    with Recording(by_hand(tmp_path / "run.btrun", {"events.json": None})) as without_events:
        ran_until_its_end = "RUNNING" if seconds < 3500 else "FAILED"
        assert without_events.job_at(at(seconds)).current_status == f"TRAINING_JOB_{ran_until_its_end}"
        assert without_events.queue_at(at(seconds)) is None


def test_samples_are_thinned_to_the_step_that_is_wanted(tmp_path: Path) -> None:
    rows = [sample(10 * number, f"node-{node}", number / 10) for number in range(7) for node in range(2)]
    rows.append({"timestamp": iso(0), "cache": {"usage_bytes": 5}})
    with Recording(by_hand(tmp_path / "run.btrun", {"metrics.ndjson": ndjson(*rows)})) as recording:
        found = recording.metrics.select(0, 2**62, step_s=30)
    assert [node.node_id for node in found.per_node_metrics] == ["node-0", "node-1"]
    assert [one.value for one in found.per_node_metrics[1].metrics.gpu_utilization["0"]] == [0.0, 0.3, 0.6]
    assert found.cache is not None
    assert [one.value for one in found.cache.usage_bytes] == [5.0]


def test_a_line_that_cannot_be_read_is_a_gap(tmp_path: Path) -> None:
    too_long = line(15, Random(1).randbytes(2_500_000).hex())
    broken = ["no json", "[" * 100_000, "7", '{"timestamp": "-1"}', too_long]
    log = ndjson(line(10, "before"), *broken, line(20, "after"), too_long)
    gap = "[a line of the recording can't be read]"
    with Recording(by_hand(tmp_path / "run.btrun", {"logs.ndjson": log})) as recording:
        assert messages(recording) == ["before", *[gap] * 5, "after", gap]
    for alone in broken[:4]:
        with Recording(by_hand(tmp_path / "run.btrun", {"logs.ndjson": ndjson(alone)})) as recording:
            stamps = [stamp_ns(entry) for entry in recording.log.entries()]
            assert (stamps, recording.begin) == ([epoch_ns(BEGIN)], BEGIN)


@pytest.mark.parametrize("time", ["0", "-1", 0, None, "9" * 19, "soon"])
def test_line_without_a_valid_time_has_that_of_the_line_before(tmp_path: Path, time: object) -> None:
    lines = [{"timestamp": time, "message": text} for text in ("one", "two")]
    named = f"logs/1_{epoch_ns(BEGIN)}_{epoch_ns(at(9))}.ndjson"
    for members in (
        {"logs.ndjson": ndjson(*lines)},
        {"logs.ndjson": ndjson(line(5, "before"), *lines)},
        {named: ndjson(line(5, "before"), *lines)},
        {"logs/0_0_0.ndjson": ndjson(*lines)},
    ):
        with Recording(by_hand(tmp_path / "run.btrun", members)) as recording:
            entries = list(recording.log.entries())
            assert shown(recording, recording.until)[-2:] == ["one", "two"]
            assert {stamp_ns(entry) for entry in entries} == {epoch_ns(BEGIN if len(entries) == 2 else at(5))}
            if named not in members:
                assert recording.problems[-1].endswith("has 2 lines without a valid time")


@pytest.mark.parametrize("name", ["logs/first.ndjson", "logs/0_1_2.ndjson", "logs/1_2_x"])
@pytest.mark.proves("docs/recordings.md", "Blocks")
def test_part_of_a_wrong_name_is_read_and_reported(tmp_path: Path, name: str) -> None:
    members = {name: ndjson(line(10, "one"), line(20, "two")), "log/0_1_2.ndjson": ndjson(line(30, "three"))}
    with Recording(by_hand(tmp_path / "run.btrun", members)) as recording:
        assert shown(recording, recording.until) == ["one", "two"]
        assert recording.problems == [
            f"{name}: a wrong name for a part of the logs",
            "1 unknown part, such as log/0_1_2.ndjson",
        ]


@pytest.mark.parametrize("junk", ["", "7", '{"timestamp": "1"}', json.dumps(line(15, "x"))])
@pytest.mark.parametrize("name", ["logs.ndjson", BLOCK])
@pytest.mark.proves("docs/recordings.md", "Format")
@pytest.mark.proves("docs/recordings.md", "Limits")
def test_more_lines_than_a_log_of_that_size_has_are_a_gap(tmp_path: Path, name: str, junk: str) -> None:
    log = ndjson(line(10, "before"), *[junk] * 100_000, line(20, "after"))
    with Recording(by_hand(tmp_path / "run.btrun", {name: log})) as recording:
        found = shown(recording, recording.until)
        assert (len(found) < 2_000, found[-1][0]) == (True, "[")


@pytest.mark.proves("docs/recordings.md", "Format")
@pytest.mark.proves("docs/recordings.md", "Blocks")
def test_a_damaged_block_is_a_gap_and_other_damage_is_reported(tmp_path: Path) -> None:
    members = {BLOCK: ndjson(line(20, "x" * 100)), "events.json": {"not": "a list"}, "checkpoints.json": "{"}
    path = by_hand(tmp_path / "run.btrun", members)
    content = path.read_bytes()
    with zipfile.ZipFile(path) as file:
        offset = file.getinfo(BLOCK).header_offset + 30 + len(BLOCK)
    path.write_bytes(content[:offset] + b"\xff\xff\xff" + content[offset + 3 :])
    with Recording(path) as recording:
        assert shown(recording, recording.until) == ["[this part of the recording is damaged]"]
        told = [problem.partition(":")[0] for problem in recording.problems]
        assert told == ["events.json", "checkpoints.json is not JSON"]


def test_lines_that_are_not_of_the_time_in_the_name_of_their_block_are_a_gap(tmp_path: Path) -> None:
    name = f"logs/000001_{line(20, '')['timestamp']}_{line(10, '')['timestamp']}.ndjson"
    log = ndjson(line(10, "inside"), line(30, "outside"), line(20, "inside, too"))
    with Recording(by_hand(tmp_path / "run.btrun", {name: log})) as recording:
        gap = "[this part of the recording has lines of another time]"
        assert shown(recording, recording.until) == ["inside", "inside, too", gap]


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({MANIFEST: None}, "it has no manifest.json"),
        ({MANIFEST: {"format": "something", "version": 1}}, "not a recording"),
        ({MANIFEST: {"format": DOCUMENTS[MANIFEST]["format"], "version": 2}}, "newer version"),
        ({MANIFEST: "[]"}, "manifest.json"),
        ({JOB: {"id": 7}}, "job.json: id"),
        ({JOB: "0" * 40_000_000}, "job.json is compressed more than"),
        ({JOB: json.dumps([{str(n): n} for n in range(30_000)])}, "job.json has more than 25,000 objects"),
    ],
)
def test_what_is_no_recording_is_refused_with_the_reason(
    tmp_path: Path, members: dict[str, object], reason: str
) -> None:
    with pytest.raises(RecordingError, match=reason):
        Recording(by_hand(tmp_path / "run.btrun", members))


@pytest.mark.proves("docs/recordings.md", "Format")
def test_a_zip_bomb_and_a_damaged_directory_are_refused(tmp_path: Path) -> None:
    path = by_hand(tmp_path / "run.btrun", {"logs.ndjson": "x"})
    content = path.read_bytes()
    bomb = (content.rindex(b"PK\1\2") + 24, MAX_TOTAL_BYTES - 1, "more than 4,294,967,296 bytes")
    for place, number, reason in (bomb, (len(content) - 6, 2**31, "manifest.json is damaged")):
        path.write_bytes(content[:place] + number.to_bytes(4, "little") + content[place + 4 :])
        with pytest.raises(RecordingError, match=reason):
            Recording(path)
    for content in (b"", b"hello", b"PK\3\4" + b"\0" * 200):
        path.write_bytes(content)
        with pytest.raises(RecordingError, match="not a recording"):
            Recording(path)


@pytest.mark.proves("docs/recordings.md", "Format")
def test_members_that_overlap_are_refused(tmp_path: Path) -> None:
    """Or a megabyte in the file could be read as thousands of members."""
    path = tmp_path / "run.btrun"
    with zipfile.ZipFile(by_hand(path, {"logs.ndjson": Random(1).randbytes(50_000)}), "a") as file:
        twins = [copy(file.getinfo("logs.ndjson")) for _ in range(3)]
        for number, twin in enumerate(twins):
            twin.filename = f"logs/{number}_1_2.ndjson"
        file.filelist += twins
        file.writestr("project.json", "{}")
    with pytest.raises(RecordingError, match="members overlap"):
        Recording(path)


@pytest.mark.proves("docs/recordings.md", "Format")
@pytest.mark.proves("docs/recordings.md", "Limits")
def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = by_hand(tmp_path / "run.btrun", {f"{number}": "" for number in range(30)})
    with zipfile.ZipFile(path) as file:
        directory = file.start_dir
    without_directory = tmp_path / "killed.btrun"
    without_directory.write_bytes(path.read_bytes()[:directory])
    monkeypatch.setattr("api_client.recordings.archive.MAX_MEMBERS", 20)
    for one in (path, without_directory):
        with pytest.raises(RecordingError, match="more than 20 members"):
            Recording(one)
    monkeypatch.setattr("api_client.recordings.archive.MAX_DIRECTORY_BYTES", 1_000)
    with pytest.raises(RecordingError, match="directory has more than 1,000 bytes"):
        Recording(path)


COMPLETE = DOCUMENTS[MANIFEST] | {
    "recorded_until": iso(2 * 86400),
    "complete": True,
    "ended": True,
}


@pytest.mark.parametrize(
    ("log", "checkpoints", "end_s"),
    [
        ([line(10, "first"), line(3400, "last")], (), 3500),
        ([line(10, "first"), line(3520, "late")], (), 3520),
        ([line(10, "first")], (1000, 3540), 3540),
    ],
    ids=["lines before the end", "a line after the end", "a checkpoint after the end"],
)
def test_recording_of_an_ended_job_ends_with_the_job(tmp_path, log, checkpoints, end_s) -> None:
    members = {
        MANIFEST: COMPLETE,
        "logs.ndjson": ndjson(*log),
        "metrics.ndjson": ndjson(sample(100), sample(4000)),
        "checkpoints.json": [{"checkpoint_id": f"c-{s}", "created_at": iso(s)} for s in checkpoints],
    }
    with Recording(by_hand(tmp_path / "run.btrun", members)) as recording:
        assert recording.until == at(end_s)
        assert recording.job_at(recording.until).current_status == "TRAINING_JOB_FAILED"
        assert messages(recording) == [one["message"] for one in log]
        assert len(recording.checkpoints_at(recording.until) or ()) == len(checkpoints)


def test_recording_of_a_running_job_ends_when_it_was_recorded(tmp_path) -> None:
    running = DOCUMENTS[JOB] | {"current_status": "TRAINING_JOB_RUNNING", "updated_at": iso(60)}
    members = {JOB: running, MANIFEST: COMPLETE}
    with Recording(by_hand(tmp_path / "run.btrun", members)) as recording:
        assert recording.until == at(2 * 86400)
