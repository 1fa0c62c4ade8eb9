"""What a dashboard saves where the disk is full: a sentence, no half file, and it goes on."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from app.log_stories import line

from support.dashboard import job_view, opened, pressed, text_of
from support.sick_runs import sick_run
from support.waiting import until


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, on a disk that is full from now on; there is no folder of downloads."""
    path = tmp_path / "here"
    path.mkdir()
    monkeypatch.chdir(path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DOWNLOAD_DIR", str(tmp_path / "no"))

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    return path


def files_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_the_samples_of_charts_a_picture_of_the_screen_and_a_log(here: Path) -> None:
    app = job_view(sick_run("nan"), tab="metrics", lines=(line(1, "one"),))
    async with opened(app, (120, 40), notifications=True) as pilot:
        await pressed(pilot, "E")
        await pilot.press("enter")
        await until(pilot, lambda: "not saved: the disk is full" in text_of(app))
        await pilot.press("escape")
        await until(pilot, lambda: "not saved" not in text_of(app))
        app.save_screen()
        await until(pilot, lambda: any("the disk is full" in one.message for one in app._notifications))
        app.clear_notifications()
        await pressed(pilot, "2", "W")
        await pilot.press("enter")
        await until(pilot, lambda: "not saved: the disk is full" in text_of(app))
    assert not files_in(here)
