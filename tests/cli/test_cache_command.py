"""bt-tui cache summarize: the official shapes, three ways to be without files, hostile paths."""

import pytest

from support.cli import RunCli
from support.fake_baseten import Answer, FakeBaseten

SUMMARIZE = "cache summarize proj1"
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
    return Answer({"timestamp": "2026-03-04T00:00:00Z", "project_id": "proj1", "file_summaries": files})


@pytest.mark.proves("docs/commands.md", "`checkpoints list`")
def test_json_is_the_official_document_sorted_as_wanted(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.on("GET", SUMMARY, summary())
    document = cli(f"{SUMMARIZE} -o json").json
    names = "timestamp project_id total_files total_size_bytes total_size_human_readable files"
    assert list(document) == names.split()
    assert (document["total_files"], document["total_size_bytes"]) == (4, 3_004_171)
    assert document["total_size_human_readable"] == "3.00 MB"
    assert document["files"][0] == {
        **{"path": "hub", "size_bytes": 3_004_101, "size_human_readable": "3.00 MB"},
        **{"modified": "2026-03-01 12:00:00", "type": "directory", "permissions": "drwxr-xr-x"},
    }
    assert [file["path"] for file in document["files"]] == ["hub", "hub/a.txt", "hub/b.bin", "notes"]
    assert document["files"][2]["modified"] == "2026-03-03 10:00:00"
    assert (document["files"][3]["modified"], document["files"][3]["type"]) == ("when?", "Unknown")
    for sort, first in (("size", "hub"), ("filepath", "notes"), ("modified", "notes"), ("type", "hub/b.bin")):
        sorted_ = cli(f"{SUMMARIZE} --sort {sort} --order desc -o json").json
        assert sorted_["files"][0]["path"] == first
    (hub,) = cli(f"{SUMMARIZE} --by-directory 1 -o json").json["directories"]
    assert (hub["path"], hub["size_bytes"], hub["file_count"]) == ("hub", 3_000_005, 2)
    assert hub["share"] == pytest.approx(3_000_005 / 3_000_075, abs=1e-6)


@pytest.mark.proves("docs/commands.md", "`checkpoints list`")
def test_size_of_directory_includes_everything_below_it(cli: RunCli, baseten: FakeBaseten) -> None:
    sizes = {"/a": 1, "/a/b": 2, "/a/b-c": 4, "/a/b/x/y/f": 8, "/a/b.txt": 16, "/a/b-c/f": 32, "/ab": 64}
    directories = ("/a", "/a/b", "/a/b-c")
    kinds = {path: "directory" if path in directories else "file" for path in sizes}
    files = [{"path": path, "size_bytes": sizes[path], "file_type": kinds[path]} for path in sorted(sizes)]
    baseten.on("GET", SUMMARY, summary(files))
    totals = {file["path"]: file["size_bytes"] for file in cli(f"{SUMMARIZE} -o json").json["files"]}
    assert totals == sizes | {"/a": 1 + 2 + 4 + 8 + 16 + 32, "/a/b": 2 + 8, "/a/b-c": 4 + 32}


def test_csv_and_table(cli: RunCli, baseten: FakeBaseten) -> None:
    hostile = ({"path": "=cmd|x"}, {"path": "a\nb\x1b[2J", "size_bytes": None})
    baseten.on("GET", SUMMARY, summary([*FILES, *hostile]))
    rows = cli(f"{SUMMARIZE} -o csv").csv
    assert [rows[0]["File Path"], rows[1]["File Path"]] == ["'=cmd|x", "a␤b"]
    assert (rows[2]["Size (bytes)"], rows[3]["Permissions"]) == ("3004101", "-rw-r--r--")
    table = cli(f"{SUMMARIZE} --files -o cli-table")
    assert ("\x1b" in table.out, len(table.out.splitlines())) == (False, 7)
    assert "6 files and directories, 2.87 MiB" in table.err
    assert "as of 2026-03-04 00:00:00" in table.err


def test_table_summarizes_directories_unless_files_are_wanted(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.on("GET", SUMMARY, summary())
    table = cli(SUMMARIZE)
    heading, hub = (line.split() for line in table.out.splitlines())
    assert (heading, hub[-2:]) == (["SIZE", "SHARE", "FILES", "DIRECTORY"], ["2", "hub"])
    assert "4 files and directories, 2.87 MiB" in table.err
    for options in ("--files", "--sort size"):
        assert "hub/b.bin" in cli(f"{SUMMARIZE} {options}").out


def test_no_cache_and_an_empty_one(cli: RunCli, baseten: FakeBaseten) -> None:
    none = [Answer({"message": "no"}, status=404), Answer(None), Answer({})]
    for answer in (*none, summary([]), summary(None)):
        baseten.on("GET", SUMMARY, answer)
        code, words = (7, "project llama-sft has no cache") if answer in none else (0, "is empty")
        result = cli(f"{SUMMARIZE} -o json", code=code)
        assert (result.json["files"], words in result.err) == ([], True)
