"""``--file``: read a recording instead of a job of a server.

The recording is served as of its last moment, so that commands need no second way to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from pydantic import SecretStr

from api_client.emulator.recordings import ServedRecordings, serve_in_process, serve_recordings
from api_client.recordings.playback import Playback
from api_client.recordings.reading import Recording
from api_client.remotes import Remote
from api_client.remotes.remote import remote_at


@contextmanager
def served_recordings(recordings: Sequence[Recording], clock: Playback) -> Iterator[Remote]:
    """Serve recordings at the time of the clock until the block ends."""
    with serve_recordings(recordings, clock) as served:
        yield _remote(recordings, served)


@contextmanager
def served_in_process(recordings: Sequence[Recording], clock: Playback) -> Iterator[Callable[[], Remote]]:
    """Serve recordings in a process, for the dashboard; the yielded function waits until it answers."""
    with serve_in_process(recordings, clock) as served:
        yield lambda: _remote(recordings, served())


def _remote(recordings: Sequence[Recording], served: ServedRecordings) -> Remote:
    origin = f"the recording {', '.join(str(recording.path) for recording in recordings)}"
    key, api = SecretStr(served.key), (served.url, origin)
    remote = remote_at(recordings[0].name, served.url, origin, key=key, key_origin=origin, api=api)
    return replace(
        remote, shown_host=", ".join(recording.path.name for recording in recordings), options=None
    )
