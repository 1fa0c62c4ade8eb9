"""Short ids as the platform gives them out."""

from __future__ import annotations

import secrets

ID_ALPHABET = "0123456789bcdfghjkmnpqrstvwxyz"
ID_LENGTH = 8


def new_id() -> str:
    """A fresh id: short, lower-case, alphanumeric (API facts, 2); 30^8 of them, so no two meet."""
    return "".join(secrets.choice(ID_ALPHABET) for _ in range(ID_LENGTH))
