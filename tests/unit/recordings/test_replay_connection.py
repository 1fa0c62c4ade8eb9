"""What a recording lacks is missing; it is no failing connection."""

from __future__ import annotations

from pathlib import Path

import pytest

from api_client.client import TrainingClient
from api_client.errors import NotFound
from api_client.http.transport import RequestEvent
from api_client.recordings.playback import Playback
from api_client.recordings.reading import Recording
from api_client.replay import Replay
from support.recorded import by_hand
from tui.analysis.connection import Connection, ConnectionState


async def test_recording_without_prices_is_connected(tmp_path: Path) -> None:
    events: list[RequestEvent] = []
    with Recording(by_hand(tmp_path / "run.btrun", {})) as recording:
        replay = Replay([recording], Playback(recording.begin, recording.until))
        async with TrainingClient(
            replay.remote, clock=replay.clock, replay=replay, on_event=events.append
        ) as client:
            with pytest.raises(NotFound):
                await client.account.instance_type_prices()
    connection = Connection()
    for event in events:
        connection = connection.after(event)
    assert connection.link is ConnectionState.LIVE
