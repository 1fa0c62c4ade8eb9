"""Random keys at every page, dialog and question of the wizard: no crash, no hang, nothing acts below.

Each place gets keys one by one, several in one burst, and one repeated as by a keyboard. This takes seconds;
for longer, on the demo and on servers with faults, name the minutes:

    RANDOM_KEYS_MINUTES=30 .venv/bin/python -m pytest -n 0 -s -o faulthandler_timeout=0 \\
        tests/faults/test_random_keys.py
"""

from __future__ import annotations

import asyncio
import os
import random
import time
import unicodedata
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from screen_walks import CONFIG, WALKS, Go, QuickRetryApp, faulty_world, keys
from textual import events
from textual.dom import DOMNode
from textual.keys import _get_unicode_name_from_key
from textual.pilot import Pilot
from textual.widgets import Input

from api_client.emulator.processes import EmulatorChild
from api_client.remotes import Remote
from support.dashboard import text_of
from support.faulty import FaultyServer
from support.remotes import remote_of
from support.waiting import POLL_EVERY_S, until
from tui.analysis.export import ExportTable
from tui.forms.deployment import ALL_QUESTION_IDS, REVIEW
from tui.guard.conditions import parse_rules
from tui.screens.deploy.screen import DeployScreen
from tui.screens.dialogs import (
    ConfirmScreen,
    DownloadFolderScreen,
    ExportScreen,
    FileConflictScreen,
    QuitScreen,
    StopRulesScreen,
    StopScreen,
)
from tui.screens.home.screen import HomeScreen
from tui.screens.submit import StarterScreen, SubmitPage
from tui.screens.welcome import WelcomeScreen
from tui.system.starters import STARTER_PROJECTS

MINUTES = float(os.environ.get("RANDOM_KEYS_MINUTES", "0"))
PATIENCE_S = 60.0
PARTS = 4
FAULTS = ("", "503", "404", "401", "html", "reset", "truncated", "empty", "drift", "stall=300ms", "429")
USUAL_KEYS = (
    *("enter", "escape", "tab", "shift+tab", "space", "up", "down", "left", "right", "home", "end", "pageup"),
    *("pagedown", "backspace", "delete", "ctrl+s", "ctrl+b", "ctrl+y", "ctrl+c", "ctrl+p", "ctrl+q", "f1"),
    *("y", "n", "q", "c", "d", "s", "x", "1", "2", "3", "4", "5", "0", "slash", "question_mark", "colon"),
)


class TypedOn(QuickRetryApp):
    """A dashboard that doesn't quit; ``complaints`` are failed workers and actions on hidden screens."""

    def __init__(self, remote: Remote) -> None:
        super().__init__(remote)
        self.complaints = list[str]()

    def exit(self, *_given: Any, **_options: Any) -> None:
        return

    def notify(self, message: str, *, title: str = "", **options: Any) -> None:
        if title == "Unexpected error":
            self.complaints.append(message)
        super().notify(message, title=title, **options)

    async def _dispatch_action(self, namespace: DOMNode, action_name: str, params: Any) -> bool:
        if namespace is not self and self.screen not in namespace.ancestors_with_self:
            self.complaints.append(f"{action_name} on {namespace} below {self.screen}")
        return await super()._dispatch_action(namespace, action_name, params)


def pushed(make: Any) -> Go:
    async def go(app: Any, _pilot: Pilot[Any]) -> None:
        screen = make()
        app.push_screen(screen)

    return go


def question(step: str) -> Go:
    """Open the wizard at this question, or where it begins if the job has no such question."""

    async def go(app: Any, pilot: Pilot[Any]) -> None:
        await pilot.press("d")
        await until(
            pilot,
            lambda: not isinstance(app.screen, DeployScreen) or app.screen.snapshot.form is not None,
        )
        form = app.screen.snapshot.form if isinstance(app.screen, DeployScreen) else None
        if form is not None and step in {question.id for question in form.questions}:
            app.screen._feed.show(replace(form, selected_id=step))

    return go


READ = partial(parse_rules, now=datetime(2026, 3, 1, tzinfo=UTC))
TABLE = ExportTable("jobs", ("name",), (("a",),))
DIALOGS: dict[str, Go] = {
    "quit": pushed(partial(QuitScreen, 1, 1)),
    "confirm": pushed(partial(ConfirmScreen, "Stop it?", "It ends.", "Stop")),
    "stop": pushed(partial(StopScreen, "Stop it?", "It ends.", is_planned=False, parse_rules=READ)),
    "stop later": pushed(partial(StopScreen, "Stop it?", "It ends.", is_planned=True, parse_rules=READ)),
    "stop when": pushed(partial(StopRulesScreen, "Stop it?", READ)),
    "folder": pushed(partial(DownloadFolderScreen, "it", "1 KiB", Path("down"), lambda _folder: "")),
    "export": pushed(partial(ExportScreen, "jobs", [TABLE], Path("jobs.csv"))),
    "conflict": pushed(partial(FileConflictScreen, "down", ["a", "b"])),
    "starter": pushed(partial(StarterScreen, STARTER_PROJECTS[0])),
    "welcome": pushed(partial(WelcomeScreen, "")),
    "palette": keys("colon"),
    "help": keys("question_mark"),
    "remotes": keys("U"),
    "run a job again": keys("R"),
    "projects": keys("0"),
    "delete": keys("X"),
    "filter": keys("slash"),
    "stop a job": keys("s"),
    "path of a config": keys("n"),
    "search of a log": keys("enter", "2", "slash"),
    "filter of a log": keys("enter", "2", "ampersand"),
    "time in a log": keys("enter", "2", "at"),
    "download": keys("enter", "4", "D"),
}
PLACES: dict[str, Go] = {
    **{page.__name__: walk.go for page, walk in WALKS.items()},
    **{f"job tab {tab}": keys("enter", tab) for tab in "12345"},
    **DIALOGS,
    **{f"wizard: {step}": question(step) for step in (*sorted(ALL_QUESTION_IDS), REVIEW)},
}


OPENINGS = {page.__name__: walk.go for page, walk in WALKS.items() if page is not SubmitPage} | DIALOGS
"""How to open each page and dialog; ``SubmitPage`` as the path of a config."""


class Hand:
    """Types at random; ``typed`` are its last keys."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.typed = list[str]()

    async def type_on(self, app: TypedOn, pilot: Pilot[Any]) -> None:
        """Type some keys at one of three paces, and wait until they are done."""
        number = self._random.randrange(1, 9)
        pace = self._random.choice(("one by one", "burst", "repeat"))
        chosen = [self._key(app) for _ in range(number)]
        for key in [chosen[0]] * number if pace == "repeat" else chosen:
            self.typed = [*self.typed[-40:], key]
            app.post_message(events.Key(key, character_of(key)))
            if pace == "one by one":
                await pilot.pause()
        await answering(app, pilot)

    def _key(self, app: TypedOn) -> str:
        bound = sorted(app.screen.active_bindings) if app.screen_stack else []
        return self._random.choice(bound if bound and self._random.random() < 0.6 else USUAL_KEYS)

    def choose(self, choices: Sequence[str]) -> str:
        return self._random.choice(choices)

    def shuffled(self, names: Iterable[str]) -> list[str]:
        return self._random.sample(sorted(names), len(list(names)))


def character_of(key: str) -> str | None:
    try:
        return unicodedata.lookup(_get_unicode_name_from_key(key))
    except KeyError:
        return key if len(key) == 1 else None


async def answering(app: TypedOn, pilot: Pilot[Any]) -> None:
    """Return once all keys are taken, and the app and the screen on top have handled what they began."""
    await until(pilot, lambda: not app._typed_keys._keys)
    handled = asyncio.Event()
    app.call_later(lambda: app.screen.call_later(handled.set))
    async with asyncio.timeout(PATIENCE_S):
        await handled.wait()
    text_of(app)  # what cannot be drawn is a crash, too


async def go_home(app: TypedOn, pilot: Pilot[Any], remote: Remote) -> bool:
    """Show a new Home; return False if the keys have deleted all its jobs.

    What the last keys began may still open a screen, or the filter of Home (the palette runs what was chosen
    after it has closed).
    """
    await app.switch_to_session(app.session_with(remote))
    polls_at_home = 0
    while polls_at_home < 4:
        assert app._exception is None
        is_home = isinstance(app.screen, HomeScreen) and app.screen.snapshot is not None
        polls_at_home = polls_at_home + 1 if is_home else 0
        if len(app.screen_stack) > 2:
            await app.pop_screen()
        await pilot.pause(POLL_EVERY_S)
    if isinstance(app.focused, Input):
        app.screen.action_back()
    return bool(app.screen.snapshot.jobs)


@asynccontextmanager
async def dashboard(remote: Remote) -> AsyncIterator[tuple[TypedOn, Pilot[Any]]]:
    app = TypedOn(remote)
    async with app.run_test(size=(100, 30)) as pilot:
        yield app, pilot


async def visit(app: TypedOn, pilot: Pilot[Any], hand: Hand, place: str, bursts: int) -> None:
    for _ in range(bursts):
        await hand.type_on(app, pilot)
        assert app._exception is None and not app.complaints, (place, app.complaints, hand.typed)


@pytest.fixture(autouse=True)
def _harmless_programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("PAGER", "EDITOR", "VISUAL"):
        monkeypatch.setenv(name, "true")


@pytest.mark.parametrize("part", range(PARTS))
async def test_random_keys_at_every_place(part: int, tmp_path: Path) -> None:
    hand = Hand(part)
    with faulty_world(tmp_path) as (server, _patch):
        remote = remote_of(server)
        async with dashboard(remote) as (app, pilot):
            for place, go in list(PLACES.items())[part::PARTS]:
                server.set_faults()
                assert await go_home(app, pilot, remote), "no jobs are left"
                await go(app, pilot)
                server.set_faults(hand.choose(FAULTS))
                await visit(app, pilot, hand, place, bursts=1)


class HastyApp(TypedOn):
    """Closes each screen but Home some turns of the event loop after it opened it."""

    turns = 0

    def push_screen(self, screen: Any, *given: Any, **options: Any) -> Any:
        pushed = super().push_screen(screen, *given, **options)
        if not isinstance(screen, HomeScreen):
            asyncio.get_running_loop().create_task(self._close(screen))
        return pushed

    async def _close(self, screen: Any) -> None:
        for _ in range(self.turns):
            await asyncio.sleep(0)
        while screen in self.screen_stack:
            await self.pop_screen()


async def test_screen_is_closed_while_it_opens(tmp_path: Path) -> None:
    with faulty_world(tmp_path) as (server, _patch):
        remote = remote_of(server)
        app = HastyApp(remote)
        async with app.run_test(size=(100, 30)) as pilot:
            assert await go_home(app, pilot, remote)
            for number, (place, go) in enumerate(OPENINGS.items()):
                for app.turns in (3 * (number % 3), 9 + 3 * (number % 3)):
                    await go(app, pilot)
                    await answering(app, pilot)
                    await until(pilot, lambda: isinstance(app.screen, HomeScreen))
                    assert app._exception is None and not app.complaints, (place, app.turns, app.complaints)


@pytest.mark.skipif(not MINUTES, reason="RANDOM_KEYS_MINUTES is not set")
@pytest.mark.parametrize("world", ["demo", "faulty"])
async def test_random_keys_for_minutes(world: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    end_s = time.monotonic() + MINUTES * 30
    seed = time.time_ns() % 1_000_000
    while time.monotonic() < end_s:
        hand, folder = Hand(seed), tmp_path / str(seed)
        folder.mkdir()
        print(f"{world}, seed {seed}")  # noqa: T201 - it takes long
        if world == "demo":
            monkeypatch.chdir(folder)
            (folder / "config.py").write_text(CONFIG, encoding="utf-8")
            with EmulatorChild(world="demo") as child:
                await roam(remote_of(child), hand, end_s)
        else:
            with faulty_world(folder) as (server, _patch):
                await roam(remote_of(server), hand, end_s, server)
        seed += 1


async def roam(remote: Remote, hand: Hand, end_s: float, server: FaultyServer | None = None) -> None:
    """Visit every place in random order with a few bursts each; ``server`` has another fault each time."""
    async with dashboard(remote) as (app, pilot):
        for place in hand.shuffled(PLACES):
            if time.monotonic() > end_s:
                break
            if server is not None:
                server.set_faults()
            if not await go_home(app, pilot, remote):
                break
            await PLACES[place](app, pilot)
            if server is not None:
                server.set_faults(hand.choose(FAULTS))
            await visit(app, pilot, hand, place, bursts=8)
