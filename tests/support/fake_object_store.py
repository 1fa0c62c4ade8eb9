"""An object store on a real socket that misbehaves on request, and the API that lists its files."""

from __future__ import annotations

import hashlib
import hmac
import re
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape, unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, quote, unquote, urlsplit

from api_client.client import TrainingClient
from api_client.http.retry import RetryPolicy
from support.fake_baseten import Answer as ApiAnswer, FakeBaseten, QuietServer, ReceivedRequest, job
from support.remotes import remote_of

PROJECT, JOB = "project1", "job1"
LISTED_TIME = "2026-03-01T10:00:00Z"
PIECE_BYTES = 64 * 1024
PAGE_SIZE = 1000
HANGS_S = 30.0
"""What has not happened by then does not."""

ACCESS_KEY_ID = "STUBKEYID"
SECRET_ACCESS_KEY = "stub+secret/access-key"
SESSION_TOKEN = "stub/session+token=="
BUCKET = "training-uploads"
UPLOADED_KEY = "jobs/ä b+c/archive.tgz"
UPLOAD_ID = "upload/1+x=y"
REGION = "eu-north-1"

EXPIRED = b"<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>"
MODIFIED_ISO, MODIFIED_HTTP = "2026-01-02T03:04:05.000Z", "Fri, 02 Jan 2026 03:04:05 GMT"

Answer = tuple[int, dict[str, str], bytes]
"""Status, headers, body."""


def error(status: int, code: str, words: str = "no") -> Answer:
    """S3's answer when it refuses."""
    return status, {}, f"<Error><Code>{code}</Code><Message>{words}</Message></Error>".encode()


@dataclass
class Stored:
    """One file behind a presigned URL: what is listed of it, and what the store really has."""

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
    """How files are read. The functions get the request's number from 0, its path, or the bytes sent."""

    ignores_ranges: bool = False
    has_length: bool = True
    answer: Callable[[int], Answer | None] = lambda _number: None
    answer_to: Callable[[str], Answer | None] = lambda _path: None
    cut_after: Callable[[int], int | None] = lambda _number: None
    before_piece: Callable[[int], object] = lambda _sent_bytes: None


@dataclass
class Taken:
    """A request to the bucket as it came in."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    signature_is_valid: bool

    @property
    def name(self) -> str:
        if "uploads" in self.query:
            return "start"
        if "partNumber" in self.query:
            return f"part {self.query['partNumber']}"
        if self.method == "GET" and ("list-type" in self.query or self.path.count("/") == 1):
            return "list"
        return {"HEAD": "look", "DELETE": "abort", "POST": "complete", "PUT": "whole", "GET": "get"}[
            self.method
        ]


@dataclass
class Trouble:
    """What happens to an upload's request instead: ``cut_after`` bytes of its body, or an ``answer``.

    ``takes_it_first``: it has its effect, and then the connection is cut. ``silent``: no answer at all, for
    as long as the other end waits for one. ``until``: it is answered as usual, but not before that.
    """

    cut_after: int | None = None
    answer: Answer = (500, {}, b"")
    takes_it_first: bool = False
    silent: bool = False
    until: threading.Event | None = None


class FakeObjectStore:
    """The store, the ``api`` beside it, what they serve, and what they were asked.

    ``files`` are read behind presigned URLs of the current ``token``, as ``behaviour`` says, and listed by
    the API. ``trouble`` maps what is asked of the ``bucket`` (see ``Taken.name``) to what goes wrong, first
    entry first; ``object`` is what was uploaded.
    """

    def __init__(self, *files: Stored, behaviour: Behaviour | None = None) -> None:
        self.files = list(files)
        self.behaviour = behaviour or Behaviour()
        self.token = 1
        self.archive: bytes | None = None
        self.no_checkpoints: set[str] = set()
        self.listings = 0
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.sent_bytes = 0
        self.go_on = threading.Event()
        self.bucket: dict[str, bytes] = {}
        self.needs_key = ""
        self.taken: list[Taken] = []
        self.trouble: dict[str, list[Trouble]] = {}
        self.parts: dict[int, bytes] = {}
        self.object: bytes | None = None
        self.is_open = False
        self.most_at_once = self._at_once = 0
        self.lock = threading.Lock()
        self.objects = _server(self._object)
        self.api = FakeBaseten()
        of_project = {"id": PROJECT, "name": "my project"}
        times = dict.fromkeys(("created_at", "updated_at"), LISTED_TIME)
        self.api.jobs = [job(JOB, training_project_id=PROJECT, training_project=of_project, **times)]
        self.api.on("GET", ".*/download", self._archives)
        self.api.on("GET", ".*/checkpoints", self._checkpoints)
        self.api.on("GET", ".*/checkpoint_files", self._listing)

    def __enter__(self) -> Self:
        self.api.__enter__()
        threading.Thread(target=self.objects.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *about: Any) -> None:
        self.api.__exit__(*about)
        self.objects.shutdown()
        self.objects.server_close()

    @property
    def objects_url(self) -> str:
        return f"http://127.0.0.1:{self.objects.server_port}"

    def url(self, file: Stored) -> str:
        place = f"{self.files.index(file)}/{quote(file.name, safe='', errors='surrogatepass')}"
        return f"{self.objects_url}/o/{place}?token={self.token}"

    def environ(self) -> dict[str, str]:
        return self.api.environ()

    def client(self, attempts: int = 4) -> TrainingClient:
        policy = RetryPolicy(max_attempts=attempts, base_s=0.001, cap_s=0.001)
        return TrainingClient(remote_of(self.api), retry=policy)

    def credentials(self, **more: object) -> dict[str, object]:
        """What the platform answers to whoever wants to upload."""
        creds = {
            "aws_access_key_id": ACCESS_KEY_ID,
            "aws_secret_access_key": SECRET_ACCESS_KEY,
            "aws_session_token": SESSION_TOKEN,
            "endpoint_url": self.objects_url,
            "region_name": REGION,
        }
        return {"s3_bucket": BUCKET, "s3_key": UPLOADED_KEY, "creds": creds | more}

    @property
    def ranges(self) -> list[str]:
        return [headers.get("range", "") for _path, headers in self.requests]

    def asked(self) -> list[str]:
        return [each.name for each in self.taken]

    def downloads(self) -> list[str]:
        return [unquote(each.path).split("/", 2)[2] for each in self.taken if each.name == "get"]

    def _archives(self, _asked: ReceivedRequest) -> ApiAnswer:
        url = f"{self.objects_url}/archive?token={self.token}"
        return ApiAnswer({"artifact_presigned_urls": [url] if self.archive is not None else []})

    def _checkpoints(self, _asked: ReceivedRequest) -> ApiAnswer:
        names = {file.name.partition("/")[0] for file in self.files if "/" in file.name}
        listed = [{"checkpoint_id": name} for name in sorted({*names, "."} - self.no_checkpoints)]
        return ApiAnswer({"checkpoints": listed})

    def _listing(self, asked: ReceivedRequest) -> ApiAnswer:
        self.listings += 1
        return ApiAnswer(self.page(int(asked.query["page_token"])))

    def page(self, offset: int) -> dict[str, object]:
        end = offset + PAGE_SIZE
        return {
            "presigned_urls": [
                {
                    "url": self.url(file),
                    "relative_file_name": file.name,
                    "node_rank": file.rank,
                    "size_bytes": None if file.listed_size == -1 else file.listed_size,
                    "last_modified": LISTED_TIME,
                }
                for file in self.files[offset:end]
            ],
            "next_page_token": end if end < len(self.files) else None,
            "total_count": len(self.files),
        }

    def _object(self, handler: BaseHTTPRequestHandler) -> None:
        with self.lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            if handler.command == "GET" and not self.bucket:
                self._presigned(handler)
            else:
                self._s3(handler)
        finally:
            with self.lock:
                self._at_once -= 1

    def _presigned(self, handler: BaseHTTPRequestHandler) -> None:
        address = urlsplit(handler.path)
        with self.lock:
            number = len(self.requests)
            self.requests.append((unquote(address.path), {k.lower(): v for k, v in handler.headers.items()}))
        canned = self.behaviour.answer(number) or self.behaviour.answer_to(address.path)
        if canned is not None:
            _send(handler, *canned)
        elif parse_qs(address.query).get("token") != [str(self.token)]:
            _send(handler, 403, {"Content-Type": "application/xml"}, EXPIRED)
        elif address.path == "/archive":
            self._serve(handler, number, Stored("archive", self.archive or b""))
        else:
            self._serve(handler, number, self.files[int(address.path.split("/")[2])])

    def _serve(self, handler: BaseHTTPRequestHandler, number: int, file: Stored) -> None:
        content = memoryview(file.content)
        start, end = 0, len(content)
        asked = None if self.behaviour.ignores_ranges else _range(handler, len(content))
        if asked is None:
            handler.send_response(200)
        elif asked[0] >= len(content):
            _send(handler, 416, {"Content-Range": f"bytes */{len(content)}"}, b"")
            return
        else:
            start, end = asked
            handler.send_response(206)
            handler.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(content)}")
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

    def _s3(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer a request to the bucket, unless there is trouble."""
        address = urlsplit(handler.path)
        query = {name: values[-1] for name, values in parse_qs(address.query, keep_blank_values=True).items()}
        headers = {name.lower(): value for name, value in handler.headers.items()}
        taken = Taken(handler.command, address.path, query, headers, b"", False)
        with self.lock:
            waiting = self.trouble.get(taken.name)
            trouble = waiting.pop(0) if waiting else None
        length = int(headers.get("content-length") or 0)
        if trouble is not None and trouble.cut_after is not None and not trouble.takes_it_first:
            handler.rfile.read(min(length, trouble.cut_after))
            _cut(handler)
            return
        taken.body = handler.rfile.read(length)
        if trouble is not None and trouble.until is not None:
            trouble.until.wait(HANGS_S)
            trouble = None
        if len(taken.body) < length:
            handler.close_connection = True  # cut short by who sent it: nothing was asked
            return
        taken.signature_is_valid = _signature_is_valid(taken, address.query)
        if trouble is not None and trouble.silent:
            self.taken.append(taken)
            handler.rfile.read(1)  # returns when the other end has given up
            handler.close_connection = True
            return
        with self.lock:
            self.taken.append(taken)
            wanted = trouble is None or trouble.takes_it_first
            answer = self._take(taken, handler) if wanted or trouble is None else trouble.answer
        if trouble is not None and trouble.takes_it_first:
            _cut(handler)
        else:
            _send(handler, *answer)

    def _take(self, taken: Taken, handler: BaseHTTPRequestHandler) -> Answer:
        if taken.method == "GET" or self.bucket:
            return self._read(taken, handler)
        name = taken.name
        if not taken.signature_is_valid:
            return error(403, "SignatureDoesNotMatch")
        tag = {"ETag": _tag(taken.body)}
        if name == "start":
            self.is_open = True
            xml = f"<InitiateMultipartUploadResult><UploadId>{UPLOAD_ID}</UploadId>"
            return 200, {}, f"{xml}</InitiateMultipartUploadResult>".encode()
        if name == "whole":
            self.object = taken.body
            return 200, tag, b""
        if name == "look":
            if self.object is None:
                return 404, {}, b""
            return 200, {"Content-Length": str(len(self.object)), "Last-Modified": MODIFIED_HTTP, **tag}, b""
        if taken.query.get("uploadId") != UPLOAD_ID or not self.is_open:
            return error(404, "NoSuchUpload")
        if name == "abort":
            self.is_open, self.parts = False, {}
            return 204, {}, b""
        if name == "complete":
            return self._complete(taken.body.decode())
        self.parts[int(taken.query["partNumber"])] = taken.body
        return 200, tag, b""

    def _complete(self, body: str) -> Answer:
        listed = [
            (int(number), tag)
            for part in re.findall(r"<Part>(.*?)</Part>", unescape(body))
            for number in re.findall(r"<PartNumber>(\d+)</PartNumber>", part)
            for tag in re.findall(r"<ETag>(.*?)</ETag>", part)
        ]
        parts = sorted(self.parts.items())
        if listed != [(number, _tag(content)) for number, content in parts]:
            return error(400, "InvalidPart", "no such part")
        self.object = b"".join(content for _, content in parts)
        self.is_open, self.parts = False, {}
        xml = b"<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>"
        return 200, {}, xml

    def _read(self, taken: Taken, handler: BaseHTTPRequestHandler) -> Answer:
        bucket, _, key = unquote(taken.path).lstrip("/").partition("/")
        if self.needs_key not in taken.headers.get("authorization", ""):
            return error(403, "AccessDenied", "who are you")
        if bucket != "my-bucket":
            return error(404, "NoSuchBucket")
        if not key or "list-type" in taken.query:
            prefix = taken.query.get("prefix", "")
            contents = "".join(
                f"<Contents><Key>{escape(name)}</Key><LastModified>{MODIFIED_ISO}</LastModified>"
                f"<ETag>{_tag(body)}</ETag><Size>{len(body)}</Size></Contents>"
                for name, body in sorted(self.bucket.items())
                if name.startswith(prefix)
            )
            return 200, {}, f"<ListBucketResult><Name>{bucket}</Name>{contents}</ListBucketResult>".encode()
        if key not in self.bucket:
            return error(404, "NoSuchKey")
        body = self.bucket[key]
        headers = {"ETag": _tag(body), "Last-Modified": MODIFIED_HTTP}
        if (asked := _range(handler, len(body))) is None:
            return 200, headers, body
        start, end = asked
        return 206, headers | {"Content-Range": f"bytes {start}-{end - 1}/{len(body)}"}, body[start:end]


def _tag(content: bytes) -> str:
    return f'"{hashlib.md5(content).hexdigest()}"'


def _range(handler: BaseHTTPRequestHandler, size_bytes: int) -> tuple[int, int] | None:
    if (asked := re.fullmatch(r"bytes=(\d+)-(\d*)", handler.headers.get("range", ""))) is None:
        return None
    return int(asked[1]), min(size_bytes, int(asked[2]) + 1 if asked[2] else size_bytes)


def _send(handler: BaseHTTPRequestHandler, status: int, headers: dict[str, str], body: bytes) -> None:
    handler.send_response(status)
    for name, value in ({"Content-Length": str(len(body))} | headers).items():
        handler.send_header(name, value)
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)


def _cut(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def _server(serve: Callable[[BaseHTTPRequestHandler], None]) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _serve(self) -> None:
            try:
                serve(self)
            except OSError:
                self.close_connection = True

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve

        def log_message(self, *_arguments: object) -> None:
            return

    return QuietServer(("127.0.0.1", 0), Handler)


def _signature_is_valid(taken: Taken, query: str) -> bool:
    """AWS Signature Version 4, as the one who checks it computes it."""
    headers = taken.headers
    found = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, "
        r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})",
        headers.get("authorization", ""),
    )
    if found is None or headers.get("x-amz-content-sha256") != hashlib.sha256(taken.body).hexdigest():
        return False
    key_id, day, region, names, signature = found.groups()
    must_be_signed = {"host", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"}
    if not must_be_signed <= set(names.split(";")):
        return False
    asked = "&".join(sorted(each if "=" in each else f"{each}=" for each in query.split("&") if each))
    signed = [f"{name}:{headers.get(name, '')}" for name in names.split(";")]
    lines = [taken.method, taken.path, asked, *signed, "", names, headers["x-amz-content-sha256"]]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    scope = f"{day}/{region}/s3/aws4_request"
    to_sign = f"AWS4-HMAC-SHA256\n{headers['x-amz-date']}\n{scope}\n{digest}"
    secret = b"AWS4" + SECRET_ACCESS_KEY.encode()
    for step in (day, region, "s3", "aws4_request", to_sign):
        secret = hmac.new(secret, step.encode(), hashlib.sha256).digest()
    given = (key_id, region, headers["x-amz-security-token"], signature)
    return given == (ACCESS_KEY_ID, REGION, SESSION_TOKEN, secret.hex())
