"""A recording shows at each moment what the emulator answered then."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from fleet_worlds import EPOCH, World

from api_client.client import TrainingClient
from api_client.emulator.backend import LogQuery
from api_client.emulator.recordings import RecordedJobs, serve_recordings
from api_client.errors import Unauthorized
from api_client.models import JobMetrics, LogRecord
from api_client.recordings.metrics import rows_of
from api_client.recordings.playback import Playback
from api_client.recordings.reading import CHECKPOINTS, EVENTS, FORMAT, JOB, MANIFEST, Recording
from api_client.recordings.scrub import Scrubber
from api_client.recordings.writing import RecordingWriter
from support.remotes import remote_of

ALL = LogQuery(0, 2**62, "asc", 10**6)
END_S = 900.0


@pytest.fixture(scope="module")
def recording(still_world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    """A run of a straggler with checkpoints as of the last moment."""
    world, path = still_world.after(END_S), tmp_path_factory.mktemp("recorded") / "run.btrun"
    fleet, job = world.fleet, world.named("llama-70b-sft-v3")
    documents = {
        MANIFEST: {"format": FORMAT, "version": 1, "recorded_until": world.now.isoformat()},
        JOB: job.model_dump(mode="json"),
        EVENTS: [one.model_dump(mode="json") for one in fleet.events(job.id)],
        CHECKPOINTS: [one.model_dump(mode="json") for one in fleet.checkpoints(job.id)],
    }
    writer = RecordingWriter(path, documents, Scrubber())
    writer.log.add(map(dict, fleet.logs(job.id, ALL)))
    writer.metrics.add(rows_of(fleet.metrics(job.id, start_s=EPOCH.timestamp(), end_s=None, step_s=30)))
    writer.close()
    with Recording(path) as opened:
        yield opened


@pytest.mark.proves("docs/recordings.md", "What was known at a point in time")
def test_at_five_moments_it_shows_what_was_answered_then(still_world: World, recording: Recording) -> None:
    clock = Playback(recording.begin, recording.until)
    recorded, job_id = RecordedJobs([recording], clock), recording.job.id
    for seconds in (60.0, 250.0, 431.0, 777.0, END_S):
        world = still_world.after(seconds)
        fleet = world.fleet
        clock.seek(world.now)
        live, now = fleet.job(job_id), recorded.job(job_id)
        assert (now.current_status, now.error_message) == (live.current_status, live.error_message)
        assert recorded.events(job_id) == fleet.events(job_id)
        saved = [[one.checkpoint_id for one in each.checkpoints(job_id)] for each in (recorded, fleet)]
        assert saved[0] == saved[1]
        for direction in ("asc", "desc"):
            page = LogQuery(world.now_ns - 300 * 10**9, world.now_ns + 1, direction, 200)
            assert _lines(recorded.logs(job_id, page)) == _lines(fleet.logs(job_id, page))
        asked = {"start_s": EPOCH.timestamp(), "end_s": None, "step_s": 30}
        assert _values(recorded.metrics(job_id, **asked)) == _values(fleet.metrics(job_id, **asked))


def _lines(records: list[LogRecord]) -> list[tuple[str, str, str | None]]:
    return [(one["timestamp"], one["message"], one["replica"]) for one in records]


def _values(found: JobMetrics) -> list[tuple[str, list[tuple[float, float | None]]]]:
    return [
        (f"{node.node_id} {gpu}", [(one.timestamp.timestamp(), one.value) for one in samples])
        for node in found.per_node_metrics
        for gpu, samples in node.metrics.gpu_utilization.items()
    ]


async def test_its_server_changes_nothing(recording: Recording) -> None:
    with serve_recordings([recording], Playback(recording.begin, recording.until)) as served:
        async with TrainingClient(remote_of(served)) as client:
            for change in (client.jobs.stop("p", recording.job.id), client.projects.upsert("another")):
                with pytest.raises(Unauthorized, match="this is a recording"):
                    await change


def test_the_clock_plays_pauses_seeks_and_ends() -> None:
    elapsed = 5.0
    begin, end = EPOCH, EPOCH + timedelta(seconds=100)
    clock = Playback(begin, end, at=begin, speed=10, elapsed=lambda: elapsed)
    clock.play()
    elapsed = 6
    assert clock.now() == begin + timedelta(seconds=10)
    clock.speed = 2
    clock.pause()
    elapsed = 60
    assert clock.now() == begin + timedelta(seconds=10)
    clock.seek(end - timedelta(seconds=10))
    clock.play()
    elapsed = 64
    assert (clock.now(), clock.is_playing) == (end - timedelta(seconds=2), True)
    elapsed = 70
    assert (clock.now(), clock.is_playing) == (end, False)
    clock.seek(begin - timedelta(days=1))
    assert clock.now() == begin
    with pytest.raises(ValueError, match="above zero"):
        clock.speed = 0
