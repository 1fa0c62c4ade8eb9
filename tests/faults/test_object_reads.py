"""Ranges of objects behind presigned URLs."""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from api_client.addresses import Destinations
from api_client.errors import InvalidAnswer, RedirectRefused, RequestError, UrlExpired
from api_client.http.retry import RetryPolicy
from api_client.transfers.objects import Objects
from support.fake_object_store import Behaviour, FakeObjectStore, Stored, error

CONTENT = bytes(range(256)) * 4096
QUICK = RetryPolicy(max_attempts=3, base_s=0.001, cap_s=0.001)


@pytest.fixture
def store() -> Iterator[FakeObjectStore]:
    with FakeObjectStore(Stored("ckpt/model.safetensors", CONTENT)) as store:
        yield store


@pytest.fixture
async def objects() -> AsyncIterator[Objects]:
    objects = Objects(retry=QUICK, destinations=Destinations(["127.0.0.1"]))
    yield objects
    await objects.aclose()


async def test_the_bytes_that_were_asked_for_and_no_signature_is_logged_at_any_level(
    store: FakeObjectStore, objects: Objects, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    url = f"{store.url(store.files[0])}&X-Amz-Date=20260101&X-Amz-Signature=5164ed"
    assert await objects.read(url, length=8) == CONTENT[:8]
    assert await objects.read(url, start=8, length=1000) == CONTENT[8:1008]
    assert await objects.read(url, start=len(CONTENT) - 5, length=100) == CONTENT[-5:]
    assert await objects.read(url, start=len(CONTENT), length=1) == b""
    assert await objects.read(url, start=3, length=0) == b""
    assert store.ranges[:2] == ["bytes=0-7", "bytes=8-1007"]
    assert store.sent_bytes < 2000
    for _path, headers in store.requests:
        assert not {"authorization", "cookie"} & set(headers)
    store.behaviour.answer = lambda _number: (302, {"Location": url}, b"")
    with pytest.raises(RedirectRefused):
        await objects.read(url, length=8)
    assert "5164ed" not in caplog.text
    assert "20260101" not in caplog.text


async def test_a_store_that_ignores_ranges_is_hung_up_on(objects: Objects) -> None:
    go_on = threading.Event()
    behaviour = Behaviour(ignores_ranges=True)
    behaviour.before_piece = lambda sent_bytes: sent_bytes >= 256 * 1024 and go_on.wait(30)
    with FakeObjectStore(Stored("a", CONTENT), behaviour=behaviour) as store:
        # The store holds back the rest: whoever waits for it does not come back.
        assert await objects.read(store.url(store.files[0]), start=100, length=500) == CONTENT[100:600]
        assert not go_on.is_set()
        go_on.set()


async def refusal(
    store: FakeObjectStore, objects: Objects, kind: type[RequestError], words: str | None = None
) -> RequestError:
    with pytest.raises(kind, match=words) as caught:
        await objects.read(f"{store.url(store.files[0])}&X-Amz-Signature=0123456789secret", length=8)
    return caught.value


async def test_no_error_quotes_what_opens_the_object(store: FakeObjectStore, objects: Objects) -> None:
    """Nor is a closed door knocked at again."""
    store.behaviour.answer = lambda _number: error(410, "Nope", "bad signature 0123456789secret")
    refused = await refusal(store, objects, UrlExpired, "410 Nope: bad signature")
    assert (refused.retryable, len(store.requests)) == (False, 1)
    assert "0123456789secret" not in f"{refused} {refused.__dict__}"


@pytest.mark.parametrize("content_range", ["", "0-7/*8", "10-17/100", "0-99/100", "7-0/100"])
async def test_another_range_than_asked_is_no_data(
    store: FakeObjectStore, objects: Objects, content_range: str
) -> None:
    headers = {"Content-Range": f"bytes {content_range}"} if content_range else {}
    store.behaviour.answer = lambda _number: (206, headers, b"01234567")
    await refusal(store, objects, InvalidAnswer)


ELSEWHERE = ("http://example.test/x", "ftp://127.0.0.1/x", "https://a:b@127.0.0.1/", "", "//[")


async def test_redirects_that_are_not_followed(store: FakeObjectStore, objects: Objects) -> None:
    for location in ELSEWHERE:
        store.behaviour.answer = lambda _number, to=location: (302, {"Location": to}, b"")  # type: ignore[misc]
        await refusal(store, objects, RedirectRefused)
    store.behaviour.answer = lambda _number: (302, {"Location": store.url(store.files[0])}, b"")
    await refusal(store, objects, RedirectRefused, "more than")


@pytest.mark.parametrize(
    "url",
    ["http://example.test/a", "ftp://x/a", "https://a:b@x/a", "https://x/a\nb", "file:///x", "https://:0/"],
)
async def test_urls_that_are_not_asked(objects: Objects, url: str) -> None:
    with pytest.raises(InvalidAnswer):
        await objects.read(url, length=1)


async def test_a_dot_in_the_path_stays(store: FakeObjectStore, objects: Objects) -> None:
    """A checkpoint may be called "."; a tidied path would be another object's."""
    store.behaviour.answer = lambda _number: (404, {}, b"")
    with pytest.raises(UrlExpired):
        await objects.read(f"{store.objects_url}/bucket/rank-0/./a%20b//c?x=1", length=1)
    assert store.requests[0][0] == "/bucket/rank-0/./a b//c"
