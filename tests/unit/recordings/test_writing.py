"""A recording that is broken off anywhere opens, and continues to the same content; no secret is in it."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from api_client.models import CheckpointFile
from api_client.recordings.archive import RecordingError
from api_client.recordings.reading import JOB, Recording
from api_client.recordings.scrub import REMOVED, Scrubber
from api_client.recordings.writing import RecordingWriter
from support.recorded import DOCUMENTS, line, messages, ndjson, sample, writer

LINES = [line(number, f"step {number}") for number in range(30)]
SAMPLES = [sample(10 * number, use=number / 10) for number in range(10)]


def content(path: Path) -> tuple[list[str], list[float | None]]:
    with Recording(path) as recording:
        found = recording.metrics.select(0, 2**62, step_s=1).per_node_metrics
        samples = found[0].metrics.gpu_utilization["0"] if found else []
        return messages(recording), [one.value for one in samples]


def record(path: Path) -> None:
    target = writer(path)
    for start in range(0, len(LINES), 10):
        target.log.add(LINES[start : start + 10])
        target.flush()
    target.metrics.add(SAMPLES)
    target.close()


CUT_OFF = "[this part of the recording is damaged]"


def test_it_opens_after_a_kill_at_any_byte_and_continues_to_the_same_content(tmp_path: Path) -> None:
    whole = tmp_path / "whole.btrun"
    record(whole)
    expected = content(whole)
    assert expected[0] == [each["message"] for each in LINES]
    with zipfile.ZipFile(whole) as file:
        first = min(info.header_offset for info in file.infolist() if info.filename.startswith("logs/"))
    stored, cut_off = whole.read_bytes(), 0
    for kept in range(first, len(stored), 23):
        path = tmp_path / f"{kept}.btrun"
        path.write_bytes(stored[:kept])
        *lines, last = content(path)[0] or [""]
        lines += [last] if last and last != CUT_OFF else []
        assert lines == expected[0][: len(lines)]
        cut_off += last == CUT_OFF
        record(path)
        assert content(path) == expected
        with zipfile.ZipFile(path) as file:
            assert file.testzip() is None
            assert len(file.namelist()) == len(set(file.namelist()))
    assert cut_off


def test_it_continues_after_a_kill_that_follows_a_document_written_again(tmp_path: Path) -> None:
    path = tmp_path / "killed.btrun"
    target = writer(tmp_path / "run.btrun")
    target.documents({JOB: {**DOCUMENTS[JOB], "name": "later"}})
    path.write_bytes((tmp_path / "run.btrun").read_bytes())
    target.close()
    record(path)
    assert content(path)[0] == [each["message"] for each in LINES]


def test_documents_written_often_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a run that is recorded for weeks and then killed could not be opened."""
    monkeypatch.setattr("api_client.recordings.archive.MAX_MEMBERS", 10)
    monkeypatch.setattr("api_client.recordings.archive.MAX_TOTAL_BYTES", 10_000)
    path = tmp_path / "run.btrun"
    target = writer(path)
    for number in range(100):
        target.documents({JOB: {**DOCUMENTS[JOB], "name": f"name {number}"}})
    with Recording(path) as killed:
        assert killed.job.name == "name 99"
    target.log.add([line(1, "x" * 20_000)])
    with pytest.raises(RecordingError, match="more than 10,000 bytes"):
        target.close()
    with Recording(path) as recording:
        assert (recording.job.name, messages(recording)) == ("name 99", [])


def test_what_is_recorded_again_is_not_repeated_and_late_lines_are_added(tmp_path: Path) -> None:
    path = tmp_path / "run.btrun"
    record(path)
    again = writer(path)
    again.log.add([*LINES[:5], line(4.5, "late"), *LINES[5:], line(40, "new")])
    again.metrics.add([*SAMPLES, sample(100, use=1.0)])
    again.close()
    lines, samples = content(path)
    assert lines == [*(each["message"] for each in LINES), "late", "new"]
    assert samples == [*(number / 10 for number in range(10)), 1.0]
    assert (again.log.count, again.metrics.count) == (2, 1)


def test_another_job_another_recorder_or_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.btrun"
    target = writer(path)
    with pytest.raises(RecordingError, match="another process"):
        writer(path)
    target.close()
    with pytest.raises(RecordingError, match="another job, job1"):
        RecordingWriter(path, {**DOCUMENTS, JOB: {**DOCUMENTS[JOB], "id": "job2"}}, Scrubber())
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("logs.ndjson", ndjson(*LINES))
    with pytest.raises(RecordingError, match="record to a new file"):
        writer(path)
    with pytest.raises(RecordingError, match="is a folder"):
        writer(tmp_path)


SECRETS = {
    "own-key-0123456789": "the key is own-key-0123456789",
    "X-Amz-Signature=0a1b2c": "GET https://s3.example/file?X-Amz-Credential=AK1&X-Amz-Signature=0a1b2c done",
    "sv-signed-99": "https://blob.example/file?se=2026&sig=sv-signed-99",
    "hf_AbCdEfGhIjKlMnOpQr": "login with hf_AbCdEfGhIjKlMnOpQr",
    "sk-live-0123456789abcdef": "OPENAI sk-live-0123456789abcdef",
    "ghp_0123456789abcdefghij": "clone https://ghp_0123456789abcdefghij@github.com/a/b",
    "AKIAABCDEFGHIJKLMNOP": "aws AKIAABCDEFGHIJKLMNOP",
    "dmVyeSBzZWNyZXQ1": "Authorization: Bearer dmVyeSBzZWNyZXQ1",
    "correcthorse": 'env: {"DB_PASSWORD": "correcthorse"}',
    "plain-value": "my_secret=plain-value",
    "tok3n-value": "my_token = tok3n-value",
}
HARMLESS = """loss sigma=0.25 tokens=4096 num_tokens: 1.5e9 pad_token='unk' eos_token: 128001
bearer of news; task-0123456789abcdef01; risk-adjusted; https://example.com/?page=2
secret=None password: null tokenizer: meta-llama/Llama-3.1-8B"""


@pytest.mark.parametrize(("secret", "text"), SECRETS.items())
def test_no_secret_is_in_any_byte_of_a_recording(tmp_path: Path, secret: str, text: str) -> None:
    path = tmp_path / "run.btrun"
    scrub = Scrubber(["own-key-0123456789"], ["my_secret"])
    target = writer(path, scrub)
    target.documents({JOB: {**DOCUMENTS[JOB], "error_message": text, "more": {"url": text}}})
    target.log.add([line(1, text), line(2, f'{{"nested": "{text}"}}')])
    target.file(CheckpointFile(relative_file_name="trainer_state.json"), text.encode())
    target.close()
    with zipfile.ZipFile(path) as file:
        everything = b"\n".join(file.read(name) for name in file.namelist())
    assert secret.encode() not in everything
    assert everything.count(REMOVED.encode()) >= 5
    assert secret.encode() not in path.read_bytes()


def test_other_text_stays_as_it_is() -> None:
    assert Scrubber()(HARMLESS) == HARMLESS
