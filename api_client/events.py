"""Events of a client's requests, reported while they are in progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, slots=True)
class RequestEvent:
    """An event in the life of a request.

    ``sent``: attempt number ``attempt`` is being sent. ``answered``: the attempt succeeded. ``waiting``: it
    failed, and the request is sent again after ``delay_s`` seconds. ``failed``: it failed and is not retried;
    with a 4xx ``status`` the server itself works. ``at`` is timezone-aware, in UTC; ``reason`` is the error's
    message (never a key); ``path`` has no host. ``server_time`` is the time of the server's clock, if a
    response has it.
    """

    kind: Literal["sent", "answered", "waiting", "failed"]
    method: str
    path: str
    attempt: int
    at: datetime
    delay_s: float = 0.0
    reason: str = ""
    status: int | None = None
    server_time: datetime | None = None


RequestListener = Callable[[RequestEvent], None]  # called on the event loop; returns at once and never raises
