"""The clock of a recording, which the process of its server follows."""

from __future__ import annotations

from datetime import timedelta
from mmap import mmap

from api_client.recordings.playback import MEMORY_BYTES, Playback
from support.recorded import BEGIN, END, at


def test_a_clock_in_shared_memory_follows_the_first() -> None:
    elapsed = [7.0]
    clock = Playback(BEGIN, END, at=at(60), elapsed=lambda: elapsed[0])
    memory = mmap(-1, MEMORY_BYTES)
    clock.share(memory)
    other = Playback(BEGIN, END, elapsed=lambda: elapsed[0], memory=memory)
    assert other.now() == at(60)
    clock.seek(at(100) + timedelta(microseconds=1))
    assert other.now() == at(100) + timedelta(microseconds=1)
    clock.speed = 10
    clock.play()
    elapsed[0] += 5
    assert (other.now(), other.speed, other.is_playing) == (clock.now(), 10, True)
    assert other.now() == at(150) + timedelta(microseconds=1)
    clock.pause()
    elapsed[0] += 500
    assert other.now() == at(150) + timedelta(microseconds=1)
    clock.seek(END + timedelta(days=1))
    assert other.now() == END
