"""The scripted fleet: a demo world of training jobs, computed from a script and a clock."""

from api_client.emulator.fleet.backend import FleetBackend
from api_client.emulator.fleet.clock import Tempo, open_tempo
from api_client.emulator.fleet.file_bytes import content, synthetic_bytes

__all__ = ["FleetBackend", "Tempo", "content", "open_tempo", "synthetic_bytes"]
