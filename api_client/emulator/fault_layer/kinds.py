"""Every kind of fault there is; the specification's reader, its help and its documentation read this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from api_client.emulator.fault_layer.rules import Moment

MOMENTS: tuple[Moment, ...] = get_args(Moment)
STATUSES = (400, 401, 403, 404, 408, 409, 422, 429, 500, 502, 503, 504)
STATUS_OPTIONS = ("retry-after", "retry-date", "html")
ANSWERING: tuple[Moment, ...] = ("before", "handled")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault: its name, when it can strike (the first is the default), its value, a sentence."""

    name: str
    moments: tuple[Moment, ...]
    value: Literal["none", "duration", "needed duration", "address"]
    told: str


_TABLE = (
    Kind("html", ANSWERING, "none", "200 with a web page where JSON should be"),
    Kind("malformed", ("handled", "before"), "none", "200 with something that is not JSON"),
    Kind("truncated", ("handled",), "none", "200 with the first half of the JSON, as if it were all"),
    Kind("empty", ("handled", "before"), "none", "200 without a body"),
    Kind("reset", ("before", "handled", "during", "after"), "none", "the connection is reset"),
    Kind("cut", ("before", "handled", "during"), "none", "the connection is closed"),
    Kind(
        "stall",
        ("before", "handled", "during"),
        "duration",
        "silence for so long (for ever unless given), then the rest",
    ),
    Kind("slow", ("handled",), "needed duration", "the body comes in crumbs that take so long together"),
    Kind("redirect", ("before",), "address", "307 to another host (or to the address given)"),
    Kind(
        "restart", ("before",), "needed duration", "the server is gone for so long; every connection is reset"
    ),
    Kind(
        "skew", ("handled",), "needed duration", "the server's clock is so far ahead (or behind: skew=-90s)"
    ),
    Kind(
        "drift",
        ("handled",),
        "none",
        "unknown fields and values, optional fields missing, null for empty lists",
    ),
    Kind("nulls", ("handled",), "none", "null for every list"),
    Kind("statuses", ("handled",), "none", "a job status that nobody has heard of"),
)
KINDS = {kind.name: kind for kind in _TABLE}
REWRITING = frozenset({"skew", "drift", "nulls", "statuses"})
"""Faults that change an answer and go together with others; of the rest a request meets one."""


def describe_faults() -> list[tuple[str, str]]:
    """What can be written for each kind, and what it does, for help texts."""
    described = [
        (
            f"{STATUSES[0]} … {STATUSES[-1]}",
            "an error's status; (retry-after=2), (retry-date=2) and (html) add to it",
        )
    ]
    for kind in _TABLE:
        values = {"none": "", "duration": "[=5s]", "needed duration": "=5s", "address": "[=URL]"}
        described.append((kind.name + values[kind.value], kind.told))
    return described
