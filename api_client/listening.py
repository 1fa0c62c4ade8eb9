"""Limits for the servers of this machine: whoever can connect must not use up their descriptors.

Other users of the machine can connect to loopback without a key. A server therefore keeps fewer connections
than it has descriptors, closes those whose client reads nothing, and logs it once when there are too many.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
from collections.abc import Callable
from typing import Any

MAX_CONNECTIONS = 256
"""Connections that a server keeps if the limit of open files allows; more pages or clients are refused."""


NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors after which asyncio accepts again a second later."""

logger = logging.getLogger(__name__)


class ConnectionLimit:
    """Counts the connections of a server and refuses those beyond ``connections``.

    ``idle_s`` is how long a client may read nothing of a response. Create the listener with ``connections``
    as its backlog: asyncio accepts as many at once before any is refused.
    """

    def __init__(self, idle_s: float) -> None:
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        # A listener accepts as many again before the first are refused; the rest is for jobs and files.
        share = MAX_CONNECTIONS if limit == resource.RLIM_INFINITY else limit // 6
        self.connections = max(1, min(MAX_CONNECTIONS, share))
        self.idle_s = idle_s
        self._open = 0
        self._logged: set[str] = set()

    def protocol(self, inner: asyncio.Protocol) -> asyncio.Protocol:
        """Return a protocol for one connection that passes everything on to ``inner``."""
        return _LimitedConnection(self, inner)

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Log once that descriptors ran out, not a traceback for each connection that waits."""

        def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            error = context.get("exception")
            if isinstance(error, OSError) and error.errno in NO_DESCRIPTORS:
                self._log_once(f"can't accept connections: {error.strerror}; trying again every second")
            else:
                loop.default_exception_handler(context)

        loop.set_exception_handler(handle)

    def add(self) -> bool:
        """Count a new connection; return False if it is one too many."""
        self._open += 1
        if self._open <= self.connections:
            return True
        self._log_once(f"{self.connections} connections are open; more are refused")
        return False

    def remove(self) -> None:
        """Count a connection that has ended, refused ones included."""
        self._open -= 1

    def _log_once(self, message: str) -> None:
        if message not in self._logged:
            self._logged.add(message)
            logger.warning(message)


class _LimitedConnection(asyncio.Protocol):
    def __init__(self, limit: ConnectionLimit, inner: asyncio.Protocol) -> None:
        self._limit = limit
        self._inner = inner
        self._abort: Callable[[], None] | None = None
        self._stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._abort = transport.abort
        self._inner.connection_made(transport)
        if not self._limit.add():
            transport.abort()

    def data_received(self, data: bytes) -> None:
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        assert self._abort is not None
        self._stalled = asyncio.get_running_loop().call_later(self._limit.idle_s, self._abort)
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._stop_timer()
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._limit.remove()
        self._inner.connection_lost(exc)

    def _stop_timer(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
