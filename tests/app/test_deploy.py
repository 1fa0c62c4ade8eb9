"""The deploy wizard on its screen, by keyboard and by mouse."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import OptionList

from support.dashboard import StubDeployFeed, deploy_view, resized, text_of
from support.deploying_server import DeployingServer, listed_checkpoint
from support.waiting import dashboard_on, sees, to_screen, until
from support.wizard_facts import form_of, lora, to
from tui.app import BtTuiApp
from tui.forms.deployment import REVIEW
from tui.screens.deploy.answers import CheckboxList, QuestionPane
from tui.screens.deploy.screen import DeployScreen
from tui.screens.dialogs import ConfirmScreen
from tui.screens.home.screen import HomeScreen
from tui.widgets.status_footer import KeyHints


def step_of(app: BtTuiApp) -> str:
    """The step that is drawn; empty while there is none."""
    screen = app.screen
    if not isinstance(screen, DeployScreen) or screen.snapshot.stage != "asking":
        return ""
    form = screen.snapshot.form
    panes = list(screen.query(QuestionPane))
    return form.question.id if form and panes and panes[-1].question.id == form.question.id else ""


def files(folder: Path, pattern: str) -> list[Path]:
    return list(folder.glob(pattern))


def _is_elsewhere(app: BtTuiApp, step_id: str) -> bool:
    return step_of(app) not in ("", step_id)


async def go_on(app: BtTuiApp, pilot: Pilot[object], last: str = REVIEW) -> None:
    """Take every default until that step."""
    while True:
        await until(pilot, lambda: step_of(app) != "")
        here = step_of(app)
        if here == last:
            return
        await pilot.press("ctrl+s")
        await until(pilot, partial(_is_elsewhere, app, here))


@pytest.mark.proves("README.md", "Can I ship it?")
async def test_from_home_to_a_served_model_by_keyboard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with DeployingServer() as server:
        async with dashboard_on(server, "job1", size=(80, 24), notifications=True) as (app, pilot):
            await pilot.press("d")

            # a row of the page is changed, a bad answer is refused
            await go_on(app, pilot)
            await pilot.press("home", "down", "down", "down", "enter")
            await until(pilot, lambda: step_of(app) == "model_name")
            await sees(pilot, "✗", after=("ctrl+u", "enter"))
            assert step_of(app) == "model_name"
            await pilot.press(*"served", "enter")
            await until(pilot, lambda: step_of(app) == REVIEW)

            # nothing is deployed without the last yes, and no answer is lost
            await to_screen(pilot, ConfirmScreen, "enter")
            assert "Deploy served?" in text_of(app)
            await pilot.press("enter")
            await until(pilot, lambda: step_of(app) == REVIEW)
            await sees(pilot, "Leave without deploying?", after=("escape",))
            await pilot.press("n")
            await until(pilot, lambda: step_of(app) == REVIEW)

            # a dry run shows and writes the config, and creates nothing
            await sees(pilot, "nothing was created", after=("down", "enter"))
            assert files(tmp_path, "truss_configs/*/config.yaml")
            await pilot.press("escape")
            await until(pilot, lambda: step_of(app) == REVIEW and "nothing was created" not in text_of(app))

            # the config is saved as Python
            await sees(pilot, "saved as", after=("down", "enter"))
            (saved,) = files(tmp_path, "deploy_*.py")
            assert "DeployCheckpointsConfig(" in saved.read_text(encoding="utf-8")

            await to_screen(pilot, ConfirmScreen, "up", "up", "enter")
            assert server.wet == []
            await sees(pilot, "✓ active", after=("y",))
            await sees(pilot, "curl")
            await resized(pilot, 60, 30)
            lines = text_of(app).splitlines()
            assert any(line.strip() == 'curl "$URL/chat/completions" \\' for line in lines), lines
            assert " " * 3 in lines[next(row for row, line in enumerate(lines) if "-d '" in line) + 1][:4]
            await to_screen(pilot, HomeScreen, "escape")


async def test_full_checkpoint_is_saved_as_a_config_for_an_engine_or_vllm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with DeployingServer() as server:
        server.checkpoints = [listed_checkpoint("checkpoint-100", kind="full", base_model="org/tuned-8B")]
        async with dashboard_on(server, "job1", size=(100, 30), notifications=True) as (app, pilot):
            await pilot.press("d")
            await go_on(app, pilot, "model_name")
            await pilot.press(*"served", "enter")
            await go_on(app, pilot)
            for name, downs in (("engine", 3), ("vllm", 1)):
                await pilot.press(*["down"] * downs, "enter")
                await until(pilot, partial(files, tmp_path, f"{name}_job1_*/config.yaml"))
                (saved,) = files(tmp_path, f"{name}_job1_*/config.yaml")
                await until(pilot, partial(_says, app, f"saved as {saved.relative_to(tmp_path)}"))
                assert "truss push" in text_of(app)
                assert "# Deploy it with: truss push" in saved.read_text(encoding="utf-8")
            assert server.wet == []


def _says(app: BtTuiApp, words: str) -> bool:
    return words in text_of(app)


async def press_footer(app: BtTuiApp, pilot: Pilot[object], key: str) -> None:
    def place() -> int | None:
        placed = app.screen.query_one(KeyHints)._hints_by_x()
        return next((x for x, hint in placed if hint.key == key), None)

    await until(pilot, lambda: place() is not None)
    await pilot.click(KeyHints, offset=(place() or 0, 0))


async def test_a_question_that_learns_late_that_it_was_hidden_keeps_the_focus() -> None:
    app = deploy_view(to(form_of(lora("one"), lora("two")), "checkpoint_names"))
    async with app.run_test() as pilot:
        await until(pilot, lambda: isinstance(app.focused, CheckboxList))
        choices = app.screen.query_one(CheckboxList)
        app.screen.query_one(QuestionPane).post_message(events.Show())
        choices.post_message(events.Hide())
        await pilot.press("space")
        await until(pilot, lambda: choices.is_changed)


@pytest.mark.proves("README.md", "Try it")
async def test_from_the_checkpoints_to_the_deployment_by_mouse_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    deployed: list[str] = []

    async def deploy(feed: StubDeployFeed, *, dry_run: bool) -> None:
        assert not dry_run
        deployed.extend(feed.form.answers.checkpoint_names)

    monkeypatch.setattr(StubDeployFeed, "deploy", deploy)
    app = deploy_view(to(form_of(lora("one"), lora("two")), "checkpoint_names"))
    async with app.run_test(size=(100, 60)) as pilot:
        await until(pilot, lambda: step_of(app) == "checkpoint_names")
        await sees(pilot, "☐ two")
        for row in (0, 1):
            await pilot.click(CheckboxList, offset=(3, row))
        assert app.screen.query_one(CheckboxList).marked_values == ("two",)
        await press_footer(app, pilot, "enter")
        await until(pilot, lambda: step_of(app) == REVIEW)
        # The list of the step before is there until this one's is drawn.
        await sees(pilot, "asks to confirm")
        actions = app.screen.query_one("QuestionPane OptionList", OptionList)
        await pilot.click(actions, offset=(3, (actions.highlighted or 0) + 1))
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen) and bool(app.screen.query("#yes")))
        await pilot.click("#yes")
        await until(pilot, lambda: deployed == ["two"])
