"""Fault injection: an ASGI layer that breaks requests according to a specification.

``FaultLayer(app, parse_faults("30%:503,reset@during;paths=/logs"), seed=1)`` is an ASGI application.
uvicorn must serve it with ``layer.connections.protocol()``, because some faults need the socket itself,
and must not add a Date header, because the layer sends its own.
"""

from support.fault_layer.layer import FaultLayer, ReceivedRequest
from support.fault_layer.specification import (
    KINDS,
    MOMENTS,
    Fault,
    FaultRule,
    FaultSpecError,
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
    "parse_faults",
]
