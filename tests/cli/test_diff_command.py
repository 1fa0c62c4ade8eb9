"""bt-tui diff: what differs between two jobs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.archives import packed
from support.cli import Result, RunCli
from support.fake_baseten import Answer, job
from support.fake_object_store import FakeObjectStore, Stored
from tui.commands.support.output import Output
from tui.readers import code

CONFIG = b"""\
from truss_train import Image, Runtime, TrainingJob
training_job = TrainingJob(
    image=Image(base_image="torch:2.7"),
    runtime=Runtime(environment_variables={"TOKEN": "s3cr3t-0815"}),
)
"""
BEFORE = {"config.py": b"from truss_train import TrainingJob\n", "train.py": b"lr = 1\n", "same.py": b"x\n"}
AFTER = {"config.py": CONFIG, "train.py": b"lr = 2\n", "same.py": b"x\n"}


@pytest.fixture
def store() -> Iterator[FakeObjectStore]:
    archives = (Stored("before/a.tgz", packed(BEFORE)), Stored("after/b.tgz", packed(AFTER)))
    with FakeObjectStore(*archives) as store:
        h200 = {"instance_type": {"id": "h200x8", "name": "H200x8", "gpu_count": 8, "gpu_type": "H200"}}
        store.api.jobs = [job("before"), job("after", "RUNNING", name="second`try", **h200), job("none")]
        for file in archives:
            answer = Answer({"artifact_presigned_urls": [store.url(file)]})
            store.api.on("GET", f".*/jobs/{file.name.partition('/')[0]}/download", answer)
        yield store


def diff(cli: RunCli, store: FakeObjectStore, *arguments: str) -> Result:
    return cli("diff", *arguments, environ=store.environ())


@pytest.mark.proves("docs/commands.md", "`diff`")
def test_hardware_config_environment_and_code_differ(cli: RunCli, store: FakeObjectStore) -> None:
    result = diff(cli, store, "before", "after")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        "before → second`try (after)",
        "",
        "job",
        "  instance: H100x8 → H200x8",
        "  GPU: H100 → H200",
        "",
        "config.py changed",
        "@@ -1 +1,5 @@",
        "-from truss_train import TrainingJob",
        "+from truss_train import Image, Runtime, TrainingJob",
        "+training_job = TrainingJob(",
        '+    image=Image(base_image="torch:2.7"),',
        '+    runtime=Runtime(environment_variables={"TOKEN": <new value>}),',
        "+)",
        "",
        "train.py changed",
        "@@ -1 +1 @@",
        "-lr = 1",
        "+lr = 2",
    ]


@pytest.mark.proves("docs/commands.md", "`diff`")
def test_every_format_says_the_same_and_no_value_of_a_variable(cli: RunCli, store: FakeObjectStore) -> None:
    shown = diff(cli, store, "before", "after", "-o", "json").json
    assert [file["path"] for file in shown["files"]] == ["config.py", "train.py"]
    assert [file["size_bytes_before"] for file in shown["files"]] == [36, 7]
    markdown = diff(cli, store, "before", "after", "-o", "markdown").out
    assert markdown.endswith("@@ -1 +1 @@\n-lr = 1\n+lr = 2\n```\n") and "second'try" in markdown
    assert "s3cr3t" not in markdown and "s3cr3t" not in str(shown)


def test_job_without_code_is_compared_by_its_hardware(cli: RunCli, store: FakeObjectStore) -> None:
    store.api.on("GET", ".*/jobs/none/download", Answer({"artifact_presigned_urls": []}))
    result = diff(cli, store, "none", "after")
    assert (result.code, "H100 → H200" in result.out) == (0, True)
    assert result.err == "bt-tui: code not compared: job none has no code archive\n"
    assert diff(cli, store, "none", "none").err.endswith("bt-tui: the machines are the same\n")
    shown = diff(cli, store, "none", "after", "-o", "json").json
    assert (shown["files"], "no code archive" in shown["code_not_compared_because"]) == ([], True)


def test_equal_jobs_differ_in_nothing(cli: RunCli, store: FakeObjectStore) -> None:
    result = diff(cli, store, "before", "before")
    assert (result.code, result.err) == (0, "bt-tui: no differences in hardware or code\n")


def test_archive_that_is_damaged_or_too_large_is_not_compared(
    cli: RunCli, store: FakeObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.files[0].content = b"no archive"
    assert "can't be read: damaged or not an archive" in diff(cli, store, "before", "after").err
    monkeypatch.setattr(code, "MAX_ARCHIVE_BYTES", 5)
    assert "is larger than 5 bytes" in diff(cli, store, "before", "after").err


def test_job_that_does_not_exist_is_an_error(cli: RunCli, store: FakeObjectStore) -> None:
    assert diff(cli, store, "before", "nothing").code == 7


def test_long_line_is_cut_on_a_terminal_only(
    cli: RunCli, store: FakeObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.files[1].content = packed({"train.py": b"x = '" + b"a" * 500 + b"'\n"})
    assert "a" * 500 in diff(cli, store, "before", "after").out
    monkeypatch.setattr(Output, "width_cells", 80)
    on_terminal = diff(cli, store, "before", "after").out
    assert "a" * 70 in on_terminal and max(map(len, on_terminal.splitlines())) == 80
    assert "a" * 500 in diff(cli, store, "before", "after", "-o", "json").out
