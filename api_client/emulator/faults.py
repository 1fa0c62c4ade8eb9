"""Refusals, as the REST routes answer them: a status and ``{code, message}`` (API facts, 2)."""

from __future__ import annotations


class ApiFault(Exception):
    """An answer other than 200: ``status``, the machine's word ``code`` and a person's ``message``."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


def not_found(what: str, identity: str) -> ApiFault:
    """404: there is no such thing."""
    return ApiFault(404, "NOT_FOUND", f"{what} {identity!r} not found")


def invalid(message: str) -> ApiFault:
    """400: the request does not say what it must."""
    return ApiFault(400, "VALIDATION_ERROR", message)


def not_served(message: str) -> ApiFault:
    """501: the platform has this, the emulator does not."""
    return ApiFault(501, "NOT_IMPLEMENTED", message)
