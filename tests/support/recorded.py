"""Recordings of one made-up run, written by the writer or by hand."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from api_client.clock import epoch_ns
from api_client.models.logs import LogEntry, LogGap
from api_client.recordings.reading import CHECKPOINTS, EVENTS, FORMAT, JOB, MANIFEST, Recording
from api_client.recordings.scrub import Scrubber
from api_client.recordings.writing import RecordingWriter

BEGIN = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
END = BEGIN + timedelta(hours=1)
NS_PER_S = 1_000_000_000


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def iso(seconds: float) -> str:
    return at(seconds).isoformat().replace("+00:00", "Z")


def line(seconds: float, message: str, **more: Any) -> dict[str, Any]:
    stamp = str(epoch_ns(at(seconds)))
    return {"timestamp": stamp, "replica": "node-0", "level": None, "message": message} | more


def sample(seconds: float, node: str = "node-0", use: float = 0.5) -> dict[str, Any]:
    return {"timestamp": iso(seconds), "node_id": node, "gpu_utilization": {"0": use}, "cpu_usage": 1.0}


def event(seconds: float, status: str) -> dict[str, Any]:
    return {"training_job_id": "job1", "status": f"TRAINING_JOB_{status}", "created": iso(seconds)}


DOCUMENTS: dict[str, Any] = {
    MANIFEST: {"format": FORMAT, "version": 1, "recorded_until": iso(3600)},
    JOB: {
        "id": "job1",
        "current_status": "TRAINING_JOB_FAILED",
        "created_at": iso(0),
        "updated_at": iso(3500),
        "error_message": "out of memory",
        "training_project_id": "proj1",
    },
    EVENTS: [event(0, "CREATED"), event(60, "RUNNING"), event(3500, "FAILED")],
    CHECKPOINTS: [
        {"checkpoint_id": f"checkpoint-{number}", "created_at": iso(1000 * number)} for number in (1, 2, 3)
    ],
}


def by_hand(path: Path, members: Mapping[str, Any]) -> Path:
    """Write a zip file of these members over those of the run; text is written as it is."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in ({**DOCUMENTS, **members}).items():
            if content is not None:
                file.writestr(name, content if isinstance(content, str | bytes) else json.dumps(content))
    return path


def ndjson(*documents: Any) -> str:
    return "\n".join(one if isinstance(one, str) else json.dumps(one) for one in documents)


def writer(path: Path, scrub: Scrubber | None = None) -> RecordingWriter:
    return RecordingWriter(path, DOCUMENTS, scrub or Scrubber())


def messages(recording: Recording) -> list[str]:
    """Every line in the order of the file; a gap is its reason in brackets."""
    return [_text(entry) for entry in recording.log.entries()]


def shown(
    recording: Recording, moment: datetime, limit: int = 1000, *, newest_first: bool = False
) -> list[str]:
    """The lines that a log view shows at a moment, gaps last."""
    lines, gaps = recording.log.select(
        0, 2**62, now_ns=recording.now_ns(moment), limit=limit, newest_first=newest_first, levels=None
    )
    return [*map(_text, lines), *map(_text, gaps)]


def _text(entry: LogEntry) -> str:
    return f"[{entry.reason}]" if isinstance(entry, LogGap) else entry.message
