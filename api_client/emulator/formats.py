"""Short ids as the platform gives them out."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

ID_ALPHABET = "0123456789bcdfghjkmnpqrstvwxyz"
ID_LENGTH = 8


def new_id() -> str:
    """A fresh id: short, lower-case, alphanumeric (API facts, 2); 30^8 of them, so no two meet."""
    return "".join(secrets.choice(ID_ALPHABET) for _ in range(ID_LENGTH))


def iso(moment: datetime) -> str:
    """``2026-01-31T12:00:00.123456Z``."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def moment(text: str) -> datetime:
    """The other way; aware, in UTC."""
    return datetime.fromisoformat(text).astimezone(UTC)
