"""Record runs from the dashboard, as ``bt-tui record`` does: in the background, until the job ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import App
from textual.worker import Worker

from api_client.errors import RequestError
from api_client.files import why_not_written
from api_client.models import TrainingJob
from api_client.recordings.archive import SUFFIX, RecordingError
from tui.readers.session import Session
from tui.screens import messages
from tui.system.saved_files import landing, safe_name
from tui.text.sanitize import sanitize
from tui.text.units import bytes_iec, counted
from tui.widgets.background import run_in_background

if TYPE_CHECKING:
    from tui.readers.recorder import Recorder


class Recorders:
    """The recordings that are made; a second request for a job ends its recording.

    ``share`` is called with the ids of the jobs being recorded when they change.
    """

    def __init__(
        self, app: App[Any], session: Session | None, *, share: Callable[[frozenset[str]], object]
    ) -> None:
        self._app = app
        self._session = session
        self._share = share
        self._running: dict[str, Worker[None]] = {}
        self._recording: frozenset[str] = frozenset()

    @property
    def handlers(self) -> messages.Handlers:
        return {messages.RecordRequested: self.toggle}

    def toggle(self, message: messages.RecordRequested) -> None:
        job, session = message.job, self._session
        running = self._running.pop(job.id, None)
        if running is not None and not running.is_finished:
            running.cancel()
            self._app.notify("Recording stopped; record again to continue the file.")
        elif session is not None and session.connection.recorded is not None:
            self._app.notify("This is a recording already.")
        elif session is not None:
            self._running[job.id] = run_in_background(
                self._app, partial(self._record, session, job), "recording", group="record"
            )

    async def _record(self, session: Session, job: TrainingJob) -> None:
        from tui.readers.recorder import Recorder

        path = landing(self._app, Path.cwd() / f"{safe_name(job.id)}{SUFFIX}")

        def begin() -> None:
            until = "" if job.is_finished else " until the job ends"
            self._app.notify(f"Recording to {path.name}{until}; record again to stop.")
            self._show_recording(self._recording | {job.id})

        recorder = Recorder(session.client, job, path, on_begin=begin)
        try:
            await recorder.run(follow=not job.is_finished)
        except (RequestError, RecordingError) as error:
            self._fail(str(error))
        except asyncio.CancelledError:  # the user stopped it: a browser takes what there is
            if path.exists():
                self._app.post_message(messages.FilesSaved((path,)))
            raise
        except OSError as error:
            self._fail(f"{path}: {why_not_written(error)}")
        else:
            self._report(recorder)
        finally:
            self._show_recording(self._recording - {job.id})

    def _show_recording(self, job_ids: frozenset[str]) -> None:
        self._recording = job_ids
        self._share(job_ids)

    def _fail(self, reason: str) -> None:
        self._app.notify(sanitize(reason), title="Can't record", severity="error")

    def _report(self, recorder: Recorder) -> None:
        path = recorder.path
        size = bytes_iec(path.stat().st_size)
        for part, problem in recorder.problems.items():
            self._app.notify(f"The {part} could not be recorded: {sanitize(problem)}", severity="warning")
        self._app.notify(f"Recorded {counted(recorder.line_count, 'new line')} to {path} ({size}).")
        self._app.post_message(messages.FilesSaved((path,)))
