"""A dashboard that notes what it writes to the terminal, and a webhook on a real socket."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.dashboard import Dashboard
from support.worlds import StubRunFeed, run
from tui.analysis.run.snapshot import RunSnapshot
from tui.screens.job.screen import JobScreen
from tui.settings.loading import Loaded, validated

HEALTHY = run(findings=())


def settings(**tables: Any) -> Loaded:
    return Loaded(validated(tables))


class NotingDashboard(Dashboard):
    """Keeps what would have gone to the terminal."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.written: list[str] = []

    def write_to_terminal(self, sequence: str) -> None:
        if sequence:
            self.written.append(sequence)

    @property
    def titles(self) -> list[str]:
        return [one[4:-1] for one in self.written if one.startswith("\x1b]2;")]


def watched(first: RunSnapshot = HEALTHY, **tables: Any) -> NotingDashboard:
    """The job screen on a run that is told of by ``app.screen.post_message``."""
    feed = lambda job, **given: StubRunFeed(first, job, **given)  # noqa: E731
    return NotingDashboard(lambda: JobScreen(first.job, feed), settings=settings(**tables))


@dataclass
class Hook:
    """What a webhook heard: headers and bodies; ``answers`` are the status codes to give, then 200."""

    url: str = ""
    heard: list[tuple[dict[str, str], dict[str, Any]]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)


@contextmanager
def webhook(*answers: int) -> Iterator[Hook]:
    hook = Hook(answers=list(answers))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            hook.heard.append(({key.lower(): value for key, value in self.headers.items()}, body))
            self.send_response(hook.answers.pop(0) if hook.answers else 200)
            self.send_header("location", hook.url)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hook.url = f"http://127.0.0.1:{server.server_port}/hook/hush"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hook
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
