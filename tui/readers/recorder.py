"""Record all data of a run to a file, once, or until the run ends.

An interrupted recording resumes where it stopped. Memory is bounded: a block of lines and one response with
samples at a time.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from api_client.client import TrainingClient
from api_client.errors import ErrorAnswer, InvalidAnswer, NotFound, RequestError, Unauthorized
from api_client.http.retry import ENDLESS, is_transient, retrying
from api_client.models import ApiModel, CheckpointFile, TrainingJob
from api_client.models.jobs import CLOCK_SKEW
from api_client.models.logs import NS_PER_S, LogBatch, LogEnd, LogEntry
from api_client.recordings.archive import RecordingError
from api_client.recordings.metrics import rows_of
from api_client.recordings.reading import (
    CHECKPOINT_FILES,
    CHECKPOINTS,
    EVENTS,
    FORMAT,
    JOB,
    MANIFEST,
    PROJECT,
    QUEUE,
    VERSION,
    Manifest,
    Recording,
)
from api_client.recordings.scrub import Scrubber, secrets_of_environment
from api_client.recordings.writing import OVERLAP_NS, RecordingWriter
from tui.readers.health_metrics import has_many_nodes, metrics_in_parts
from tui.text.log_entries import entry_fields

if TYPE_CHECKING:
    from tui.readers.log_reader import OnLogProgress


@dataclass
class Recorder:
    """Records one job; ``on_begin`` is called when the file has been opened."""

    client: TrainingClient
    job: TrainingJob
    path: Path
    since: datetime | None = None
    with_messages: bool = True
    on_log_progress: OnLogProgress = lambda _fraction, _line_count: None
    on_begin: Callable[[], object] = lambda: None
    problems: dict[str, str] = field(default_factory=dict)
    """Why a part could not be recorded, by the name of the part."""
    _checkpoint_files: list[CheckpointFile] = field(default_factory=list)
    _metrics_until: datetime | None = None
    _is_log_complete: bool = False

    async def run(self, *, follow: bool = False) -> None:
        """Record the run; with ``follow``, until the job ends. Raises RequestError, RecordingError."""
        now = self._now()
        self._start_time = self.since or self.job.earliest_time(now)
        self._previous_manifest = self._existing_manifest()
        scrub = Scrubber(self._secrets(), await self._secret_names())
        documents = await self._documents()
        opening_task = asyncio.create_task(
            asyncio.to_thread(RecordingWriter, self.path, documents, scrub, self.problems)
        )
        try:
            self._writer = await asyncio.shield(opening_task)
            self.on_begin()
            if follow and not self.job.is_finished:
                await retrying(self._record_metrics, ENDLESS, sleep=self.client.clock.sleep)
                await self._follow()
                await retrying(self._finish, ENDLESS, sleep=self.client.clock.sleep)
            else:
                await self._record_metrics()
                await self._record_log()
                await self._finish()
        finally:  # the opening thread can't be canceled, so wait for it and close the file
            (await opening_task).close()

    @property
    def line_count(self) -> int:
        """Number of lines and gaps recorded so far, without those of earlier recordings to the same file."""
        return self._writer.log.count

    def _now(self) -> datetime:
        return self.client.clock.now()

    def _existing_manifest(self) -> Manifest | None:
        """Return the file's manifest; None for a new file. Raises RecordingError if it can't be continued."""
        if not self.path.is_file():
            return None
        with Recording(self.path, complete_only=True) as existing:
            manifest = existing.manifest
        if manifest.messages != self.with_messages:
            kind = "with" if manifest.messages else "without"
            raise RecordingError(f"{self.path} was recorded {kind} messages; record to a new file")
        return manifest

    def _manifest(self) -> dict[str, Any]:
        previous, ended_at = self._previous_manifest, self.job.updated_at if self.job.is_finished else None
        recorded_until = None if previous is None else previous.recorded_until
        return Manifest(
            format=FORMAT,
            version=VERSION,
            recorded_from=(previous and previous.recorded_from) or self._start_time,
            recorded_until=ended_at or self._now() if self._is_log_complete else recorded_until,
            remote=urlsplit(self.client.remote.api_url).hostname or "",
            ended=self.job.is_finished,
            messages=self.with_messages,
            complete=self._is_log_complete,
        ).model_dump(mode="json")

    def _secrets(self) -> list[str]:
        remote = self.client.remote
        remote_secrets = [remote.key.get_secret_value()] if remote.key else []
        remote_secrets += remote.login.secrets() if remote.login else []
        return [*remote_secrets, *secrets_of_environment(os.environ)]

    async def _secret_names(self) -> list[str]:
        with suppress(ErrorAnswer, InvalidAnswer):
            return [secret.name for secret in await self.client.account.secrets()]
        return []

    async def _documents(self) -> dict[str, Any]:
        """Read everything except log and metrics; leave out what the server refuses."""
        client, project_id, job_id = self.client, self.job.project_id, self.job.id
        documents: dict[str, Any] = {MANIFEST: self._manifest(), JOB: _json_of(self.job)}
        with self._optional_part("project"):
            documents[PROJECT] = _json_of(await client.projects.get(project_id), "latest_job")
        with self._optional_part("history"):
            queue = await client.jobs.queue_context(job_id)
            documents[QUEUE], documents[EVENTS] = (
                _json_of(queue, "events"),
                [_json_of(event) for event in queue.events],
            )
        with self._optional_part("checkpoints"):
            documents[CHECKPOINTS] = [
                _json_of(checkpoint) for checkpoint in await client.checkpoints.list(project_id, job_id)
            ]
            files = client.checkpoints.files(project_id, job_id)
            self._checkpoint_files = [file async for file in files][:20_000] if documents[CHECKPOINTS] else []
            documents[CHECKPOINT_FILES] = [_json_of(file, "url") for file in self._checkpoint_files]
        return documents

    async def _follow(self) -> None:
        """Record the log until the job ends, and poll all other data every minute."""
        try:
            async with asyncio.TaskGroup() as tasks:
                polling = tasks.create_task(self._poll())
                await self._record_log(follow=True)
                polling.cancel()
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _poll(self) -> None:
        while True:
            try:
                await self._record_metrics()
                self.job = await self.client.jobs.get(self.job.project_id, self.job.id)
                await self._write_documents()
            except RequestError as error:  # after an outage, the next poll reads what was missed
                if not is_transient(error):
                    raise
            await asyncio.to_thread(self._writer.flush)
            await self.client.clock.sleep(60.0)

    async def _record_log(self, *, follow: bool = False) -> None:
        stream_log: Callable[..., AsyncGenerator[LogBatch | LogEnd]] = (
            self.client.logs.follow if follow else self.client.logs.history
        )
        start = self._start_after(self._writer.log.newest_ns)
        async with aclosing(stream_log(self.job.project_id, self.job.id, start=start)) as batches:
            async for batch in batches:
                if isinstance(batch, LogEnd):
                    self.job = batch.job
                    continue
                await self._record_lines(batch.entries, batch.read_part)
                self._is_log_complete |= batch.caught_up
        self._is_log_complete = True

    def _start_after(self, newest_ns: int | None) -> datetime:
        """Return the time from which to read: a little before ``newest_ns``, the newest recorded time."""
        if newest_ns is None:
            return self._start_time
        return max(self._start_time, datetime.fromtimestamp((newest_ns - OVERLAP_NS) // NS_PER_S, UTC))

    async def _record_lines(self, entries: Sequence[LogEntry], fraction: float | None) -> None:
        records = [entry_fields(entry) for entry in entries]
        if not self.with_messages:
            records = [
                {name: value for name, value in record.items() if name != "message"} for record in records
            ]
        await asyncio.to_thread(self._writer.log.add, records)
        self.on_log_progress(fraction, self.line_count)

    async def _record_metrics(self, end: datetime | None = None) -> None:
        """Record the samples up to ``end``, by default up to three minutes ago: newer samples may be late."""
        end = end or self._now() - timedelta(minutes=3)
        if self.job.is_finished and self.job.updated_at is not None:
            end = min(end, self.job.updated_at + timedelta(minutes=5))
        start = self._metrics_until or self._start_after(self._writer.metrics.newest_ns)
        step_s = 60 if has_many_nodes(self.job) else 30
        with self._optional_part("metrics"):
            async for response in metrics_in_parts(self.client, self.job, start, end, step_s):
                # A server may return samples outside the requested range.
                rows = await asyncio.to_thread(rows_of, response, start, end)
                await asyncio.to_thread(self._writer.metrics.add, rows)
            self._metrics_until = end

    async def _finish(self) -> None:
        await self._record_metrics(self._now() + CLOCK_SKEW)
        await self._write_documents()
        await self._record_small_files()

    async def _write_documents(self) -> None:
        await asyncio.to_thread(self._writer.documents, await self._documents())

    async def _record_small_files(self) -> None:
        """Record trainer states and adapter configs in checkpoints, newest first, up to a total size."""
        remaining_bytes = 64 * 1024**2
        for file in sorted(
            self._checkpoint_files, key=lambda saved_file: saved_file.last_modified, reverse=True
        ):
            is_small = 0 < file.size_bytes <= min(8 * 1024**2, remaining_bytes)
            if not is_small or file.relative_file_name.rpartition("/")[2] not in (
                "trainer_state.json",
                "adapter_config.json",
            ):
                continue
            with self._optional_part("files of checkpoints"), suppress(ValueError):
                content = await self.client.checkpoint_contents.read(
                    self.job.project_id, self.job.id, file, length=file.size_bytes
                )
                remaining_bytes -= len(content)
                self._writer.file(file, content)

    @contextmanager
    def _optional_part(self, part: str) -> Iterator[None]:
        """Leave out a part that the server lacks or refuses; record a refusal in ``problems``."""
        try:
            yield
        except (ErrorAnswer, InvalidAnswer) as error:
            if isinstance(error, Unauthorized) and error.is_key_invalid:
                raise
            if not isinstance(error, NotFound):
                self.problems[part] = str(error)


def _json_of(model: ApiModel, *excluded: str) -> dict[str, Any]:
    """Return an API object as JSON, with only the fields that the server sent."""
    return model.model_dump(mode="json", exclude_unset=True, exclude=set(excluded))
