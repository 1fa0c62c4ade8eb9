"""How requests are sent, repeated, redirected and told about."""

import asyncio
import gc
import gzip
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from client_support import API_URL, APP_URL, KEY, Reply, World, json_reply, make_remote
from pydantic import SecretStr

from api_client import (
    AnswerTooLarge,
    ConfigurationError,
    InvalidAnswer,
    RedirectRefused,
    RequestError,
    RetryPolicy,
    ServerFault,
    TimedOut,
    TrainingClient,
    Unreachable,
)
from api_client.http.decoding import USUAL_LIMIT
from api_client.http.transport import MAX_IN_FLIGHT

PROJECTS = json_reply({"training_projects": [{"id": "p"}]})
REFUSED = httpx.ConnectError("refused")
RESET = httpx.ReadError("reset")
PAGE = httpx.Response(200, text="<html>")
LIST = "/v1/training_projects"
ONCE = RetryPolicy(max_attempts=1)


def answering(answer: Callable[[httpx.Request], Awaitable[httpx.Response]]) -> TrainingClient:
    return TrainingClient(make_remote(), retry=ONCE, http_transport=httpx.MockTransport(answer))


@pytest.mark.parametrize(
    ("remote", "url", "authorization"),
    [
        ({}, f"{API_URL}{LIST}", f"Bearer {KEY}"),
        ({"auth_scheme": "Api-Key"}, f"{API_URL}{LIST}", f"Api-Key {KEY}"),
        ({"key": None}, f"{API_URL}{LIST}", None),
        ({"api_url": "https://gateway.test/base/"}, f"https://gateway.test/base{LIST}", f"Bearer {KEY}"),
        ({"api_url": "http://api.localhost:8000"}, f"http://localhost:8000{LIST}", f"Bearer {KEY}"),
    ],
)
async def test_where_requests_go_and_how(remote: dict[str, Any], url: str, authorization: str | None) -> None:
    world = World(PROJECTS, **remote)
    await world.client.projects.list()
    [request] = world.server.requests
    assert (str(request.url), request.headers.get("authorization")) == (url, authorization)
    assert request.headers["user-agent"].startswith("bt-tui/")
    assert request.headers["accept"] == "application/json"
    if "localhost" in url:
        assert request.headers["host"] == "api.localhost:8000"


@pytest.mark.parametrize(
    "reply", [RESET, httpx.ReadTimeout("slow"), json_reply({}, 500), json_reply({}, 408), PAGE]
)
async def test_a_change_that_may_have_arrived_is_left_open_and_not_sent_again(reply: Reply) -> None:
    for change in (
        lambda client: client.jobs.stop("p", "j"),
        lambda client: client.graphql.execute("mutation { deploy }"),
    ):
        world = World(reply)
        with pytest.raises(RequestError, match="it may have taken effect") as caught:
            await change(world.client)
        assert caught.value.may_have_happened
        assert world.kinds == ["sent", "failed"]
    for certain in (json_reply({}, 409), REFUSED):
        with pytest.raises(RequestError) as caught:
            await World(certain).client.jobs.stop("p", "j")
        assert not caught.value.may_have_happened


async def test_a_single_call_may_have_a_policy_of_its_own() -> None:
    world = World(json_reply({}, 503))
    with pytest.raises(ServerFault):
        await world.client.jobs.get("p", "j", retry=ONCE)
    assert len(world.server.requests) == 1


async def test_answer_is_freed_without_a_search_for_garbage() -> None:
    def answers() -> int:
        return sum(isinstance(each, httpx.Response) for each in gc.get_objects())

    world = World(PROJECTS)
    await world.client.projects.list()
    gc.collect()
    gc.disable()
    try:
        before = answers()
        await world.client.projects.list()
        assert answers() == before
    finally:
        gc.enable()


async def test_redirects_within_the_server_are_followed_with_the_key() -> None:
    world = World(httpx.Response(307, headers={"location": "/v1/elsewhere?x=1"}), PROJECTS)
    assert len(await world.client.projects.list()) == 1
    first, second = world.server.requests
    assert str(second.url) == f"{API_URL}/v1/elsewhere?x=1"
    assert second.headers["authorization"] == first.headers["authorization"]
    assert world.kinds == ["sent", "answered"]


@pytest.mark.parametrize(
    "location",
    [
        f"https://evil.example{LIST}",
        f"http://api.example.test{LIST}",
        f"https://api.example.test:444{LIST}",
        "https://api.example.test.evil.example/",
        "//evil.example/",
        "https://api.example.test@evil.example/",
        "",
    ],
)
async def test_redirects_to_another_server_are_refused(location: str) -> None:
    world = World(httpx.Response(302, headers={"location": location} if location else {}), PROJECTS)
    with pytest.raises(RedirectRefused, match=r"api\.example\.test"):
        await world.client.projects.list()
    assert len(world.server.requests) == 1


async def test_redirects_of_changes_to_nowhere_and_without_end_are_errors() -> None:
    world = World(httpx.Response(307, headers={"location": "/v1/elsewhere"}))
    with pytest.raises(RedirectRefused):
        await world.client.jobs.stop("p", "j")
    assert len(world.server.requests) == 1
    ends = (("https://[::1", Unreachable, "location"), ("/v1/again", RedirectRefused, "times"))
    for location, kind, words in ends:
        world = World(httpx.Response(302, headers={"location": location}))
        with pytest.raises(kind, match=words):
            await world.client.projects.list()
    assert len(world.server.requests) == 4


async def test_only_a_few_requests_are_under_way_at_once() -> None:
    under_way, most, release = 0, 0, asyncio.Event()

    async def answer(request: httpx.Request) -> httpx.Response:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        if under_way == MAX_IN_FLIGHT:
            asyncio.get_running_loop().call_soon(release.set)
        await release.wait()
        under_way -= 1
        return json_reply({"training_projects": []})

    async with answering(answer) as client, asyncio.timeout(10):
        await asyncio.gather(*(client.projects.list() for _ in range(20)))
    assert most == MAX_IN_FLIGHT


async def test_waiting_for_another_attempt_holds_no_place() -> None:
    world = World(json_reply({}, 503), PROJECTS)
    others: list[int] = []

    async def sleep(seconds: float) -> None:
        if len(others) < 2 * MAX_IN_FLIGHT:
            others.append(1)
            await world.client.projects.list()

    world.clock.sleep = sleep  # type: ignore[method-assign]
    async with asyncio.timeout(10):
        await world.client.projects.list()
    assert others


async def test_a_closed_client_says_so_and_one_that_asked_nothing_has_opened_nothing() -> None:
    world, unused = World(PROJECTS), World(PROJECTS)
    async with world.client as client:
        await client.projects.list()
    await unused.client.aclose()
    for closed in (world, unused):
        with pytest.raises(RequestError, match="closed"):
            await closed.client.projects.list()
        await closed.client.aclose()
    assert unused.server.requests == []


def packed(*layers: str, content: bytes) -> Callable[[httpx.Request], httpx.Response]:
    headers = {"content-encoding": ", ".join(layers)} if layers else {}
    return lambda _request: httpx.Response(200, headers=headers, stream=httpx.ByteStream(content))


@pytest.mark.parametrize("layers", [(), ("gzip",)])
async def test_answer_over_limit_is_refused(layers: tuple[str, ...]) -> None:
    content = b"[" + b" " * USUAL_LIMIT.bytes
    world = World(packed(*layers, content=gzip.compress(content) if layers else content))
    with pytest.raises(AnswerTooLarge, match="over 16,777,216 bytes"):
        await world.client.projects.list()


@pytest.mark.parametrize(
    ("encoding", "content"),
    [("gzip", gzip.compress(PROJECTS.content)), ("", PROJECTS.content)],
    ids=["one layer", "empty"],
)
async def test_gzip_is_asked_for_and_read_if_it_is_named(encoding: str, content: bytes) -> None:
    world = World(packed(encoding, content=content))
    assert [project.id for project in await world.client.projects.list()] == ["p"]
    assert world.server.requests[0].headers["accept-encoding"] == "gzip"


@pytest.mark.parametrize("layers", [("gzip", "gzip"), ("br",), ("deflate",), ("zstd",), ("x" * 9999,)])
async def test_other_content_encodings_are_refused(layers: tuple[str, ...]) -> None:
    world = World(packed(*layers, content=gzip.compress(gzip.compress(PROJECTS.content))))
    with pytest.raises(InvalidAnswer, match="content encoding") as caught:
        await world.client.projects.list()
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize(
    "content",
    [gzip.compress(PROJECTS.content)[:-9], b"\x1f\x8bbroken", b"{}"],
    ids=["cut off", "broken", "not packed"],
)
async def test_damaged_gzip_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidAnswer, match="decompressed"):
        await World(packed("gzip", content=content)).client.projects.list()


@pytest.mark.parametrize("count", [USUAL_LIMIT.values, USUAL_LIMIT.values // 25])
async def test_number_of_values_is_limited_outside_of_texts(count: int) -> None:
    text = "[" * USUAL_LIMIT.values
    world = World(json_reply({"training_projects": [{"id": "p", "name": text}], "more": [0] * count}))
    if count < USUAL_LIMIT.values:
        assert [project.name for project in await world.client.projects.list()] == [text]
        return
    with pytest.raises(AnswerTooLarge, match="over 400,000 values"):
        await world.client.projects.list()


async def test_an_answer_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api_client.http.transport.RESPONSE_TIMEOUT_S", 0.0)

    async def never(request: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    async with answering(never) as client:
        with pytest.raises(TimedOut):
            await client.projects.list()


async def test_answer_that_takes_longer_than_it_may_is_not_requested_again() -> None:
    world = World(TimeoutError(), PROJECTS)
    with pytest.raises(TimedOut):
        await world.client.projects.list()
    assert world.kinds == ["sent", "failed"]


@pytest.mark.parametrize("field", ["app_url", "api_url"])
def test_plain_http_is_for_this_machine_only(field: str) -> None:
    with pytest.raises(ConfigurationError, match="https"):
        TrainingClient(make_remote(**{field: "http://example.com"}))
    TrainingClient(make_remote(**{field: "http://127.0.0.1:1"}))


def test_keys_that_no_header_can_carry_are_refused_at_once() -> None:
    for key in (f"{KEY}\n", f"{KEY} {KEY}", KEY + "ä"):
        with pytest.raises(ConfigurationError) as caught:
            TrainingClient(make_remote(key=SecretStr(key)))
        assert KEY not in str(caught.value)


async def test_graphql_goes_to_the_app_host() -> None:
    world = World(json_reply({"data": {"teams": []}}))
    assert await world.client.graphql.execute("{ teams { id } }", {"a": 1}) == {"teams": []}
    assert str(world.server.requests[0].url) == f"{APP_URL}/graphql/"
