"""The size of a recording, and the time to write it, to open it, and to go to another time in it.

The recording has 100,000 log lines and 12 h of 64 × 8 GPUs. The time to the dashboard's first picture (step,
end of the log, newest metrics) is compared with that of a recording with 1,000 lines and one node.
The time to display another time completely is compared with opening. A stall is CPU time of the event loop.
"""

from __future__ import annotations

import asyncio
import gc
import random
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median

from harness import Figure, wall_ms
from one_widget import Stalls

from api_client.clock import epoch_ns
from api_client.models.logs import NS_PER_S, LogLine
from api_client.recordings.playback import Playback
from api_client.recordings.reading import FORMAT, JOB, MANIFEST, VERSION, Recording
from api_client.recordings.scrub import Scrubber
from api_client.recordings.writing import RecordingWriter
from api_client.replay import Replay
from tui.analysis.run.snapshot import RunSnapshot
from tui.app import BtTuiApp
from tui.readers.recorded_runs import OpenRecordings
from tui.screens.job.log_pane import LogPane
from tui.screens.job.screen import JobScreen
from tui.system.garbage import cache_styles_without_widgets, collect_only_when_idle, disable_line_caches
from tui.text.log_entries import entry_fields

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
HOURS = 12
GPUS = 8
LARGE_LIMIT, SMALL = (100_000, 64), (1_000, 1)
STEP_FORWARD = "ctrl+right"
SOUGHT_FRACTIONS = (0.5, 0.1, 0.9)
ROUNDS = 5


async def figures() -> AsyncIterator[Figure]:
    """Write, open and show a large recording; compare it with a small one."""
    with tempfile.TemporaryDirectory() as folder:
        large, small = Path(folder, "large.btrun"), Path(folder, "small.btrun")
        bytes_per_line, us_per_line = write(large, *LARGE_LIMIT)
        yield Figure("file, a log line", bytes_per_line, unit="B", at_most=80)
        yield Figure("write, a log line", us_per_line, unit="µs")
        open_ms = median(wall_ms(partial(open_recording, large)) for _ in range(ROUNDS))
        yield Figure("open", open_ms, unit="ms", at_most=100)
        with Recording(large) as recording:
            seek_ms = median(wall_ms(partial(read_other_time, recording)) for _ in range(ROUNDS))
        yield Figure("read another moment", seek_ms, unit="ms")
        write(small, *SMALL)
        await show_in_dashboard(small)  # the first call imports the dashboard
        small_times, large_times = await show_in_dashboard(small), await show_in_dashboard(large)
    yield Figure(
        "first picture",
        large_times.first_s,
        small_times.first_s,
        f"{SMALL[0]:,} lines",
        "s",
        at_most=2,
        cause="measured: 0.1 s of CPU more, for the samples of 64 nodes and their charts; the rest is"
        " Textual's styles, layout and painting of the job's screen, and of Home below it (0.03 s)",
    )
    yield Figure(
        "another moment shown",
        large_times.moment_s,
        large_times.whole_s,
        "opening",
        "s",
        at_most=0.1,
        cause="measured: another process uses 0.1 s of CPU to unpack and continue the fold of the log;"
        " this one 0.15 s to cut the samples, to read the newest lines, and to draw both",
    )
    yield Figure(
        "worst stall",
        large_times.stall_ms,
        unit="ms",
        at_most=50,
        cause="measured: a search for garbage (0.05 s), which is made once nobody has typed for a second;"
        " no other turn takes more than 35 ms",
    )


def lines(count: int, nodes: int) -> Iterator[dict[str, object]]:
    """Yield log lines of a trainer, evenly spaced over the run."""
    noise = random.Random(0)
    for number in range(count):
        at_ns = epoch_ns(BEGIN) + int(HOURS * 3600 * NS_PER_S * number / count) + noise.randrange(10_000)
        text = (
            f"[rank{number % (nodes * GPUS)}] step {number}/{count} | loss {noise.gauss(2, 0.1):.4f} | "
            f"lr {noise.random() / 1e4:.3e} | grad norm {noise.random():.3f} | "
            f"{noise.gauss(11_800, 90):.0f} tok/s"
        )
        yield entry_fields(LogLine(at_ns, text, f"node-{number % nodes}", "INFO"))


def samples(nodes: int) -> Iterator[dict[str, object]]:
    """Yield a sample of every GPU for each minute."""
    noise = random.Random(1)
    for minute in range(HOURS * 60):
        for node in range(nodes):
            yield {
                "timestamp": (BEGIN + timedelta(minutes=minute)).isoformat(),
                "node_id": f"node-{node}",
                "gpu_utilization": {str(gpu): round(noise.gauss(0.95, 0.01), 4) for gpu in range(GPUS)},
                "gpu_memory_usage_bytes": {
                    str(gpu): noise.randrange(6 * 10**10, 7 * 10**10) for gpu in range(GPUS)
                },
                "cpu_usage": round(noise.gauss(30, 3), 2),
                "cpu_memory_usage_bytes": noise.randrange(10**11),
            }


def write(path: Path, line_count: int, nodes: int) -> tuple[float, float]:
    """Write a recording; return the bytes and the microseconds per log line."""
    ended = (BEGIN + timedelta(hours=HOURS)).isoformat()
    job = {"id": "j", "current_status": "TRAINING_JOB_COMPLETED", "node_count": nodes}
    job |= {"created_at": BEGIN.isoformat(), "updated_at": ended}
    documents = {MANIFEST: {"format": FORMAT, "version": VERSION}, JOB: job}
    writer = RecordingWriter(path, documents, Scrubber())
    log_records = list(lines(line_count, nodes))
    started_s = time.perf_counter()
    writer.log.add(log_records)
    writer.flush()
    took_s = time.perf_counter() - started_s
    bytes_per_line = path.stat().st_size / line_count
    writer.metrics.add(samples(nodes))
    writer.close()
    return bytes_per_line, took_s / line_count * 1e6


def open_recording(path: Path) -> None:
    """Open a recording and read its newest state, which the first picture needs."""
    with Recording(path) as recording:
        recording.job_at(recording.until)


def read_other_time(recording: Recording) -> None:
    """Read the last page of the log and an hour of metrics, as of half time."""
    at = BEGIN + timedelta(hours=HOURS / 2)
    now_ns = epoch_ns(at)
    recording.log.select(0, now_ns, now_ns=recording.now_ns(at), limit=1000, newest_first=True, levels=None)
    recording.metrics.select(now_ns - 3600 * NS_PER_S, now_ns, step_s=60)


@dataclass(frozen=True)
class DisplayTimes:
    """Seconds until the first picture, all data, and another time were displayed; the worst stall."""

    first_s: float
    whole_s: float
    moment_s: float
    stall_ms: float


async def show_in_dashboard(path: Path) -> DisplayTimes:
    """Open a recording in the dashboard and go to other times."""
    gc.collect()
    collect_only_when_idle()
    disable_line_caches()
    cache_styles_without_widgets()
    with ExitStack() as stack:
        started_s = time.perf_counter()
        recording = stack.enter_context(Recording(path))
        clock = Playback(recording.begin, recording.until)
        replay = Replay([recording], clock)
        recorded = stack.enter_context(OpenRecordings([recording], replay))
        app = BtTuiApp(replay.remote, job_id="j", recordings=recorded)
        async with app.run_test(size=(140, 44)):
            await until(lambda: _has_picture(app))
            first_s = time.perf_counter() - started_s
            await until(lambda: _is_complete(app, clock.now()))
            whole_s = time.perf_counter() - started_s
            seek_times_s = []
            async with Stalls() as stalls:
                for fraction in SOUGHT_FRACTIONS:
                    seek_started_s = time.perf_counter()
                    clock.seek(clock.begin + fraction * (clock.end - clock.begin))
                    # a pilot's key would also wait until all other data has been read
                    app.simulate_key(STEP_FORWARD)
                    await until(lambda: _is_complete(app, clock.now()))
                    seek_times_s.append(time.perf_counter() - seek_started_s)
    return DisplayTimes(first_s, whole_s, median(seek_times_s), stalls.cpu_ms)


async def until(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds."""
    while not condition():  # noqa: ASYNC110 – what a screen shows has no event
        await asyncio.sleep(0.01)


def _has_picture(app: BtTuiApp) -> bool:
    run = _snapshot(app)
    has_step = run is not None and run.progress is not None and run.progress.step is not None
    has_metrics = run is not None and run.metrics is not None and bool(run.metrics.nodes)
    return has_step and has_metrics and len(app.screen.query_one(LogPane).view.store) > 0


def _is_complete(app: BtTuiApp, at: datetime) -> bool:
    run = _snapshot(app)
    return run is not None and run.at == at and run.log_read and run.metrics_at == at


def _snapshot(app: BtTuiApp) -> RunSnapshot | None:
    return app.screen.snapshot if isinstance(app.screen, JobScreen) else None
