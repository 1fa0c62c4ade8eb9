"""Recordings that are open in the dashboard: their clock, progress, and the moments to jump to."""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, closing, suppress
from datetime import datetime
from threading import Lock
from typing import IO, Any

from api_client.models import TrainingJob
from api_client.recordings.archive import RecordingError
from api_client.recordings.playback import Playback
from api_client.recordings.reading import Recording
from api_client.replay import Replay
from tui.analysis.node_metrics import MetricsSnapshot, metrics_until
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.snapshot import RunSnapshot
from tui.readers.recorded_index import Moment
from tui.settings.runs import DEFAULT, RunSettings


class RecordedRun:
    """A recorded run and the clock of the dashboard that shows it.

    The first request for progress or moments starts a process that analyzes the log. The process ends with
    the dashboard, even if the dashboard is killed.
    """

    def __init__(self, recording: Recording, clock: Playback, settings: RunSettings = DEFAULT) -> None:
        self._recording = recording
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False
        self._request_lock = Lock()
        self.clock = clock
        self.begin, self.end = recording.begin, max(recording.begin, recording.until)
        self._metrics, self._metrics_at = MetricsSnapshot(), self.begin

    @property
    def at(self) -> datetime:
        """The time that is shown, within the recorded range."""
        return min(max(self.clock.now(), self.begin), self.end)

    @property
    def job(self) -> TrainingJob:
        """The job as it was at the shown time."""
        return self._recording.job_at(self.clock.now())

    def seek(self, at: datetime) -> None:
        self.clock.seek(min(max(at, self.begin), self.end))

    @property
    def metrics(self) -> MetricsSnapshot | None:
        """All metrics up to the shown time; None if the metrics given to ``keep_metrics`` end earlier."""
        return metrics_until(self._metrics, self.at.timestamp()) if self.at <= self._metrics_at else None

    def keep_metrics(self, run: RunSnapshot) -> None:
        """Keep the snapshot's metrics if they are the latest, which include those of all earlier times."""
        if run.metrics is not None and run.metrics_at is not None and run.metrics_at >= self._metrics_at:
            self._metrics, self._metrics_at = run.metrics, run.metrics_at

    async def progress(self) -> ProgressSnapshot:
        """Return the progress at the shown time. Raises RecordingError if the analysis process has ended."""
        until_ns = self._recording.now_ns(self.clock.now())
        progress: ProgressSnapshot | None = None
        while progress is None:
            progress = await asyncio.to_thread(self._call, "progress_at", until_ns)
        return progress

    async def moments(self) -> AsyncIterator[list[Moment]]:
        """Yield all moments found so far, sorted by time, each time that more have been found.

        Raises RecordingError if the analysis process has ended.
        """
        checkpoints = [
            Moment(checkpoint.created_at, "checkpoint", checkpoint.checkpoint_id)
            for checkpoint in self._recording.checkpoints_at(self.end) or ()
            if checkpoint.created_at is not None
        ]
        found_moments: list[Moment] = []
        is_complete = False
        while not is_complete:
            new_moments, is_complete = await asyncio.to_thread(
                self._call, "moments_after", len(found_moments)
            )
            found_moments += new_moments
            if new_moments or is_complete:
                yield sorted([*checkpoints, *found_moments])

    def _call(self, method: str, argument: int) -> Any:
        """Call a method of the ``RecordingIndex`` in the analysis process."""
        with self._request_lock:
            try:
                if self._is_closed:  # a thread may get here only after the dashboard has ended
                    raise EOFError
                if self._process is None:
                    self._process = _start_analysis()
                    _send_pickled(self._process.stdin, (self._recording.path.absolute(), self._settings))
                _send_pickled(self._process.stdin, (method, argument))
                assert self._process.stdout is not None
                return pickle.load(self._process.stdout)
            except (EOFError, OSError, ValueError, pickle.UnpicklingError) as error:
                raise RecordingError(f"the process that analyzes {self._recording.path} has ended") from error

    def close(self) -> None:
        """End the analysis process; a call that waits for it raises RecordingError."""
        self._is_closed = True
        if self._process is not None:
            self._process.kill()
        with self._request_lock:
            if self._process is not None:
                self._process.kill()  # a call may have started it since
                with suppress(BrokenPipeError), self._process:
                    pass  # close its pipes


def _start_analysis() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-c", "from tui.readers.recorded_index import main; main()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
    )


def _send_pickled(stream: IO[bytes] | None, message: object) -> None:
    assert stream is not None
    pickle.dump(message, stream)
    stream.flush()


class OpenRecordings(ExitStack):
    """The recordings of a dashboard, which share one clock; leaving the ``with`` block closes them."""

    def __init__(self, recordings: Sequence[Recording], replay: Replay) -> None:
        super().__init__()
        self.recordings = recordings
        self.replay = replay
        self.clock = replay.clock
        self._runs: dict[str, RecordedRun] = {}

    @property
    def name(self) -> str:
        first_recording, *other_recordings = self.recordings
        return (
            f"{first_recording.name} and {len(other_recordings)} more"
            if other_recordings
            else first_recording.name
        )

    def run(self, job_id: str, settings: RunSettings = DEFAULT) -> RecordedRun | None:
        """Return the recorded run of a job; None if no recording has this job."""
        recording = next((opened for opened in self.recordings if opened.job.id == job_id), None)
        if recording is not None and job_id not in self._runs:
            self._runs[job_id] = self.enter_context(closing(RecordedRun(recording, self.clock, settings)))
        return self._runs.get(job_id)
