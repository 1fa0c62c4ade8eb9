"""Nothing of a config stays behind in the process that has run it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
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


@pytest.fixture
def busy_config(tmp_path: Path) -> Path:
    (tmp_path / "helper_beside.py").write_text("")
    package = tmp_path / "helper_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "part.py").write_text("VALUE = 'first'")
    return write_config(tmp_path, BUSY)


@pytest.fixture
def hasty_switching() -> Iterator[None]:
    """Threads take turns as often as can be, so that what is not kept apart gets mixed up."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def test_modules_paths_and_folder_are_as_before(
    busy_config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    modules, finders, paths, folder = dict(sys.modules), list(sys.meta_path), list(sys.path), Path.cwd()
    assert load_training_project(busy_config).name == "first"
    part = busy_config.parent / "helper_package" / "part.py"
    part.write_text("VALUE = 'second time'")
    assert load_training_project(busy_config).name == "second time"
    busy_config.write_text(BUSY + "\nraise ValueError")
    with pytest.raises(ConfigFileError):
        load_training_project(busy_config)
    assert sys.modules == modules
    assert (sys.meta_path, sys.path, Path.cwd()) == (finders, paths, folder)
    assert sys.dont_write_bytecode is False
    assert not list(busy_config.parent.rglob("__pycache__"))
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "printed by the config" in printed.err


def test_modules_of_the_official_names_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed, part = ModuleType("truss_train"), ModuleType("truss_train.exotic")
    monkeypatch.setitem(sys.modules, "truss_train", installed)
    monkeypatch.setitem(sys.modules, "truss_train.exotic", part)
    load_training_project(write_config(tmp_path, IMPORTS + f"x = {PROJECT}"))
    assert sys.modules["truss_train"] is installed
    assert sys.modules["truss_train.exotic"] is part
    assert "truss" not in sys.modules


def test_a_config_cannot_change_the_names_for_the_next_one(tmp_path: Path) -> None:
    text = f"{IMPORTS}import truss_train\nx = {PROJECT}\ntruss_train.definitions.Image = None\n"
    path = write_config(tmp_path, text + "assert truss_train.Image\ntruss_train.Image = None\n")
    load_training_project(path)
    assert load_training_project(path).job.image.base_image == "x"


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
    modules, finders, folder = set(sys.modules), list(sys.meta_path), Path.cwd()
    places, output = list(sys.path), sys.stdout
    start = threading.Barrier(len(paths))
    names: list[str] = []

    def load(path: Path) -> None:
        start.wait()
        names.append(load_training_project(path).name)

    threads = [threading.Thread(target=load, args=(path,)) for path in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(names) == [path.stem for path in paths]
    assert set(sys.modules) == modules
    assert (sys.meta_path, sys.path, Path.cwd()) == (finders, places, folder)
    assert sys.stdout is output
