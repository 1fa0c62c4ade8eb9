"""Submitting from the dashboard, on a real emulator, with a job that really runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from textual.widgets import Input

from api_client.emulator.processes import EmulatorChild
from support.dashboard import opened, pressed, screen_view, text_of
from support.fake_baseten import FakeBaseten
from support.waiting import dashboard_on, sees, to_screen, until
from tui.feeds.submission import (
    STARTERS,
    ConfigChoice,
    SubmissionSnapshot,
    find_configs,
    remember_config,
)
from tui.screens.dialogs import ConfirmScreen
from tui.screens.home.screen import HomeScreen
from tui.screens.job.screen import JobScreen
from tui.screens.submit import CHOICE_COLUMNS, StarterScreen, SubmitScreen, completed_path

CONFIG = """
'''A first job.'''

from truss_train import definitions

training_project = definitions.TrainingProject(
    name="from-the-screen",
    job=definitions.TrainingJob(
        name="hello",
        image=definitions.Image(base_image="python:3.12-slim"),
        compute=definitions.Compute(cpu_count=1, availability_model=definitions.AvailabilityModel.SPOT),
        runtime=definitions.Runtime(start_commands=["sh ./run.sh"]),
    ),
)
"""
SIZE = (100, 30)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with one config, and a home for what is remembered."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "config.py").write_text(CONFIG, encoding="utf-8")
    (folder / "run.sh").write_text("echo hello from the archive\n", encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return folder


@pytest.mark.proves("docs/commands.md", "Submit a job")
async def test_choose_review_change_submit_and_watch(here: Path) -> None:
    with EmulatorChild(world="empty") as emulator:
        async with dashboard_on(emulator, "No training jobs here yet", size=SIZE) as (app, pilot):
            await sees(pilot, "config files", after=("n",))
            await pilot.press("enter")
            shown = ("from-the-screen", "sh ./run.sh", "2 files", "2Gi, spot", "definitions.TrainingProject(")
            await until(pilot, lambda: all(each in text_of(app) for each in shown))
            assert ["…"] not in [line.split()[:1] for line in text_of(app).splitlines()], "of a docstring"
            app.screen.query_one("#availability").focus()
            await pilot.press(*"dedicated", "tab")
            await until(pilot, lambda: "2Gi, spot" not in text_of(app))
            app.screen.query_one("#accelerator").focus()
            await sees(pilot, "✗ the accelerator 'h100'", after=(*"h100", "tab"))
            await pilot.press("shift+tab", "ctrl+s")
            await until(pilot, lambda: "Not submitted" in [one.title for one in app._notifications])
            assert "from-the-screen" in text_of(app), "the review stays"
            await pilot.press(*["backspace"] * 4)
            app.screen.query_one("#job_name").focus()
            app.clear_notifications()
            await pilot.press(*"renamed", "ctrl+s", "ctrl+s")
            await until(pilot, lambda: isinstance(app.screen, ConfirmScreen | JobScreen))
            assert "Not submitted" not in [one.title for one in app._notifications]
            if isinstance(app.screen, ConfirmScreen):
                await pilot.press("y")
            words = ("hello from the archive", "COMPLETED", "renamed")
            await until(pilot, lambda: all(each in text_of(app) for each in words))
            await to_screen(pilot, HomeScreen, "escape")
            await to_screen(pilot, SubmitScreen, "n")
            await sees(pilot, "recent")


@pytest.mark.proves("docs/commands.md", "Submit a job")
async def test_starter_project_is_written_and_its_config_reviewed(here: Path) -> None:
    (here / "lab").mkdir()
    (here / "lab" / "run.sh").write_text("mine", encoding="utf-8")
    with FakeBaseten() as server:
        async with dashboard_on(server, "job1", size=SIZE) as (app, pilot):
            await to_screen(pilot, SubmitScreen, "n")
            await until(pilot, lambda: "new project" in text_of(app) and "recent" not in text_of(app))
            await pilot.resize_terminal(80, 24)
            notes = [choice.note for choice in STARTERS]
            await until(pilot, lambda: all(note in text_of(app) for note in notes))
            await sees(pilot, "from truss_train import", after=(*"quickstart",))
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, StarterScreen))
            app.screen.query_one("#folder", Input).value = "lab"
            await sees(pilot, "not overwritten: lab/run.sh", after=("enter",))
            assert (here / "lab" / "run.sh").read_text() == "mine"
            app.screen.query_one("#folder", Input).value = "lab/first"
            await sees(pilot, "lab/first/config.py", "^s", after=("enter",))
            assert sorted(path.name for path in (here / "lab" / "first").iterdir()) == [
                "config.py",
                "run.sh",
                "train.py",
            ]


async def test_configs_that_fail_or_never_end_lose_nothing_and_a_typed_path_is_run(here: Path) -> None:
    told = here / "its-process"
    endless = f"import os  # TrainingProject\nopen({str(told)!r}, 'w').write(str(os.getpid()))\n"
    endless += "while True: pass\n"
    texts = {
        "another": CONFIG.replace("from-the-screen", "from-the-path"),
        "endless": endless,
        ".": "x = 1\nraise ValueError('[red]no such luck[/red]')\n",
    }
    for folder, text in texts.items():
        (here / folder).mkdir(exist_ok=True)
        (here / folder / "config.py").write_text(text, encoding="utf-8")
    with FakeBaseten() as server:
        async with dashboard_on(server, "job1", size=SIZE) as (app, pilot):
            await sees(pilot, "another/config.py", after=("n",))
            await sees(pilot, "[red]no such luck[/red]", after=(*"config.py", "enter"))
            assert "line 2" in text_of(app) or ":2" in text_of(app)
            app.screen.query_one("#path", Input).value = ""
            await until(pilot, lambda: '"from-the-path"' in text_of(app))  # the first, before it is run
            await sees(pilot, "Overrides", after=("enter",))
            await pilot.press("escape")
            await pilot.press(*"ENDLESS", "enter")  # narrows the list
            await until(pilot, lambda: told.exists() and told.read_text() != "")
            process_id = int(told.read_text())
            assert psutil.pid_exists(process_id)
            await pilot.press("ctrl+s")
            assert [one.message for one in app._notifications][-1] == "The config is still loading."
            await to_screen(pilot, HomeScreen, "escape")  # or the program would wait for it after its end
            await until(pilot, lambda: not psutil.pid_exists(process_id))


async def test_a_pasted_text_that_no_path_can_be_is_refused(here: Path) -> None:
    (here / "config.py").write_text(CONFIG, encoding="utf-8")
    with FakeBaseten() as server:
        async with dashboard_on(server, "job1", size=SIZE) as (app, pilot):
            await sees(pilot, "config.py", after=("n",))
            app.screen.query_one("#path", Input).value = "a job " * 100
            await sees(pilot, "✗", after=("enter",))
            assert "it can't be read: File name too long" in " ".join(text_of(app).split())


class StubSubmissionFeed:
    """Finds 18 configs, and the starters."""

    def __init__(self, publish: Callable[[SubmissionSnapshot], object]) -> None:
        self._publish = publish

    async def find_configs_nearby(self) -> None:
        configs = tuple(ConfigChoice(Path(f"/jobs/{number}/config.py")) for number in range(1, 19))
        self._publish(SubmissionSnapshot(choices=configs + STARTERS))


async def test_letters_typed_in_the_list_of_configs_narrow_it() -> None:
    app = screen_view(lambda: SubmitScreen(StubSubmissionFeed, "acme"))
    async with opened(app) as pilot:
        await pressed(pilot, "down", "pagedown", "up", "q")
        assert app.screen.query_one("#path", Input).value == "q"
        text = await pressed(pilot, "backspace", "/", "1", "8")
        assert "/jobs/18" in text and "/jobs/17" not in text
        await pressed(pilot, *["backspace"] * 3, *"quickstart")
        await sees(pilot, "from truss_train import")
        await pressed(pilot, "z")
        await until(pilot, lambda: "from truss_train import" not in text_of(app))


async def test_long_list_of_configs_leaves_room_for_their_text() -> None:
    app = screen_view(lambda: SubmitScreen(StubSubmissionFeed, "acme"))
    async with opened(app):
        assert app.screen.max_scroll_y == 0
        assert app.screen.query_one("#job").size.height >= 8


def test_typed_path_is_completed_by_folders_and_python_files(here: Path) -> None:
    folder = here / "runs"
    for path in (
        folder / "llama" / "config.py",
        folder / "sweep.py",
        folder / "notes.txt",
        folder / "bad\nname.py",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    typed = {"runs/l": "runs/llama/", "runs/llama/": "runs/llama/config.py", "runs/s": "runs/sweep.py"}
    assert {path: completed_path(path) for path in typed} == typed
    assert completed_path(f"{folder}/l") == f"{folder}/llama/"
    assert {
        completed_path(path)
        for path in ("", "~nobody-here/x", "runs/n", "runs/b", "runs/", "nowhere/c", "a\0/b")
    } == {None}


def test_note_is_apart_from_a_long_path() -> None:
    choice = ConfigChoice(Path("/jobs/multinode-with-fsdp/config.py"), is_recent=True)
    (column,) = CHOICE_COLUMNS
    assert "".join(text for text, _ in column.cell(choice)) == f"{choice.path} recent"


def test_recent_configs_come_first_then_only_those_that_name_a_project(tmp_path: Path) -> None:
    memory = tmp_path / "state" / "recent.json"
    texts = {"a": "", "b": "", "c": "DEBUG = True", "d": "project = TrainingProject(...)"}
    texts["f"] = "from common import training_project"
    for name, text in (texts | {".hidden": "", "node_modules": ""}).items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.py").write_text(text, encoding="utf-8")
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "config.py").symlink_to(tmp_path / "gone")
    for name in ("a", "b", "gone", "b"):
        remember_config(tmp_path / name / "config.py", memory)
    found = [(choice.path.parent.name, choice.is_recent) for choice in find_configs(tmp_path, memory)]
    assert found == [("b", True), ("a", True), ("d", False), ("f", False)]
    for content in ("", "not json", '{"a": 1}', "[1, null]"):
        memory.write_text(content, encoding="utf-8")
        assert find_configs(tmp_path / "empty", memory) == (), "a memory that makes no sense is none"


def test_large_config_is_not_previewed(tmp_path: Path) -> None:
    config = tmp_path / "config.py"
    config.write_text("names = [\n" + '    "one name of many",\n' * 10_000 + "]\n", encoding="utf-8")
    assert (
        ConfigChoice(config).read()
        == "# 234 KiB: too large to show with the values of environment variables removed"
    )
