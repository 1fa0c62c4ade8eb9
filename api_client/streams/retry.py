"""How long to wait after a failed request, and which failures are worth a wait.

The transport has tried a few times already when an error arrives here; a stream outlives the outage.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from api_client.clock import Clock
from api_client.errors import InvalidAnswer, RateLimited, RedirectRefused, RequestError

T = TypeVar("T")

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 3.0
"""Who watches a run wants it back within seconds of the server's return; one request in 3 s harms nobody."""

LONGEST_WISHED_WAIT_S = 60.0
"""No server may put us to sleep for longer by its Retry-After."""

INVALID_ANSWERS_IN_A_ROW = 6
"""So many unreadable answers in a row are no accident any more."""


def wait_s(failures: int, error: RequestError) -> float:
    """How many seconds to wait after the given number of failures in a row (1 after the first)."""
    doubled = FIRST_WAIT_S * 2.0 ** min(max(failures - 1, 0), 16)
    wait = min(doubled, LONGEST_WAIT_S)
    if isinstance(error, RateLimited) and error.retry_after_s is not None:
        wait = max(wait, min(error.retry_after_s, LONGEST_WISHED_WAIT_S))
    return wait


def may_pass(error: RequestError) -> bool:
    """Whether the same request may succeed later: the retryable errors, and what is no answer of the API."""
    return error.retryable or is_no_answer(error)


def is_no_answer(error: RequestError) -> bool:
    """Whether something else spoke in the API's place: a page that announces repairs, or the way to one."""
    return isinstance(error, InvalidAnswer | RedirectRefused)


async def patiently(call: Callable[[], Awaitable[T]], *, clock: Clock) -> T:
    """The call's result, waiting and calling again while its errors may pass.

    Raises a RequestError that will not pass, and an InvalidAnswer or RedirectRefused that keeps coming.
    """
    failures = 0
    invalid_answers = 0
    while True:
        try:
            return await call()
        except RequestError as error:
            invalid_answers = invalid_answers + 1 if is_no_answer(error) else 0
            if not may_pass(error) or invalid_answers >= INVALID_ANSWERS_IN_A_ROW:
                raise
            failures += 1
            await clock.sleep(wait_s(failures, error))


async def readable(call: Callable[[], Awaitable[T]], *, clock: Clock) -> T:
    """The call's result, called again after answers that cannot be read. Raises its RequestErrors."""
    for failures in range(1, INVALID_ANSWERS_IN_A_ROW):
        try:
            return await call()
        except (InvalidAnswer, RedirectRefused) as error:
            await clock.sleep(wait_s(failures, error))
    return await call()
