"""The dashboard on a recording: the moment is marked, and nothing can be changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from api_client.recordings.playback import Playback
from api_client.recordings.reading import Recording
from support.recorded import at, by_hand, line, ndjson
from support.waiting import until
from tui.app import BtTuiApp
from tui.commands.app.open import settings_of
from tui.commands.support.options import CommandSettings
from tui.commands.support.recorded import served_recording
from tui.screens.job.screen import JobScreen
from tui.widgets.status_footer import ConnectionBadge

LINES = [line(60 + number, f"step {number}/3000 loss=1.5") for number in range(3000)]


@pytest.mark.usefixtures("brisk")
async def test_it_shows_the_moment_is_marked_and_refuses_changes(tmp_path: Path) -> None:
    path = by_hand(tmp_path / "run.btrun", {"logs.ndjson": ndjson(*LINES)})
    settings = settings_of(CommandSettings(), path)
    with Recording(path) as recording:
        clock = Playback(recording.begin, recording.until, at=at(1060))
        with served_recording(recording, clock) as remote:
            app = BtTuiApp(remote, job_id="job1", settings=settings, playback=clock)
            async with app.run_test(size=(120, 30)) as pilot:
                await until(pilot, lambda: isinstance(app.screen, JobScreen) and _step(app) == 1000)
                assert app.screen.query_one(ConnectionBadge).words == "recording run 2026-03-01 12:17:40"
                await pilot.press("s")
                await until(pilot, lambda: bool(list(app._notifications)))
                notices = [notice.message for notice in app._notifications]
                assert notices == ["This dashboard is read-only (recording run.btrun)."]


def _step(app: BtTuiApp) -> int | None:
    screen = app.screen
    assert isinstance(screen, JobScreen)
    progress = screen.snapshot.progress if screen.snapshot is not None else None
    return progress.step if progress is not None else None
