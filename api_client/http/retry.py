"""Whether and when to send a request again. Pure decisions, no I/O."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import Random

from api_client.errors import ErrorAnswer, RateLimited, RequestError

# 2 ** 32 seconds is over a century: the cap has long taken over, and floats stay finite.
_MAX_DOUBLINGS = 32
POLLING_CAP_S = 2.0
"""The longest wait before a request that somebody watches for."""

POLLING_SILENCE_S = 8.0
_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with full jitter; the server's ``Retry-After`` goes first.

    ``max_attempts`` counts the first sending too, so 1 means: never again. ``base_s`` is the longest
    wait after the first failure; it doubles up to ``cap_s``. A ``Retry-After`` is obeyed up to
    ``retry_after_cap_s``. After ``silence_s`` without a byte the first attempt counts as failed, later ones
    after twice as long each; None leaves that to the connection's own timeout, which is the longest anyway.
    """

    max_attempts: int = 5
    base_s: float = 0.5
    cap_s: float = 30.0
    retry_after_cap_s: float = 60.0
    silence_s: float | None = None

    def for_polling(self) -> RetryPolicy:
        """The same for requests that are sent again and again while somebody watches.

        What comes back is to be seen within seconds, and a request that hangs must not hold up the next ones.
        """
        return replace(self, cap_s=min(self.cap_s, POLLING_CAP_S), silence_s=POLLING_SILENCE_S)

    def read_timeout_s(self, attempt: int) -> float:
        """How long attempt ``attempt`` (1 is the first) may go without a byte, by this policy."""
        if self.silence_s is None:
            return math.inf
        return self.silence_s * 2.0 ** min(attempt - 1, _MAX_DOUBLINGS)

    def delay_s(
        self, error: RequestError, *, attempt: int, idempotent: bool, arrived: bool, random: Random
    ) -> float | None:
        """Seconds to wait before attempt ``attempt + 1``, or None to give up with ``error``.

        ``arrived`` says whether the server may have got the request.
        """
        if attempt >= self.max_attempts or not may_repeat(error, idempotent=idempotent, arrived=arrived):
            return None
        if isinstance(error, ErrorAnswer) and error.retry_after_s is not None:
            return min(error.retry_after_s, self.retry_after_cap_s)
        ceiling_s = min(self.cap_s, self.base_s * 2.0 ** min(attempt - 1, _MAX_DOUBLINGS))
        return random.uniform(0.0, ceiling_s)


ONE_ATTEMPT = RetryPolicy(max_attempts=1)
"""For callers that have a way of their own to try again."""


def may_repeat(error: RequestError, *, idempotent: bool, arrived: bool) -> bool:
    """Whether sending again can help and cannot do anything twice.

    A request that changes something is repeated only if it never arrived, or was turned away (429).
    """
    return error.retryable and (idempotent or not arrived or isinstance(error, RateLimited))


def parse_retry_after(text: str | None, *, now: datetime) -> float | None:
    """Seconds a ``Retry-After`` header asks for: a number, or a date taken against ``now``.

    None if there is none or it makes no sense; never negative.
    """
    text = (text or "").strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
