"""An API that lists files, and an object store on a separate port that misbehaves on request."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, unquote, urlsplit

from pydantic import SecretStr

from api_client.client import TrainingClient
from api_client.http.retry import RetryPolicy
from api_client.remotes import Remote

KEY = "a-key-of-the-platform"
PROJECT, JOB = "project1", "job1"
LISTED_TIME = "2026-03-01T10:00:00Z"
PIECE_BYTES = 64 * 1024

EXPIRED = (
    b"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>"
)


@dataclass
class Stored:
    """One file: what is listed of it, and what the store really has."""

    name: str
    content: bytes
    rank: int = 0
    listed_size: int | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.listed_size is None:
            self.listed_size = len(self.content)


@dataclass
class Behaviour:
    """How the store serves. The functions get the request's number, counted from 0."""

    ignores_ranges: bool = False
    has_length: bool = True
    answer: Callable[[int], tuple[int, dict[str, str], bytes] | None] = lambda _number: None
    cut_after: Callable[[int], int | None] = lambda _number: None
    before_piece: Callable[[int], object] = lambda _sent_bytes: None


class Store:
    """Both servers, what they serve, and what they were asked."""

    def __init__(self, files: list[Stored], behaviour: Behaviour | None = None) -> None:
        self.files = files
        self.behaviour = behaviour or Behaviour()
        self.token = 1
        self.archive: bytes | None = None
        self.no_checkpoints: set[str] = set()
        self.page_size = 1000
        self.listings = 0
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.sent_bytes = 0
        self.go_on = threading.Event()
        self.lock = threading.Lock()
        self.api = _server(self._api)
        self.objects = _server(self._object)

    @property
    def api_url(self) -> str:
        return f"http://127.0.0.1:{self.api.server_port}"

    def url(self, file: Stored) -> str:
        place = f"{self.files.index(file)}/{quote(file.name, safe='', errors='surrogatepass')}"
        return f"http://127.0.0.1:{self.objects.server_port}/o/{place}?token={self.token}"

    def environ(self) -> dict[str, str]:
        return {
            "BASETEN_API_KEY": KEY,
            "BASETEN_REMOTE_URL": self.api_url,
            "BASETEN_MANAGEMENT_API_URL_OVERRIDE": self.api_url,
        }

    def client(self, attempts: int = 4) -> TrainingClient:
        remote = Remote("test", self.api_url, self.api_url, key=SecretStr(KEY), key_origin="the test")
        return TrainingClient(remote, retry=RetryPolicy(max_attempts=attempts, base_s=0.001, cap_s=0.001))

    @property
    def ranges(self) -> list[str]:
        return [headers.get("range", "") for _path, headers in self.requests]

    def _api(self, handler: BaseHTTPRequestHandler) -> None:
        if handler.headers.get("authorization", "").split(" ")[-1] != KEY:
            _send(handler, 401, {}, b"{}")
            return
        address = urlsplit(handler.path)
        if address.path.endswith("/search"):
            project = {"id": PROJECT, "name": "my project"}
            job = {
                "id": JOB,
                "created_at": LISTED_TIME,
                "updated_at": LISTED_TIME,
                "current_status": "TRAINING_JOB_COMPLETED",
                "training_project_id": PROJECT,
                "training_project": project,
            }
            _send_json(handler, {"training_jobs": [job]})
        elif address.path.endswith("/download"):
            where = f"http://127.0.0.1:{self.objects.server_port}/archive?token={self.token}"
            _send_json(handler, {"artifact_presigned_urls": [where] if self.archive is not None else []})
        elif address.path.endswith("/checkpoint_files"):
            self.listings += 1
            offset = int(parse_qs(address.query)["page_token"][0])
            end = offset + self.page_size
            _send_json(
                handler,
                {
                    "presigned_urls": [self._listed(file) for file in self.files[offset:end]],
                    "next_page_token": end if end < len(self.files) else None,
                    "total_count": len(self.files),
                },
            )
        elif address.path.endswith("/checkpoints"):
            names = {file.name.partition("/")[0] for file in self.files if "/" in file.name}
            listed = [{"checkpoint_id": name} for name in sorted({*names, "."} - self.no_checkpoints)]
            _send_json(handler, {"checkpoints": listed})
        else:
            _send(handler, 404, {}, b"{}")

    def _listed(self, file: Stored) -> dict[str, object]:
        size = None if file.listed_size == -1 else file.listed_size
        return {
            "url": self.url(file),
            "relative_file_name": file.name,
            "node_rank": file.rank,
            "size_bytes": size,
            "last_modified": LISTED_TIME,
        }

    def _object(self, handler: BaseHTTPRequestHandler) -> None:
        address = urlsplit(handler.path)
        with self.lock:
            number = len(self.requests)
            self.requests.append((unquote(address.path), {k.lower(): v for k, v in handler.headers.items()}))
        canned = self.behaviour.answer(number)
        if canned is not None:
            _send(handler, *canned)
            return
        if parse_qs(address.query).get("token") != [str(self.token)]:
            _send(handler, 403, {"Content-Type": "application/xml"}, EXPIRED)
            return
        if address.path == "/archive":
            self._serve(handler, number, Stored("archive", self.archive or b""))
            return
        self._serve(handler, number, self.files[int(address.path.split("/")[2])])

    def _serve(self, handler: BaseHTTPRequestHandler, number: int, file: Stored) -> None:
        content = memoryview(file.content)
        start, end = 0, len(content)
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", handler.headers.get("range", ""))
        if asked and not self.behaviour.ignores_ranges:
            start, end = int(asked[1]), min(end, int(asked[2]) + 1 if asked[2] else end)
            if start >= len(content):
                _send(handler, 416, {"Content-Range": f"bytes */{len(content)}"}, b"")
                return
            handler.send_response(206)
            handler.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(content)}")
        else:
            handler.send_response(200)
        for name, value in file.headers.items():
            handler.send_header(name, value)
        handler.send_header("Set-Cookie", "session=of-the-store; Path=/")
        if self.behaviour.has_length:
            handler.send_header("Content-Length", str(end - start))
        else:
            handler.send_header("Connection", "close")
        handler.end_headers()
        limit = self.behaviour.cut_after(number)
        last = end if limit is None else min(end, start + limit)
        for offset in range(start, last, PIECE_BYTES):
            self.behaviour.before_piece(self.sent_bytes)
            piece = content[offset : min(last, offset + PIECE_BYTES)]
            handler.wfile.write(piece)
            with self.lock:
                self.sent_bytes += len(piece)
        if last < end or not self.behaviour.has_length:
            handler.close_connection = True


def _send(handler: BaseHTTPRequestHandler, status: int, headers: dict[str, str], body: bytes) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def _send_json(handler: BaseHTTPRequestHandler, value: object) -> None:
    _send(handler, 200, {"Content-Type": "application/json"}, json.dumps(value).encode())


def _server(serve: Callable[[BaseHTTPRequestHandler], None]) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            try:
                serve(self)
            except OSError:
                self.close_connection = True

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.do_GET()

        def log_message(self, *_arguments: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    return server


@contextmanager
def serving(*files: Stored, behaviour: Behaviour | None = None) -> Iterator[Store]:
    """The servers, gone afterwards."""
    store = Store(list(files), behaviour)
    for server in (store.api, store.objects):
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield store
    finally:
        for server in (store.api, store.objects):
            server.shutdown()
            server.server_close()
