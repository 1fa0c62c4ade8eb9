"""How large a recording is, how fast it is written, opened and set to another moment.

    python benchmarks/recordings.py [LINES] [NODES]

Writes a recording of 1,000 lines and one node, and one of 1,000,000 lines and 12 h of 64 × 8 GPUs. Prints the
bytes per line, the lines written per second, and what opening costs up to the last ten minutes of the log and
the last hour of metrics, as a ratio of both.
"""

# ruff: noqa: T201 (what a benchmark prints is its product)

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from api_client.models.logs import NS_PER_S, LogLine
from api_client.recordings.reading import FORMAT, JOB, MANIFEST, VERSION, Recording
from api_client.recordings.scrub import Scrubber
from api_client.recordings.stamps import ns_of
from api_client.recordings.writing import RecordingWriter
from tui.text.log_entries import record_of

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
HOURS = 12
GPUS = 8
OPENED_TIMES = 5


def lines(count: int, nodes: int) -> Iterator[dict[str, object]]:
    """Yield lines of a trainer, evenly over the run."""
    noise = random.Random(0)
    for number in range(count):
        at_ns = ns_of(BEGIN) + int(HOURS * 3600 * NS_PER_S * number / count) + noise.randrange(10_000)
        text = (
            f"[rank{number % (nodes * GPUS)}] step {number}/{count} | loss {noise.gauss(2, 0.1):.4f} | "
            f"lr {noise.random() / 1e4:.3e} | grad norm {noise.random():.3f} | "
            f"{noise.gauss(11_800, 90):.0f} tok/s"
        )
        yield record_of(LogLine(at_ns, text, f"node-{number % nodes}", "INFO"))


def samples(nodes: int) -> Iterator[dict[str, object]]:
    """Yield one sample of every GPU a minute."""
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


def write(path: Path, line_count: int, nodes: int) -> float:
    """Return the seconds that the log took."""
    ended = (BEGIN + timedelta(hours=HOURS)).isoformat()
    job = {
        "id": "j",
        "current_status": "TRAINING_JOB_COMPLETED",
        "created_at": BEGIN.isoformat(),
        "updated_at": ended,
    }
    writer = RecordingWriter(path, {MANIFEST: {"format": FORMAT, "version": VERSION}, JOB: job}, Scrubber())
    began = time.perf_counter()
    writer.log.add(lines(line_count, nodes))
    writer.flush()
    took_s = time.perf_counter() - began
    each_bytes, each_us = path.stat().st_size / line_count, took_s / line_count * 1e6
    print(f"{line_count:>9,} lines: {each_bytes:.0f} bytes and {each_us:.0f} µs a line")
    writer.metrics.add(samples(nodes))
    writer.close()
    return took_s


def opened(path: Path, at: datetime) -> tuple[float, float]:
    """Return the seconds to open a recording at its end, and to read another moment."""
    opening, moving = [], []
    for _ in range(OPENED_TIMES):
        began = time.perf_counter()
        with Recording(path) as recording:
            look(recording, recording.until)
            opening.append(time.perf_counter() - began)
            began = time.perf_counter()
            look(recording, at)
            moving.append(time.perf_counter() - began)
    return min(opening), min(moving)


def look(recording: Recording, at: datetime) -> None:
    """Read what a dashboard shows first."""
    now_ns = ns_of(at)
    lines_from_ns = now_ns - 600 * NS_PER_S
    recording.log.select(
        lines_from_ns, now_ns, now_ns=recording.now_ns(at), limit=1000, newest_first=True, levels=None
    )
    recording.metrics.select(now_ns - 3600 * NS_PER_S, now_ns, step_s=60)


def main() -> None:
    """Print the figures."""
    line_count, nodes = (*map(int, sys.argv[1:]), 1_000_000, 64)[:2]
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder, "small.btrun"), Path(folder, "large.btrun")
        write(small, 1_000, 1)
        write(large, line_count, nodes)
        middle = BEGIN + timedelta(hours=HOURS / 2)
        (small_s, _), (large_s, moving_s) = opened(small, middle), opened(large, middle)
        print(
            f"open: {small_s * 1e3:.0f} ms and {large_s * 1e3:.0f} ms; another moment {moving_s * 1e3:.0f} ms"
        )


if __name__ == "__main__":
    main()
