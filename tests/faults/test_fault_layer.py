"""The fault layer itself: what a client at the other end of a socket sees of it."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from support.fault_layer import Fault
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


NOT_HANDLED, HANDLED = False, True
SEEN: dict[str, tuple[str | type[Exception], bool]] = {
    "409": ("409 CONFLICT", NOT_HANDLED),
    "503@handled": ("503 SERVICE_UNAVAILABLE", HANDLED),
    "502(html)": ("502 <html>", NOT_HANDLED),
    "html": ("200 <html>", NOT_HANDLED),
    "malformed": ("200 NaN;", HANDLED),
    "truncated": ('200 "current_status"', HANDLED),
    "empty": ("200 ", HANDLED),
    "redirect": ("307 ", NOT_HANDLED),
    "stall=1ms": ("200 job1", HANDLED),
    "slow=5ms": ("200 job1", HANDLED),
    "reset@after": ("200 job1", HANDLED),
    "reset": (httpx.ReadError, NOT_HANDLED),
    "reset@during": (httpx.ReadError, HANDLED),
    "cut": (httpx.RemoteProtocolError, NOT_HANDLED),
    "cut@during": (httpx.RemoteProtocolError, HANDLED),
    "restart=1h": (httpx.ReadError, NOT_HANDLED),
    "stall": (httpx.ReadTimeout, NOT_HANDLED),
    "stall@handled": (httpx.ReadTimeout, HANDLED),
}
"""Status and words of the answer, or the error; and whether the request had its effect."""


@pytest.mark.parametrize("spec", SEEN)
def test_what_a_client_sees(spec: str, faulty: FaultyServer, http: httpx.Client) -> None:
    expected, is_handled = SEEN[spec]
    faulty.set_faults(spec)
    if isinstance(expected, str):
        status, _, words = expected.partition(" ")
        answer = http.post("/v1/x")
        assert (answer.status_code, words in answer.text) == (int(status), True)
        assert len(answer.headers.get_list("date")) == 1
    else:
        with pytest.raises(expected):
            http.post("/v1/x", timeout=SHORT_S if spec.startswith("stall") else PATIENT_S)
    assert faulty.handled("POST") == is_handled
    faulty.set_faults()
    assert http.get("/").status_code == 200


def test_when_to_come_again(faulty: FaultyServer, http: httpx.Client) -> None:
    faulty.set_faults("429(retry-after=7);times=1|429(retry-date=30)")
    assert http.get("/").headers["retry-after"] == "7"
    assert http.get("/").headers["retry-after"].endswith("GMT")


def test_another_schema_and_another_clock(faulty: FaultyServer, http: httpx.Client) -> None:
    faulty.set_faults("drift|statuses|skew=1h")
    answer = http.get("/", params={"start_epoch_millis": 7_200_000, "x": "a b"}).json()
    assert answer["asked"] == "start_epoch_millis=3600000&x=a+b"
    assert answer["created_at"] == "2026-03-01T13:00:00+00:00"
    assert answer["current_status"] == answer["sync_status"] == "FROM_A_LATER_VERSION"
    assert ("x_later_version" in answer, "user" in answer) == (True, False)
    assert (answer["none"], set(answer["gpu_utilization"])) == (None, {"0"})
    faulty.set_faults("nulls")
    assert http.get("/").json()["gpu_utilization"] == {"0": None}


def test_only_what_is_meant_and_as_often_as_is_said(faulty: FaultyServer, http: httpx.Client) -> None:
    faulty.set_faults("503;paths=/logs,/metrics;skip=1;times=2|429(retry-after=7);paths=/logs;times=1")
    assert [http.get("/a/logs").status_code for _ in range(4)] == [429, 503, 503, 200]
    assert http.get("/a").status_code == 200
    assert faulty.struck()[0] == Fault("429", options={"retry-after": "7"})
