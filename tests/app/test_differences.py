"""What differs between two jobs, on its screen."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from api_client.errors import RequestError
from support.dashboard import Dashboard, Heard, StubFeed, opened, pressed, screen_view, text_of
from support.waiting import until
from support.worlds import JOBS, run
from tui.analysis.comparison import ComparedRun
from tui.analysis.differences import JobDifferences, code_differences
from tui.screens.base import OpenPage
from tui.screens.compare import CompareRunsScreen
from tui.screens.differences import DifferencesScreen

BEFORE, AFTER = JOBS[0], JOBS[1]
CODE = code_differences({"train.py": b"lr = 1\n"}, {"train.py": b"lr = 2\n", "\x1b[2J.py": b"new\n"})


def view(*answers: JobDifferences | RequestError) -> Dashboard:
    rest = list(answers)

    async def read() -> JobDifferences:
        answer = rest.pop(0) if len(rest) > 1 else rest[0]
        if isinstance(answer, RequestError):
            raise answer
        return answer

    return Dashboard(lambda: DifferencesScreen(answers_title(), read))


def answers_title() -> str:
    return JobDifferences(BEFORE, AFTER).title


def shows(app: Dashboard, *words: str) -> Callable[[], bool]:
    return lambda: all(word in text_of(app) for word in words)


@pytest.mark.proves("README.md", "Which run is better?")
async def test_key_on_compare_opens_what_differs_between_the_first_two() -> None:
    for jobs, pages in (
        (JOBS[:3], [("llama70", "grpo7"), ("grpo7", "whisper")]),
        (JOBS[1::-1], [("llama70", "grpo7")] * 2),  # from the older to the newer job
    ):
        runs = tuple(ComparedRun(job, "read", run(job)) for job in jobs)
        feed: Any = partial(StubFeed, runs)
        opening = Heard(OpenPage)
        app = screen_view(lambda: CompareRunsScreen([one.job for one in runs], feed))  # noqa: B023
        async with opened(app, message_hook=opening) as pilot:
            await pressed(pilot, "C", "b", "C")
        assert [message.page.ids for message in opening.messages] == pages


@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
async def test_hardware_and_lines_of_code_are_shown(size: tuple[int, int]) -> None:
    app = view(JobDifferences(BEFORE, AFTER, CODE))
    async with opened(app, size) as pilot:
        await until(pilot, shows(app, "GPU: H100 → H200", "train.py changed", "-lr = 1", "+lr = 2"))
        assert "\x1b" not in text_of(app)


async def test_long_line_is_cut_to_a_few_rows() -> None:
    long = code_differences({}, {"data.txt": b"a" * 5_000, "next.txt": b""})
    app = view(JobDifferences(BEFORE, AFTER, long))
    async with opened(app, (80, 24)) as pilot:
        await until(pilot, shows(app, "aaa…", "next.txt added: 0 B"))


async def test_code_that_cannot_be_compared_is_named_beside_the_hardware() -> None:
    app = view(JobDifferences(BEFORE, AFTER, not_compared="job llama70 has no code archive"))
    async with opened(app) as pilot:
        await until(
            pilot, shows(app, "Code not compared: job llama70 has no code archive", "GPU: H100 → H200")
        )
    equal = view(JobDifferences(BEFORE, BEFORE))
    async with opened(equal) as pilot:
        await until(pilot, shows(equal, "no differences in hardware or code"))


async def test_what_was_read_stays_while_it_cannot_be_read_again() -> None:
    app = view(RequestError("down"), JobDifferences(BEFORE, AFTER, CODE), RequestError("down again"))
    async with opened(app) as pilot:
        await until(pilot, shows(app, "Can't read: down.", "Retrying automatically"))
        await pilot.press("r")
        await until(pilot, shows(app, "+lr = 2"))
        assert "Can't read" not in text_of(app)
        await pilot.press("r")
        await until(pilot, shows(app, "Can't read: down again.", "+lr = 2"))


async def test_failed_refreshes_leave_a_single_retry() -> None:
    app = view(*(RequestError(f"down {attempt}") for attempt in range(4)))
    async with opened(app) as pilot:
        for attempt in range(4):
            await until(pilot, shows(app, f"Can't read: down {attempt}."))
            await pilot.press("r")
        waiting = [timer for timer in app.screen._timers if timer.name == "try again" and timer._task]
        assert len(waiting) <= 1
