"""An S3 (and GCS) that lists and hands out objects, on a real socket."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

MODIFIED_ISO = "2026-01-02T03:04:05.000Z"
MODIFIED_HTTP = "Fri, 02 Jan 2026 03:04:05 GMT"


class ObjectStoreStub:
    """``objects`` by key in ``bucket``; notes who asked for what; ``hangs`` holds every download back."""

    def __init__(self) -> None:
        self.bucket = "my-bucket"
        self.objects: dict[str, bytes] = {}
        self.asked: list[tuple[str, str, str]] = []
        self.needs_key: str | None = None
        self.hangs = threading.Event()
        self.asked_for_object = threading.Event()
        self.closing = threading.Event()
        self.url = ""

    def downloads(self) -> list[str]:
        """The keys that were fetched, in order."""
        prefix = f"/{self.bucket}/"
        return [
            path.removeprefix(prefix) for method, path, _ in self.asked if method == "GET" and path != prefix
        ]


@contextmanager
def object_store() -> Iterator[ObjectStoreStub]:
    """A store that answers at ``url`` until the block ends."""
    stub = ObjectStoreStub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(stub))
    server.daemon_threads = True
    stub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        stub.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(stub: ObjectStoreStub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_HEAD(self) -> None:
            self._serve()

        def do_GET(self) -> None:
            self._serve()

        def _serve(self) -> None:
            address = urlsplit(self.path)
            path, query = unquote(address.path), parse_qs(address.query)
            authorization = self.headers.get("Authorization", "")
            bucket, _, key = path.lstrip("/").partition("/")
            if "list-type" in query or not key:
                path = f"/{bucket}/"
            stub.asked.append((self.command, path, authorization))
            if stub.needs_key is not None and stub.needs_key not in authorization:
                self._answer(403, b"<Error><Code>AccessDenied</Code><Message>who are you</Message></Error>")
            elif bucket != stub.bucket:
                self._answer(404, b"<Error><Code>NoSuchBucket</Code></Error>")
            elif path.endswith("/"):
                self._answer(200, self._listing(query.get("prefix", [""])[0]))
            elif key not in stub.objects:
                self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
            else:
                self._object(stub.objects[key])

        def _listing(self, prefix: str) -> bytes:
            contents = "".join(
                f"<Contents><Key>{escape(key)}</Key><LastModified>{MODIFIED_ISO}</LastModified>"
                f'<ETag>"{hashlib.md5(body).hexdigest()}"</ETag><Size>{len(body)}</Size></Contents>'
                for key, body in sorted(stub.objects.items())
                if key.startswith(prefix)
            )
            return (
                f"<ListBucketResult><Name>{stub.bucket}</Name><IsTruncated>false</IsTruncated>"
                f"{contents}</ListBucketResult>"
            ).encode()

        def _object(self, body: bytes) -> None:
            stub.asked_for_object.set()
            if stub.hangs.is_set():
                stub.closing.wait()
                self.close_connection = True
                return
            headers = {"ETag": f'"{hashlib.md5(body).hexdigest()}"', "Last-Modified": MODIFIED_HTTP}
            span = self.headers.get("Range")
            if span is None:
                self._answer(200, body, headers)
                return
            first, _, last = span.removeprefix("bytes=").partition("-")
            start, end = int(first), min(int(last) + 1, len(body))
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(body)}"
            self._answer(206, body[start:end], headers)

        def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            """Say nothing."""

    return Handler
