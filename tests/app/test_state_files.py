"""The dashboard starts and works whatever is in the place of what it remembers."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from support.dashboard import text_of
from support.fake_baseten import FakeBaseten, job, project
from support.waiting import dashboard_on, sees, until
from tui.feeds.submission import find_configs, remember_config
from tui.screens.home.screen import HomeScreen
from tui.screens.job.screen import JobScreen
from tui.settings.remembered import Memory

SENSELESS = {
    "home": {"sort": "nothing", "descending": True, "filter": "x" * 9_999},
    "job": {"tab": "nowhere", "job_id": "job1", "span_s": -1e9, "time": "never", "wrap": True},
    "bookmarks": {"jobs": [*map(str, range(99_999)), "job1"]},
    "teams": {"<environment>": "no such team"},
    "theme": {"name": "no such theme"},
    "tips": {"no such tip": 3, "home.filter": 1000},
}


def text(content: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(content)


def unreadable(path: Path) -> None:
    path.write_text("{}")
    path.chmod(0)


INSTEAD: dict[str, Callable[[Path], object]] = {
    "lists": text(json.dumps({name: [[1]] for name in SENSELESS})),
    "lists as values": text(
        '{"home": {"sort": [1], "filter": {}}, "bookmarks": {"jobs": [[1]]}, "tips": {"a": []}}'
    ),
    "numbers": text(json.dumps(dict.fromkeys(SENSELESS, 1e999))),
    "senseless values": text(json.dumps(SENSELESS)),
    "a list": text("[1]"),
    "nested lists": text("[" * 100_000),
    "bytes": lambda path: path.write_bytes(b"\xff\x00"),
    "folder": Path.mkdir,
    "pipe": os.mkfifo,
    "no permission": unreadable,
    "broken link": lambda path: path.symlink_to("nowhere"),
    "link to itself": lambda path: path.symlink_to(path),
    "device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("instead", ["lists as values", "senseless values", "folder"])
async def test_dashboard_starts_whatever_its_memory_is(tmp_path: Path, instead: str) -> None:
    path = tmp_path / "layout.json"
    INSTEAD[instead](path)
    with FakeBaseten() as baseten:
        baseten.projects, baseten.jobs = [project("proj1", "llama-sft")], [job("job1", name="run-one")]
        async with dashboard_on(baseten, size=(100, 30), memory=Memory(path)) as (app, pilot):
            await until(pilot, lambda: isinstance(app.screen, HomeScreen) and "1 job" in text_of(app))
            await sees(pilot, "run-one", after=("escape", "S", "B"))
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, JobScreen) and "run-one" in text_of(app))
            await pilot.press("2", "w")
    if instead != "folder":
        assert "job1" in Memory(path).state.bookmarks.jobs or instead == "senseless values"


@pytest.mark.parametrize("instead", INSTEAD)
def test_configs_are_found_whatever_the_recent_ones_are(tmp_path: Path, instead: str) -> None:
    path, config = tmp_path / "recent-configs.json", tmp_path / "project" / "config.py"
    config.parent.mkdir()
    config.write_text("TrainingProject")
    INSTEAD[instead](path)
    assert [choice.path for choice in find_configs(config.parent, path)] == [config]
    remember_config(config, path)
    assert [choice.is_recent for choice in find_configs(config.parent, path)] == [instead != "folder"]


def test_recent_config_of_an_impossible_name_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "recent-configs.json"
    path.write_text(json.dumps({"paths": ["x" * 9_999, "\0", "\ud800", "", str(tmp_path)]}))
    assert find_configs(tmp_path, path) == ()
