"""The result of counting errors in a log. Separate from ``errors``, whose import compiles many patterns."""

from __future__ import annotations

from dataclasses import dataclass

from api_client.models.logs import NS_PER_S

KEPT_ERRORS = 50
"""Maximum number of newest errors in a tally, besides the first error."""
DRIVER_REPORT = "NVRM: Xid"
"""The beginning of a GPU error reported by NVIDIA's driver, after the kernel's timestamp."""


@dataclass(frozen=True, slots=True)
class ErrorLine:
    """An error: its time (epoch ns), its text (not sanitized), and the replica that logged it."""

    at_ns: int
    text: str
    replica: str | None = None

    @property
    def at_s(self) -> float:
        return self.at_ns / NS_PER_S

    def __lt__(self, other: ErrorLine) -> bool:
        own_key, other_key = ((error.at_ns, error.text, error.replica or "") for error in (self, other))
        return own_key < other_key


@dataclass(frozen=True, slots=True)
class ErrorTally:
    """The number of errors in a log, the first error, and in ``kept`` the first and the newest, by time."""

    count: int = 0
    first: ErrorLine | None = None
    kept: tuple[ErrorLine, ...] = ()

    @property
    def newest(self) -> ErrorLine | None:
        return self.kept[-1] if self.kept else None
