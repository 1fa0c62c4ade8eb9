"""Parse fault specifications such as ``30%:503,reset@during;paths=/logs``.

A specification is ``[CHANCE%:]FAULT[,FAULT…][;NAME=VALUE…]``. CHANCE is the share of matching requests that
get one of the faults, all of which are equally likely. Several are separated by ``|``; a request gets the
first that strikes. Faults are:

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
before the first byte of the response, ``during`` the response, or ``after`` it. NAME is one of ``paths`` and
``methods`` (lists; one entry must match), ``skip`` and ``times`` (requests), ``after`` and ``for`` (time).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

Moment = Literal["before", "handled", "during", "after"]


MOMENTS: tuple[Moment, ...] = get_args(Moment)
STATUSES = (400, 401, 403, 404, 408, 409, 422, 429, 500, 502, 503, 504)
STATUS_OPTIONS = ("retry-after", "retry-date", "html")
ANSWERING: tuple[Moment, ...] = ("before", "handled")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault: its name, its moments (the first is the default) and the type of its value."""

    name: str
    moments: tuple[Moment, ...]
    value: Literal["none", "duration", "needed duration", "address"]


_TABLE = (
    Kind("html", ANSWERING, "none"),
    Kind("malformed", ("handled", "before"), "none"),
    Kind("truncated", ("handled",), "none"),
    Kind("empty", ("handled", "before"), "none"),
    Kind("reset", ("before", "handled", "during", "after"), "none"),
    Kind("cut", ("before", "handled", "during"), "none"),
    Kind("stall", ("before", "handled", "during"), "duration"),
    Kind("slow", ("handled",), "needed duration"),
    Kind("redirect", ("before",), "address"),
    Kind("restart", ("before",), "needed duration"),
    Kind("skew", ("handled",), "needed duration"),
    Kind("drift", ("handled",), "none"),
    Kind("nulls", ("handled",), "none"),
    Kind("statuses", ("handled",), "none"),
)
KINDS = {kind.name: kind for kind in _TABLE}
REWRITING = frozenset({"skew", "drift", "nulls", "statuses"})
"""Faults that rewrite an answer and combine with others; of the other kinds a request gets at most one."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A single fault to inject.

    ``kind`` is a name in ``KINDS`` or a status code as text. ``seconds`` is the given duration, None if
    there is none; ``text`` is any other value. ``options`` are the words in parentheses.
    """

    kind: str
    moment: Moment = "before"
    seconds: float | None = None
    text: str = ""
    options: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def is_status(self) -> bool:
        return self.kind.isdecimal()


@dataclass(frozen=True, slots=True)
class FaultRule:
    """Which requests may get one of ``faults``, and how often.

    ``chance`` is from 0 to 1. A request matches if its path contains one of ``paths`` and its method is
    in ``methods``; an empty list matches any. The first ``skip`` matching requests succeed, and so do all
    after ``times`` faults. ``after_s`` and ``for_s`` limit the time since the rules were set.
    """

    faults: tuple[Fault, ...]
    chance: float = 1.0
    paths: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    skip: int = 0
    times: int | None = None
    after_s: float = 0.0
    for_s: float | None = None

    def applies_to(self, method: str, path: str, elapsed_s: float) -> bool:
        """Return True if a request with this method and path, at this time, may get a fault."""
        return (
            (not self.methods or method in self.methods)
            and (not self.paths or any(part in path for part in self.paths))
            and elapsed_s >= self.after_s
            and (self.for_s is None or elapsed_s < self.after_s + self.for_s)
        )


_FAULT = re.compile(
    r"(?P<kind>[a-z0-9]+)(?:@(?P<moment>[a-z]*))?(?:=(?P<value>[^()]*))?(?:\((?P<options>[^()]*)\))?",
    re.ASCII,
)
_DURATION = re.compile(r"(?P<number>[+-]?\d{1,9}(?:\.\d{1,6})?)(?P<unit>ms|s|m|h|)", re.ASCII)
_UNIT_S = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}
_OUTSIDE_PARENTHESES = r"{}(?![^()]*\))"


class FaultSpecError(ValueError):
    """A specification cannot be parsed; the message names the part and lists what is allowed there."""


def parse_faults(*texts: str) -> tuple[FaultRule, ...]:
    """Parse specifications into rules, in order; raise FaultSpecError for a malformed one."""
    return tuple(_rule(part) for text in texts for part in text.split("|"))


def _rule(text: str) -> FaultRule:
    body, *modifiers = re.split(_OUTSIDE_PARENTHESES.format(";"), text)
    chance = 1.0
    if (prefix := re.match(r"\s*([^%:(]*)%\s*:", body)) is not None:
        chance = _number(prefix[1].strip(), "a chance", highest=100) / 100
        body = body[prefix.end() :]
    faults = tuple(_fault(part.strip()) for part in re.split(_OUTSIDE_PARENTHESES.format(","), body))
    given: dict[str, Any] = {}
    for modifier in modifiers:
        name, equals, value = modifier.strip().partition("=")
        if name not in _MODIFIERS or not equals or not value.strip():
            raise FaultSpecError(
                f"{modifier.strip()!r}: expected one of {_listed(_MODIFIERS)}, '=' and a value after ';'"
            )
        field, read = _MODIFIERS[name]
        given[field] = read(value.strip())
    return FaultRule(faults, chance, **given)


def _fault(text: str) -> Fault:
    found = _FAULT.fullmatch(text)
    name = found["kind"] if found else text
    if found is None or not (name in KINDS or name in map(str, STATUSES)):
        known = _listed([*map(str, STATUSES), *KINDS])
        raise FaultSpecError(
            f"unknown fault {text!r}; known faults: {known}"
            if text
            else f"missing fault; known faults: {known}"
        )
    if name not in KINDS:
        if found["value"] is not None:
            raise FaultSpecError(
                f"{text!r}: a status takes no value; put {_listed(STATUS_OPTIONS)} in parentheses"
            )
        return Fault(
            name, _moment(text, found["moment"], ANSWERING), options=_options(text, found["options"])
        )
    kind = KINDS[name]
    if found["options"] is not None:
        raise FaultSpecError(f"{text!r}: only statuses take options in parentheses")
    moment = _moment(text, found["moment"], kind.moments)
    value = found["value"]
    if kind.value == "address":
        return Fault(name, moment, text=_address(value) if value is not None else "")
    if kind.value == "none" and value is not None:
        raise FaultSpecError(f"{text!r}: {name} takes no value")
    if kind.value == "needed duration" and not value:
        raise FaultSpecError(f"{text!r}: {name} needs a duration: {name}=5s")
    seconds = None if value is None else _duration(value, may_be_negative=name == "skew")
    return Fault(name, moment, seconds)


def _moment(text: str, moment: str | None, allowed: tuple[Moment, ...]) -> Moment:
    for known in allowed:
        if moment in (None, known):
            return known
    raise FaultSpecError(f"{text!r}: expected {_listed(allowed, 'or')} after '@'")


def _options(text: str, listed: str | None) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in [] if listed is None else listed.split(","):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if name not in STATUS_OPTIONS:
            raise FaultSpecError(f"{text!r}: a status takes the options {_listed(STATUS_OPTIONS)}")
        if name != "html":
            _number(value, name)
        options[name] = value
    return options


def _address(text: str) -> str:
    try:
        parts = urlsplit(text)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and text.isascii()
    except ValueError:
        is_usable = False
    if not is_usable or not text.isprintable() or " " in text:
        raise FaultSpecError(f"{text!r} is not an http or https address")
    return text


def _duration(text: str, *, may_be_negative: bool = False) -> float:
    found = _DURATION.fullmatch(text.strip())
    seconds = float(found["number"]) * _UNIT_S[found["unit"]] if found else 0.0
    if found is None or (seconds < 0 and not may_be_negative):
        raise FaultSpecError(f"{text!r} is not a duration; use 200ms, 5s, 2m or 1h")
    return seconds


def _number(text: str, what: str, *, highest: float = 1e9) -> float:
    if not re.fullmatch(r"\d{1,9}(\.\d{1,6})?", text, re.ASCII) or float(text) > highest:
        limits = f" from 0 to {highest:.0f}" if highest < 1e9 else ""
        raise FaultSpecError(f"{text!r}: {what} must be a number{limits}")
    return float(text)


def _count(text: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII):
        raise FaultSpecError(f"{text!r}: a count must be a whole number")
    return int(text)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in (part.strip() for part in text.split(",")) if word)


def _methods(text: str) -> tuple[str, ...]:
    return tuple(word.upper() for word in _words(text))


def _listed(words: Any, last: str = "and") -> str:
    *most, end = map(str, words)
    return f"{', '.join(most)} {last} {end}" if most else end


_MODIFIERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "paths": ("paths", _words),
    "methods": ("methods", _methods),
    "skip": ("skip", _count),
    "times": ("times", _count),
    "after": ("after_s", _duration),
    "for": ("for_s", _duration),
}
