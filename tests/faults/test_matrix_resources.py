"""Every request × every fault, over a real socket: what it comes to, and how often it is sent."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Iterator

import pytest
from fault_table import ATTEMPTS, OUTCOMES, SILENCES_S
from pydantic import SecretStr

from api_client import Remote, RequestEvent, RetryPolicy, TrainingClient, errors
from support.faulty import KEY, FaultyServer
from support.log_server import FastClock
from support.resource_calls import CALLS, CHANGING, PUBLIC_KEY, READING, World, prepared_world
from support.served_platform import served_platform

LATEST_RETRY_S = 20.0
SENT_ONCE = {"account.log_out"}
"""Whoever logs out wants to go: an answer that cannot be read is good enough, a refusal is not fought."""


@pytest.fixture(scope="module")
def world(faulty: FaultyServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with served_platform(faulty, tmp_path_factory.mktemp("platform")) as served:
        yield asyncio.run(prepared_world(served))


class Caller:
    """A client on a clock of its own; its waits take no time."""

    def __init__(self, url: str, **retry: float) -> None:
        self.clock = FastClock()
        self.events: list[RequestEvent] = []
        policy = RetryPolicy(max_attempts=ATTEMPTS, **retry)
        remote = Remote("lab", url, url, key=SecretStr(KEY), key_origin="a test")
        self.client = TrainingClient(remote, clock=self.clock, retry=policy, on_event=self.events.append)

    async def call(self, name: str, world: World) -> errors.RequestError | None:
        """Call and close; the error, or None if it worked."""
        async with self.client:
            try:
                await CALLS[name](self.client, world)
            except errors.RequestError as error:
                return error
        return None


async def struck_call(
    name: str, faults: str, world: World, faulty: FaultyServer, **retry: float
) -> tuple[errors.RequestError | None, Caller]:
    world.renew()
    caller = Caller(faulty.url, **retry)
    faulty.layer.clock = caller.clock
    faulty.set_faults(faults)
    return await caller.call(name, world), caller


async def test_without_faults_all_of_them_work(world: World, faulty: FaultyServer) -> None:
    assert {name: (await struck_call(name, "", world, faulty))[0] for name in CALLS} == dict.fromkeys(CALLS)


@pytest.mark.parametrize("spec", OUTCOMES)
@pytest.mark.proves("docs/library.md", "The client library")
async def test_every_request_under(
    spec: str, world: World, faulty: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong: list[str] = []
    for name in CALLS:
        found: list[str] = []
        for silence_s in SILENCES_S if spec.startswith("stall@") else (None,):
            if silence_s is not None:
                monkeypatch.setattr("api_client.http.connection.READ_TIMEOUT_S", silence_s)
            error, caller = await struck_call(name, spec, world, faulty)
            found = [f"{name}: {each}" for each in differences(name, spec, error, faulty, caller)]
            if not found:
                break
        wrong += found
    assert wrong == []


def differences(
    name: str, spec: str, error: errors.RequestError | None, faulty: FaultyServer, caller: Caller
) -> Iterator[str]:
    outcome, asked = OUTCOMES[spec], [each for each in faulty.layer.asked if each.faults]
    handled = Counter((each.method, each.path) for each in asked if each.was_handled and each.method != "GET")
    if name in CHANGING and any(times > 1 for times in handled.values()):
        yield f"done twice: {handled}"
    if outcome.error is None or (name in SENT_ONCE and outcome.error is errors.InvalidAnswer):
        found_nothing = name == "jobs.find" and spec == "nulls" and isinstance(error, errors.NotFound)
        # A reset that overtakes the end of the answer takes it along: the system decides which comes first.
        is_overtaken = spec == "reset@after" and isinstance(error, errors.Unreachable)
        if error is not None and not found_nothing and not is_overtaken:
            yield f"raised {error!r}"
        return
    if not asked or type(error) is not outcome.error:
        yield f"{error!r}, not {outcome.error}; {len(asked)} sent"
        return
    first = [each for each in asked if (each.method, each.path) == (asked[0].method, asked[0].path)]
    wanted = 1 if name in SENT_ONCE else outcome.changes if name in CHANGING else outcome.reads
    waits_s = [event.delay_s for event in caller.events if event.kind == "waiting"]
    least_s = 2.0 if "retry-after" in spec else LATEST_RETRY_S / 2 if "retry-date" in spec else 0.0
    most_s = 2.0 if "retry-after" in spec else LATEST_RETRY_S
    text = str(error)
    is_of_key = isinstance(error, errors.Unauthorized)
    is_of_connection = isinstance(error, (errors.Unreachable, errors.TimedOut, errors.RedirectRefused))
    is_described = text.startswith("can't ") and ("complete" in text) == name.startswith("graphql")
    own_path, last = [each for each in asked if each.path == error.path], asked[-1]
    requirements = {
        f"sent {len(first)} times, not {wanted}": len(first) == wanted,
        f"{text} is without {outcome.words!r}": outcome.words in text,
        f"{text} doesn't say what was tried": is_of_key or is_of_connection or is_described,
        f"{text} shows the request": not any(each in text for each in (error.method, "/v1", PUBLIC_KEY)),
        f"names {error.method} {error.path}": (error.method, error.path) == (last.method, last.path),
        f"names {error.attempts} attempts": error.attempts == len(own_path),
        "shows the key": KEY not in f"{error} {error!r} {caller.events!r}",
        f"doesn't say whose key: {text}": not isinstance(error, errors.Unauthorized)
        or "remote 'lab'" in text,
        f"reported {waits_s}, slept {caller.clock.slept_s}": waits_s == caller.clock.slept_s,
        f"waited {waits_s}": all(least_s <= each <= most_s for each in waits_s),
    }
    if isinstance(error, errors.ErrorAnswer):
        is_request_id = (error.request_id or "").startswith("fault-")
        requirements[f"{error.status} {error.code} {error.request_id}"] = (
            str(error.status) == spec[:3] and ("html" in spec or error.code != "") and is_request_id
        )
    yield from (words for words, holds in requirements.items() if not holds)


@pytest.mark.parametrize(
    "spec", ["503;times=1", "reset@during;times=1", "429;times=1", "restart=1ms;times=1"]
)
async def test_after_the_fault_reads_succeed_and_changes_are_made_at_most_once(
    spec: str, world: World, faulty: FaultyServer
) -> None:
    wrong = []
    for name in CALLS:
        error, _ = await struck_call(name, spec, world, faulty, base_s=40.0)
        if (error is None) != (name in READING or ("429" in spec and name not in SENT_ONCE)):
            wrong.append(f"{name}: {error!r}")
        if name in CHANGING and faulty.handled() > 1:
            wrong.append(f"{name}: done {faulty.handled()} times")
    assert wrong == []


async def test_a_key_that_is_renewed_counts_and_a_server_that_restarts_is_found_again(
    world: World, faulty: FaultyServer
) -> None:
    async with Caller(faulty.url).client as client:
        faulty.set_faults("401;skip=1;times=1")
        await client.projects.list()
        with pytest.raises(errors.Unauthorized, match="refused the key of remote 'lab'"):
            await client.projects.list()
        assert await client.projects.list()
        faulty.layer.connections.reset_all()  # those that were kept are dead
        assert await client.projects.list()


async def test_a_host_without_address(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*_arguments: object, **_named: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    monkeypatch.setattr("api_client.http.connection.create_tls_context", lambda: False)
    wrong = []
    for name in CALLS:
        error = await Caller("https://api.nowhere.invalid").call(name, world)
        attempts = 1 if name in SENT_ONCE else ATTEMPTS
        is_told = type(error) is errors.Unreachable and "can't resolve api.nowhere.invalid" in str(error)
        if not is_told or error is None or error.attempts != attempts:
            wrong.append(f"{name}: {error!r}")
    assert wrong == []
