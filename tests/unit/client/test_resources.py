"""What the resources make of answers."""

import httpx
import pytest
from client_support import APP_URL, JOB, World, json_reply
from pydantic import SecretStr

from api_client import NotFound, RequestError, ServerFault
from api_client.secret import SecretText


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
    with pytest.raises(ServerFault):
        await World(json_reply({}, 503)).client.jobs.find("job1")


@pytest.mark.parametrize(("page", "step", "pages"), [("a", 0, 1), ("a", -1, 1), ("a", 1, 2), ("", 1000, 1)])
async def test_paging_never_turns_in_circles(page: str, step: int, pages: int) -> None:
    files = [{"url": f"https://bucket/{name}", "relative_file_name": name} for name in page]

    def answer(request: httpx.Request) -> httpx.Response:
        token = int(request.url.params["page_token"]) + step
        return httpx.Response(200, json={"presigned_urls": files, "next_page_token": token})

    world = World(answer)
    names = [file.relative_file_name async for file in world.client.checkpoints.files("p", "j")]
    assert names == list(page)
    assert len(world.server.requests) == pages


async def test_nothing_to_change_is_a_mistake() -> None:
    world = World()
    with pytest.raises(ValueError, match="nothing to change"):
        await world.client.jobs.update("p", "j")
    with pytest.raises(ValueError, match="nothing to change"):
        await world.client.sessions.update("p", "j", "s")
    assert world.server.requests == []


async def test_secrets_are_sent_and_received_but_never_shown() -> None:
    wrapped = World(json_reply({"name": "n"}))
    for value in ("hunter2", SecretStr("hunter2"), SecretText("hunter2")):
        await wrapped.client.account.upsert_secret("n", value)
        assert b"hunter2" in wrapped.server.requests[-1].content
    creds = {"aws_access_key_id": "id", "aws_secret_access_key": "hunter2", "aws_session_token": "hunter3"}
    storing = World(json_reply({"s3_bucket": "b", "s3_key": "k", "creds": creds}))
    credentials = await storing.client.blobs.training_credentials()
    assert credentials.creds.aws_secret_access_key.get_secret_value() == "hunter2"
    signing = World(json_reply({"ssh_certificate": "c", "jwt": "hunter2", "proxy_address": "h:1"}))
    certificate = await signing.client.sessions.sign_ssh("p", "j", public_key="k")
    assert signing.server.requests[0].content == b'{"public_key": "k"}'  # for any replica
    malformed = World(json_reply({"s3_bucket": "b", "creds": {"aws_secret_access_key": "hunter2"}}))
    with pytest.raises(RequestError) as caught:
        await malformed.client.blobs.training_credentials()
    assert caught.value.__context__ is None
    assert "hunter" not in f"{wrapped.events} {credentials!r} {certificate!r} {caught.value}"


def test_the_page_of_a_job() -> None:
    assert World().client.job_link("p", "j") == f"{APP_URL}/training/p/logs/j"
    assert World(app_url=APP_URL + "/").client.job_link("a/b", "j") == f"{APP_URL}/training/a%2Fb/logs/j"
