"""An object store on a port of its own: URLs that expire, range requests, and a record of every request."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import parse_qs, urlsplit


@dataclass
class Fetched:
    """A request as it came in, and how many bytes it was given."""

    name: str
    headers: dict[str, str]
    sent_bytes: int


@dataclass
class ObjectHost:
    """The store. ``objects`` are its contents by name; URLs are good while they carry the ``generation``."""

    objects: dict[str, bytes] = field(default_factory=dict)
    generation: int = 0
    ignores_ranges: bool = False
    fetched: list[Fetched] = field(default_factory=list)

    def __enter__(self) -> ObjectHost:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def url(self, name: str) -> str:
        """A URL that works now."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/{name}?generation={self.generation}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        host = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                address = urlsplit(self.path)
                name = address.path.lstrip("/")
                content = host.objects.get(name)
                status, headers = 200, {}
                if parse_qs(address.query).get("generation") != [str(host.generation)] or content is None:
                    status, content = 403, b"<Error><Code>AccessDenied</Code></Error>"
                elif "Range" in self.headers and not host.ignores_ranges:
                    first, last = self.headers["Range"].removeprefix("bytes=").split("-")
                    whole, status = content, 206
                    content = content[int(first) : int(last) + 1]
                    headers["Content-Range"] = f"bytes {first}-{int(first) + len(content) - 1}/{len(whole)}"
                host.fetched.append(Fetched(name, dict(self.headers), len(content)))
                self.send_response(status)
                for header, value in headers.items():
                    self.send_header(header, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                try:
                    self.wfile.write(content)
                except ConnectionError:
                    self.close_connection = True

            def log_message(self, *_arguments: object) -> None:
                """Say nothing."""

        return Handler
