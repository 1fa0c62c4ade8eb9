"""Fault injection: an ASGI layer that breaks requests according to a specification.

uvicorn must serve it with ``layer.connections.protocol()``, because some faults need the socket itself,
and must not add a Date header, because the layer sends its own.
"""

from support.fault_layer.layer import FaultLayer
from support.fault_layer.specification import Fault, parse_faults

__all__ = ["Fault", "FaultLayer", "parse_faults"]
