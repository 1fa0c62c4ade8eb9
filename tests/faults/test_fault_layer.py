"""The fault layer itself: what can be written, and what a client at the other end of a socket sees of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from support.fault_layer import (
    Fault,
    FaultRule,
    FaultSpecError,
    parse_faults,
)
from support.faulty import FaultyServer, faulty_server

THING = {
    "id": "job1",
    "current_status": "TRAINING_JOB_RUNNING",
    "created_at": "2026-03-01T12:00:00Z",
    "user": {"email": "a@example.com"},
    "sync_status": "COMPLETE",
    "gpu_utilization": {"0": [{"value": 0.5}]},
    "none": [],
}
SHORT_S, PATIENT_S = 0.05, 30.0


async def thing(request: Request) -> Response:
    return JSONResponse({**THING, "asked": str(request.url.query)})


@pytest.fixture(scope="module")
def faulty() -> Iterator[FaultyServer]:
    with faulty_server(Starlette(routes=[Route("/{path:path}", thing, methods=["GET", "POST"])])) as server:
        yield server


@pytest.fixture
def http(faulty: FaultyServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=faulty.url, trust_env=False, timeout=PATIENT_S) as client:
        yield client


def test_an_example() -> None:
    (rule,) = parse_faults("30%:503,429(retry-after=2),reset@during,stall=5s;paths=/logs")
    assert rule == FaultRule(
        (
            Fault("503"),
            Fault("429", options={"retry-after": "2"}),
            Fault("reset", "during"),
            Fault("stall", seconds=5.0),
        ),
        chance=0.3,
        paths=("/logs",),
    )


def test_several_rules_and_every_modifier() -> None:
    first, second, third = parse_faults(
        "skew=-90s | 0.5%:html@handled; methods=post,PATCH; skip=2; times=3; after=1m; for=200ms", "cut"
    )
    assert first.faults == (Fault("skew", "handled", -90.0),)
    assert second == FaultRule(
        (Fault("html", "handled"),), 0.005, (), ("POST", "PATCH"), skip=2, times=3, after_s=60.0, for_s=0.2
    )
    assert third.faults == (Fault("cut"),)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "missing fault; known faults: 400"),
        ("teapot", "unknown fault 'teapot'"),
        ("418", "unknown fault '418'"),
        ("503,", "missing fault"),
        ("503=2", "a status takes no value"),
        ("503(retry=2)", "retry-after, retry-date and html"),
        ("429(retry-after=soon)", "retry-after must be a number"),
        ("reset@sometime", "before, handled, during or after"),
        ("503@during", "before or handled"),
        ("slow", "slow needs a duration"),
        ("slow=5x", "use 200ms, 5s, 2m or 1h"),
        ("stall=-5s", "not a duration"),
        ("html=3", "html takes no value"),
        ("reset(html)", "only statuses take options"),
        ("redirect=ftp://x", "not an http or https address"),
        ("120%:503", "from 0 to 100"),
        ("x%:503", "a chance must be a number"),
        ("503;paths", "expected one of paths, methods"),
        ("503;colour=red", "expected one of"),
        ("503;times=many", "a whole number"),
    ],
)
def test_what_cannot_be_understood_is_told(text: str, words: str) -> None:
    with pytest.raises(FaultSpecError) as caught:
        parse_faults(text)
    assert words in str(caught.value)


@given(st.text(alphabet="0123456789%:;,=@()|. abcdefhilmnoprstuwy-", max_size=40))
def test_nothing_else_is_ever_raised(text: str) -> None:
    try:
        parse_faults(text)
    except FaultSpecError as error:
        assert str(error)


ANSWERED = {
    "409": (409, "CONFLICT"),
    "503@handled": (503, "INTERNAL_ERROR"),
    "502(html)": (502, "<html>"),
    "html": (200, "<html>"),
    "malformed": (200, "NaN;"),
    "truncated": (200, '"current_status"'),
    "empty": (200, ""),
    "redirect": (307, ""),
    "stall=1ms": (200, "job1"),
    "stall@handled=1ms": (200, "job1"),
    "stall@during=1ms": (200, "job1"),
    "slow=5ms": (200, "job1"),
    "reset@after": (200, "job1"),
}
BROKEN = {
    "reset": httpx.ReadError,
    "reset@handled": httpx.ReadError,
    "reset@during": httpx.ReadError,
    "cut": httpx.RemoteProtocolError,
    "cut@handled": httpx.RemoteProtocolError,
    "cut@during": httpx.RemoteProtocolError,
    "restart=1h": httpx.ReadError,
    "stall": httpx.ReadTimeout,
    "stall@handled": httpx.ReadTimeout,
    "stall@during": httpx.ReadTimeout,
}
NOT_HANDLED = {"409", "502(html)", "html", "redirect", "reset", "cut", "restart=1h", "stall"}


@pytest.mark.parametrize("spec", ANSWERED)
def test_answers(spec: str, faulty: FaultyServer, http: httpx.Client) -> None:
    faulty.set_faults(spec)
    answer = http.post("/v1/x")
    status, words = ANSWERED[spec]
    assert (answer.status_code, words in answer.text) == (status, True)
    assert faulty.handled("POST") == (spec not in NOT_HANDLED)
    assert len(answer.headers.get_list("date")) == 1


@pytest.mark.parametrize("spec", BROKEN)
def test_broken_connections(spec: str, faulty: FaultyServer, http: httpx.Client) -> None:
    faulty.set_faults(spec)
    with pytest.raises(BROKEN[spec]):
        http.post("/v1/x", timeout=SHORT_S if spec.startswith("stall") else PATIENT_S)
    assert faulty.handled("POST") == (spec not in NOT_HANDLED)
    faulty.set_faults()
    assert http.get("/").status_code == 200


def test_when_to_come_again(faulty: FaultyServer, http: httpx.Client) -> None:
    faulty.set_faults("429(retry-after=7)|429(retry-date=30)")
    assert http.get("/").headers["retry-after"] == "7"
    faulty.set_faults("429(retry-date=30)")
    assert http.get("/").headers["retry-after"].endswith("GMT")


def test_another_schema_and_another_clock(faulty: FaultyServer, http: httpx.Client) -> None:
    faulty.set_faults("drift|statuses|skew=1h")
    answer = http.get("/", params={"start_epoch_millis": 7_200_000, "x": "a b"}).json()
    assert answer["asked"] == "start_epoch_millis=3600000&x=a+b"
    assert answer["created_at"] == "2026-03-01T13:00:00+00:00"
    assert answer["current_status"] == answer["sync_status"] == "FROM_A_LATER_VERSION"
    assert "x_later_version" in answer
    assert "user" not in answer
    assert answer["none"] is None
    assert set(answer["gpu_utilization"]) == {"0"}
    faulty.set_faults("nulls")
    assert http.get("/").json()["gpu_utilization"] == {"0": None}


def test_only_what_is_meant_and_as_often_as_is_said(faulty: FaultyServer, http: httpx.Client) -> None:
    faulty.set_faults("503;paths=/logs,/metrics;methods=GET;skip=1;times=2")
    assert [http.get("/a/logs").status_code for _ in range(4)] == [200, 503, 503, 200]
    assert http.post("/a/metrics").status_code == http.get("/a").status_code == 200


def test_the_same_seed_picks_the_same(http: httpx.Client, faulty: FaultyServer) -> None:
    def statuses() -> list[int]:
        faulty.set_faults("50%:503,404", seed=5)
        return [http.get("/").status_code for _ in range(30)]

    first = statuses()
    assert first == statuses()
    assert set(Counter(first)) == {200, 404, 503}
