"""Which fault meets which request: the specification, read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Moment = Literal["before", "handled", "during", "after"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong.

    ``kind`` is a name of ``KINDS``, or a status as text. ``seconds`` is the duration that was given, None
    for none; ``text`` any other value. ``options`` are what stood in the parentheses.
    """

    kind: str
    moment: Moment = "before"
    seconds: float | None = None
    text: str = ""
    options: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def is_status(self) -> bool:
        """Whether it is an answer of an error's status."""
        return self.kind.isdecimal()


@dataclass(frozen=True, slots=True)
class FaultRule:
    """Which requests one of ``faults`` may meet, and how often.

    ``chance`` is 0 to 1. A request is meant if its path holds one of ``paths`` and its method is one of
    ``methods`` (none given: any). The first ``skip`` of them go well, and after ``times`` faults all do.
    ``after_s`` and ``for_s`` bound the time since the layer began.
    """

    faults: tuple[Fault, ...]
    chance: float = 1.0
    paths: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    skip: int = 0
    times: int | None = None
    after_s: float = 0.0
    for_s: float | None = None

    def is_meant(self, method: str, path: str, elapsed_s: float) -> bool:
        """Whether a request of that kind at that time may meet a fault."""
        return (
            (not self.methods or method in self.methods)
            and (not self.paths or any(part in path for part in self.paths))
            and elapsed_s >= self.after_s
            and (self.for_s is None or elapsed_s < self.after_s + self.for_s)
        )
