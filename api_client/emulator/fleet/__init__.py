"""The simulated fleet: a demo world of training jobs, computed from a script and a clock."""

from api_client.emulator.fleet.backend import FleetBackend
from api_client.emulator.fleet.clock import SimClock, open_sim_clock

__all__ = ["FleetBackend", "SimClock", "open_sim_clock"]
