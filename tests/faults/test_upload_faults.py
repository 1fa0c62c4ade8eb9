"""Uploads to an object store over a real socket: cut connections, refusals, wrong clocks, cancellation."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from fast_clock import FastClock
from s3_stub import ACCESS_KEY_ID, BUCKET, SECRET_ACCESS_KEY, SESSION_TOKEN, S3Stub, Trouble

from api_client.addresses import Destinations
from api_client.errors import ConfigurationError, UploadFailed
from api_client.models import BlobCredentials
from api_client.transfers import object_store, uploads
from api_client.transfers.object_store import FAULT_ATTEMPTS, FIRST_CONTACT_PATIENCE_S, UNREACHABLE_PATIENCE_S

HERE = Destinations(["127.0.0.1"])
SMALL_PART = 64 * 1024
LONGEST_SILENCE_S = 0.2
HANGS_S = 50.0
"""Whatever is not over by then waits for what does not come."""
EXPIRED = b"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of 64 KiB, so that a handful of them takes no time; sizes mean nothing to the stub."""
    monkeypatch.setattr(uploads, "PART_BYTES", SMALL_PART)
    monkeypatch.setattr(uploads, "CHUNK_BYTES", 8 * 1024)


def archive_of(tmp_path: Path, size_bytes: int) -> Path:
    path = tmp_path / "archive.tgz"
    path.write_bytes(bytes(number * 31 % 251 for number in range(size_bytes)))
    return path


def credentials(stub: S3Stub, **more: object) -> BlobCredentials:
    return BlobCredentials.model_validate(stub.credentials(**more))


async def send(
    path: Path, stub: S3Stub, clock: FastClock | None = None, **more: object
) -> list[tuple[int, int]]:
    """Upload; what progress was told."""
    told: list[tuple[int, int]] = []
    await uploads.upload_file(
        path,
        credentials(stub),
        destinations=HERE,
        clock=clock or FastClock(),
        on_progress=lambda done, total: told.append((done, total)),
        **more,
    )
    return told


@pytest.mark.parametrize("size_bytes", [0, 1, SMALL_PART])
async def test_a_small_file_goes_in_one_piece(tmp_path: Path, size_bytes: int) -> None:
    path = archive_of(tmp_path, size_bytes)
    with S3Stub() as stub:
        told = await send(path, stub)
    assert stub.object == path.read_bytes()
    assert stub.asked() == ["whole"]
    assert told[-1] == (size_bytes, size_bytes)


async def test_a_large_file_goes_in_parts_a_few_at_a_time(tmp_path: Path) -> None:
    path = archive_of(tmp_path, 9 * SMALL_PART + 1234)
    with S3Stub() as stub:
        told = await send(path, stub)
    assert stub.object == path.read_bytes()
    assert stub.asked()[0] == "start"
    assert stub.asked()[-1] == "complete"
    assert sorted(stub.asked()[1:-1]) == sorted(f"part {number}" for number in range(1, 11))
    assert stub.most_at_once <= uploads.PARTS_AT_ONCE
    done = [each for each, _ in told]
    assert done == sorted(set(done))
    assert done[0] == 0
    assert told[-1] == (path.stat().st_size, path.stat().st_size)


async def test_requests_are_path_style_with_the_token_and_without_any_key_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BASETEN_API_KEY", "platform-key-0815")
    with S3Stub() as stub:
        await send(archive_of(tmp_path, 2 * SMALL_PART), stub)
    for taken in stub.taken:
        assert taken.path == f"/{BUCKET}/jobs/%C3%A4%20b%2Bc/archive.tgz"
        assert taken.headers["x-amz-security-token"] == SESSION_TOKEN
        assert taken.headers["authorization"].startswith(f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY_ID}/")
        assert "platform-key-0815" not in str(taken)
        assert "cookie" not in taken.headers


async def test_the_environment_s_aws_settings_mean_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "else",
        "AWS_SESSION_TOKEN": "stale",
        "AWS_REGION": "mars-north-1",
        "AWS_SKIP_SIGNATURE": "true",
        "AWS_PROFILE": "missing",
    }.items():
        monkeypatch.setenv(name, value)
    with S3Stub() as stub:
        await send(archive_of(tmp_path, 2 * SMALL_PART), stub)
    assert all(taken.signature_is_valid for taken in stub.taken)


async def test_cut_connections_cost_only_the_parts_that_were_under_way(tmp_path: Path) -> None:
    path = archive_of(tmp_path, 8 * SMALL_PART)
    notes: list[str] = []
    with S3Stub() as stub:
        stub.trouble = {
            "start": [Trouble(cut_after=0)],
            "part 2": [Trouble(cut_after=20_000), Trouble(cut_after=0)],
            "part 7": [Trouble(cut_after=60_000)],
            "complete": [Trouble(cut_after=10)],
        }
        told = await send(path, stub, on_note=notes.append)
    assert stub.object == path.read_bytes()
    assert sorted(stub.asked()) == sorted(
        ["start", "complete"] + [f"part {number}" for number in range(1, 9)]
    )
    assert [each for each, _ in told] == sorted(each for each, _ in told)
    assert len(notes) == 5
    assert any("part 7 of 8" in note and "retrying in" in note for note in notes)


@pytest.mark.parametrize("silent_at", ["whole", "start", "part 2"])
async def test_a_store_that_falls_silent_is_asked_again(
    tmp_path: Path, silent_at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "ANSWER_TIMEOUT_S", LONGEST_SILENCE_S)
    path = archive_of(tmp_path, SMALL_PART if silent_at == "whole" else 3 * SMALL_PART)
    with S3Stub() as stub:
        stub.trouble = {silent_at: [Trouble(silent=True)]}
        async with asyncio.timeout(HANGS_S):
            await send(path, stub)
    assert stub.object == path.read_bytes()
    assert stub.asked().count(silent_at) >= 2


async def test_a_part_that_arrived_but_whose_answer_was_lost_is_sent_again(tmp_path: Path) -> None:
    path = archive_of(tmp_path, 3 * SMALL_PART)
    with S3Stub() as stub:
        stub.trouble = {"part 3": [Trouble(cut_after=0, takes_it_first=True)]}
        await send(path, stub)
    assert stub.object == path.read_bytes()


async def test_a_completion_whose_answer_was_lost_counts_if_the_object_is_there(tmp_path: Path) -> None:
    path = archive_of(tmp_path, 3 * SMALL_PART)
    with S3Stub() as stub:
        stub.trouble = {"complete": [Trouble(cut_after=0, takes_it_first=True)]}
        await send(path, stub)
    assert stub.object == path.read_bytes()
    assert stub.asked()[-3:] == ["complete", "complete", "look"]


async def test_a_completion_that_finds_no_upload_at_once_is_a_failure(tmp_path: Path) -> None:
    path = archive_of(tmp_path, 2 * SMALL_PART)
    with S3Stub() as stub:
        stub.object = path.read_bytes()
        stub.trouble = {"complete": [Trouble(status=404, body=b"<Error><Code>NoSuchUpload</Code></Error>")]}
        with pytest.raises(UploadFailed, match=r"completing the upload.*NoSuchUpload"):
            await send(path, stub)


async def test_an_error_inside_of_an_answer_of_success_is_an_error(tmp_path: Path) -> None:
    path = archive_of(tmp_path, 2 * SMALL_PART)
    fault = b"<?xml version='1.0'?>\n<Error><Code>InternalError</Code><Message>sorry</Message></Error>"
    with S3Stub() as stub:
        stub.trouble = {"complete": [Trouble(status=200, body=fault)]}
        await send(path, stub)
        assert stub.object == path.read_bytes()
        assert stub.asked().count("complete") == 2
        stub.trouble = {"complete": [Trouble(status=200, body=fault) for _ in range(FAULT_ATTEMPTS)]}
        with pytest.raises(UploadFailed, match="InternalError: sorry"):
            await send(path, stub)


async def test_a_busy_store_is_given_the_time_it_asks_for(tmp_path: Path) -> None:
    clock = FastClock()
    with S3Stub() as stub:
        slow_down = b"<Error><Code>SlowDown</Code><Message>Reduce your rate</Message></Error>"
        stub.trouble = {"whole": [Trouble(status=503, body=slow_down, headers={"Retry-After": "7"})]}
        await send(archive_of(tmp_path, 100), stub, clock)
    assert clock.slept_s == [7.0]


async def test_a_store_that_stays_broken_is_given_up_and_told_to_forget(tmp_path: Path) -> None:
    path = archive_of(tmp_path, 5 * SMALL_PART)
    with S3Stub() as stub:
        stub.trouble = {"part 2": [Trouble(status=500) for _ in range(FAULT_ATTEMPTS)]}
        with pytest.raises(UploadFailed, match=r"uploading part 2 of 5: .* answered 500") as caught:
            await send(path, stub)
    assert caught.value.status == 500
    assert caught.value.retryable
    assert stub.asked()[-1] == "abort"
    assert stub.parts == {}
    assert not stub.is_open
    assert "complete" not in stub.asked()


async def test_a_refusal_is_not_repeated(tmp_path: Path) -> None:
    clock = FastClock()
    with S3Stub() as stub:
        stub.trouble = {"part 1": [Trouble(status=403, body=EXPIRED)]}
        with pytest.raises(UploadFailed, match="the upload credentials have expired") as caught:
            await send(archive_of(tmp_path, 3 * SMALL_PART), stub, clock)
    assert caught.value.code == "ExpiredToken"
    assert not caught.value.retryable
    assert clock.slept_s == []
    assert stub.asked().count("part 1") == 1
    assert stub.asked()[-1] == "abort"


async def test_a_part_that_has_gone_whole_is_answered_before_the_store_is_told_to_forget(
    tmp_path: Path,
) -> None:
    with S3Stub() as stub:
        stub.trouble = {
            "part 1": [Trouble(status=403, body=EXPIRED, once_there_is="part 3")],
            "part 3": [Trouble(lingers_s=LONGEST_SILENCE_S)],
        }
        with pytest.raises(UploadFailed, match="uploading part 1 of 3"):
            await send(archive_of(tmp_path, 3 * SMALL_PART), stub)
    assert stub.asked()[-1] == "abort"


async def test_messages_hold_no_secret_however_the_store_talks(tmp_path: Path) -> None:
    words = f"you sent {SECRET_ACCESS_KEY} and {SESSION_TOKEN}\x1b[31m\x00"
    with S3Stub() as stub:
        body = f"<Error><Code>AccessDenied</Code><Message>{words}</Message></Error>".encode()
        stub.trouble = {"whole": [Trouble(status=403, body=body)]}
        with pytest.raises(UploadFailed, match="AccessDenied") as caught:
            await send(archive_of(tmp_path, 10), stub)
    message = str(caught.value)
    assert SECRET_ACCESS_KEY not in message
    assert SESSION_TOKEN not in message
    assert message.isprintable()


async def test_nobody_at_the_address_is_said_soon(tmp_path: Path) -> None:
    clock = FastClock()
    with S3Stub() as stub:
        pass
    with pytest.raises(UploadFailed, match="connection refused"):
        await send(archive_of(tmp_path, 3 * SMALL_PART), stub, clock)
    assert FIRST_CONTACT_PATIENCE_S / 2 < clock.monotonic() < 2 * FIRST_CONTACT_PATIENCE_S


async def test_a_line_that_breaks_in_the_middle_is_waited_for_much_longer(tmp_path: Path) -> None:
    clock = FastClock()
    path = archive_of(tmp_path, 2 * SMALL_PART)
    cuts = int(FIRST_CONTACT_PATIENCE_S)
    with S3Stub() as stub:
        stub.trouble = {"part 2": [Trouble(cut_after=0) for _ in range(cuts)]}
        await send(path, stub, clock)
    assert stub.object == path.read_bytes()
    assert FIRST_CONTACT_PATIENCE_S < clock.monotonic() < UNREACHABLE_PATIENCE_S


async def test_a_clock_that_is_off_is_corrected_by_the_store_s(tmp_path: Path) -> None:
    clock = FastClock()
    clock.off_by = timedelta(hours=-3)
    skewed = b"<Error><Code>RequestTimeTooSkewed</Code><Message>too large</Message></Error>"
    with S3Stub() as stub:
        stub.trouble = {"start": [Trouble(status=403, body=skewed)]}
        await send(archive_of(tmp_path, 2 * SMALL_PART), stub, clock)
    stamps = [datetime.strptime(taken.headers["x-amz-date"], "%Y%m%dT%H%M%S%z") for taken in stub.taken]
    assert datetime.now(UTC) - stamps[0] > timedelta(hours=2)
    assert all(abs(datetime.now(UTC) - stamp) < timedelta(minutes=1) for stamp in stamps[1:])


async def test_a_wrong_time_that_correcting_does_not_help_is_a_failure(tmp_path: Path) -> None:
    skewed = Trouble(status=403, body=b"<Error><Code>RequestTimeTooSkewed</Code></Error>")
    with S3Stub() as stub:
        stub.trouble = {"whole": [skewed] * 5}
        with pytest.raises(UploadFailed, match="RequestTimeTooSkewed"):
            await send(archive_of(tmp_path, 10), stub)
    assert stub.asked() == ["whole", "whole"]


async def test_a_cancelled_upload_is_forgotten_by_the_store(tmp_path: Path) -> None:
    path = archive_of(tmp_path, 6 * SMALL_PART)
    reached = asyncio.Event()

    def on_progress(done: int, _total: int) -> None:
        if done > 2 * SMALL_PART:
            reached.set()

    with S3Stub() as stub:
        stub.trouble = {"part 6": [Trouble(status=503) for _ in range(FAULT_ATTEMPTS)]}
        task = asyncio.create_task(
            uploads.upload_file(
                path, credentials(stub), clock=FastClock(), on_progress=on_progress, destinations=HERE
            )
        )
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert stub.asked()[-1] == "abort"
    assert "complete" not in stub.asked()
    assert not stub.is_open


async def test_an_upload_without_an_id_or_a_part_without_a_tag_is_a_failure(tmp_path: Path) -> None:
    path = archive_of(tmp_path, 2 * SMALL_PART)
    with S3Stub() as stub:
        stub.trouble = {"start": [Trouble(status=200, body=b"<Result/>")]}
        with pytest.raises(UploadFailed, match="returned no upload id"):
            await send(path, stub)
        stub.trouble = {"part 2": [Trouble(status=200)]}
        with pytest.raises(UploadFailed, match="part 2 of 2: the object store returned no tag"):
            await send(path, stub)


async def test_redirects_are_not_followed(tmp_path: Path) -> None:
    with S3Stub() as stub, S3Stub() as elsewhere:
        stub.trouble = {"whole": [Trouble(status=307, headers={"Location": elsewhere.url})]}
        with pytest.raises(UploadFailed, match="answered 307"):
            await send(archive_of(tmp_path, 10), stub)
    assert elsewhere.taken == []


@pytest.mark.parametrize(
    "address", ["http://s3.example.com", "ftp://127.0.0.1", "https://a:b@host", "file:///"]
)
async def test_an_endpoint_that_cannot_be_trusted_is_refused(tmp_path: Path, address: str) -> None:
    with S3Stub() as stub, pytest.raises(ConfigurationError, match="the endpoint of the upload credentials"):
        await uploads.upload_file(archive_of(tmp_path, 10), credentials(stub, endpoint_url=address))


@pytest.mark.parametrize("place", ["aws_access_key_id", "aws_session_token"])
@pytest.mark.parametrize(
    "value", ["Zürich", "日本", "half \ud800", "a\r\nX-Evil: 1", "a\x00b", "  two  words", "\u202ea"]
)
async def test_credentials_that_no_header_carries_are_refused_unquoted_before_anything_is_sent(
    tmp_path: Path, place: str, value: str
) -> None:
    with S3Stub() as stub:
        with pytest.raises(
            UploadFailed, match="contain a character that is invalid in an HTTP header"
        ) as caught:
            await uploads.upload_file(archive_of(tmp_path, 10), credentials(stub, **{place: value}))
        assert stub.taken == []
    assert value not in str(caught.value)


async def test_an_object_s_name_that_no_request_carries_is_refused(tmp_path: Path) -> None:
    with S3Stub() as stub, pytest.raises(UploadFailed, match="name for the archive is too long"):
        too_long = credentials(stub).model_copy(update={"s3_key": "ü" * 100_000})
        await uploads.upload_file(archive_of(tmp_path, 10), too_long)


class Aws(httpx.AsyncBaseTransport):
    """AWS with one bucket in Frankfurt: other regions answer where it is."""

    def __init__(self) -> None:
        self.asked: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        await request.aread()
        if request.url.host == "s3.eu-central-1.amazonaws.com":
            return httpx.Response(200, headers={"ETag": '"x"'})
        moved = b"<Error><Code>PermanentRedirect</Code></Error>"
        return httpx.Response(301, headers={"x-amz-bucket-region": "eu-central-1"}, content=moved)


@pytest.mark.parametrize(
    ("named", "hosts"),
    [
        (None, ["s3.us-east-1.amazonaws.com", "s3.eu-central-1.amazonaws.com"]),
        ("eu-central-1", ["s3.eu-central-1.amazonaws.com"]),
    ],
)
async def test_without_an_endpoint_it_is_aws_in_the_bucket_s_region(
    tmp_path: Path, named: str | None, hosts: list[str]
) -> None:
    aws = Aws()
    with S3Stub() as stub:
        creds = credentials(stub, endpoint_url=None, region_name=named)
    await uploads.upload_file(archive_of(tmp_path, 10), creds, http_transport=aws)
    assert [request.url.host for request in aws.asked] == hosts
    assert {request.url.scheme for request in aws.asked} == {"https"}
    assert aws.asked[-1].url.path.startswith(f"/{BUCKET}/")
    assert "/eu-central-1/s3/aws4_request" in aws.asked[-1].headers["authorization"]
