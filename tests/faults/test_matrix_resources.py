"""Every request of the client × every fault, over a real socket: what it comes to, and how often it is sent.

A cell says what the caller gets (an error of the right kind that names the request, or the answer), how
often the request was sent, and that what changes something was never done twice.
"""

from __future__ import annotations

import asyncio
import inspect
import socket
from collections.abc import Iterator

import pytest
from fast_clock import FastClock
from fault_table import ATTEMPTS, OUTCOMES, Outcome
from pydantic import SecretStr
from resource_calls import CHANGING, READING, Call, World, parts_of, prepared_world
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from api_client import (
    ErrorAnswer,
    InvalidAnswer,
    NotFound,
    Remote,
    RequestError,
    RequestEvent,
    RetryPolicy,
    TrainingClient,
    Unauthorized,
    Unreachable,
)
from support.faulty import FaultyServer
from support.served_platform import KEY, served_platform

CALLS: dict[str, Call] = {**READING, **CHANGING}
SILENCES_S = (0.02, 0.5, 5.0)
"""Read timeouts to try, shortest first: on a busy machine a short one can end before the request arrives."""
LATEST_RETRY_S = 20.0
ELSEWHERE = {
    "jobs.watch": "a stream",
    "logs.follow": "a stream",
    "logs.history": "a stream",
    "logs.fill": "a stream",
    "logs.increments": "a stream",
    "metrics.follow": "a stream",
    "blobs.upload": "a transfer",
    "push": "a transfer",
    "job_link": "asks nothing",
    "check_may_change": "asks nothing",
    "aclose": "asks nothing",
}
TRANSFERS = ("objects", "downloads", "checkpoint_contents")
"""Parts of the client that talk to object stores: the transfers' matrix has them."""

SENT_ONCE = {"account.log_out"}
"""Whoever logs out wants to go: an answer that cannot be read is good enough, a refusal is not fought."""


def knows_how_to_log_out(app: ASGIApp) -> ASGIApp:
    """The emulator has no logins to end."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        is_log_out = scope["path"] == "/v1/users/auth/logout"
        await (Response("{}", media_type="application/json") if is_log_out else app)(scope, receive, send)

    return serve


@pytest.fixture(scope="module")
def world(faulty: FaultyServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with served_platform(faulty, tmp_path_factory.mktemp("platform")) as served:
        faulty.app = knows_how_to_log_out(faulty.app)
        yield asyncio.run(prepared_world(served))


class Caller:
    """A client whose waits take no time; what it told, and how long it would have waited."""

    def __init__(self, url: str, **retry: float) -> None:
        self.clock = FastClock()
        self.events: list[RequestEvent] = []
        remote = Remote("lab", url, url, key=SecretStr(KEY), key_origin="a test")
        policy = RetryPolicy(max_attempts=ATTEMPTS, **retry)
        self.client = TrainingClient(remote, clock=self.clock, retry=policy, on_event=self.events.append)

    async def call(self, name: str, world: World) -> RequestError | None:
        """Call and close; the error, or None if it worked."""
        async with self.client:
            try:
                await CALLS[name](self.client, world)
            except RequestError as error:
                return error
        return None


def test_every_public_method_is_in_the_matrix_or_elsewhere() -> None:
    client = TrainingClient(Remote("x", "http://127.0.0.1", "http://127.0.0.1", key=None, key_origin=""))
    found = set()
    for part, resource in parts_of(client).items():
        if type(resource).__module__.startswith(("api_client.resources", "api_client.transfers.uploads")):
            members = inspect.getmembers(type(resource), inspect.isfunction)
            found |= {f"{part}.{name}" for name, _ in members if not name.startswith("_")}
    own = inspect.getmembers(TrainingClient, inspect.isfunction)
    found |= {name for name, _ in own if not name.startswith("_")}
    named = {name.partition(",")[0] for name in CALLS}
    assert found == named | set(ELSEWHERE)
    rest = parts_of(client).keys() - {name.partition(".")[0] for name in found}
    assert rest | {"checkpoint_contents"} == {"remote", "clock", "destinations", *TRANSFERS}


async def test_without_faults_all_of_them_work(world: World, faulty: FaultyServer) -> None:
    faulty.set_faults()
    for name in CALLS:
        world.renew()
        assert await Caller(faulty.url).call(name, world) is None, name


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: outcome.spec)
async def test_every_request_under(
    outcome: Outcome, world: World, faulty: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    silences_s = SILENCES_S if outcome.spec.startswith("stall@") else (None,)
    wrong: list[str] = []
    for name in CALLS:
        found: list[str] = []
        for silence_s in silences_s:
            if silence_s is not None:
                monkeypatch.setattr("api_client.http.connection.READ_TIMEOUT_S", silence_s)
            world.renew()
            faulty.set_faults(outcome.spec)
            caller = Caller(faulty.url)
            error = await caller.call(name, world)
            found = [f"{name}: {each}" for each in differences(name, outcome, error, faulty, caller)]
            if not found:
                break
        wrong += found
    assert wrong == []


def differences(
    name: str, outcome: Outcome, error: RequestError | None, faulty: FaultyServer, caller: Caller
) -> Iterator[str]:
    if outcome.error is None or (name in SENT_ONCE and outcome.error is InvalidAnswer):
        found_nothing = name == "jobs.find" and outcome.spec == "nulls" and isinstance(error, NotFound)
        # A reset that overtakes the end of the answer takes it along: the system decides which comes first.
        is_overtaken = outcome.spec == "reset@after" and isinstance(error, Unreachable)
        if error is not None and not found_nothing and not is_overtaken:
            yield f"raised {error!r}"
        if name in CHANGING and sum(each.was_handled for each in faulty.layer.asked if each.faults) > 1:
            yield "done twice"
        return
    asked = [each for each in faulty.layer.asked if each.faults]
    if not asked:
        yield "the server never had the request"
        return
    first = [each for each in asked if (each.method, each.path) == (asked[0].method, asked[0].path)]
    sent = outcome.sent_changing if name in CHANGING else outcome.sent_reading
    sent = 1 if name in SENT_ONCE else sent
    if len(first) != sent:
        yield f"sent {len(first)} times, not {sent}"
    if name in CHANGING and sum(each.was_handled for each in first) > 1:
        yield "done twice"
    if type(error) is not outcome.error:
        yield f"{error!r}, not {outcome.error}"
        return
    assert error is not None
    if outcome.words not in str(error):
        yield f"no {outcome.words!r} in {error}"
    if (error.method, error.path) != (asked[-1].method, asked[-1].path):
        yield f"names {error.method} {error.path}"
    if error.attempts != len([each for each in asked if each.path == error.path]):
        yield f"tells of {error.attempts} attempts"
    if isinstance(error, ErrorAnswer):
        if error.status != outcome.status or ("html" not in outcome.spec and not error.code):
            yield f"status {error.status}, code {error.code}"
        if not (error.request_id or "").startswith("fault-"):
            yield f"request id {error.request_id}"
    if isinstance(error, Unauthorized) and "remote 'lab'" not in str(error):
        yield f"does not say whose key: {error}"
    if KEY in f"{error} {error!r} {caller.events!r}":
        yield "shows the key"
    waited = [event.delay_s for event in caller.events if event.kind == "waiting"]
    if waited != caller.clock.slept_s:
        yield f"told of {waited}, slept {caller.clock.slept_s}"
    if "retry-after" in outcome.spec and set(waited) - {2.0}:
        yield f"waited {waited}, not what it was told to"
    if "retry-date" in outcome.spec and not all(
        LATEST_RETRY_S / 2 < each <= LATEST_RETRY_S for each in waited
    ):
        yield f"waited {waited}, not until the date"


@pytest.mark.parametrize(
    "spec", ["503;times=1", "reset@during;times=1", "429;times=1", "restart=1ms;times=1"]
)
async def test_what_is_over_is_got_over(spec: str, world: World, faulty: FaultyServer) -> None:
    """Reads succeed once the fault is over; a change says what became of it, and is done at most once."""
    wrong = []
    for name in CALLS:
        world.renew()
        caller = Caller(faulty.url, base_s=40.0)
        faulty.layer.clock = caller.clock
        faulty.set_faults(spec)
        error = await caller.call(name, world)
        if (error is None) != (name in READING or ("429" in spec and name not in SENT_ONCE)):
            wrong.append(f"{name}: {error!r}")
        if name in CHANGING and faulty.handled() > 1:
            wrong.append(f"{name}: done {faulty.handled()} times")
    assert wrong == []


async def test_a_key_that_ends_and_is_renewed_on_the_server(world: World, faulty: FaultyServer) -> None:
    async with Caller(faulty.url).client as client:
        faulty.set_faults("401;skip=1;times=1")
        await client.projects.list()
        with pytest.raises(Unauthorized, match="refused the key of remote 'lab'"):
            await client.projects.list()
        assert await client.projects.list()


async def test_a_server_that_restarts_is_found_again(world: World, faulty: FaultyServer) -> None:
    """The connections that were kept are dead; the client notices and makes others."""
    async with Caller(faulty.url).client as client:
        await client.projects.list()
        faulty.layer.connections.reset_all()
        assert await client.projects.list()


async def test_a_host_without_address(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*_arguments: object, **_named: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    monkeypatch.setattr("api_client.http.connection.trusting_context", lambda: False)
    for variable in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)
        monkeypatch.delenv(variable.upper(), raising=False)
    wrong = []
    for name in CALLS:
        error = await Caller("https://api.nowhere.invalid").call(name, world)
        attempts = 1 if name in SENT_ONCE else ATTEMPTS
        if type(error) is not Unreachable or error.attempts != attempts:
            wrong.append(f"{name}: {error!r}")
        elif "can't resolve api.nowhere.invalid" not in str(error):
            wrong.append(f"{name}: {error}")
    assert wrong == []
