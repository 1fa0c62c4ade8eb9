"""What the resources make of answers."""

import httpx
import pytest
from client_support import APP_URL, JOB, World, json_reply
from pydantic import SecretStr

from api_client import NotFound, RequestError, ServerFault

NULLS = (
    *("training_projects", "training_jobs", "checkpoints", "logs", "auth_codes", "artifact_presigned_urls"),
    *("teams", "secrets", "instance_types", "models", "deployments", "items", "presigned_urls"),
)


async def test_null_lists_are_empty() -> None:
    client = World(json_reply(dict.fromkeys(NULLS))).client
    for call in (
        client.projects.list(),
        client.jobs.list("p"),
        client.jobs.search(),
        client.jobs.download_urls("p", "j"),
        client.checkpoints.list("p", "j"),
        client.logs.page("p", "j", start_ms=0, end_ms=1),
        client.sessions.auth_codes("p", "j"),
        client.account.teams(),
        client.account.secrets(),
        client.account.instance_types(),
        client.account.instance_type_prices(),
        client.models.list(),
        client.models.deployments("m"),
        client.models.startups("m", "d", start_ms=0, end_ms=1),
    ):
        assert await call == []
    assert [file async for file in client.checkpoints.files("p", "j")] == []


async def test_what_a_newer_server_adds_is_kept() -> None:
    job = {**JOB, "current_status": "TRAINING_JOB_DREAMING", "new_field": [1, {"a": None}]}
    world = World(json_reply({"training_job": job, "training_project": 7, "extra": 1}))
    got = await world.client.jobs.get("p", "j")
    assert got.is_finished
    assert got.instance_type.gpu_count == 0
    assert got.model_dump(mode="json")["new_field"] == [1, {"a": None}]


def without_search(status: int) -> World:
    def answer(request: httpx.Request) -> httpx.Response:
        jobs = {"p1": [{**JOB, "id": "a"}], "p2": [{**JOB, "id": "job1"}]}
        path = request.url.path
        if path == "/v1/training_jobs/search":
            return json_reply({}, status)
        if path == "/v1/training_projects":
            return json_reply({"training_projects": [{"id": "p1"}, {"id": "p2"}]})
        return json_reply({"training_jobs": jobs[path.split("/")[3]]})

    return World(answer)


@pytest.mark.parametrize(
    "world",
    [
        without_search(404),
        without_search(405),
        World(json_reply({"training_jobs": [{**JOB, "id": "other"}, JOB]})),  # a search that ignores the id
    ],
)
async def test_a_job_is_found_whatever_the_search(world: World) -> None:
    assert (await world.client.jobs.find("job1")).id == "job1"
    with pytest.raises(NotFound, match="'job2'"):
        await world.client.jobs.find("job2")


async def test_a_failing_search_is_not_taken_for_a_missing_one() -> None:
    world = without_search(503)
    with pytest.raises(ServerFault):
        await world.client.jobs.find("job1")


def files(*names: str) -> list[dict[str, str]]:
    return [{"url": f"https://bucket/{name}", "relative_file_name": name} for name in names]


async def test_files_come_page_after_page() -> None:
    world = World(
        json_reply({"presigned_urls": files("a", "b"), "next_page_token": 2, "total_count": 3}),
        json_reply({"presigned_urls": files("c"), "next_page_token": None, "total_count": 3}),
    )
    names = [file.relative_file_name async for file in world.client.checkpoints.files("p", "j")]
    assert names == ["a", "b", "c"]
    assert [request.url.params["page_token"] for request in world.server.requests] == ["0", "2"]


@pytest.mark.parametrize(("page", "token", "count"), [("a", 0, 1), ("a", -1, 1), ("a", 1, 2), ("", 1000, 0)])
async def test_paging_never_turns_in_circles(page: str, token: int, count: int) -> None:
    world = World(json_reply({"presigned_urls": files(*page), "next_page_token": token}))
    names = [file.relative_file_name async for file in world.client.checkpoints.files("p", "j")]
    assert names == ["a"] * count
    assert len(world.server.requests) == max(count, 1)


async def test_no_cache_and_no_project_are_told_apart() -> None:
    for content in (b"null", b"{}"):
        assert await World(httpx.Response(200, content=content)).client.cache.summary("p") is None
    missing = json_reply({"message": "not found"}, 404)
    there = World(missing, json_reply({"training_project": {"id": "p"}}))
    assert await there.client.cache.summary("p") is None
    with pytest.raises(NotFound):
        await World(missing).client.cache.summary("p")


async def test_nothing_to_change_is_a_mistake() -> None:
    world = World()
    with pytest.raises(ValueError, match="nothing to change"):
        await world.client.jobs.update("p", "j")
    with pytest.raises(ValueError, match="nothing to change"):
        await world.client.sessions.update("p", "j", "s")
    assert world.server.requests == []


async def test_secrets_may_be_given_wrapped() -> None:
    world = World(json_reply({"name": "n"}))
    await world.client.account.upsert_secret("n", SecretStr("hunter2"))
    assert b"hunter2" in world.server.requests[0].content
    assert "hunter2" not in repr(world.events)


async def test_credentials_show_no_secrets() -> None:
    creds = {"aws_access_key_id": "id", "aws_secret_access_key": "hunter2", "aws_session_token": "hunter3"}
    world = World(
        json_reply({"s3_bucket": "b", "s3_key": "k", "creds": {**creds, "endpoint_url": "http://x"}})
    )
    credentials = await world.client.blobs.training_credentials()
    assert credentials.creds.aws_secret_access_key.get_secret_value() == "hunter2"
    assert "hunter" not in repr(credentials)


async def test_a_malformed_answer_shows_no_secrets() -> None:
    world = World(json_reply({"s3_bucket": "b", "creds": {"aws_secret_access_key": "hunter2"}}))
    with pytest.raises(RequestError) as caught:
        await world.client.blobs.training_credentials()
    assert "hunter2" not in str(caught.value)
    assert caught.value.__context__ is None


async def test_ssh_for_any_replica_leaves_it_out() -> None:
    world = World(json_reply({"ssh_certificate": "c", "jwt": "hunter2", "proxy_address": "h:1"}))
    certificate = await world.client.sessions.sign_ssh("p", "j", public_key="k")
    assert world.server.requests[0].content == b'{"public_key": "k"}'
    assert "hunter2" not in repr(certificate)


def test_the_page_of_a_job() -> None:
    assert World().client.job_link("p", "j") == f"{APP_URL}/training/p/logs/j"
    assert World(app_url=APP_URL + "/").client.job_link("a/b", "j") == f"{APP_URL}/training/a%2Fb/logs/j"
