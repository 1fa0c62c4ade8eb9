"""``--file``: read a recording instead of a job of a server.

The recording is served in this process, as of its last moment, so that commands need no second way to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pydantic import SecretStr

from api_client.emulator.recordings import serve_recordings
from api_client.recordings.playback import Playback
from api_client.recordings.reading import Recording
from api_client.remotes import Remote
from api_client.remotes.remote import remote_at


@contextmanager
def served_recordings(recordings: Sequence[Recording], clock: Playback) -> Iterator[Remote]:
    """Serve recordings at the time of the clock until the block ends."""
    origin = f"the recording {', '.join(str(one.path) for one in recordings)}"
    with serve_recordings(recordings, clock) as served:
        key, api = SecretStr(served.key), (served.url, origin)
        yield remote_at(recordings[0].name, served.url, origin, key=key, key_origin=origin, api=api)
