"""A server with a certificate that nobody vouches for gets neither key nor request."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from pydantic import SecretStr

from api_client import Remote, RetryPolicy, TrainingClient, Unreachable, UploadFailed
from api_client.models import BlobCredentials
from support.certificates import HOST, own_certificate
from support.fake_object_store import FakeObjectStore

KEY = "sk-that-must-stay-here"


class Listening(BaseHTTPRequestHandler):
    """Keeps what it is asked, and answers an empty object."""

    heard: list[str]

    def do_GET(self) -> None:
        self.heard.append(f"{self.path} {dict(self.headers)}")
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, list[str]]]:
    """The address of such a server, and what it has heard."""
    heard: list[str] = []
    server = ThreadingHTTPServer((HOST, 0), type("Handler", (Listening,), {"heard": heard}))
    server.daemon_threads = True
    server.handle_error = lambda *_about: None  # type: ignore[method-assign]  # who hangs up, hangs up
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own_certificate(tmp_path))
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"https://{HOST}:{server.server_address[1]}", heard
    server.shutdown()
    server.server_close()
    thread.join()


async def test_neither_the_key_nor_a_request_reaches_it(served: tuple[str, list[str]]) -> None:
    url, heard = served
    remote = Remote("lab", url, url, SecretStr(KEY), "the test")
    async with TrainingClient(remote, retry=RetryPolicy(max_attempts=1)) as client:
        with pytest.raises(Unreachable, match="certificate"):
            await client.projects.list()
        with pytest.raises(Unreachable, match="certificate"):
            await client.objects.read(f"{url}/object", length=1)
        with FakeObjectStore() as store:
            given = BlobCredentials.model_validate(store.credentials(endpoint_url=url))
        with pytest.raises(UploadFailed, match="certificate"):
            await client.blobs.upload(Path(__file__), given)
    assert heard == []
