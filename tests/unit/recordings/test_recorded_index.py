"""The progress at any moment of a recording is that of the lines so far, whatever was shown before."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from api_client.recordings import writing
from api_client.recordings.archive import RecordingError
from api_client.recordings.playback import Playback
from api_client.recordings.reading import Recording
from support.recorded import at, line, writer
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.progress.lines.custom import ProgressPattern
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.readers import recorded_index
from tui.readers.recorded_index import RecordingIndex
from tui.readers.recorded_runs import RecordedRun
from tui.settings.runs import RunSettings

LINES = [line(60 + 10 * number, f"step {number}/320 loss={3 - number / 160}") for number in range(320)]
LATE = line(700, "epoch reached its goal 17")
ERROR = line(2000.5, "RuntimeError: CUDA out of memory", level="ERROR")
PATTERNS = (ProgressPattern("goal", r"goal (?P<grad_norm>\d+)"),)
SETTINGS = RunSettings(patterns=PATTERNS)
MOMENTS = (1060.0, 2500.0, 30.0, 2501.0, 2490.0, 699.0, 1900.0, 3600.0, 1061.0, 0.0)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(writing, "BLOCK_LINES", 7)
    made = writer(tmp_path / "run.btrun")
    made.log.add([*LINES[:180], LATE, *LINES[180:195], ERROR, *LINES[195:]])
    made.close()
    return tmp_path / "run.btrun"


def _folded(recording: Recording, seconds: float) -> ProgressSnapshot:
    fold = ProgressFold(patterns=PATTERNS)
    lines, _ = recording.log.arriving((0, 0), recording.now_ns(at(seconds)))
    fold.add(line.entry for line in lines)
    return fold.snapshot()


@pytest.mark.parametrize("searched", [0, 10_000], ids=["while searching", "after the search"])
def test_the_progress_of_any_moment_is_that_of_the_lines_so_far(
    path: Path, monkeypatch: pytest.MonkeyPatch, searched: int
) -> None:
    monkeypatch.setattr(recorded_index, "LINES_PER_CALL", 5)
    with Recording(path) as recording:
        index = RecordingIndex(recording, SETTINGS)
        is_complete = False
        for _ in range(searched):
            _, is_complete = index.moments_after(0)
        assert is_complete is bool(searched)
        for seconds in MOMENTS:
            while (shown := index.progress_at(recording.now_ns(at(seconds)))) is None:
                index.moments_after(0)
            assert shown == _folded(recording, seconds)


def test_a_moment_takes_only_the_lines_after_the_copy_before_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_index, "LINES_PER_CALL", 5)
    with Recording(path) as recording:
        index = RecordingIndex(recording, SETTINGS)
        while not index.moments_after(0)[1]:
            pass
        arriving, counts = recording.log.arriving, list[int]()

        def counted(*arguments: Any, **options: Any) -> Any:
            arrived, position = arriving(*arguments, **options)
            counts.append(len(arrived))
            return arrived, position

        monkeypatch.setattr(recording.log, "arriving", counted)
        for seconds in (1060.0, 3000.0, 2000.0):
            assert index.progress_at(recording.now_ns(at(seconds))) is not None
            assert 0 < sum(counts) <= 2 * len(LINES) / recorded_index.MAX_COPIES
            counts.clear()


async def test_another_process_finds_progress_and_moments(path: Path) -> None:
    with Recording(path) as recording:
        clock = Playback(recording.begin, recording.until)
        with closing(RecordedRun(recording, clock, SETTINGS)) as run:
            for seconds in (1060.0, 2500.0):
                run.seek(at(seconds))
                assert await run.progress() == _folded(recording, seconds)
            marks = [found async for found in run.moments()][-1]
    assert [one.text for one in marks if one.kind == "error"] == ["RuntimeError: CUDA out of memory"]
    assert [one.text for one in marks if one.kind == "checkpoint"] == [f"checkpoint-{n}" for n in (1, 2, 3)]


@pytest.mark.parametrize("is_started", [True, False])
async def test_analysis_that_has_ended_is_reported(path: Path, is_started: bool) -> None:
    with Recording(path) as recording:
        run = RecordedRun(recording, Playback(recording.begin, recording.until))
        if is_started:
            await run.progress()
        run.close()
        with pytest.raises(RecordingError, match=r"the process that analyzes .* has ended"):
            await run.progress()
