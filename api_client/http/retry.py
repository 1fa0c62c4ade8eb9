"""Decide if and when to retry a request. Pure functions, no I/O."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import Random

from api_client.errors import ErrorAnswer, RateLimited, RequestError

# 2 ** 32 seconds is over a century: the cap applies long before, and floats stay finite.
_MAX_DOUBLINGS = 32
POLLING_CAP_S = 2.0
"""Maximum delay before retrying a request while polling."""

POLLING_SILENCE_S = 8.0
_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with full jitter; the server's ``Retry-After`` takes precedence.

    ``max_attempts`` includes the first attempt, so 1 means no retries. ``base_s`` is the maximum delay
    after the first failure; it doubles up to ``cap_s``. A ``Retry-After`` is obeyed up to
    ``retry_after_cap_s``. The first attempt fails after ``silence_s`` without data, each later attempt
    after twice as long as the one before; None leaves this to the connection's own timeout, which is the
    maximum anyway.
    """

    max_attempts: int = 5
    base_s: float = 0.5
    cap_s: float = 30.0
    retry_after_cap_s: float = 60.0
    silence_s: float | None = None

    def for_polling(self) -> RetryPolicy:
        """Return a variant for polling.

        The user should see a recovery within seconds, and a request that hangs must not delay the next
        ones.
        """
        return replace(self, cap_s=min(self.cap_s, POLLING_CAP_S), silence_s=POLLING_SILENCE_S)

    def read_timeout_s(self, attempt: int) -> float:
        """Return how long attempt ``attempt`` (from 1) may go without data by this policy, in seconds."""
        if self.silence_s is None:
            return math.inf
        return self.silence_s * 2.0 ** min(attempt - 1, _MAX_DOUBLINGS)

    def delay_s(
        self, error: RequestError, *, attempt: int, idempotent: bool, arrived: bool, random: Random
    ) -> float | None:
        """Return the delay in seconds before attempt ``attempt + 1``, or None to give up with ``error``.

        ``arrived`` is True if the server may have received the request.
        """
        if attempt >= self.max_attempts or not may_repeat(error, idempotent=idempotent, arrived=arrived):
            return None
        if isinstance(error, ErrorAnswer) and error.retry_after_s is not None:
            return min(error.retry_after_s, self.retry_after_cap_s)
        ceiling_s = min(self.cap_s, self.base_s * 2.0 ** min(attempt - 1, _MAX_DOUBLINGS))
        return random.uniform(0.0, ceiling_s)


ONE_ATTEMPT = RetryPolicy(max_attempts=1)
"""For callers that have their own retry logic."""


def may_repeat(error: RequestError, *, idempotent: bool, arrived: bool) -> bool:
    """Return True if retrying can help and cannot apply a change twice.

    A change is retried only if it never arrived, or was rejected with 429.
    """
    return error.retryable and (idempotent or not arrived or isinstance(error, RateLimited))


def parse_retry_after(text: str | None, *, now: datetime) -> float | None:
    """Parse a ``Retry-After`` header to seconds: a number, or a date relative to ``now``.

    Returns None if it is missing or invalid; never negative.
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
