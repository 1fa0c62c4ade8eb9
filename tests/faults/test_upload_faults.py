"""Uploads to an object store over a real socket: cut connections, refusals, cancellation, a hostile shell."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from api_client.addresses import Destinations
from api_client.errors import ConfigurationError, UploadFailed
from api_client.models import BlobCredentials
from api_client.transfers import uploads
from support.fake_object_store import (
    ACCESS_KEY_ID,
    BUCKET,
    SECRET_ACCESS_KEY,
    SESSION_TOKEN,
    FakeObjectStore,
    Trouble,
    error,
)

HERE = Destinations(["127.0.0.1"])
SMALL_PART = 64 * 1024
RETRIES = 5
MIB = 1024 * 1024
LONGEST_SILENCE_S = 0.2
HANGS_S = 50.0
"""Whatever is not over by then waits for what does not come."""


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of 64 KiB, so that a handful of them takes no time; sizes mean nothing to the store."""
    monkeypatch.setattr(uploads, "PART_BYTES", SMALL_PART)
    monkeypatch.setattr(uploads, "CHUNK_BYTES", 8 * 1024)
    monkeypatch.setattr(uploads, "FIRST_BACKOFF_S", 0.001)
    monkeypatch.setattr(uploads, "MAX_RETRIES", RETRIES)


def archive_of(tmp_path: Path, size_bytes: int) -> Path:
    path = tmp_path / "archive.tgz"
    path.write_bytes(bytes(number * 31 % 251 for number in range(size_bytes)))
    return path


def credentials(store: FakeObjectStore, **more: object) -> BlobCredentials:
    return BlobCredentials.model_validate(store.credentials(**more))


async def send(path: Path, store: FakeObjectStore) -> list[tuple[int, int]]:
    """Upload; what progress was told."""
    told: list[tuple[int, int]] = []
    async with asyncio.timeout(HANGS_S):
        await uploads.upload_file(
            path,
            credentials(store),
            destinations=HERE,
            on_progress=lambda done, total: told.append((done, total)),
        )
    return told


@pytest.mark.parametrize("size_bytes", [0, 1, SMALL_PART, SMALL_PART + 1, 9 * SMALL_PART + 1234])
async def test_a_large_file_goes_in_parts_a_few_at_a_time(tmp_path: Path, size_bytes: int) -> None:
    path = archive_of(tmp_path, size_bytes)
    with FakeObjectStore() as store:
        told = await send(path, store)
    assert store.object == path.read_bytes()
    parts = -(-size_bytes // SMALL_PART)
    if parts <= 1:
        assert store.asked() == ["whole"]
    else:
        assert store.asked()[0] == "start"
        assert store.asked()[-1] == "complete"
        assert sorted(store.asked()[1:-1]) == sorted(f"part {number + 1}" for number in range(parts))
    assert store.most_at_once <= uploads.PARTS_AT_ONCE
    done = [each for each, _ in told]
    assert done == sorted(done)
    assert (done[0], told[-1]) == (0, (size_bytes, size_bytes))


async def test_requests_are_path_style_with_the_token_and_without_any_key_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BASETEN_API_KEY", "platform-key-0815")
    with FakeObjectStore() as store:
        await send(archive_of(tmp_path, 2 * SMALL_PART), store)
    for taken in store.taken:
        assert taken.signature_is_valid
        assert taken.path == f"/{BUCKET}/jobs/%C3%A4%20b%2Bc/archive.tgz"
        assert taken.headers["x-amz-security-token"] == SESSION_TOKEN
        assert taken.headers["authorization"].startswith(f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY_ID}/")
        assert "platform-key-0815" not in str(taken)
        assert "cookie" not in taken.headers


HOSTILE_SHELL = {
    "AWS_ACCESS_KEY_ID": "somebody",
    "AWS_SECRET_ACCESS_KEY": "else",
    "AWS_SESSION_TOKEN": "stale",
    "AWS_REGION": "mars-north-1",
    "AWS_BUCKET": "mine",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
    "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1",
    "AWS_METADATA_ENDPOINT": "http://127.0.0.1:1",
    "AWS_IMDSV1_FALLBACK": "true",
    "AWS_SKIP_SIGNATURE": "true",
    "AWS_UNSIGNED_PAYLOAD": "true",
    "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true",
    "AWS_CHECKSUM_ALGORITHM": "sha256",
    "AWS_SERVER_SIDE_ENCRYPTION": "aws:kms",
    "AWS_ALLOW_INVALID_CERTIFICATES": "true",
    "AWS_PROXY_URL": "http://127.0.0.1:1",
    "AWS_DEFAULT_CONTENT_TYPE": "evil/type",
    "AWS_ROLE_ARN": "arn:aws:iam::1:role/mine",
    "AWS_WEB_IDENTITY_TOKEN_FILE": "/nowhere",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:1",
    "aws_session_token": "stale",
    "HTTP_PROXY": "http://127.0.0.1:1",
    "ALL_PROXY": "http://127.0.0.1:1",
}
"""What a shell may have for other work; obstore and its HTTP library would read it."""


async def test_nothing_of_the_environment_decides_where_to_and_with_whose_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = archive_of(tmp_path, 100)
    with FakeObjectStore() as store:
        await send(path, store)
        for name, value in HOSTILE_SHELL.items():
            monkeypatch.setenv(name, value)
        before = dict(os.environ)
        await send(path, store)
        assert dict(os.environ) == before
    plain, hostile = store.taken
    assert plain.signature_is_valid and hostile.signature_is_valid
    varying = {"x-amz-date", "authorization", "host"}
    assert {name: value for name, value in hostile.headers.items() if name not in varying} == {
        name: value for name, value in plain.headers.items() if name not in varying
    }


async def test_cut_connections_cost_only_the_parts_that_were_under_way(tmp_path: Path) -> None:
    path = archive_of(tmp_path, 8 * SMALL_PART)
    with FakeObjectStore() as store:
        store.trouble = {
            "start": [Trouble(cut_after=0)],
            "part 2": [Trouble(cut_after=20_000), Trouble(cut_after=0)],
            "part 7": [Trouble(cut_after=60_000)],
            "complete": [Trouble(cut_after=10)],
        }
        told = await send(path, store)
    assert store.object == path.read_bytes()
    assert sorted(store.asked()) == sorted(
        ["start", "complete"] + [f"part {number}" for number in range(1, 9)]
    )
    assert [each for each, _ in told] == sorted(each for each, _ in told)


@pytest.mark.parametrize("name", ["whole", "start", "part 3", "complete"])
@pytest.mark.parametrize(
    "trouble",
    [
        Trouble(silent=True),
        Trouble(cut_after=0, takes_it_first=True),
        Trouble(answer=error(503, "SlowDown")),
        Trouble(answer=(408, {}, b"")),
    ],
    ids=["silent", "answer lost", "503", "408"],
)
async def test_what_passes_is_got_over(
    tmp_path: Path, name: str, trouble: Trouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A completion whose answer is lost finds no upload the next time: it counts if the object is there."""
    monkeypatch.setattr(uploads, "PART_TIMEOUT_S", LONGEST_SILENCE_S)
    path = archive_of(tmp_path, SMALL_PART if name == "whole" else 3 * SMALL_PART)
    with FakeObjectStore() as store:
        store.trouble = {name: [trouble]}
        await send(path, store)
    assert store.object == path.read_bytes()
    assert store.trouble == {name: []}


async def test_an_error_inside_of_an_answer_of_success_is_an_error(tmp_path: Path) -> None:
    path = archive_of(tmp_path, 2 * SMALL_PART)
    _, _, fault = error(500, "InternalError", "sorry")
    with FakeObjectStore() as store:
        store.trouble = {"complete": [Trouble(answer=(200, {}, fault))]}
        await send(path, store)
        assert store.object == path.read_bytes()
        store.trouble = {"complete": [Trouble(answer=(200, {}, fault)) for _ in range(RETRIES + 1)]}
        with pytest.raises(UploadFailed, match="InternalError: sorry"):
            await send(path, store)


FINAL = {
    "stays broken": ("part 2", [Trouble()] * (RETRIES + 1), "answered 500", (500, None, True)),
    "expired": (
        "part 1",
        [Trouble(answer=error(403, "ExpiredToken", "The token has expired."))],
        "the upload credentials have expired; submit again",
        (403, "ExpiredToken", False),
    ),
    "wrong clock": (
        "start",
        [Trouble(answer=error(403, "RequestTimeTooSkewed"))],
        "this machine's clock is wrong; correct it and submit again",
        (403, "RequestTimeTooSkewed", False),
    ),
    "no upload": (
        "complete",
        [Trouble(answer=error(404, "NoSuchUpload"))],
        "answered 404 NoSuchUpload",
        (404, "NoSuchUpload", False),
    ),
    "redirect": ("start", [Trouble(answer=(307, {}, b""))], "redirected the upload", (None, None, True)),
    "no id": ("start", [Trouble(answer=(200, {}, b"<Result/>"))], "UploadId", (None, None, True)),
    "no tag": ("part 2", [Trouble(answer=(200, {}, b""))], "ETag", (None, None, True)),
}


@pytest.mark.parametrize("case", FINAL)
async def test_what_does_not_pass_fails_in_words_and_leaves_nothing(tmp_path: Path, case: str) -> None:
    name, trouble, words, about = FINAL[case]
    with FakeObjectStore() as store:
        store.trouble = {name: [*trouble]}
        with pytest.raises(UploadFailed, match=words) as caught:
            await send(archive_of(tmp_path, 3 * SMALL_PART), store)
    failure = caught.value
    assert (failure.status, failure.code, failure.retryable) == about
    assert store.asked().count(name) == len(trouble)
    assert store.object is None and not store.is_open and store.parts == {}


async def test_messages_hold_no_secret_however_the_store_talks(tmp_path: Path) -> None:
    words = f"you sent {SECRET_ACCESS_KEY} and {SESSION_TOKEN}\x1b[31m\x00"
    with FakeObjectStore() as store:
        store.trouble = {"whole": [Trouble(answer=error(403, "AccessDenied", words))]}
        with pytest.raises(UploadFailed, match="AccessDenied") as caught:
            await send(archive_of(tmp_path, 10), store)
    message = str(caught.value)
    assert SECRET_ACCESS_KEY not in message
    assert SESSION_TOKEN not in message
    assert message.isprintable()
    assert caught.value.__cause__ is None and caught.value.__context__ is None


async def test_nobody_at_the_address_is_said_soon(tmp_path: Path) -> None:
    with FakeObjectStore() as store:
        pass
    with pytest.raises(UploadFailed, match="connection refused"):
        await send(archive_of(tmp_path, 3 * SMALL_PART), store)


async def test_a_cancelled_upload_is_forgotten_by_the_store(tmp_path: Path) -> None:
    path = archive_of(tmp_path, 30 * SMALL_PART)
    reached, go_on = asyncio.Event(), threading.Event()
    with FakeObjectStore() as store:
        store.trouble = {f"part {number}": [Trouble(until=go_on)] for number in range(6, 31)}

        def on_progress(done: int, _total: int) -> None:
            if done > 2 * SMALL_PART:
                reached.set()

        task = asyncio.create_task(
            uploads.upload_file(path, credentials(store), on_progress=on_progress, destinations=HERE)
        )
        await reached.wait()
        task.cancel()
        asyncio.get_running_loop().call_soon(go_on.set)
        with pytest.raises(asyncio.CancelledError):
            await task
    assert "abort" in store.asked()
    assert "complete" not in store.asked()
    assert not store.is_open


@pytest.mark.parametrize(
    ("named", "answered", "host"),
    [
        (None, "eu-central-1", "s3.eu-central-1.amazonaws.com"),
        (None, "../evil", "s3.us-east-1.amazonaws.com"),
        (None, "cn-north-1", "s3.cn-north-1.amazonaws.com.cn"),
        ("eu-west-3", "unasked", "s3.eu-west-3.amazonaws.com"),
    ],
)
async def test_without_an_endpoint_it_is_aws_in_the_bucket_s_region(
    monkeypatch: pytest.MonkeyPatch, named: str | None, answered: str, host: str
) -> None:
    asked = []
    connection = MagicMock()
    connection.getresponse().__enter__().headers = {"x-amz-bucket-region": answered}
    monkeypatch.setattr(uploads.Connections, "take", lambda _self, url: asked.append(url) or connection)
    with FakeObjectStore() as store:
        given = credentials(store, endpoint_url=None, region_name=named)
    endpoint, region = await uploads._endpoint_of(given, HERE)
    assert (endpoint.host, region in endpoint.host) == (host, True)
    assert [url.text for url in asked] == ([] if named else [f"https://s3.us-east-1.amazonaws.com/{BUCKET}"])
    assert "authorization" not in str(connection.request.call_args).lower()


async def test_redirects_are_not_followed(tmp_path: Path) -> None:
    with FakeObjectStore() as store, FakeObjectStore() as elsewhere:
        store.trouble = {"whole": [Trouble(answer=(307, {"Location": elsewhere.objects_url}, b""))]}
        with pytest.raises(UploadFailed, match="answered 307"):
            await send(archive_of(tmp_path, 10), store)
    assert elsewhere.taken == []


@pytest.mark.parametrize(
    "address", ["http://s3.example.com", "ftp://127.0.0.1", "https://a:b@host", "file:///"]
)
async def test_an_endpoint_that_cannot_be_trusted_is_refused(tmp_path: Path, address: str) -> None:
    with FakeObjectStore() as store:
        given = credentials(store, endpoint_url=address)
    with pytest.raises(ConfigurationError, match="the endpoint of the upload credentials"):
        await uploads.upload_file(archive_of(tmp_path, 10), given)


@pytest.mark.parametrize("place", ["aws_access_key_id", "aws_session_token"])
@pytest.mark.parametrize(
    "value", ["Zürich", "日本", "half \ud800", "a\r\nX-Evil: 1", "a\x00b", "  two  words", "\u202ea"]
)
async def test_credentials_that_no_header_carries_are_refused_unquoted_before_anything_is_sent(
    tmp_path: Path, place: str, value: str
) -> None:
    with FakeObjectStore() as store:
        with pytest.raises(UploadFailed, match="invalid in an HTTP header") as caught:
            await uploads.upload_file(archive_of(tmp_path, 10), credentials(store, **{place: value}))
        assert store.taken == []
    assert value not in str(caught.value)


@pytest.mark.parametrize("key", ["ü" * 100_000, "half \ud800", "a/../b", "a//b", ""])
async def test_an_object_s_name_that_no_request_carries_is_refused(tmp_path: Path, key: str) -> None:
    with FakeObjectStore() as store:
        given = credentials(store).model_copy(update={"s3_key": key})
        with pytest.raises(UploadFailed, match="the server's name for the archive"):
            await uploads.upload_file(archive_of(tmp_path, 10), given, destinations=HERE)
        assert store.taken == []


UPLOAD = """
import asyncio, json, resource, sys
from pathlib import Path
from api_client.addresses import Destinations
from api_client.models import BlobCredentials
from api_client.transfers import uploads
given = BlobCredentials.model_validate(json.loads(sys.argv[2]))
asyncio.run(uploads.upload_file(Path(sys.argv[1]), given, destinations=Destinations(["127.0.0.1"])))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
"""Upload, and print the process's peak memory in MiB."""


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "archive.tgz"
    path.touch()
    peaks = []
    with FakeObjectStore() as store:
        store.forgets_bodies = True
        for size_bytes in (1, 64 * MIB):
            os.truncate(path, size_bytes)
            command = [sys.executable, "-c", UPLOAD, str(path), json.dumps(store.credentials())]
            peaks.append(int(subprocess.check_output(command, timeout=HANGS_S)))
    assert peaks[1] - peaks[0] < 32
