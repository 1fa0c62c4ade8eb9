"""What the pre-flight asks the server, and what it does when the server will not tell."""

import json
from datetime import timedelta

import httpx
import pytest
from preflight_listed import Listing, cached, problems, project
from pydantic import SecretStr

from api_client import Remote, RetryPolicy, TrainingClient, Unauthorized, Unreachable
from api_client.definitions import SecretReference, WeightsSource
from api_client.submission.preflight import preflight
from support.log_server import FastClock

CLOCK = FastClock()
HALF_AN_HOUR_AGO = (CLOCK.now() - timedelta(minutes=30)).isoformat()
H100_NODE = {"id": "h", "name": "H100:8", "gpu_type": "H100", "gpu_count": 8, "millicpu_limit": 200_000}
JOB = {
    "id": "j",
    "current_status": "TRAINING_JOB_PENDING",
    "created_at": HALF_AN_HOUR_AGO,
    "training_project_id": "p",
    "instance_type": H100_NODE,
}


class Account:
    """A server's side: path → what it answers; remembers what it was asked."""

    def __init__(self) -> None:
        self.routes = {
            "/v1/teams": {"teams": [{"id": "t1", "name": "Research", "default": True}]},
            "/v1/instance_types": {"instance_types": [H100_NODE]},
            "/v1/instance_type_prices": {"instance_types": [{"instance_type": H100_NODE, "price": 0.5}]},
            "/v1/training/capacity": {
                "gpu_capacities": [{"gpu_type": "H100", "baseline": 8, "limit": 16, "usage_count": 16}],
                "team_gpu_capacities": [],
            },
            "/v1/secrets": {"secrets": [{"name": "hf", "id": "s"}]},
            "/v1/teams/t1/secrets": {"secrets": [{"name": "ours", "id": "s"}]},
            "/v1/training_jobs/search": {"training_jobs": [JOB]},
            "/v1/training_projects": {
                "training_projects": [{"id": "p", "name": "ring", "team_name": "Research"}]
            },
            "/v1/training_projects/p/jobs": {"training_jobs": [JOB]},
            "/v1/training_projects/p/cache/summary": {
                "timestamp": HALF_AN_HOUR_AGO,
                "project_id": "p",
                "file_summaries": [],
            },
        }
        self.asked: list[tuple[str, str]] = []
        self.api_url = "https://api.test"

    def client(self) -> TrainingClient:
        remote = Remote("lab", "https://app.test", self.api_url, SecretStr("key"), "a test")
        return TrainingClient(
            remote,
            clock=CLOCK,
            retry=RetryPolicy(max_attempts=1),
            http_transport=httpx.MockTransport(self._answer),
        )

    def _answer(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
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


async def run(account: Account, wanted):
    async with account.client() as client:
        return await preflight(client, wanted, Listing(), clock=CLOCK)


def wanted(*, secret="hf", gpus="H100:8", **more):
    environment = {"TOKEN": SecretReference(name=secret)}
    return project("sleep 1", gpus=gpus, environment_variables=environment, **more)


@pytest.mark.parametrize(
    ("fault", "kind"), [(401, Unauthorized), (httpx.ConnectError("refused"), Unreachable)]
)
async def test_a_wrong_key_and_a_server_that_is_away_are_not_hidden(account, fault, kind):
    account.routes["/v1/instance_types"] = fault
    with pytest.raises(kind):
        await run(account, wanted())


async def test_it_only_reads_what_it_needs_and_asks_nothing_twice(account):
    await run(account, project("sleep 1"))
    assert sorted(path for _, path in account.asked) == ["/v1/instance_type_prices", "/v1/instance_types"]
    account.asked.clear()
    await run(account, wanted(cache_config=cached()))
    assert len(account.asked) == len(set(account.asked))
    assert [path for method, path in account.asked if method != "GET"] == ["/v1/training_jobs/search"]
    account.asked.clear()
    account.routes["/v1/training/capacity"]["gpu_capacities"][0]["usage_count"] = 0
    await run(account, wanted())
    assert ("POST", "/v1/training_jobs/search") not in account.asked


async def test_secrets_are_those_of_the_project_s_team(account):
    assert problems(await run(account, wanted(secret="ours", team_name="Research")), "error") == []
    assert problems(await run(account, wanted(secret="hf", team_name="Research")), "error") != []


async def test_jobs_of_other_gpus_are_not_in_the_queue(account):
    account.routes["/v1/training_jobs/search"]["training_jobs"] = [
        {**JOB, "instance_type": {**H100_NODE, "gpu_type": "A10G"}},
        {**JOB, "current_status": "TRAINING_JOB_RUNNING"},
    ]
    found = await run(account, wanted())
    assert problems(found, "warning")[1].endswith("no other job is queued")


async def test_the_cache_of_a_project_that_ran_on_other_gpus(account):
    account.routes["/v1/instance_types"]["instance_types"].append({**H100_NODE, "gpu_type": "H200"})
    job = wanted(gpus="H200", cache_config=cached())
    assert any("require_cache_affinity" in each for each in problems(await run(account, job), "warning"))
    account.routes["/v1/training_projects/p/cache/summary"] = None
    assert not any("require_cache_affinity" in each for each in problems(await run(account, job), "warning"))


@pytest.mark.parametrize("status", [403, 404, 405, 500, 501])
async def test_a_server_that_tells_nothing_stops_nothing(account, status):
    account.routes = dict.fromkeys(account.routes, status)
    found = await run(account, wanted(cache_config=cached()))
    assert problems(found, "error") == []
    assert {each.split(" could not be checked")[0] for each in problems(found, "info")} == {
        "account: GPU capacity",
        "account: instance types",
        "account: prices",
        "account: secrets",
        "account: teams",
        "account: the project's cache",
    }


@pytest.mark.parametrize(
    ("api_url", "found"),
    [
        (
            "https://api.test",
            ["weights[0].source: file:///m: only an emulator can read files of this machine"],
        ),
        ("http://127.0.0.1:9", []),
    ],
)
async def test_files_of_this_machine_are_refused_unless_the_server_is_on_it(account, api_url, found):
    account.api_url = api_url
    weights = [WeightsSource(source="file:///m", mount_location="/m")]
    assert problems(await run(account, wanted(weights=weights)), "error") == found
