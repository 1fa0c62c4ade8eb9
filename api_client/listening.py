"""Limit the connections of a local server, so that clients cannot use up its file descriptors.

Other users of the machine can connect to loopback without a key. A server therefore accepts fewer connections
than it has descriptors, closes those whose client reads nothing, and logs once when there are too many.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
from collections.abc import Callable
from typing import Any

MAX_CONNECTIONS = 256
"""Maximum number of connections of a server, less if the limit on open files is low; others are refused."""


OUT_OF_DESCRIPTORS_ERRNOS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors after which asyncio stops accepting connections for a second."""

logger = logging.getLogger(__name__)


class ConnectionLimit:
    """Counts the connections of a server and refuses those beyond ``connections``.

    A client that reads nothing of a response for ``idle_s`` seconds is disconnected. Create the listener with
    ``connections`` as its backlog, because asyncio accepts up to that many at once before any is refused.
    """

    def __init__(self, idle_s: float) -> None:
        max_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        # A sixth: the listener may accept twice this number before it refuses connections, and jobs and files
        # need the rest.
        affordable = MAX_CONNECTIONS if max_files == resource.RLIM_INFINITY else max_files // 6
        self.connections = max(1, min(MAX_CONNECTIONS, affordable))
        self.idle_s = idle_s
        self._open_count = 0
        self._logged_messages: set[str] = set()

    def protocol(self, inner: asyncio.Protocol) -> asyncio.Protocol:
        """Return a protocol for one connection that forwards everything to ``inner``."""
        return _LimitedConnection(self, inner)

    def handle_accept_errors(self, loop: asyncio.AbstractEventLoop) -> None:
        """Log once that descriptors ran out, instead of a traceback for each waiting connection."""

        def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            error = context.get("exception")
            if isinstance(error, OSError) and error.errno in OUT_OF_DESCRIPTORS_ERRNOS:
                self._log_once(f"can't accept connections: {error.strerror}; trying again every second")
            else:
                loop.default_exception_handler(context)

        loop.set_exception_handler(handle)

    def add(self) -> bool:
        """Count a new connection; return False if it exceeds the limit."""
        self._open_count += 1
        if self._open_count <= self.connections:
            return True
        self._log_once(f"{self.connections} connections are open; more are refused")
        return False

    def remove(self) -> None:
        """Count the end of a connection, also of a refused one."""
        self._open_count -= 1

    def _log_once(self, message: str) -> None:
        if message not in self._logged_messages:
            self._logged_messages.add(message)
            logger.warning(message)


class _LimitedConnection(asyncio.Protocol):
    def __init__(self, limit: ConnectionLimit, inner: asyncio.Protocol) -> None:
        self._limit = limit
        self._inner = inner
        self._abort: Callable[[], None] | None = None
        self._stall_timer: asyncio.TimerHandle | None = None

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
        self._stall_timer = asyncio.get_running_loop().call_later(self._limit.idle_s, self._abort)
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._stop_timer()
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._limit.remove()
        self._inner.connection_lost(exc)

    def _stop_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None
