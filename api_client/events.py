"""What a client tells about its requests while they are under way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, slots=True)
class RequestEvent:
    """One moment in the life of a request.

    ``sent``: attempt number ``attempt`` leaves. ``answered``: it succeeded. ``waiting``: it failed and is
    sent again after ``delay_s`` seconds. ``failed``: it failed and nobody tries again; with a 4xx
    ``status`` the server itself is well.
    ``at`` is aware, in UTC; ``reason`` is the error's message (never a key); ``path`` has no host.
    """

    kind: Literal["sent", "answered", "waiting", "failed"]
    method: str
    path: str
    attempt: int
    at: datetime
    delay_s: float = 0.0
    reason: str = ""
    status: int | None = None


RequestListener = Callable[[RequestEvent], None]
"""Called on the event loop for every event; should return at once and must not raise."""
