"""The library guide shows the examples as they are, and each of them does what it says."""

from __future__ import annotations

import asyncio
import re
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from generated import REPOSITORY

from api_client import TrainingClient, resolve_remote
from api_client.emulator.processes import EmulatorChild

EXAMPLES = REPOSITORY / "examples"
GUIDE = (REPOSITORY / "docs" / "library.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"<!-- examples/(\w+\.py) -->\n```python\n(.*?)```\n", re.DOTALL)
CONFIG = """
from truss_train import Image, Runtime, TrainingJob, TrainingProject

project = TrainingProject(
    name="from-file",
    job=TrainingJob(image=Image(base_image="x"), runtime=Runtime(start_commands=["cat hello.txt"])),
)
"""
LORA_RUN = "llama-8b-lora-r16"
REAL_RUN = "digits-mlp"
LIVE_RUN = "llama-70b-sft-v3"
LORA = "checkpoint-1800"


class World(NamedTuple):
    """A demo world: what points a program at it, and its jobs' ids by name."""

    environ: dict[str, str]
    jobs: dict[str, str]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with EmulatorChild() as emulator:
        environ = emulator.remote_environ()
        yield World(environ, asyncio.run(_job_ids(environ)))


async def _job_ids(environ: dict[str, str]) -> dict[str, str]:
    async with TrainingClient(resolve_remote(environ=environ)) as client:
        jobs = {job.name or "": job for job in await client.jobs.search()}
        # The demo's one real run would only take time from the tests.
        await client.jobs.stop(jobs[REAL_RUN].project_id, jobs[REAL_RUN].id)
        return {name: job.id for name, job in jobs.items()}


Run = Callable[..., str]


@pytest.fixture
def said(world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run an example, pointed at the demo world by the environment alone, and return what it prints."""

    def runs(
        name: str, *arguments: str | Path, environ: dict[str, str] = world.environ, exit_code: int = 0
    ) -> str:
        for variable, value in environ.items():
            monkeypatch.setenv(variable, value)
        path = str(EXAMPLES / name)
        monkeypatch.setattr(sys, "argv", [path, *map(str, arguments)])
        ended = 0
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as over:
            ended = over.code if isinstance(over.code, int) else 1
        printed = capsys.readouterr()
        assert ended == exit_code, printed.err
        return printed.out if exit_code == 0 else printed.out + printed.err

    return runs


@pytest.mark.proves("docs/library.md", "The client library")
def test_the_guide_shows_every_example_as_it_is() -> None:
    shown = dict(BLOCK.findall(GUIDE))
    files = {path.name: path.read_text(encoding="utf-8") for path in EXAMPLES.glob("*.py")}
    assert shown == files


@pytest.mark.parametrize(
    ("example", "arguments", "pattern"),
    [
        ("list_jobs.py", (), rf"llama-sft(.|\n)*  running  4 × 8 H100  {LIVE_RUN}"),
        ("read_history.py", (LIVE_RUN, "5"), r"(?m)(^node-\d  [\d,]+ lines$\n?){4}"),
        ("gpu_utilization.py", (LIVE_RUN,), r"(node-\d  \d+%\n){4}"),
        ("errors_and_retries.py", (), "not found: status 404"),
    ],
)
@pytest.mark.proves("README.md", "As a library")
@pytest.mark.proves("docs/library.md", "The client library")
def test_what_is_read_is_printed(world: World, said: Run, example: str, arguments: Any, pattern: str) -> None:
    assert re.search(pattern, said(example, *(world.jobs.get(word, word) for word in arguments)))


def test_a_job_built_in_code_runs_and_its_log_is_followed(said: Run, tmp_path: Path) -> None:
    (tmp_path / "hello.txt").write_text("hello")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "large.bin").write_text("stays here")
    job_id = said("submit_from_code.py", tmp_path).split()[0]
    log = said("follow_log.py", job_id)
    assert "node-0 'node 0 of 1'" in log
    assert "'hello.txt'" in log
    assert "'data'" not in log


def test_a_config_file_is_submitted(said: Run, tmp_path: Path) -> None:
    assert "config.py" in said("submit_config_file.py", tmp_path / "config.py", exit_code=2), "it is missing"
    (tmp_path / "config.py").write_text(CONFIG)
    (tmp_path / "hello.txt").write_text("from the archive\n")
    _project, job_id = said("submit_config_file.py", tmp_path / "config.py").split()
    assert "'from the archive'" in said("follow_log.py", job_id)


def test_a_checkpoint_is_read_by_a_thousandth_of_its_bytes(world: World, said: Run) -> None:
    told = said("read_checkpoint.py", world.jobs[LORA_RUN])
    listed, read = (int(number.replace(",", "")) for number in re.findall(r"([\d,]+) bytes", told))
    assert told.startswith(LORA)
    assert re.search(r"^BF16  [\d,]+ parameters$", told, re.MULTILINE)
    assert 0 < read < listed / 1000


def test_files_are_downloaded_once(world: World, said: Run, tmp_path: Path) -> None:
    first = said("download_checkpoint.py", world.jobs[LORA_RUN], tmp_path)
    assert f"done  {tmp_path}/{LORA}/adapter_config.json" in first
    assert (tmp_path / LORA / "adapter_config.json").stat().st_size > 0
    again = said("download_checkpoint.py", world.jobs[LORA_RUN], tmp_path)
    assert {line.split()[0] for line in again.splitlines()} == {"skipped"}


def test_a_cache_is_summed_up(said: Run) -> None:
    told = said("cache_by_folder.py", "llama-sft").splitlines()
    sizes = [int(line.split()[0].replace(",", "")) for line in told]
    assert sizes and sizes == sorted(sizes, reverse=True)


def test_a_checkpoint_is_checked_and_rendered_and_nothing_is_deployed(world: World, said: Run) -> None:
    told = said("deploy_checkpoint.py", world.jobs[LORA_RUN], LORA)
    assert told.startswith("LoRA rank 16: the adapter's rank is 16")
    assert '"model_name"' in told
    assert "/models/" not in told
    said("deploy_checkpoint.py", world.jobs[LORA_RUN], "checkpoint-1", exit_code=1)


def test_without_a_remote_the_way_is_said(said: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("BASETEN_API_KEY", raising=False)
    nowhere = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    assert "BASETEN_API_KEY" in said("errors_and_retries.py", environ=nowhere, exit_code=2)


def test_waits_take_no_time_on_a_clock_of_your_own(said: Run) -> None:
    assert said("time_of_your_own.py", environ={}) == "llama-sft after waits of [20.0, 20.0] s\n"
