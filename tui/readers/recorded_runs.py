"""Recordings that are open in the dashboard: their clock, and the moments of a run worth going to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, closing
from datetime import datetime

from api_client.models import TrainingJob
from api_client.recordings.playback import Playback
from api_client.recordings.reading import Recording
from api_client.replay import Replay
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.readers.recorded_index import Moment
from tui.readers.recorded_process import RecordingAnalysis
from tui.settings.runs import DEFAULT, RunSettings


class RecordedRun:
    """A recorded run and the clock of the dashboard that shows it."""

    def __init__(self, recording: Recording, clock: Playback, analysis: RecordingAnalysis) -> None:
        self._recording = recording
        self._analysis = analysis
        self.clock = clock
        self.begin, self.end = recording.begin, max(recording.begin, recording.until)

    @property
    def at(self) -> datetime:
        """The moment that is shown, within the run."""
        return min(max(self.clock.now(), self.begin), self.end)

    @property
    def job(self) -> TrainingJob:
        """The job as it was at that moment."""
        return self._recording.job_at(self.clock.now())

    def seek(self, at: datetime) -> None:
        self.clock.seek(min(max(at, self.begin), self.end))

    async def progress(self) -> ProgressSnapshot:
        """Return the progress at that moment. Raises RecordingError."""
        return await self._analysis.progress(self._recording.now_ns(self.clock.now()))

    async def moments(self) -> AsyncIterator[list[Moment]]:
        """Yield the moments found so far, in order of time; reading a long run takes a while."""
        checkpoints = [
            Moment(checkpoint.created_at, "checkpoint", checkpoint.checkpoint_id)
            for checkpoint in self._recording.checkpoints_at(self.end) or ()
            if checkpoint.created_at is not None
        ]
        async for others in self._analysis.moments():
            yield sorted([*checkpoints, *others])


class OpenRecordings(ExitStack):
    """The recordings of a dashboard, all shown as of the same moment; closes with the ``with`` block."""

    def __init__(self, recordings: Sequence[Recording], replay: Replay) -> None:
        super().__init__()
        self.recordings = recordings
        self.replay = replay
        self.clock = replay.clock
        self._analyses: dict[str, RecordingAnalysis] = {}

    @property
    def name(self) -> str:
        first, *more = self.recordings
        return f"{first.name} and {len(more)} more" if more else first.name

    def run(self, job_id: str, settings: RunSettings = DEFAULT) -> RecordedRun | None:
        """Return the recorded run of a job, if it is one of these."""
        recording = next((item for item in self.recordings if item.job.id == job_id), None)
        if recording is None:
            return None
        if job_id not in self._analyses:
            analysis = RecordingAnalysis(recording.path, settings)
            self._analyses[job_id] = self.enter_context(closing(analysis))
        return RecordedRun(recording, self.clock, self._analyses[job_id])
