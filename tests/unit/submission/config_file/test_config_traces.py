"""Nothing of a config stays behind in the process that has run it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest
from config_writing import IMPORTS, PROJECT, write_config

from api_client.submission.config_file import ConfigFileError, load_training_project

BUSY = f"""
import os, sys, sched, colorsys, email.mime.audio, xml.sax.saxutils
sys.path.insert(0, os.path.dirname(__file__))
import helper_beside
from helper_package.part import VALUE
os.chdir("/")
sys.modules["put_in_by_hand"] = sys
{IMPORTS}
print("printed by the config")
project = {PROJECT}
project.name = VALUE
"""


def test_modules_paths_and_folder_are_as_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "helper_package"
    package.mkdir()
    for name in ("helper_beside.py", "helper_package/__init__.py"):
        (tmp_path / name).touch()
    config, part = write_config(tmp_path, BUSY), package / "part.py"
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    modules, finders, paths, folder = dict(sys.modules), list(sys.meta_path), list(sys.path), Path.cwd()
    for value in ("first", "second time"):
        part.write_text(f"VALUE = '{value}'")
        assert load_training_project(config).name == value
    config.write_text(BUSY + "\nraise ValueError")
    with pytest.raises(ConfigFileError):
        load_training_project(config)
    assert sys.modules == modules
    assert (sys.meta_path, sys.path, Path.cwd()) == (finders, paths, folder)
    assert sys.dont_write_bytecode is False
    assert not list(tmp_path.rglob("__pycache__"))
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "printed by the config" in printed.err


def test_modules_of_the_official_names_come_back_and_cannot_be_changed_for_the_next_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = {name: ModuleType(name) for name in ("truss_train", "truss_train.exotic")}
    for name, module in installed.items():
        monkeypatch.setitem(sys.modules, name, module)
    text = f"{IMPORTS}import truss_train\nx = {PROJECT}\ntruss_train.definitions.Image = None\n"
    path = write_config(tmp_path, text + "assert truss_train.Image\ntruss_train.Image = None\n")
    for _ in range(2):
        assert load_training_project(path).job.image.base_image == "x"
    assert all(sys.modules[name] is module for name, module in installed.items())
    assert "truss" not in sys.modules


@pytest.fixture
def hasty_switching() -> Iterator[None]:
    """Threads take turns as often as can be, so that what is not kept apart gets mixed up."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def test_several_threads_may_load_at_once(tmp_path: Path, hasty_switching: None) -> None:
    text = f"""
        import os, sys
        for turn in range(100):
            os.chdir("/")
            sys.path.append("added")
            {IMPORTS.strip()}
        x = {PROJECT}
        x.name = __name__
        """
    paths = [write_config(tmp_path, text, name=f"config{number}.py") for number in range(8)]
    before = (set(sys.modules), list(sys.meta_path), Path.cwd(), list(sys.path), sys.stdout)
    start = threading.Barrier(len(paths))

    def load(path: Path) -> str:
        start.wait()
        return load_training_project(path).name

    with ThreadPoolExecutor(len(paths)) as pool:
        assert list(pool.map(load, paths)) == [path.stem for path in paths]
    assert (set(sys.modules), list(sys.meta_path), Path.cwd(), list(sys.path), sys.stdout) == before
