"""What errors say, and what they never say."""

import json
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from client_support import KEY, Reply, World, all_texts, json_reply
from hypothesis import given, strategies as st

from api_client import (
    ApiClientError,
    BadRequest,
    RequestError,
    RetryPolicy,
    ServerFault,
    Unauthorized,
    Unreachable,
)

ONCE = RetryPolicy(max_attempts=1)


async def error_from(reply: Reply) -> RequestError:
    world = World(reply, retry=ONCE)
    with pytest.raises(RequestError) as caught:
        await world.client.projects.list()
    assert [event.reason for event in world.events] == ["", str(caught.value)]
    return caught.value


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ({"code": "VALIDATION_ERROR", "message": "bad name"}, "VALIDATION_ERROR", "bad name"),
        ({"error": "bad name"}, None, "bad name"),
        ({"detail": [{"msg": "bad name", "loc": ["body"]}]}, None, "bad name"),
        ({"error": {"message": "bad name"}}, None, "bad name"),
        (["bad name"], None, "bad name"),
        ("bad name", None, "bad name"),
        ({"code": 17, "message": ""}, "17", None),
        ({"message": {"nested": 1}}, None, None),
        (None, None, None),
    ],
)
async def test_the_servers_words_are_found(body: object, code: str | None, message: str | None) -> None:
    error = await error_from(json_reply(body, 400))
    assert isinstance(error, BadRequest)
    assert (error.code, error.server_message) == (code, message)
    assert (message or "Bad Request") in str(error)


async def test_an_error_names_its_cause() -> None:
    for reply, kind, words in (
        (httpx.Response(502, text="upstream is gone\n"), ServerFault, "upstream is gone"),
        (
            httpx.Response(502, html="<html><b>Bad gateway</b></html>"),
            ServerFault,
            "returned 502 Bad Gateway as HTML",
        ),
        (httpx.Response(503), ServerFault, "503 Service Unavailable"),
        (httpx.ReadTimeout(""), Unreachable, "no complete response in time"),
        (httpx.RemoteProtocolError("Server disconnected without sending"), Unreachable, "disconnected"),
        (httpx.ProxyError("407 Proxy Authentication Required"), Unreachable, "proxy: 407"),
    ):
        error = await error_from(reply)
        assert isinstance(error, kind)
        assert "api.example.test" in str(error) and words in str(error) and "<b>" not in str(error)


async def test_only_401_says_that_the_key_is_wrong() -> None:
    refused = await error_from(json_reply({"message": "SSH is not enabled."}, 401))
    forbidden = await error_from(json_reply({"message": "SSH is not enabled."}, 403))
    assert "refused the key" in str(refused) and str(refused).endswith(": SSH is not enabled (401)")
    assert "can't list the projects: api.example.test: SSH is not enabled (403); the key of remote" in str(
        forbidden
    )
    assert str(forbidden).endswith("may not do this") and isinstance(forbidden, Unauthorized)


async def test_server_text_is_one_inert_line_of_bounded_length() -> None:
    hostile = "a\x1b[2Jb\r\nc\u202ed\x00\u200be\ud800" + "x" * 5_000
    body, headers = json.dumps({"message": hostile, "code": hostile}), {"x-request-id": "r\x1bq"}
    error = await error_from(httpx.Response(400, content=body, headers=headers))
    for text in (str(error), error.server_message, error.code, error.request_id):  # type: ignore[attr-defined]
        assert text.isprintable()
        assert len(text) < 700
    assert "a[2Jb cde" in str(error)


@given(st.binary(max_size=300), st.sampled_from([400, 401, 404, 429, 500]))
async def test_no_body_breaks_the_error(content: bytes, status: int) -> None:
    error = await error_from(httpx.Response(status, content=content))
    assert str(error).isprintable()


def echo(status: int, **more: Any) -> httpx.Response:
    spread = KEY[:5] + "\x00" + KEY[5:]
    body = {"message": f"the key {KEY} is no good ({spread})", "code": KEY}
    headers = {"x-request-id": KEY, "retry-after": KEY, "location": f"https://{KEY}.example/"}
    return httpx.Response(status, json=body, headers=headers, **more)


LEAKY = (
    *(httpx.ConnectError, httpx.ReadError, httpx.LocalProtocolError, httpx.RemoteProtocolError),
    *(httpx.ProxyError, httpx.UnsupportedProtocol, httpx.ReadTimeout),
)


@pytest.mark.parametrize(
    "reply",
    [
        *(echo(status) for status in (200, 302, 400, 401, 403, 404, 408, 429, 500)),
        httpx.Response(500, text="x" * 490 + KEY),
        httpx.Response(500, text="x" * 480 + KEY),
        httpx.Response(200, text=KEY),
        httpx.Response(200, json={"training_projects": [{"id": {KEY: KEY}}]}),
        *(kind(f"could not send b'Bearer {KEY}'") for kind in LEAKY),
    ],
)
async def test_the_key_is_in_no_error_event_or_repr(reply: httpx.Response | Exception) -> None:
    world = World(reply, retry=ONCE)
    with pytest.raises(ApiClientError) as caught:
        await world.client.projects.list()
    texts = [*all_texts(caught.value), repr(world.events), repr(world.client), str(world.client)]
    texts += [repr(world.client.remote), str(world.client.remote), repr(world.client._transport)]
    texts += [repr(vars(world.client._transport))]
    for text in texts:
        assert KEY not in text
        assert KEY[:12] not in text


async def test_frames_of_a_traceback_hold_no_key() -> None:
    error = await error_from(httpx.ReadError("reset"))
    assert (error.__cause__, error.__context__) == (None, None)  # they would hold the request
    traceback = error.__traceback__
    while traceback is not None:
        if "/api_client/" in traceback.tb_frame.f_code.co_filename:
            assert KEY not in repr(traceback.tb_frame.f_locals)
        traceback = traceback.tb_next


async def test_graphql_errors_come_with_status_200() -> None:
    told = {"code": "RESOURCE_NOT_FOUND", "description": f"no model {KEY}"}
    world = World(json_reply({"errors": [{"message": "m", "extensions": told}]}))
    with pytest.raises(BadRequest, match=r"no model \[key\]") as caught:
        await world.client.graphql.execute("{ model }")
    assert caught.value.code == "RESOURCE_NOT_FOUND"


@pytest.mark.parametrize(
    ("header", "time"),
    [
        ("Sun, 01 Mar 2026 12:00:00 GMT", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        ("yesterday", None),
        ("Sun, 99 Mar 99999999 12:00:00 GMT", None),
    ],
)
async def test_event_of_an_answer_has_the_servers_time(header: str, time: datetime | None) -> None:
    world = World(httpx.Response(200, json={"training_projects": []}, headers={"date": header}))
    await world.client.projects.list()
    assert [event.server_time for event in world.events] == [None, time]
