"""``FakeBaseten``, the tests' one server beside the emulator: the published training API with plain dicts.

It is written from the API's description alone and imports nothing of this project, so that what works against
it works against any server that follows the description.
"""

import json
import re
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, urlsplit

import pytest

KEY = "fake-key-9f3c1a"
NS_PER_MS = 1_000_000
LONG_AGO = "2025-03-01T12:00:00Z"
LONG_AGO_MS = 1_740_830_400_000
TIMES = {"created_at": LONG_AGO, "updated_at": LONG_AGO}
DEFAULT_LIMIT = 500


@dataclass
class Answer:
    """What a route answers.

    ``hangs`` answers nothing until the server is closed. ``is_cut`` sends the first half of the body and
    closes the connection. ``is_reset`` resets it instead of an answer.
    """

    body: object = None
    _: KW_ONLY
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    hangs: bool = False
    is_cut: bool = False
    is_reset: bool = False

    def payload(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return json.dumps(self.body).encode()


@dataclass
class ReceivedRequest:
    """A request as it came in; ``target`` is the path with its query, or where a proxy is to connect."""

    method: str
    path: str
    target: str
    query: dict[str, str]
    body: dict[str, object]
    headers: dict[str, str]
    raw: bytes = b""

    @property
    def authorization(self) -> str:
        return self.headers.get("authorization", "")


Route = Callable[[ReceivedRequest], Answer]


def project(project_id: str = "proj1", name: str = "llama-sft", **more: object) -> dict[str, object]:
    """A project with every required field and none of the others."""
    return {"id": project_id, "name": name, **TIMES, "latest_job": None} | more


def job(job_id: str = "job1", status: str = "COMPLETED", **more: object) -> dict[str, object]:
    """A job with every required field and none of the others."""
    return {
        "id": job_id,
        **TIMES,
        "current_status": f"TRAINING_JOB_{status}",
        "training_project_id": "proj1",
        "training_project": {"id": "proj1", "name": "llama-sft"},
        "instance_type": {
            "id": "h100x8",
            "name": "H100x8",
            "memory_limit_mib": 1_000_000,
            "millicpu_limit": 200_000,
            "gpu_count": 8,
            "gpu_type": "H100",
            "gpu_memory_limit_mib": 81_920,
        },
    } | more


def billed(job_id: str, subtotal: object, minutes: int, **more: object) -> dict[str, object]:
    """A bill's item of one job, without its days."""
    resource = {"id": job_id, "kind": "TRAINING_JOB", "name": job_id, "is_deleted": False} | more
    return {"billable_resource": resource, "subtotal": subtotal, "minutes": minutes, "daily": None}


def line(message: str, *, at_ms: int = LONG_AGO_MS, replica: str | None = "node-0", **more: object) -> dict:
    return {"timestamp": str(at_ms * NS_PER_MS), "message": message, "replica": replica} | more


def page(log: list[dict], query: dict[str, str]) -> list[dict]:
    """The lines of a log that the query of a request asks for."""
    end_ms = int(query.get("end_epoch_millis", time.time() * 1000))
    start_ms = int(query.get("start_epoch_millis", end_ms - 30 * 60 * 1000))
    within = [each for each in log if start_ms <= int(each["timestamp"]) // NS_PER_MS < end_ms]
    newest_first = query.get("direction", "desc") == "desc"
    within.sort(key=lambda each: int(each["timestamp"]), reverse=newest_first)
    return within[: int(query.get("limit", DEFAULT_LIMIT))]


def _body(raw: bytes, content_type: str) -> dict[str, object]:
    if content_type.startswith("application/x-www-form-urlencoded"):
        return {name: values[-1] for name, values in parse_qs(raw.decode()).items()}
    return json.loads(raw) if raw and "json" in content_type else {}


class QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_arguments: object) -> None:
        """Connections are cut on purpose."""


class FakeBaseten:
    """The server. Use it as a context manager; change ``projects``, ``jobs`` and ``logs`` at will.

    With a ``certificate`` it speaks TLS, and ``server_names`` are those that clients asked for. Its jobs are
    of long ago: clients in this process read a log in one time range, not in one for each week since then.
    """

    def __init__(self, *, host: str = "127.0.0.1", port: int = 0, certificate: Path | None = None) -> None:
        self.key = KEY
        self.projects = [project()]
        self.jobs = [job()]
        self.logs: dict[str, list[dict]] = {}
        self.asked: list[ReceivedRequest] = []
        self._own_routes: list[tuple[str, re.Pattern[str], Route]] = []
        self._closing = threading.Event()
        self._patch = pytest.MonkeyPatch()
        self.connections = 0
        self.server_names: list[str | None] = []
        self._scheme = "http" if certificate is None else "https"
        self._server = QuietServer((host, port), self._handler())
        if certificate is not None:
            self._speak_tls(certificate)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.005,), daemon=True)

    def __enter__(self) -> Self:
        self._patch.setattr("api_client.streams.reader.MAX_WINDOW_MS", sys.maxsize)
        self._thread.start()
        return self

    def __exit__(self, *_about: object) -> None:
        self._patch.undo()
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _speak_tls(self, certificate: Path) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        context.sni_callback = lambda _socket, name, _context: self.server_names.append(name)
        server = self._server
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.handle_error = lambda *_about: None  # type: ignore[method-assign]  # who hangs up, hangs up

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def environ(self, key: str | None = None) -> dict[str, str]:
        """The three variables that lead a client here."""
        return {
            "BASETEN_API_KEY": key or self.key,
            "BASETEN_REMOTE_URL": self.url,
            "BASETEN_MANAGEMENT_API_URL_OVERRIDE": self.url,
        }

    def send_bill(self, *items: dict[str, object]) -> None:
        """Answer every range of the bill with these items."""
        usage = {"subtotal": "1.0", "credits_used": 0, "total": "1.0", "minutes": 1, "breakdown": items}
        self.on("GET", "/v1/billing/usage_summary", Answer({"training_usage": usage}))

    @property
    def changed_paths(self) -> list[str]:
        """Paths of the requests that may have changed something."""
        search = "/v1/training_jobs/search"
        return [asked.path for asked in self.asked if asked.method != "GET" and asked.path != search]

    def on(self, method: str, path_pattern: str, route: Route | Answer) -> None:
        """Answer requests whose path matches the whole pattern with this instead; the latest wins."""
        chosen: Route = (lambda _asked: route) if isinstance(route, Answer) else route
        self._own_routes.insert(0, (method, re.compile(path_pattern), chosen))

    def answer(self, asked: ReceivedRequest) -> Answer:
        self.asked.append(asked)
        if asked.authorization not in (f"Bearer {self.key}", f"Api-Key {self.key}"):
            return Answer({"code": "UNAUTHORIZED", "message": "this key opens nothing here"}, status=401)
        for method, pattern, route in self._own_routes:
            if method == asked.method and pattern.fullmatch(asked.path):
                return route(asked)
        return self._published(asked)

    def _published(self, asked: ReceivedRequest) -> Answer:
        parts = asked.path.strip("/").split("/")
        match asked.method, parts:
            case "GET", ["v1", "training_projects"]:
                return Answer({"training_projects": self.projects})
            case "GET", ["v1", "training_projects", project_id]:
                return self._one(self.projects, project_id, "training_project")
            case "POST", ["v1", "training_jobs", "search"]:
                return Answer({"training_jobs": self._search(asked.body)})
            case "GET", ["v1", "training_projects", project_id, "jobs"]:
                found = [each for each in self.jobs if each["training_project_id"] == project_id]
                return Answer({"training_project": self.projects[0], "training_jobs": found})
            case "GET", ["v1", "training_projects", _, "jobs", job_id]:
                return self._one(self.jobs, job_id, "training_job")
            case "GET", ["v1", "training_projects", _, "jobs", job_id, "logs"]:
                return Answer({"logs": page(self.logs.get(job_id, []), asked.query)})
        return Answer({"code": "NOT_FOUND", "message": "no such route"}, status=404)

    def _one(self, things: list[dict[str, object]], thing_id: str, name: str) -> Answer:
        found = next((Answer({name: thing}) for thing in things if thing["id"] == thing_id), None)
        return found or Answer({"code": "NOT_FOUND", "message": f"no {thing_id} here"}, status=404)

    def _search(self, wanted: dict[str, object]) -> list[dict[str, object]]:
        statuses = wanted.get("statuses")
        return [
            each
            for each in self.jobs
            if wanted.get("job_id") in (None, each["id"])
            and wanted.get("project_id") in (None, each["training_project_id"])
            and (not isinstance(statuses, list) or each["current_status"] in statuses)
        ]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        baseten = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                baseten.connections += 1
                super().setup()

            def _serve(self) -> None:
                address = urlsplit(self.path)
                raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                asked = ReceivedRequest(
                    method=self.command,
                    path=address.path,
                    target=self.path,
                    query={name: values[-1] for name, values in parse_qs(address.query).items()},
                    body=_body(raw, self.headers.get("Content-Type", "")),
                    headers={name.lower(): value for name, value in self.headers.items()},
                    raw=raw,
                )
                answer = baseten.answer(asked)
                if answer.hangs:
                    baseten._closing.wait()
                    self.close_connection = True
                    return
                if not answer.is_reset:
                    self._send(answer)
                    return
                linger_off = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_off)
                self.connection.close()
                self.close_connection = True

            def _send(self, answer: Answer) -> None:
                payload = answer.payload()
                self.send_response(answer.status)
                for name, value in ({"Content-Type": "application/json"} | answer.headers).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload[: len(payload) // 2] if answer.is_cut else payload)
                self.close_connection = self.close_connection or answer.is_cut

            do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = do_CONNECT = _serve

            def log_message(self, *_arguments: object) -> None:
                """Say nothing."""

        return Handler
