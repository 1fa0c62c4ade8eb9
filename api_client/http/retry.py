"""The retry policy: which failed calls to repeat, and after how long. ``retrying`` is the only retry loop.

A failed change is repeated only if that is safe; the transport decides this for each request.
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import Random
from typing import TypeVar

from api_client.clock import Clock
from api_client.errors import AnswerTooLarge, ErrorAnswer, InvalidAnswer, RedirectRefused, RequestError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff; the server's ``Retry-After`` takes precedence."""

    max_attempts: int | None = 5
    """Number of attempts, including the first: 1 means no retries, None means no limit."""

    base_s: float = 0.5
    """Maximum delay after the first failure; doubles with each failure, up to ``cap_s``."""

    cap_s: float = 30.0
    """Maximum of all delays without a ``Retry-After``."""

    retry_after_cap_s: float = 60.0
    """Longest ``Retry-After`` that is obeyed in full."""

    silence_s: float | None = None
    """Read timeout of the first attempt in seconds; it doubles with each attempt.

    The connection's read timeout is the maximum, and is used alone if this is None.
    """

    min_s: float = 0.0
    """Minimum of each delay."""

    max_invalid_responses: int | None = 1
    """Give up after so many consecutive responses that are not the API's; None means never."""

    refused_s: float | None = None
    """Delay after all other errors, such as a 403; None means that such errors are not retried."""

    def for_polling(self) -> RetryPolicy:
        """Return a variant for polling: shorter delays, so that the user sees a recovery within seconds.

        A request that hangs times out early, because it delays the next ones.
        """
        return replace(self, cap_s=min(self.cap_s, 2.0), silence_s=8.0)

    def read_timeout_s(self, attempt: int) -> float:
        """Return the read timeout of attempt ``attempt`` (from 1), in seconds."""
        return math.inf if self.silence_s is None else self.silence_s * _backoff_factor(attempt)

    def delay_s(
        self, error: RequestError, *, attempt: int, invalid_responses: int = 0, random: Random | None = None
    ) -> float | None:
        """Return the delay in seconds before attempt ``attempt + 1``, or None to give up with ``error``.

        ``invalid_responses`` is the number of consecutive responses that were not the API's. With ``random``,
        the delay is random, up to the maximum (full jitter).
        """
        if error.retryable:
            may_retry = self.max_attempts is None or attempt < self.max_attempts
        elif is_invalid_response(error):
            may_retry = self.max_invalid_responses is None or invalid_responses < self.max_invalid_responses
        else:
            return self.refused_s
        if not may_retry:
            return None
        if isinstance(error, ErrorAnswer) and error.retry_after_s is not None:
            return max(self.min_s, min(error.retry_after_s, self.retry_after_cap_s))
        longest_s = self.longest_delay_s(attempt)
        return max(self.min_s, longest_s if random is None else random.uniform(0.0, longest_s))

    def longest_delay_s(self, attempt: int) -> float:
        return min(self.cap_s, self.base_s * _backoff_factor(attempt))


JITTER_RANDOM = Random()
"""Random generator that spreads the retries of clients that failed at the same moment."""

ONE_ATTEMPT = RetryPolicy(max_attempts=1)  # for callers that have their own retry logic
ENDLESS = RetryPolicy(max_attempts=None, cap_s=3.0, min_s=0.5, max_invalid_responses=6)
"""For streams, which continue after an outage of any length; the transport has already retried a few times.

One request in 3 s is no load for a server, and shows a recovery within seconds.
"""


LASTING = RetryPolicy(
    max_attempts=None, base_s=3.0, cap_s=3.0, min_s=3.0, max_invalid_responses=None, refused_s=10.0
)
"""For screens, which retry as long as they are open, even after a refusal."""


async def retrying(
    call: Callable[[], Awaitable[T]],
    policy: RetryPolicy,
    *,
    sleep: Callable[[float], Awaitable[object]],
    may_repeat: Callable[[RequestError], bool] = lambda _error: True,
    random: Random | None = None,
    on_wait: Callable[[RequestError, float], object] = lambda _error, _delay_s: None,
) -> T:
    """Await ``call()``, and repeat it after a RequestError as the policy allows; raise the last error.

    A retry also needs ``may_repeat(error)`` to be true. ``on_wait`` is called before each ``sleep``, with the
    error and the delay in seconds.
    """
    attempt = invalid_responses = 0
    while True:
        try:
            return await call()
        except RequestError as error:
            problem = error  # raised outside of the handler, without its context
        attempt += 1
        invalid_responses = invalid_responses + 1 if is_invalid_response(problem) else 0
        delay_s = policy.delay_s(problem, attempt=attempt, invalid_responses=invalid_responses, random=random)
        if delay_s is None or not may_repeat(problem):
            problem.attempts = max(problem.attempts, attempt)
            raise problem
        on_wait(problem, delay_s)
        await sleep(delay_s)


class InvalidStreak:
    """Counts consecutive responses that are not the API's, to give up on a server that is not Baseten.

    The limit is six responses. A server that has sent a valid response before may be in maintenance, so its
    limit is ten minutes after the last valid response.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._count = 0
        self._last_valid_s: float | None = None

    def note_valid_response(self) -> None:
        self._count = 0
        self._last_valid_s = self._clock.monotonic()

    def note_error(self, error: RequestError) -> None:
        self._count = self._count + 1 if is_invalid_response(error) else 0

    @property
    def is_final(self) -> bool:
        """True if the server is probably not Baseten, so that callers should give up."""
        if self._count < 6:
            return False
        return self._last_valid_s is None or self._clock.monotonic() - self._last_valid_s > 600.0


def is_invalid_response(error: RequestError) -> bool:
    """Return True if the response is not the API's: a maintenance page, or a redirect to one."""
    return isinstance(error, InvalidAnswer | RedirectRefused) and not isinstance(error, AnswerTooLarge)


def is_transient(error: RequestError) -> bool:
    """Return True if a retry may succeed: after a retryable error, or a response that is not the API's."""
    return error.retryable or is_invalid_response(error)


def _backoff_factor(attempt: int) -> float:
    return 2.0 ** min(attempt - 1, 32)  # the limit keeps floats finite; 2**32 seconds are over a century


def parse_retry_after(text: str | None, *, date: str | None = None, now: datetime) -> float | None:
    """Parse a ``Retry-After`` header into seconds; None if it is missing or invalid, never negative.

    A ``Retry-After`` date is relative to ``date``, the response's ``Date`` header, since the server's clock
    may be wrong; without that header, to ``now``.
    """
    text = (text or "").strip()
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text, re.ASCII):
        return float(text)
    retry_at = http_date(text)
    if retry_at is None:
        return None
    return max(0.0, (retry_at - (http_date(date or "") or now)).total_seconds())


def http_date(text: str) -> datetime | None:
    """Parse a date header; None if it is missing or invalid."""
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
