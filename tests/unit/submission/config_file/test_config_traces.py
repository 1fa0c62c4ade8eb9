"""A config runs in a process of its own: nothing of it stays behind in the one that loads it."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from config_writing import IMPORTS, PROJECT, write_config

from api_client.submission.config_file import load_training_project

BUSY = f"""
import os, sys, sched, colorsys
sys.path.insert(0, os.path.dirname(__file__))
import helper_beside
os.chdir("/")
os.environ["OF_THE_CONFIG"] = "1"
{IMPORTS}
print("printed by the config")
project = {PROJECT}
project.name = helper_beside.VALUE
"""


def test_loading_leaves_modules_folder_and_output_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config, helper = write_config(tmp_path, BUSY), tmp_path / "helper_beside.py"
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setenv("PYTHONWARNINGS", "always::ResourceWarning")
    modules, folder = dict(sys.modules), Path.cwd()
    for value in ("first", "second time"):
        helper.write_text(f"VALUE = '{value}'")
        assert load_training_project(config).name == value
    assert (sys.modules, Path.cwd()) == (modules, folder)
    assert not list(tmp_path.rglob("__pycache__"))
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == ["printed by the config"] * 2


def test_several_threads_may_load_at_once(tmp_path: Path) -> None:
    paths = [
        write_config(tmp_path, f"{IMPORTS}x = {PROJECT}\nx.name = __name__", name=f"config{number}.py")
        for number in range(3)
    ]
    with ThreadPoolExecutor(len(paths)) as pool:
        names = [project.name for project in pool.map(load_training_project, paths)]
    assert names == [path.stem for path in paths]
