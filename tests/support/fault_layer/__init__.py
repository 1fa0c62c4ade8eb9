"""Fault injection: an ASGI layer that breaks requests according to a specification.

uvicorn must serve it with ``layer.connections.protocol()`` and without a Date header of its own.
"""

from support.fault_layer.layer import FaultLayer
from support.fault_layer.specification import Fault, parse_faults

__all__ = ["Fault", "FaultLayer", "parse_faults"]
