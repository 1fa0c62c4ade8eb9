"""A server for the official CLI that records its requests, used by the recording scripts."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

REMOTE_URL = "http://localhost:8000"
"""The one address beside the real ones that the official CLI knows a REST host for."""


class Recorder(BaseHTTPRequestHandler):
    """Answers what the official CLI asks; addresses come in their absolute form."""

    protocol_version = "HTTP/1.1"

    @property
    def route(self) -> str:
        """The path that is asked for, without its host."""
        return urlsplit(self.path).path

    @property
    def own_url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def answer(self, body: Any) -> None:
        self.send(json.dumps(body).encode())

    def send(self, payload: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@contextmanager
def recording(recorder: type[Recorder]) -> Iterator[dict[str, str]]:
    """Serve; gives the environment in which the official CLI asks there (at ``http_proxy``)."""
    with ThreadingHTTPServer(("127.0.0.1", 0), recorder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield {name: value for name, value in os.environ.items() if "proxy" not in name.lower()} | {
            "BASETEN_TRUSS_AUTH_REMOTE_URL": REMOTE_URL,
            "BASETEN_TRUSS_AUTH_API_KEY": "recorded-by-nobody",
            "TRUSS_NO_UPDATE_CHECK": "1",
            "http_proxy": f"http://127.0.0.1:{server.server_address[1]}",
        }
        server.shutdown()
