"""Fault injection for the emulator: an ASGI layer that breaks requests according to a specification.

``FaultLayer(app, parse_faults("30%:503,reset@during;paths=/logs"), seed=1)`` is an ASGI application.
uvicorn must serve it with ``layer.connections.protocol()``, because some faults need the socket itself,
and must not add a Date header, because the layer sends its own.
"""

from api_client.emulator.fault_layer.layer import FaultLayer, ReceivedRequest
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
    "Fault",
    "FaultLayer",
    "FaultRule",
    "FaultSpecError",
    "ReceivedRequest",
    "describe_faults",
    "parse_faults",
]
