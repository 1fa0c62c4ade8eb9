"""A layer that makes trouble on purpose in front of the emulator, as its specification says.

``FaultLayer(app, parse_faults("30%:503,reset@during;paths=/logs"), seed=1)`` is an ASGI application. uvicorn
must serve it with ``layer.connections.protocol()``, as some faults need the socket itself, and without a
Date header of its own, as the layer sends one.
"""

from api_client.emulator.fault_layer.layer import Asked, FaultLayer
from api_client.emulator.fault_layer.specification import (
    KINDS,
    MOMENTS,
    Fault,
    FaultRule,
    FaultSpecError,
    describe_faults,
    parse_faults,
)

__all__ = [
    "KINDS",
    "MOMENTS",
    "Asked",
    "Fault",
    "FaultLayer",
    "FaultRule",
    "FaultSpecError",
    "describe_faults",
    "parse_faults",
]
