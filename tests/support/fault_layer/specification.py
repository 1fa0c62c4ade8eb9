"""Parse fault specifications such as ``reset@during;paths=/logs;times=1``.

A specification is ``FAULT[;paths=A,B][;skip=N][;times=N][;share=S]``: requests whose path contains one of
the parts get the fault, the first ``skip`` excepted, ``times`` times, and only that share of them. Several
are separated by ``|``; a request gets the first that strikes. Faults are:

- a status such as ``429``; ``(retry-after=2)`` asks to wait in seconds, ``(retry-date=2)`` by a date, and
  ``(html)`` has a web page as its body
- ``html``, ``malformed``, ``empty``, ``truncated``: 200 with a web page, invalid JSON, nothing, half the JSON
- ``reset``, ``cut``: the connection is reset, or closed
- ``stall=5s``, ``stall``: silence for that long, or forever; ``slow=5s``: the body arrives in small pieces
- ``redirect``, ``redirect=URL``: 307 to another host
- ``restart=5s``: the server is gone for that long: all connections, old and new, are reset
- ``skew=2m``: the server's clock is wrong: dates, timestamps and requested time ranges
- ``drift``: unknown fields and values, missing optional fields, null for empty lists
- ``nulls``, ``statuses``: null for every list, an unknown job status

``FAULT@MOMENT`` sets when: ``before`` the request reaches the application, after it was ``handled`` but
before the first byte of the response, ``during`` the response, or ``after`` it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

REWRITING = frozenset({"skew", "drift", "nulls", "statuses"})
"""Faults that rewrite an answer and combine with others; of the other kinds a request gets at most one."""
HANDLED = REWRITING | {"malformed", "empty", "truncated", "slow"}
"""Faults of an answer, which strike after the request was handled unless a moment is given."""
OTHERS = frozenset({"html", "reset", "cut", "stall", "redirect", "restart"})
_RULE = re.compile(
    r"([a-z]+|\d{3})(?:@(\w+))?(?:=([^();]*))?(?:\(([^)]*)\))?((?:;(?:paths|skip|times|share)=[^;]*)*)"
)
_DURATION = re.compile(r"(-?[\d.]+)(ms|s|m|h)")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Fault:
    """A single fault to inject; ``seconds`` is the given duration, ``text`` any other value."""

    kind: str
    moment: str = "before"
    seconds: float | None = None
    text: str = ""
    options: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def is_status(self) -> bool:
        return self.kind.isdecimal()


@dataclass(frozen=True, slots=True)
class FaultRule:
    """Which requests get a fault, and how often; no ``paths`` means any path, ``times`` None always.

    Of many requests, the ``share`` is a random one, always the same.
    """

    fault: Fault
    paths: tuple[str, ...] = ()
    skip: int = 0
    times: int | None = None
    share: float = 1.0


def parse_faults(text: str) -> tuple[FaultRule, ...]:
    """Parse specifications into rules, in order; raise ValueError for a malformed one."""
    return tuple(_rule(part) for part in text.split("|") if part)


def _rule(text: str) -> FaultRule:
    found = _RULE.fullmatch(text)
    if found is None or not (found[1].isdecimal() or found[1] in HANDLED | OTHERS):
        raise ValueError(f"no fault: {text!r}")
    kind, moment, value, options, limits = found.groups(default="")
    duration = _DURATION.fullmatch(value)
    fault = Fault(
        kind,
        moment or ("handled" if kind in HANDLED else "before"),
        float(duration[1]) * _UNIT_S[duration[2]] if duration else None,
        "" if duration else value,
        dict(part.partition("=")[::2] for part in options.split(",")) if options else {},
    )
    given = dict(part.partition("=")[::2] for part in limits.split(";") if part)
    times = given.get("times")
    paths = tuple(given["paths"].split(",")) if "paths" in given else ()
    share = float(given.get("share", 1.0))
    return FaultRule(fault, paths, int(given.get("skip", 0)), None if times is None else int(times), share)
