"""What the pre-flight asks the server, and what it does when the server will not tell."""

import json

import httpx
import pytest
from preflight_listed import Listing, problems, project
from pydantic import SecretStr

from api_client import Remote, RetryPolicy, TrainingClient, Unauthorized, Unreachable
from api_client.definitions import SecretReference, WeightsSource
from api_client.models.account import EMULATOR_USER_EMAIL
from api_client.submission.preflight import preflight
from support.log_server import FastClock

CLOCK = FastClock()
NODE = {"id": "h", "name": "H100:8", "gpu_type": "H100", "gpu_count": 8, "millicpu_limit": 200_000}
FULL = {"gpu_type": "H100", "baseline": 8, "limit": 16, "usage_count": 16}


class Account:
    """A server's side: path → what it answers; remembers what it was asked."""

    def __init__(self) -> None:
        self.routes = {
            "teams": {"teams": [{"id": "t1", "name": "Research", "default": True}]},
            "instance_types": {"instance_types": [NODE]},
            "instance_type_prices": {"instance_types": [{"instance_type": NODE, "price": 0.5}]},
            "training/capacity": {"gpu_capacities": [FULL], "team_gpu_capacities": []},
            "secrets": {"secrets": [{"name": "hf", "id": "s"}]},
            "teams/t1/secrets": {"secrets": [{"name": "ours", "id": "s"}]},
        }
        self.asked: list[tuple[str, str]] = []
        self.api_url = "https://api.test"

    async def preflight(self, wanted):
        remote = Remote("lab", "https://app.test", self.api_url, SecretStr("key"), "a test")
        transport, once = httpx.MockTransport(self._answer), RetryPolicy(max_attempts=1)
        async with TrainingClient(remote, clock=CLOCK, retry=once, http_transport=transport) as client:
            return await preflight(client, wanted, Listing())

    def _answer(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path.removeprefix("/v1/")
        self.asked.append((request.method, path))
        answer = self.routes.get(path)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, int):
            return httpx.Response(answer, json={"code": "X", "message": "not for you"})
        return httpx.Response(200, content=json.dumps(answer)) if answer else httpx.Response(404)


@pytest.fixture
def account() -> Account:
    return Account()


def wanted(*, secret="hf", gpus="H100:8", **more):
    environment = {"TOKEN": SecretReference(name=secret)}
    return project("sleep 1", gpus=gpus, environment_variables=environment, **more)


@pytest.mark.parametrize(
    ("fault", "kind"), [(401, Unauthorized), (httpx.ConnectError("refused"), Unreachable)]
)
async def test_a_wrong_key_and_a_server_that_is_away_are_not_hidden(account, fault, kind):
    account.routes["instance_types"] = fault
    with pytest.raises(kind):
        await account.preflight(wanted())


async def test_it_only_reads_what_it_needs_and_asks_nothing_twice(account):
    await account.preflight(project("sleep 1"))
    assert sorted(path for _, path in account.asked) == ["instance_type_prices", "instance_types"]
    account.asked.clear()
    await account.preflight(wanted())
    assert len(account.asked) == len(set(account.asked))
    assert {method for method, _ in account.asked} == {"GET"}


async def test_only_secrets_of_the_team_are_there(account):
    assert problems(await account.preflight(wanted(secret="ours", team_name="Research")), "error") == []
    assert problems(await account.preflight(wanted(secret="hf", team_name="Research")), "error") != []


@pytest.mark.parametrize("status", [403, 404, 500])
async def test_a_server_that_tells_nothing_stops_nothing(account, status):
    account.routes = dict.fromkeys(account.routes, status)
    found = await account.preflight(wanted())
    assert problems(found, "error") == []
    facts = ("GPU capacity", "instance types", "prices", "secrets", "teams")
    told = {each.split(" could not be checked")[0] for each in problems(found, "info")}
    assert told == {f"account: {fact}" for fact in facts}


async def test_only_the_emulator_is_known_to_run_it_on_this_machine(account):
    weights = [WeightsSource(source="file:///m", mount_location="/m")]
    for api_url, email, severity in (
        ("https://api.test", EMULATOR_USER_EMAIL, "error"),
        ("http://[::1]:9", EMULATOR_USER_EMAIL, "info"),
        ("http://[::1]:9", "ada@example.com", "warning"),
    ):
        account.api_url, account.routes["users/me"] = api_url, {"email": email}
        found = await account.preflight(wanted(weights=weights))
        assert [one.severity for one in found if "this machine" in one.problem] == [severity]
