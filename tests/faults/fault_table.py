"""What each fault must come to, for a request that only reads and for one that changes something."""

from __future__ import annotations

from dataclasses import dataclass

from api_client import errors

ATTEMPTS = 2
"""How often the matrix's clients send at most."""
SILENCES_S = (0.02, 0.5, 5.0)
"""Read timeouts to try, shortest first: on a busy machine a short one also ends healthy requests."""


@dataclass(frozen=True)
class Outcome:
    """``error`` (None: it succeeds) with these words, after so many reading or changing requests."""

    error: type[errors.RequestError] | None = None
    words: str = ""
    reads: int = 1
    changes: int = 1


BROKEN_OFF = Outcome(errors.Unreachable, "broke off", ATTEMPTS)
SILENT = Outcome(errors.TimedOut, "in time", ATTEMPTS)
LIMITED = Outcome(errors.RateLimited, "429", ATTEMPTS, ATTEMPTS)
UNEXPECTED = Outcome(errors.InvalidAnswer, "unexpected data")
OUTCOMES = {
    "400": Outcome(errors.BadRequest, "400"),
    "401": Outcome(errors.Unauthorized, "401"),
    "403": Outcome(errors.Unauthorized, "403"),
    "404": Outcome(errors.NotFound, "404"),
    "409": Outcome(errors.BadRequest, "409"),
    "422": Outcome(errors.BadRequest, "422"),
    "408": Outcome(errors.BadRequest, "408", ATTEMPTS),
    **dict.fromkeys(("429", "429(retry-after=2)", "429(retry-date=20)"), LIMITED),
    "500": Outcome(errors.ServerFault, "500", ATTEMPTS),
    "502(html)": Outcome(errors.ServerFault, "502", ATTEMPTS),
    "503(retry-after=2)": Outcome(errors.ServerFault, "503", ATTEMPTS),
    "504@handled": Outcome(errors.ServerFault, "504", ATTEMPTS),
    "html": Outcome(errors.InvalidAnswer, "HTML"),
    **dict.fromkeys(("malformed", "truncated"), UNEXPECTED),
    "empty": Outcome(errors.InvalidAnswer, "an empty response"),
    **dict.fromkeys(
        ("reset@before", "reset@handled", "reset@during", "cut@before", "cut@during"), BROKEN_OFF
    ),
    **dict.fromkeys(("stall@handled", "stall@during"), SILENT),
    "redirect": Outcome(errors.RedirectRefused, "elsewhere.invalid"),
    "redirect=https://127.0.0.1:1/": Outcome(errors.RedirectRefused, "127.0.0.1"),
    **dict.fromkeys(("reset@after", "stall=5ms", "slow=10ms"), Outcome()),
    **dict.fromkeys(("skew=2m", "skew=-2m", "drift", "nulls", "statuses"), Outcome()),
}
