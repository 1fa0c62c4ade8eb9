"""A recording shows at each moment what the emulator answered then."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from fleet_worlds import EPOCH, World

from api_client.client import TrainingClient
from api_client.clock import epoch_ms
from api_client.emulator.backend import LogQuery
from api_client.errors import ReadOnlyError
from api_client.models import JobMetrics, LogRecord
from api_client.recordings.metrics import rows_of
from api_client.recordings.playback import Playback
from api_client.recordings.reading import CHECKPOINTS, EVENTS, FORMAT, JOB, MANIFEST, Recording
from api_client.recordings.scrub import Scrubber
from api_client.recordings.writing import RecordingWriter
from api_client.replay import Replay

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
async def test_at_five_moments_it_shows_what_was_answered_then(
    still_world: World, recording: Recording
) -> None:
    replay = Replay([recording], Playback(recording.begin, recording.until))
    client, ids = TrainingClient(replay.remote, replay=replay), (recording.project.id, recording.job.id)
    for seconds in (60.0, 250.0, 431.0, 777.0, END_S):
        world, job_id = still_world.after(seconds), recording.job.id
        fleet = world.fleet
        replay.clock.seek(world.now)
        live, job = fleet.job(job_id), await client.jobs.get(*ids)
        assert (job.current_status, job.error_message) == (live.current_status, live.error_message)
        assert (await client.jobs.queue_context(job_id)).events == fleet.events(job_id)
        saved = [checkpoint.checkpoint_id for checkpoint in await client.checkpoints.list(*ids)]
        assert saved == [checkpoint.checkpoint_id for checkpoint in fleet.checkpoints(job_id)]
        now_ms = world.now_ns // 10**6 + 1
        bounds = {"start_ms": now_ms - 300_000, "end_ms": now_ms, "limit": 200}
        for direction in ("asc", "desc"):
            query = LogQuery(bounds["start_ms"] * 10**6, now_ms * 10**6, direction, 200)
            page = await client.logs.page(*ids, direction=direction, **bounds)
            assert _lines(page) == _lines(fleet.logs(job_id, query))
        metrics = await client.metrics.get(*ids, start_ms=epoch_ms(EPOCH), step_s=30)
        live_metrics = fleet.metrics(job_id, start_s=EPOCH.timestamp(), end_s=None, step_s=30)
        assert _values(metrics) == _values(live_metrics)


def _lines(records: list[LogRecord]) -> list[tuple[str, str, str | None]]:
    return [(one["timestamp"], one["message"], one["replica"]) for one in records]


def _values(found: JobMetrics) -> list[tuple[str, list[tuple[float, float | None]]]]:
    return [
        (f"{node.node_id} {gpu}", [(one.timestamp.timestamp(), one.value) for one in samples])
        for node in found.per_node_metrics
        for gpu, samples in node.metrics.gpu_utilization.items()
    ]


async def test_changes_of_a_recording_are_refused(recording: Recording) -> None:
    replay = Replay([recording], Playback(recording.begin, recording.until))
    client = TrainingClient(replay.remote, replay=replay)
    for change in (client.jobs.stop("p", recording.job.id), client.projects.upsert("another")):
        with pytest.raises(ReadOnlyError, match="read-only by the recording"):
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
