"""Shared by all tests: an environment without the user's settings, keys and proxies; time zone UTC.

``tests`` is on pytest's import path, so ``tests/support`` is importable as ``support``.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
import textual.strip
from hypothesis import settings
from textual import _callback
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.message import Message
from textual.pilot import Pilot

from support.faulty import FaultyServer, faulty_server
from support.warm_python import WarmPython
from tui.system.garbage import cache_styles_without_widgets, disable_line_caches

SETTINGS = (
    "AWS_",
    "BASETEN_",
    "USER_TRUSSRC_PATH",
    "BT_TUI_",
    "NO_COLOR",
    "FORCE_COLOR",
    "TMUX",
    "COLUMNS",
    "LINES",
)
STARTING = ("api_client.emulator.processes", "api_client.submission.config_file", "tui.readers.recorded_runs")
"""Modules that start Python with parts of this project."""
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")

# What is imported and collected stays: looking for garbage in it takes a third of the time.
gc.disable()

# A shell starts background jobs with ctrl+c ignored, and the processes of tests would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

BRIEF_TIMERS_S = 1 / 200
"""Two of these outlast the timer by which textual gathers resizes."""
QUIET_ROUNDS = 3
"""Rounds of the event loop in which nothing came from a socket or a thread."""
PATIENCE_S = 10.0
NUMBERS = count()

# How long an example takes depends on the machine. Half of the usual number kills the same mutants.
settings.register_profile("untimed", deadline=None, max_examples=50)
settings.load_profile("untimed")


@pytest.fixture(scope="module")
def faulty() -> Iterator[FaultyServer]:
    """A server with faults on request."""
    with faulty_server() as server:
        yield server


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the settings, files and time zone of whoever runs the tests out of them."""
    # Not by mktemp, which looks at the folders of all tests before.
    own = tmp_path_factory.getbasetemp() / "own" / str(next(NUMBERS))
    own.mkdir(parents=True)
    for place in ("CONFIG", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{place}_HOME", str(own / place.lower()))
    for name in list(os.environ):
        if name.startswith(SETTINGS) or name.upper() in PROXIES:
            monkeypatch.delenv(name)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def pytest_collection_finish() -> None:
    """Collect garbage rarely, and never search what was imported: a quarter of the dashboard tests' time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(30_000, 20, 20)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Pytest searches all that is left five times: once is enough for what the tests forgot."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _parse_each_stylesheet_once() -> Iterator[None]:
    """Share parsed rules between the dashboards of a process; each parses its own otherwise, for 40 ms."""
    parse, parsed = Stylesheet._parse_rules, dict[Any, list[RuleSet]]()

    def parse_once(sheet: Stylesheet, css: str, **origin: Any) -> list[RuleSet]:
        key = (css, *origin.items(), *sheet._variables.items())
        if key not in parsed:
            parsed[key] = parse(sheet, css, **origin)
        return parsed[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", parse_once)
        # The same hash without a call of Python: styling a job screen takes 120,000 of them.
        patch.setattr(RuleSet, "__hash__", object.__hash__)
        yield


@pytest.fixture(autouse=True, scope="session")
def _inspect_each_callback_once() -> Iterator[None]:
    """Textual forgets the parameters of a callback that has arguments, as ``call_later`` gives them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_callback, "_count_parameters", lru_cache(_callback._count_parameters))
        yield


@pytest.fixture(autouse=True, scope="session")
def _wait_for_messages() -> Iterator[None]:
    """A pilot waits until nothing is left to do, not until the process is idle.

    On a busy machine a process looks idle before the widget that takes the next key is there, and a dashboard
    that is never quite idle costs a second a key.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module in ("app", "pilot"):
            patch.setattr(f"textual.{module}.wait_for_idle", nothing_left_to_do)
        patch.setattr(Pilot, "_wait_for_screen", messages_taken)
        yield


async def nothing_left_to_do(*_limits_s: float) -> None:
    """Return once the tasks of the loop wait for time, a thread or a socket."""
    loop: Any = asyncio.get_running_loop()
    begun_s, quiet_rounds = loop.time(), 0
    await asyncio.sleep(BRIEF_TIMERS_S)
    while quiet_rounds < QUIET_ROUNDS and loop.time() - begun_s < PATIENCE_S:
        await asyncio.sleep(0)
        quiet_rounds = 0 if loop._ready else quiet_rounds + 1


class Turn(Message, no_dispatch=None):
    """Tells when a widget comes to it, which has then handled all messages before. It needs no handler."""

    def __init__(self, taken: Callable[[], None]) -> None:
        super().__init__()
        self._taken = taken

    @property
    def no_dispatch(self) -> bool:  # type: ignore[override]
        self._taken()
        return True


async def messages_taken(pilot: Pilot[Any], timeout: float = 60.0) -> bool:
    """Wait as Textual's own pilot does, until every widget has handled its messages; ask only busy ones."""
    left, all_taken = 0, asyncio.Event()

    def taken() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            all_taken.set()

    if not pilot.app.screen_stack:
        return False
    for widget in (pilot.app, *pilot.app.screen.walk_children(with_self=True)):
        ready: Any = widget._message_queue.ready_event
        if ready.is_set() or not ready._waiters:  # else it has none and waits for the next
            left += widget.post_message(Turn(taken))
    if not left:
        return True
    ends = [asyncio.ensure_future(event.wait()) for event in (all_taken, pilot.app._exception_event)]
    await asyncio.wait(ends, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    for end in ends:
        end.cancel()
    assert left == 0 or pilot.app._exception_event.is_set(), "widgets are still busy"
    return left == 0


@pytest.fixture(autouse=True, scope="session")
def _start_programs_warm() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in STARTING:
            patch.setattr(f"{module}.subprocess", SimpleNamespace(**vars(subprocess) | {"Popen": WarmPython}))
        yield


@pytest.fixture(autouse=True, scope="session")
def _disable_line_caches() -> Iterator[None]:
    """As in a terminal: the caches take a fifth of the dashboard tests' time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("textual.strip.FIFOCache", textual.strip.FIFOCache)
        disable_line_caches()
        cache_styles_without_widgets()
        yield
