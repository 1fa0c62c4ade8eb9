"""Decide which failed requests to retry, and after how long.

The transport has already retried a few times when an error arrives here; a stream continues after the
outage.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from api_client.clock import Clock
from api_client.errors import InvalidAnswer, RateLimited, RedirectRefused, RequestError

T = TypeVar("T")

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 3.0
"""Maximum delay: users expect a recovery to show within seconds, and one request in 3 s is no load."""

MAX_RETRY_AFTER_S = 60.0
"""Upper limit for a server's Retry-After."""

INVALID_ANSWERS_IN_A_ROW = 6
"""This many consecutive unreadable answers are no longer treated as transient."""


def wait_s(failures: int, error: RequestError) -> float:
    """Return the delay in seconds after this many consecutive failures (1 after the first)."""
    doubled = FIRST_WAIT_S * 2.0 ** min(max(failures - 1, 0), 16)
    wait = min(doubled, LONGEST_WAIT_S)
    if isinstance(error, RateLimited) and error.retry_after_s is not None:
        wait = max(wait, min(error.retry_after_s, MAX_RETRY_AFTER_S))
    return wait


def is_transient(error: RequestError) -> bool:
    """Return True if a retry may succeed: after a retryable error, or an answer that is not the API's."""
    return error.retryable or is_not_api_answer(error)


def is_not_api_answer(error: RequestError) -> bool:
    """Return True if the answer is not the API's: a maintenance page, or a redirect to one."""
    return isinstance(error, InvalidAnswer | RedirectRefused)


async def retry_transient(call: Callable[[], Awaitable[T]], *, clock: Clock) -> T:
    """Await ``call``, retrying transient errors with backoff.

    Raises permanent RequestErrors, and an InvalidAnswer or RedirectRefused that keeps coming.
    """
    failures = 0
    invalid_answers = 0
    while True:
        try:
            return await call()
        except RequestError as error:
            invalid_answers = invalid_answers + 1 if is_not_api_answer(error) else 0
            if not is_transient(error) or invalid_answers >= INVALID_ANSWERS_IN_A_ROW:
                raise
            failures += 1
            await clock.sleep(wait_s(failures, error))


async def retry_unreadable(call: Callable[[], Awaitable[T]], *, clock: Clock) -> T:
    """Await ``call``, retrying only unreadable answers. Raises its other RequestErrors."""
    for failures in range(1, INVALID_ANSWERS_IN_A_ROW):
        try:
            return await call()
        except (InvalidAnswer, RedirectRefused) as error:
            await clock.sleep(wait_s(failures, error))
    return await call()
