"""Starter projects: what is written, and that it can be submitted as it is."""

import runpy
import stat
from pathlib import Path
from typing import Any

import pytest

from api_client.submission.archive import plan_archive
from api_client.submission.config_file import load_training_project
from api_client.submission.preflight import check
from support.cli import RunCli
from tui.commands.jobs.resume import reads_checkpoint

pytestmark = pytest.mark.usefixtures("in_folder")
NAMES = ("cpu-quickstart", "multinode-torchrun", "lora-finetune")


def names_in(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_without_arguments_it_is_the_quick_start_in_a_folder_of_its_name(cli: RunCli, tmp_path: Path) -> None:
    result = cli("init")
    assert result.out.split() == [f"cpu-quickstart/{name}" for name in ("config.py", "run.sh", "train.py")]
    assert "bt-tui push cpu-quickstart/config.py --tail" in result.err
    assert [each["name"] for each in cli("init --list-examples -o json").json] == list(NAMES)
    assert all(name in cli("init --list-examples").out for name in NAMES)
    assert stat.S_IMODE((tmp_path / "cpu-quickstart" / "run.sh").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "cpu-quickstart" / "train.py").stat().st_mode) == 0o644


def test_one_template_goes_into_the_folder_and_several_below_it(cli: RunCli, tmp_path: Path) -> None:
    assert "'a/b c/config.py'" in cli("init 'a/b c' --template lora-finetune").err
    assert (tmp_path / "a" / "b c" / "data.jsonl").is_file()
    two = cli("init lab --examples 'cpu-quickstart, multinode-torchrun' -o json")
    assert names_in(tmp_path / "lab") == ["cpu-quickstart", "multinode-torchrun"]
    assert "lab/cpu-quickstart/config.py" in two.json


def test_nothing_is_overwritten_unasked_and_no_link_is_followed(cli: RunCli, tmp_path: Path) -> None:
    folder = tmp_path / "cpu-quickstart"
    folder.mkdir()
    (tmp_path / "precious").write_text("mine")
    (folder / "run.sh").symlink_to(tmp_path / "precious")
    (folder / "notes.txt").write_text("mine too")
    for arguments, why in (("", "run.sh"), ("precious/below", "precious")):
        result = cli(f"init {arguments}", code=2)
        assert (why in result.err, "Traceback" in result.err) == (True, False)
    assert names_in(folder) == ["notes.txt", "run.sh"], "nothing is half written"
    cli("init --force")
    assert (tmp_path / "precious").read_text() == "mine"
    assert (folder / "notes.txt").read_text() == "mine too"
    assert "train.py" in (folder / "run.sh").read_text()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.proves("docs/commands.md", "Submit a job")
def test_each_loads_and_has_nothing_to_complain_about(cli: RunCli, tmp_path: Path, name: Any) -> None:
    cli("init", ".", "--template", name)
    project = load_training_project(tmp_path / "config.py")
    findings = check(project, plan_archive(tmp_path, project.job.workspace))
    assert project.name == name
    assert findings == ()
    assert project.job.runtime.checkpointing_config.enabled
    assert project.job.runtime.cache_config.enabled
    assert reads_checkpoint(tmp_path, project), "it can be resumed"


def test_quick_start_continues_from_the_newest_loaded_checkpoint(cli: RunCli, tmp_path: Path) -> None:
    cli("init", ".")
    program = runpy.run_path(str(tmp_path / "train.py"))
    first, second = program["Network"](), program["Network"]()
    for step in (500, 1000):
        first.train([(0.1, 0.2, 1)], 0.5)
        program["save_checkpoint"](tmp_path / "loaded" / "rank-0", step, first)
    assert program["load_checkpoint"](tmp_path / "loaded", second) == 1000
    assert second.output == pytest.approx(first.output)
    assert second.hidden[0] == pytest.approx(first.hidden[0])
    assert program["load_checkpoint"](tmp_path / "empty", second) == 0
