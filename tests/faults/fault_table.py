"""What each fault must come to, for a request that only reads and for one that changes something."""

from __future__ import annotations

from dataclasses import dataclass

from api_client import (
    BadRequest,
    InvalidAnswer,
    NotFound,
    RateLimited,
    RedirectRefused,
    RequestError,
    ServerFault,
    TimedOut,
    Unauthorized,
    Unreachable,
)

ATTEMPTS = 2
"""How often the matrix's clients send at most."""


@dataclass(frozen=True)
class Outcome:
    """``error`` (None: it succeeds) after so many sendings of a reading and of a changing request.

    ``words`` are in the message. A change that was ``handled`` must have been handled once.
    """

    spec: str
    error: type[RequestError] | None
    sent_reading: int = 1
    sent_changing: int = 1
    status: int | None = None
    words: str = ""


def answered(spec: str, error: type[RequestError], **more: int) -> Outcome:
    """An error's status."""
    status = int(spec[:3])
    return Outcome(spec, error, status=status, words=str(status), **more)


def lost(spec: str, error: type[RequestError] = Unreachable, words: str = "broke off") -> Outcome:
    """An answer that never came: asked for again, unless that could do something twice."""
    return Outcome(spec, error, sent_reading=ATTEMPTS, words=words)


def garbled(spec: str, words: str) -> Outcome:
    """An answer that is none; a second would be the same."""
    return Outcome(spec, InvalidAnswer, words=words)


OUTCOMES = (
    answered("400", BadRequest),
    answered("401", Unauthorized),
    answered("403", Unauthorized),
    answered("404", NotFound),
    answered("409", BadRequest),
    answered("422", BadRequest),
    answered("408", BadRequest, sent_reading=ATTEMPTS),
    answered("429", RateLimited, sent_reading=ATTEMPTS, sent_changing=ATTEMPTS),
    answered("429(retry-after=2)", RateLimited, sent_reading=ATTEMPTS, sent_changing=ATTEMPTS),
    answered("429(retry-date=20)", RateLimited, sent_reading=ATTEMPTS, sent_changing=ATTEMPTS),
    answered("500", ServerFault, sent_reading=ATTEMPTS),
    answered("502(html)", ServerFault, sent_reading=ATTEMPTS),
    answered("503(retry-after=2)", ServerFault, sent_reading=ATTEMPTS),
    answered("504@handled", ServerFault, sent_reading=ATTEMPTS),
    garbled("html", "HTML"),
    garbled("malformed", "unexpected data"),
    garbled("truncated", "unexpected data"),
    garbled("empty", "an empty response"),
    lost("reset@before"),
    lost("reset@handled"),
    lost("reset@during"),
    Outcome("reset@after", None),
    lost("cut@before"),
    lost("cut@during"),
    lost("stall@handled", TimedOut, "in time"),
    lost("stall@during", TimedOut, "in time"),
    Outcome("stall=5ms", None),
    Outcome("slow=10ms", None),
    Outcome("redirect", RedirectRefused, words="elsewhere.invalid"),
    Outcome("redirect=https://127.0.0.1:1/", RedirectRefused, words="127.0.0.1"),
    Outcome("skew=2m", None),
    Outcome("skew=-2m", None),
    Outcome("drift", None),
    Outcome("nulls", None),
    Outcome("statuses", None),
)
