"""bt-tui cache summarize: the official shapes, three ways to be without files, hostile paths."""

import csv
import io
import json
from typing import Any

import pytest

from support.cli import RunCli
from support.stranger import Answer, FakeBaseten, project

SUMMARIZE = ("cache", "summarize", "proj1")
SUMMARY = "/v1/training_projects/proj1/cache/summary"


NAMES = ("path", "size_bytes", "modified", "file_type", "permissions", "inode")
ENTRIES = [
    ("hub", 4096, "2026-03-01T12:00:00Z", "directory", "drwxr-xr-x"),
    ("hub/b.bin", 3_000_000, "2026-03-03T12:00:00.123456789+02:00", "file", "-rw-r--r--"),
    ("hub/a.txt", 5, "2026-03-02T12:00:00Z", "file", "-rw-r--r--"),
    ("notes", 70, "when?", None, None, 9),
]
FILES = [dict(zip(NAMES, entry, strict=False)) for entry in ENTRIES]


def summary(files: object = FILES) -> Answer:
    return Answer(body={"timestamp": "2026-03-04T00:00:00Z", "project_id": "proj1", "file_summaries": files})


def test_json_is_the_official_document(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.on("GET", SUMMARY, summary())

    result = cli(*SUMMARIZE, "-o", "json")

    assert result.code == 0
    document = json.loads(result.out)
    names = "timestamp project_id total_files total_size_bytes total_size_human_readable files"
    assert list(document) == names.split()
    assert (document["total_files"], document["total_size_bytes"]) == (4, 3_004_171)
    assert document["total_size_human_readable"] == "3.00 MB"
    assert document["files"][0] == {
        "path": "hub",
        "size_bytes": 3_004_101,
        "size_human_readable": "3.00 MB",
        "modified": "2026-03-01 12:00:00",
        "type": "directory",
        "permissions": "drwxr-xr-x",
    }
    assert [file["path"] for file in document["files"]] == ["hub", "hub/a.txt", "hub/b.bin", "notes"]
    assert document["files"][2]["modified"] == "2026-03-03 10:00:00"
    assert (document["files"][3]["modified"], document["files"][3]["type"]) == ("when?", "Unknown")


@pytest.mark.parametrize(
    ("sort", "first"), [("size", "hub"), ("filepath", "notes"), ("modified", "notes"), ("type", "hub/b.bin")]
)
def test_sorts_downwards(cli: RunCli, stranger: FakeBaseten, sort: str, first: str) -> None:
    stranger.on("GET", SUMMARY, summary())
    asked = cli(*SUMMARIZE, "--sort", sort, "--order", "desc", "-o", "json")
    assert json.loads(asked.out)["files"][0]["path"] == first


def test_csv_and_table(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.on(
        "GET", SUMMARY, summary([*FILES, {"path": "=cmd|x"}, {"path": "a\nb\x1b[2J", "size_bytes": None}])
    )
    rows = list(csv.DictReader(io.StringIO(cli(*SUMMARIZE, "-o", "csv").out)))
    assert rows[0]["File Path"] == "'=cmd|x"
    assert rows[1]["File Path"] == "a␤b"
    assert (rows[2]["Size (bytes)"], rows[3]["Permissions"]) == ("3004101", "-rw-r--r--")
    table = cli(*SUMMARIZE, "-o", "cli-table")
    assert "\x1b" not in table.out
    assert len(table.out.splitlines()) == 7
    assert "6 files and directories, 2.87 MiB" in table.err
    assert "as of 2026-03-04 00:00:00" in table.err


def test_directories_alone(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.on("GET", SUMMARY, summary())
    (hub,) = json.loads(cli(*SUMMARIZE, "--by-directory", "1", "-o", "json").out)["directories"]
    assert (hub["path"], hub["size_bytes"], hub["file_count"]) == ("hub", 3_000_005, 2)
    assert hub["share"] == pytest.approx(3_000_005 / 3_000_075, abs=1e-6)


@pytest.mark.parametrize("answer", [Answer(404, {"message": "no"}), Answer(body=None), Answer(body={})])
def test_no_cache(cli: RunCli, stranger: FakeBaseten, answer: Any) -> None:
    stranger.on("GET", SUMMARY, answer)
    result = cli(*SUMMARIZE, "-o", "json")
    assert (result.code, json.loads(result.out)["files"]) == (7, [])
    assert "project llama-sft has no cache" in result.err


@pytest.mark.parametrize("files", [[], None])
def test_an_empty_cache_is_no_failure(cli: RunCli, stranger: FakeBaseten, files: list[Any] | None) -> None:
    stranger.on("GET", SUMMARY, summary(files))
    result = cli(*SUMMARIZE, "-o", "json")
    assert (result.code, json.loads(result.out)["total_files"]) == (0, 0)
    assert "is empty" in result.err


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Answer(403, {"message": "not yours"}), 6),
        (Answer(400, {"message": "no cluster"}), 1),
        (Answer(body={"file_summaries": [{"size_bytes": 3}]}), 1),
        (Answer(body=b"<html>"), 1),
        (Answer(body=b'{"file_summaries": ' + b"[" * 100_000), 1),
    ],
)
def test_a_call_that_fails(cli: RunCli, stranger: FakeBaseten, answer: Any, code: int) -> None:
    stranger.on("GET", SUMMARY, answer)
    result = cli(*SUMMARIZE, "-o", "json")
    assert (result.code, result.out) == (code, "")
    assert result.err.startswith("bt-tui: ")


def test_which_project_is_meant(cli: RunCli, stranger: FakeBaseten) -> None:
    stranger.projects = [project("proj1"), project("proj2")]
    assert cli("cache", "summarize", "llama-sft").code == 2
    assert "proj2" in cli("cache", "summarize", "llama-sft").err


def test_a_thousand_levels_and_twenty_thousand_files(cli: RunCli, stranger: FakeBaseten) -> None:
    files = [{"path": "d/" * 1000 + "f", "size_bytes": 1}]
    files += [{"path": f"flat/{number}", "size_bytes": 1, "file_type": "file"} for number in range(20_000)]
    stranger.on("GET", SUMMARY, summary(files))
    assert json.loads(cli(*SUMMARIZE, "-o", "json").out)["total_size_bytes"] == 20_001
