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


ANSWERED = {
    "409": (409, "CONFLICT"),
    "503@handled": (503, "SERVICE_UNAVAILABLE"),
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
    faulty.set_faults("503;paths=/logs,/metrics;skip=1;times=2|429(retry-after=7);paths=/logs;times=1")
    assert [http.get("/a/logs").status_code for _ in range(4)] == [429, 503, 503, 200]
    assert http.get("/a").status_code == 200
    assert faulty.struck()[0] == Fault("429", options={"retry-after": "7"})
