"""Recordings that somebody wrote with care: each opens at a small cost, or is refused."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice, pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from api_client.clock import epoch_ns
from api_client.models import CheckpointFile
from api_client.recordings.reading import CHECKPOINT_FILES, CHECKPOINTS, EVENTS, JOB, MANIFEST, Recording
from api_client.recordings.scrub import Scrubber
from api_client.recordings.writing import RecordingWriter
from support.fake_object_store import FakeObjectStore, Stored
from support.measured_commands import run_measured
from support.recorded import BEGIN, DOCUMENTS, END, by_hand, iso, line, messages, ndjson, shown
from tui.readers.recorder import Recorder

FILE = "trainer_state.json"
NAMES = [
    f"ck/../{FILE}",
    f"../../../{FILE}",
    f"/etc/{FILE}",
    f"runs\\x/{FILE}",
    f"C:/{FILE}",
    f"{'x' * 60_000}/{FILE}",
    f"a\0b\x1b[31m\n/{FILE}",
    f"./{FILE}",
    f"//{FILE}",
    f"é\u202e漢😀/{FILE}",
    f"{'/' * 5_000}{FILE}",
    f"hf_AbCdEfGhIjKlMnOpQr/{FILE}",
    "",
    ".",
    FILE,
]


@pytest.mark.proves("docs/recordings.md", "Format")
async def test_recording_has_every_file_whatever_its_name(tmp_path: Path) -> None:
    path = tmp_path / "run.btrun"
    stored = [Stored(name, b'{"file": %d}' % number) for number, name in enumerate(NAMES)]
    with FakeObjectStore(*stored) as store:
        store.api.jobs[0] |= dict.fromkeys(("created_at", "updated_at"), datetime.now(UTC).isoformat())
        for _continued in range(2):
            async with store.client() as client:
                recorder = Recorder(client, await client.jobs.find("job1"), path)
                await recorder.run()
            assert recorder.problems == {}
    with Recording(path) as recording:
        files = recording.files_at(recording.until)
        found = [recording.stored_file(file) for file in files if file.relative_file_name.endswith(FILE)]
    assert found == [file.content for file in stored if file.name.endswith(FILE)]
    names = [name.replace("hf_AbCdEfGhIjKlMnOpQr", "[removed]") for name in NAMES]
    assert [file.relative_file_name for file in files] == names


@pytest.mark.proves("docs/recordings.md", "Format")
def test_file_recorded_under_its_own_name_is_read(tmp_path: Path) -> None:
    """As earlier versions recorded it, names that lead out of the recording included."""
    files = [{"relative_file_name": name, "size_bytes": 2} for name in (f"ck/../{FILE}", FILE)]
    members = {CHECKPOINT_FILES: files} | {f"files/0/{file['relative_file_name']}": "{}" for file in files}
    with Recording(
        by_hand(tmp_path / "run.btrun", members | {"../up.json": "{}", "/a\\b": "x"})
    ) as recording:
        assert [recording.stored_file(file) for file in recording.files_at(END)] == [b"{}", b"{}"]
        assert recording.problems == []


TEXTS = st.text(max_size=40)


@settings(max_examples=60, deadline=None)
@example(job={"id": "..", "training_project_id": "a/b"}, names=["x" * 70_000], texts=["a"], stamps=["9" * 19])
@given(
    job=st.fixed_dictionaries({"id": TEXTS, "name": TEXTS, "training_project_id": TEXTS, "more": TEXTS}),
    names=st.lists(TEXTS, max_size=5),
    texts=st.lists(TEXTS, min_size=1, max_size=5),
    stamps=st.lists(st.one_of(st.integers(0, 2**64), TEXTS), min_size=1, max_size=5),
)
def test_recording_gives_back_any_text(
    tmp_path_factory: pytest.TempPathFactory, job: Any, names: list[str], texts: list[str], stamps: list[Any]
) -> None:
    path = tmp_path_factory.mktemp("any") / "run.btrun"
    documents = {
        **DOCUMENTS,
        JOB: DOCUMENTS[JOB] | job,
        CHECKPOINTS: [{"checkpoint_id": name} for name in names],
        CHECKPOINT_FILES: [{"relative_file_name": name} for name in names],
    }
    for _continued in range(2):
        problems: dict[str, str] = {}
        writer = RecordingWriter(path, documents, Scrubber(), problems)
        writer.log.add(line(1, text, replica=text, level=text) for text in texts)
        writer.log.add({"timestamp": str(stamp), "message": ""} for stamp in stamps)
        writer.metrics.add({"timestamp": str(stamp), "node_id": text} for stamp in stamps for text in texts)
        for name in names:
            writer.file(CheckpointFile(relative_file_name=name), name.encode())
        writer.close()
        assert problems == {}
    with Recording(path) as recording:
        assert (recording.job.id, recording.job.name) == (job["id"], job.get("name"))
        assert [one for one in messages(recording) if one in texts][: len(texts)] == texts
        files = recording.files_at(END)
        assert [file.relative_file_name for file in files] == names
        assert [recording.stored_file(file).decode() for file in files] == names


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({EVENTS: [{"training_job_id": "job1", "status": "x"}] * 25_001}, EVENTS),
        ({CHECKPOINTS: [{"checkpoint_id": "ä" * 6_000_000}]}, CHECKPOINTS),  # of six bytes each
        ({CHECKPOINTS: [{"checkpoint_id": "x"}] * 20_001}, CHECKPOINTS),
        ({EVENTS: [{"training_job_id": "half \ud800", "status": "x"}]}, EVENTS),
    ],
)
@pytest.mark.proves("docs/recordings.md", "Recordings")
def test_document_that_cannot_be_opened_is_not_written(
    tmp_path: Path, members: dict[str, Any], problem: str
) -> None:
    path, problems = tmp_path / "run.btrun", dict[str, str]()
    RecordingWriter(path, DOCUMENTS | members, Scrubber(), problems).close()
    with Recording(path) as recording:
        assert ([*problems], recording.problems) == ([problem], [])


@pytest.mark.proves("docs/recordings.md", "Recordings")
def test_line_too_long_to_be_opened_is_recorded_as_a_gap(tmp_path: Path) -> None:
    path, problems = tmp_path / "run.btrun", dict[str, str]()
    writer = RecordingWriter(path, DOCUMENTS, Scrubber(), problems)
    large = "ä" * 660_000  # of six bytes each
    writer.log.add([line(1, "before"), line(2, large * 10), line(3, large)])
    writer.log.add(line(4, "same") for _ in range(3_000))
    writer.metrics.add([{"timestamp": iso(1), "gpu_utilization": {str(gpu): 0 for gpu in range(9_000)}}])
    writer.close()
    with Recording(path) as recording:
        found = messages(recording)
        assert found[:2] == ["before", "[this line is too long to be recorded]"]
        assert (found[2], found[3:]) == (large, ["same"] * 3_000)
    assert [*problems] == ["longest lines of the log", "largest samples"]


def test_recording_on_a_full_disk_has_what_was_written_before(tmp_path: Path) -> None:
    path = tmp_path / "run.btrun"
    writer = RecordingWriter(path, DOCUMENTS, Scrubber())
    writer.log.add([line(1, "before")])
    writer.flush()
    before, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 100, hard))
    try:
        writer.log.add([line(2, Random(1).randbytes(500).hex())])
        with pytest.raises(OSError, match="too large"):
            writer.flush()
        with pytest.raises(OSError, match="too large"):
            writer.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, hard))
    with Recording(path) as recording:
        assert messages(recording) == ["before"]
    RecordingWriter(path, DOCUMENTS, Scrubber()).close()
    with Recording(path) as recording:
        assert messages(recording) == ["before"]


def test_recording_that_cannot_be_continued_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "run.btrun"
    RecordingWriter(path, DOCUMENTS, Scrubber()).close()
    before, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, hard))
    try:
        with pytest.raises(OSError, match="too large") as refused:
            RecordingWriter(path, DOCUMENTS | {CHECKPOINTS: [{"checkpoint_id": "x" * 4_000}]}, Scrubber())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, hard))
    RecordingWriter(path, DOCUMENTS, Scrubber()).close()  # the error still holds the first writer
    assert refused.traceback


async def test_recorder_that_is_canceled_while_it_opens_closes_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening, may_open, closed = asyncio.Event(), threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    class SlowWriter(RecordingWriter):
        def __init__(self, path: Path, *arguments: Any) -> None:
            loop.call_soon_threadsafe(opening.set)
            may_open.wait()
            super().__init__(path, *arguments)

        def close(self) -> None:
            super().close()
            closed.set()

    monkeypatch.setattr("tui.readers.recorder.RecordingWriter", SlowWriter)
    with FakeObjectStore() as store:
        async with store.client() as client:
            recorder = Recorder(client, await client.jobs.find("job1"), tmp_path / "run.btrun")
            recording = asyncio.create_task(recorder.run())
            await opening.wait()
            recording.cancel()
            may_open.set()
            with pytest.raises(asyncio.CancelledError):
                await recording
    assert closed.is_set()


def test_recording_is_private_from_the_first_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "chmod", lambda *_about: None)
    before = os.umask(0)
    try:
        RecordingWriter(tmp_path / "run.btrun", DOCUMENTS, Scrubber()).close()
    finally:
        os.umask(before)
    assert (tmp_path / "run.btrun").stat().st_mode & 0o777 == 0o600


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
        assert messages(recording) == ["before", "x", unreadable, "after"]
        assert [one.value for one in recording.metrics.select(0, 2**63, step_s=1).cpu_usage] == [2.0]
        assert (recording.begin, recording.until) == (BEGIN, recording.job.updated_at)


@pytest.mark.parametrize("value", ["9" * 400, "-1e400", "NaN", "1e300", "true", '"1"', "[]"])
def test_values_out_of_range_are_no_samples(tmp_path: Path, value: str) -> None:
    row = f'{{"timestamp": "{iso(5)}", "cpu_usage": {value}, "gpu_utilization": {{"0": {value}, "1": 0.5}}}}'
    with Recording(by_hand(tmp_path / "run.btrun", {"metrics.ndjson": row})) as recording:
        found = recording.metrics.select(0, 2**62, step_s=1)
    assert (found.cpu_usage, [one.value for one in found.gpu_utilization["1"]]) == ([], [0.5])


def test_recording_of_a_thousand_years_is_short(tmp_path: Path) -> None:
    log = ndjson(line(5, "one"), {"timestamp": str(epoch_ns(END) + 10**18), "message": "in 30 years"})
    old = ndjson({"timestamp": "1", "message": "in 1970"}, line(5, "one"))
    for members in ({"logs.ndjson": log}, {"logs.ndjson": old}):
        with Recording(by_hand(tmp_path / "run.btrun", members)) as recording:
            assert (recording.until - recording.begin).days <= 3_660
            assert "one" in shown(recording, recording.until)
            assert "long before or after the run" in recording.problems[0]


def stamp(seconds: float) -> str:
    return str(line(seconds, "")["timestamp"])


def block(number: int) -> str:
    return f"logs/{number:06}_{stamp(number)}_{stamp(number + 1)}.ndjson"


def many(item: str, count: int) -> str:
    return "[" + f"{item}," * count + f"{item}]"


def rows(count: int, values: str) -> Iterator[str]:
    return (
        f'{{"timestamp":"{iso(n / 100)}","node_id":"n{n}",{values.replace("#", str(n))}}}'
        for n in range(count)
    )


BOMBS: dict[str, Any] = {
    "events of one kind": lambda: {EVENTS: many('{"training_job_id":"job1","status":"x"}', 600_000)},
    "files": lambda: {CHECKPOINT_FILES: many("{}", 10_000_000)},
    "files with errors": lambda: {CHECKPOINT_FILES: ",".join(f"[{n}" for n in range(200_000))},
    "job": lambda: {JOB: json.dumps(DOCUMENTS[JOB])[:-1] + ',"x":' + many("[]", 10_000_000) + "}"},
    "manifest": lambda: {MANIFEST: many("0", 15_000_000)},
    "nodes": lambda: {"metrics.ndjson": "\n".join(rows(100_000, '"cpu_usage":1'))},
    "nodes with gpus": lambda: {
        f"metrics/{n:06}_{stamp(n * 20)}_{stamp(n * 20 + 20)}.ndjson": "\n".join(
            islice(rows(6_000, f'"gpu_utilization":{gpus(64)},"gpu_memory_usage_bytes":{gpus(64)}'), *part)
        )
        for n, part in enumerate(pairwise(range(0, 6_001, 2_000)))
    },
    "lines": lambda: {"logs.ndjson": f'{{"timestamp":"{stamp(5)}"}}\n' * 3_000_000},
    "blank lines": lambda: {"logs.ndjson": "\n" * 200_000_000},
    "long lines": lambda: {block(n): json.dumps(line(n, "x" * 30_000_000)) for n in range(10)},
    "lists": lambda: {
        block(n): f'{{"timestamp":"{stamp(n)}","message":{many("[]", 2_000_000)}}}' for n in range(8)
    },
    "times": lambda: {"logs.ndjson": ndjson(*({"timestamp": one} for one in ("0", "9" * 18, "9" * 19)))},
}


def gpus(count: int) -> str:
    return "{" + ",".join(f'"{n}":0' for n in range(count)) + "}"


COMMANDS = ("job", "logs", "metrics", "health", "progress")


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_small_recording_costs_little_in_every_command(tmp_path: Path, bomb: Any) -> None:
    path = by_hand(tmp_path / "run.btrun", bomb())
    assert path.stat().st_size < 600_000
    limits = {"RLIMIT_AS": 2**30, "RLIMIT_CPU": 20}
    commands = [[command, "--file", str(path)] for command in COMMANDS]
    ended = run_measured(*commands, folder=tmp_path, limits=limits)
    assert len(ended.codes) == len(COMMANDS) and {*ended.codes} <= {0, 1, 2, 3}, ended.errors
    assert ": unexpected " not in ended.errors
