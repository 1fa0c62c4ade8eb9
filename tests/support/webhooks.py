"""A webhook on a real socket."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HANGS = 0
"""Instead of a status: no answer until the webhook is closed."""


@dataclass
class Hook:
    """What a webhook heard: headers and bodies; ``answers`` are the status codes to give, then 200."""

    url: str = ""
    heard: list[tuple[dict[str, str], dict[str, Any]]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        return [str(body["text"]) for _headers, body in self.heard]


@contextmanager
def webhook(*answers: int) -> Iterator[Hook]:
    hook = Hook(answers=list(answers))
    closing = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            hook.heard.append(({key.lower(): value for key, value in self.headers.items()}, body))
            status = hook.answers.pop(0) if hook.answers else 200
            if status == HANGS:
                closing.wait()
                return
            self.send_response(status)
            self.send_header("location", hook.url)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hook.url = f"http://127.0.0.1:{server.server_port}/hook/hush"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield hook
    finally:
        closing.set()
        server.shutdown()
        thread.join()
        server.server_close()
