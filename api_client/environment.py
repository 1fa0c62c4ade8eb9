"""Hide environment variables while a library reads its settings."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_HIDING = threading.Lock()


@contextmanager
def hidden_variables(*prefixes: str) -> Iterator[None]:
    """Hide the variables whose names start with a prefix, in any case.

    obstore reads the user's settings for clouds when a store is made, and only then. Some of them
    (checksums, encryption) have no value that turns them off.
    """
    with _HIDING:
        hidden = {name: os.environ.pop(name) for name in [*os.environ] if name.upper().startswith(prefixes)}
        try:
            yield
        finally:
            os.environ.update(hidden)
