"""Uploads to an object store over a real socket: cut connections, refusals, cancellation, a hostile shell."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import httpcore
import pytest

from api_client.addresses import Destinations
from api_client.errors import ConfigurationError, UploadFailed
from api_client.models import BlobCredentials
from api_client.transfers import uploads
from api_client.transfers.network import Network
from support.fake_object_store import (
    ACCESS_KEY_ID,
    BUCKET,
    SECRET_ACCESS_KEY,
    SESSION_TOKEN,
    Answer,
    FakeObjectStore,
    Trouble,
    error,
)

HERE = Destinations(["127.0.0.1"])
SMALL_PART = 64 * 1024
RETRIES = 5
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


class Sending:
    """Upload archives to a store; ``path`` is the latest."""

    def __init__(self, store: FakeObjectStore, folder: Path) -> None:
        self.store = store
        self.path = folder / "archive.tgz"
        self.is_begun = asyncio.Event()

    def credentials(self, **more: object) -> BlobCredentials:
        return BlobCredentials.model_validate(self.store.credentials(**more))

    async def send(self, size_bytes: int = 10, given: BlobCredentials | None = None) -> None:
        """Upload so much; it arrives whole, and its progress never goes back."""
        self.path.write_bytes(bytes(number * 31 % 251 for number in range(size_bytes)))
        progress: list[tuple[int, int]] = []

        def hear(done: int, total: int) -> None:
            progress.append((done, total))
            if done > 2 * SMALL_PART:
                self.is_begun.set()

        async with asyncio.timeout(HANGS_S):
            with self.path.open("rb") as file:
                await uploads.upload_file(file, given or self.credentials(), HERE, hear)
        done = [each for each, _ in progress]
        assert (done[0], progress[-1], done) == (0, (size_bytes, size_bytes), sorted(done))
        assert self.store.object == self.path.read_bytes()

    async def refused(self, words: str, size_bytes: int = 10, **how: Any) -> UploadFailed:
        with pytest.raises(UploadFailed, match=words) as caught:
            await self.send(size_bytes, **how)
        return caught.value


@pytest.fixture
def sending(tmp_path: Path) -> Iterator[Sending]:
    with FakeObjectStore() as store:
        yield Sending(store, tmp_path)


@pytest.mark.parametrize("size_bytes", [0, 1, SMALL_PART, SMALL_PART + 1, 9 * SMALL_PART + 1234])
async def test_a_large_file_goes_in_parts_a_few_at_a_time(sending: Sending, size_bytes: int) -> None:
    await sending.send(size_bytes)
    parts, asked = -(-size_bytes // SMALL_PART), sending.store.asked()
    if parts <= 1:
        assert asked == ["whole"]
    else:
        assert (asked[0], asked[-1]) == ("start", "complete")
        assert sorted(asked[1:-1]) == sorted(f"part {number + 1}" for number in range(parts))
    assert sending.store.most_at_once <= uploads.CONCURRENT_PARTS


async def test_requests_are_path_style_with_the_token_and_without_any_key_of_ours(
    sending: Sending, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BASETEN_API_KEY", "platform-key-0815")
    await sending.send(2 * SMALL_PART)
    for taken in sending.store.taken:
        assert taken.signature_is_valid
        assert taken.path == f"/{BUCKET}/jobs/%C3%A4%20b%2Bc/archive.tgz"
        assert taken.headers["x-amz-security-token"] == SESSION_TOKEN
        assert taken.headers["authorization"].startswith(f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY_ID}/")
        assert "platform-key-0815" not in str(taken)
        assert "cookie" not in taken.headers


NOWHERE = "http://127.0.0.1:1"
HOSTILE_SHELL = {
    **{"AWS_ACCESS_KEY_ID": "somebody", "AWS_SECRET_ACCESS_KEY": "else", "AWS_SESSION_TOKEN": "stale"},
    **{"AWS_REGION": "mars-north-1", "AWS_BUCKET": "mine", "aws_session_token": "stale"},
    **dict.fromkeys(("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_METADATA_ENDPOINT"), NOWHERE),
    **dict.fromkeys(
        ("AWS_PROXY_URL", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "HTTP_PROXY", "ALL_PROXY"), NOWHERE
    ),
    **dict.fromkeys(("AWS_IMDSV1_FALLBACK", "AWS_SKIP_SIGNATURE", "AWS_UNSIGNED_PAYLOAD"), "true"),
    **dict.fromkeys(("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "AWS_ALLOW_INVALID_CERTIFICATES"), "true"),
    **{"AWS_CHECKSUM_ALGORITHM": "sha256", "AWS_SERVER_SIDE_ENCRYPTION": "aws:kms"},
    **{"AWS_DEFAULT_CONTENT_TYPE": "evil/type", "AWS_ROLE_ARN": "arn:aws:iam::1:role/mine"},
    "AWS_WEB_IDENTITY_TOKEN_FILE": "/nowhere",
}
"""What a shell may have for other work; obstore and its HTTP library would read it."""


async def test_nothing_of_the_environment_decides_where_to_and_with_whose_key(
    sending: Sending, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sending.send()
    for name, value in HOSTILE_SHELL.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    await sending.send()
    assert dict(os.environ) == before
    plain, hostile = sending.store.taken
    assert plain.signature_is_valid and hostile.signature_is_valid
    varying = {"x-amz-date", "authorization", "host"}
    assert {name: value for name, value in hostile.headers.items() if name not in varying} == {
        name: value for name, value in plain.headers.items() if name not in varying
    }


async def test_cut_connections_cost_only_the_parts_that_were_under_way(sending: Sending) -> None:
    sending.store.trouble = {
        "start": [Trouble(cut_after=0)],
        "part 2": [Trouble(cut_after=20_000), Trouble(cut_after=0)],
        "part 7": [Trouble(cut_after=60_000)],
        "complete": [Trouble(cut_after=10)],
    }
    await sending.send(8 * SMALL_PART)
    parts = [f"part {number}" for number in range(1, 9)]
    assert sorted(sending.store.asked()) == sorted(["start", "complete", *parts])


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
    sending: Sending, name: str, trouble: Trouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A completion whose answer is lost finds no upload the next time: it counts if the object is there."""
    monkeypatch.setattr(uploads, "PART_TIMEOUT_S", LONGEST_SILENCE_S)
    sending.store.trouble = {name: [trouble]}
    await sending.send(SMALL_PART if name == "whole" else 3 * SMALL_PART)
    assert sending.store.trouble == {name: []}


async def test_an_error_inside_of_an_answer_of_success_is_an_error(sending: Sending) -> None:
    broken = Trouble(answer=(200, {}, error(500, "InternalError", "sorry")[2]))
    sending.store.trouble = {"complete": [broken]}
    await sending.send(2 * SMALL_PART)
    sending.store.trouble = {"complete": [broken] * (RETRIES + 1)}
    await sending.refused("InternalError: sorry", 2 * SMALL_PART)


EXPIRED = "the upload credentials have expired; submit again"
SKEWED = "RequestTimeTooSkewed"
WRONG_CLOCK = "this machine's clock is wrong; correct it and submit again"
FINAL: dict[str, tuple[str, list[Answer], str, tuple[int | None, str | None, bool]]] = {
    "stays broken": ("part 2", [Trouble().answer] * (RETRIES + 1), "answered 500", (500, None, True)),
    "expired": ("part 1", [error(403, "ExpiredToken")], EXPIRED, (403, "ExpiredToken", False)),
    "wrong clock": ("start", [error(403, SKEWED)], WRONG_CLOCK, (403, SKEWED, False)),
    "no upload": ("complete", [error(404, "NoSuchUpload")], "404 NoSuch", (404, "NoSuchUpload", False)),
    "redirect": ("start", [(307, {}, b"")], "redirected the upload", (None, None, True)),
    "no id": ("start", [(200, {}, b"<Result/>")], "UploadId", (None, None, True)),
    "no tag": ("part 2", [(200, {}, b"")], "ETag", (None, None, True)),
}


@pytest.mark.parametrize("case", FINAL)
async def test_what_does_not_pass_fails_in_words_and_leaves_nothing(sending: Sending, case: str) -> None:
    name, answers, words, about = FINAL[case]
    sending.store.trouble = {name: [Trouble(answer=each) for each in answers]}
    failure = await sending.refused(words, 3 * SMALL_PART)
    assert (failure.status, failure.code, failure.retryable) == about
    assert sending.store.asked().count(name) == len(answers)
    assert sending.store.object is None and not sending.store.is_open and sending.store.parts == {}


async def test_messages_hold_no_secret_however_the_store_talks(sending: Sending) -> None:
    words = f"you sent {SECRET_ACCESS_KEY} and {SESSION_TOKEN}\x1b[31m\x00."
    sending.store.trouble = {"whole": [Trouble(answer=error(403, "AccessDenied", words))]}
    failure = await sending.refused("AccessDenied")
    assert SECRET_ACCESS_KEY not in str(failure)
    assert SESSION_TOKEN not in str(failure)
    assert str(failure).isprintable() and not str(failure).endswith(".")
    assert failure.__cause__ is None and failure.__context__ is None


async def test_nobody_at_the_address_is_said_soon(tmp_path: Path) -> None:
    with FakeObjectStore() as store:
        pass
    await Sending(store, tmp_path).refused("connection refused", 3 * SMALL_PART)


async def test_a_cancelled_upload_is_forgotten_by_the_store(sending: Sending) -> None:
    go_on, store = threading.Event(), sending.store
    store.trouble = {f"part {number}": [Trouble(until=go_on)] for number in range(6, 31)}
    task = asyncio.create_task(sending.send(30 * SMALL_PART))
    await sending.is_begun.wait()
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
    sending: Sending, monkeypatch: pytest.MonkeyPatch, named: str | None, answered: str, host: str
) -> None:
    pool = AsyncMock()
    pool.request.return_value = httpcore.Response(403, headers={"x-amz-bucket-region": answered})
    monkeypatch.setattr(Network, "pool_for", AsyncMock(return_value=pool))
    given = sending.credentials(endpoint_url=None, region_name=named)
    endpoint, region = await uploads._endpoint_of(given, Network(HERE))
    assert (endpoint.host, region in endpoint.host) == (host, True)
    requests = [call.args for call in pool.request.call_args_list]
    assert requests == ([] if named else [("HEAD", f"https://s3.us-east-1.amazonaws.com/{BUCKET}")])
    assert "authorization" not in str(pool.request.call_args).lower()


@pytest.mark.parametrize(
    ("name", "words"),
    [("whole", "307"), ("start", "broke off"), ("part 1", "307"), ("complete", "broke off")],
)
async def test_redirects_to_another_host_are_not_followed(sending: Sending, name: str, words: str) -> None:
    with FakeObjectStore() as elsewhere:
        # The same machine by another address stands for another host.
        led_away = Trouble(
            answer=(307, {"Location": elsewhere.objects_url.replace("127.0.0.1", "[::ffff:127.0.0.1]")}, b"")
        )
        sending.store.trouble = {name: [led_away] * (RETRIES + 1)}
        await sending.refused(words, 10 if name == "whole" else 3 * SMALL_PART)
    assert elsewhere.taken == []
    assert sending.store.object is None and not sending.store.is_open


@pytest.mark.parametrize(
    "address", ["http://s3.example.com", "ftp://127.0.0.1", "https://a:b@host", "file:///"]
)
async def test_an_endpoint_that_cannot_be_trusted_is_refused(sending: Sending, address: str) -> None:
    with pytest.raises(ConfigurationError, match="the endpoint of the upload credentials"):
        await sending.send(given=sending.credentials(endpoint_url=address))


@pytest.mark.parametrize("place", ["aws_access_key_id", "aws_session_token"])
@pytest.mark.parametrize(
    "value", ["Zürich", "日本", "half \ud800", "a\r\nX-Evil: 1", "a\x00b", "  two  words", "\u202ea"]
)
async def test_credentials_that_no_header_carries_are_refused_unquoted_before_anything_is_sent(
    sending: Sending, place: str, value: str
) -> None:
    failure = await sending.refused("invalid in an HTTP header", given=sending.credentials(**{place: value}))
    assert sending.store.taken == []
    assert value not in str(failure)


@pytest.mark.parametrize("key", ["ü" * 100_000, "half \ud800", "a/../b", "a//b", ""])
async def test_an_object_s_name_that_no_request_carries_is_refused(sending: Sending, key: str) -> None:
    given = sending.credentials().model_copy(update={"s3_key": key})
    await sending.refused("the server's name for the archive", given=given)
    assert sending.store.taken == []
