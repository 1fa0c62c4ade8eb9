"""How far a run is: told to a listener a few times a second, at every change of a file's state."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from api_client.downloads.records import DownloadProgress, FileProgress, FileState, OnProgress

TELL_EVERY_S = 0.2
SPEED_OVER_S = 5.0
STALLED_AFTER_S = 3.0
"""So long without a byte is worth telling."""
NOTED_FOR_S = 3.0
"""A wait or a renewal is told of so long after bytes have come again."""


class Meter:
    """Counts bytes, from any thread; tells on the event loop. ``monotonic`` in seconds."""

    def __init__(
        self,
        files: Sequence[FileProgress],
        on_progress: OnProgress | None,
        monotonic: Callable[[], float],
    ) -> None:
        self._files = list(files)
        self._on_progress = on_progress
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self.fetched_bytes = 0
        self._resumed_bytes = 0
        self._note = ""
        self._noted_at_s = self._arrived_at_s = monotonic()
        self._samples: deque[tuple[float, int]] = deque([(monotonic(), 0)])
        self._told_at_s = float("-inf")

    @property
    def files(self) -> tuple[FileProgress, ...]:
        """How far each file is."""
        with self._lock:
            return tuple(self._files)

    def change(self, place: int, **news: Any) -> None:
        """Something about a file is new; ``note`` is the run's latest too."""
        with self._lock:
            before = self._files[place]
            self._files[place] = replace(before, **news)
            if news.get("note"):
                self._note, self._noted_at_s = news["note"], self._monotonic()
            if "state" in news:
                self._arrived_at_s = self._monotonic()  # a file that has just begun has not stalled
        self.tell(urgent=news.get("state", before.state) is not before.state)

    def settle(self, place: int, **news: Any) -> None:
        """The same before anything has begun: nobody is told."""
        with self._lock:
            self._files[place] = replace(self._files[place], **news)

    def resumed(self, place: int, done_bytes: int) -> None:
        """So many bytes of a file are here already."""
        with self._lock:
            self._resumed_bytes += done_bytes
            self._files[place] = replace(self._files[place], done_bytes=done_bytes)

    def arrived(self, place: int, size_bytes: int, done_bytes: int) -> None:
        """``size_bytes`` more have crossed the network, and ``done_bytes`` of the file are here."""
        with self._lock:
            self.fetched_bytes += size_bytes
            self._arrived_at_s = now_s = self._monotonic()
            file = self._files[place]
            is_old = now_s - self._noted_at_s > NOTED_FOR_S
            if is_old:
                self._note = ""
            note = "" if is_old else file.note
            self._files[place] = replace(file, done_bytes=done_bytes, note=note)

    def is_due(self) -> bool:
        """Whether the listener would hear something by now."""
        return self._on_progress is not None and self._monotonic() - self._told_at_s >= TELL_EVERY_S

    def tell(self, *, urgent: bool = False) -> None:
        """Tell the listener, unless it heard a moment ago. On the event loop only.

        What is urgent waits half as long: hundreds of small files a second are no news each.
        """
        if self._on_progress is None:
            return
        since_s = self._monotonic() - self._told_at_s
        if since_s >= (TELL_EVERY_S / 2 if urgent else TELL_EVERY_S):
            self._told_at_s = self._monotonic()
            self._on_progress(self.progress())

    def finish(self) -> None:
        """Tell how it ended."""
        if self._on_progress is not None:
            self._on_progress(self.progress())

    def progress(self) -> DownloadProgress:
        """How far the whole is."""
        with self._lock:
            files = tuple(self._files)
            counted = [file for file in files if file.state is not FileState.SKIPPED]
            done_bytes = sum(file.done_bytes for file in counted)
            total_bytes = sum(max(file.size_bytes or 0, file.done_bytes) for file in counted)
            speed = self._speed()
            # What failed will not arrive in this run.
            left_bytes = sum(
                max(0, (file.size_bytes or 0) - file.done_bytes)
                for file in counted
                if not file.state.is_final
            )
            is_known = all(file.size_bytes is not None or file.state.is_final for file in counted)
            return DownloadProgress(
                files=files,
                done_bytes=done_bytes,
                total_bytes=total_bytes,
                resumed_bytes=self._resumed_bytes,
                speed_bytes_per_s=speed,
                eta_s=left_bytes / speed if speed and is_known else None,
                files_done=sum(file.state in (FileState.DONE, FileState.SKIPPED) for file in files),
                files_failed=sum(file.state is FileState.FAILED for file in files),
                stalled_s=self._stalled_s(files),
                note=self._note,
            )

    def _stalled_s(self, files: Sequence[FileProgress]) -> float:
        states = {file.state for file in files}
        if FileState.ACTIVE not in states or FileState.VERIFYING in states:
            return 0.0
        silent_s = self._monotonic() - self._arrived_at_s
        return silent_s if silent_s >= STALLED_AFTER_S else 0.0

    def _speed(self) -> float:
        """Bytes a second over the last seconds."""
        now_s = self._monotonic()
        samples = self._samples
        samples.append((now_s, self.fetched_bytes))
        while len(samples) > 2 and samples[1][0] <= now_s - SPEED_OVER_S:
            samples.popleft()
        began_s, before = samples[0]
        return (self.fetched_bytes - before) / (now_s - began_s) if now_s > began_s else 0.0
