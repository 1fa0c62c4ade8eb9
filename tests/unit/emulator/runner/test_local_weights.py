"""Weights that are delivered before a job starts."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from local_world import LocalWorld, holds, job_spec, living, local_world

from api_client.emulator.runner.weights import matches_patterns
from api_client.models import JobStatus
from support.fake_object_store import FakeObjectStore, Trouble

KEY_PAIR = {"aws_access_key_id": "AKIATEST", "aws_secret_access_key": "very-secret-value"}
SECRET = json.dumps(KEY_PAIR | {"aws_region": "eu-west-1", "aws_session_token": "very-secret-token"})
MOUNT = "/app/models/llama"
AMBIENT = {
    "AWS_ACCESS_KEY_ID": "AKIAMINE",
    "AWS_SECRET_ACCESS_KEY": "mine",
    "AWS_SESSION_TOKEN": "mine",
    "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1",
}
"""What a user's shell may have for other work; obstore reads it by itself."""


@pytest.fixture
def store() -> Iterator[FakeObjectStore]:
    with FakeObjectStore() as store:
        yield store


@pytest.fixture
async def stored(
    tmp_path: Path, store: FakeObjectStore, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[LocalWorld]:
    """A world that is led to the store, of a user who has accounts elsewhere."""
    for name, value in AMBIENT.items():
        monkeypatch.setenv(name, value)
    environ = {**os.environ, "AWS_ENDPOINT_URL": store.objects_url}
    async with local_world(tmp_path / "data", environ=environ) as world:
        world.set_secret("bucket-key", SECRET)
        yield world


def with_weights(source: str, command: str = "true", nodes: int = 1, **more: Any) -> dict[str, Any]:
    """A payload that lists its weights and runs the command beside them."""
    listing = f'cd "$BT_EMULATOR_ROOT{MOUNT}" && find . -type f | sort; {command}'
    auth = {} if source.startswith(("file", "hf", "azure")) else {"auth_secret_name": "bucket-key"}
    weights = {"source": source, "mount_location": MOUNT, **auth, **more}
    return {**job_spec(listing, nodes=nodes), "weights": [weights]}


async def fetched(world: LocalWorld, job_id: str, *payload: Any, **more: Any) -> list[str]:
    job = await world.run(job_id, with_weights(*payload, **more))
    assert job.current_status == JobStatus.COMPLETED, job.error_message
    return world.messages(job_id)


async def refused(world: LocalWorld, job_id: str, *payload: Any, **more: Any) -> str:
    job = await world.run(job_id, with_weights(*payload, **more))
    assert job.current_status == JobStatus.DEPLOY_FAILED, payload
    assert JobStatus.DEPLOYING not in world.statuses(job_id)
    return job.error_message or ""


def remarks(world: LocalWorld, job_id: str) -> list[str]:
    return [r["message"] for r in world.records(job_id) if r["message"].startswith("[emulator]")]


async def test_a_folder_is_delivered_through_the_patterns_during_created(tmp_path: Path) -> None:
    model = tmp_path / "my model"
    await asyncio.to_thread((model / "sub").mkdir, parents=True)
    for name in ("a.safetensors", "words.txt", "README.md", "sub/b.safetensors"):
        (model / name).write_text(name)
    patterns = {"allow_patterns": ["*.safetensors", "words.*"], "ignore_patterns": ["sub/"]}
    show = "cat words.txt; echo; stat -L -c %a . words.txt"
    async with local_world(tmp_path / "data") as world:
        await fetched(world, "job1", f"file://{model}", show, 2, **patterns)
        shown = ["./a.safetensors", "./words.txt", "words.txt", "555", "444"]
        assert [world.messages("job1", node) for node in ("node-0", "node-1")] == [shown, shown]
        created, deploying = world.backend.events("job1")[:2]
        assert (created.status, deploying.status) == (JobStatus.CREATED, JobStatus.DEPLOYING)
        delivered = next(
            record for record in world.records("job1") if "delivered 2 files" in record["message"]
        )
        assert deploying.created is not None
        assert int(delivered["timestamp"]) <= deploying.created.timestamp() * 1e9
        said = remarks(world, "job1")
        assert any(MOUNT in line and f"$BT_EMULATOR_ROOT{MOUNT}" in line for line in said[:3])
        assert not holds(tmp_path / "data" / "jobs" / "job1", "weights")
        assert os.access(model / "words.txt", os.W_OK)  # the user's own are left alone


@pytest.mark.parametrize(
    ("patterns", "matching"),
    [
        (["*.bin"], ["a.bin"]),
        (["**/*.bin"], ["a.bin", "sub/b.bin", "sub/deep/c.bin"]),
        (["*/*.bin"], ["sub/b.bin"]),
        (["sub/**"], ["sub/b.bin", "sub/deep/c.bin"]),
        (["sub/"], ["sub/b.bin", "sub/deep/c.bin"]),
        (["**/deep/*", "a.*"], ["a.bin", "sub/deep/c.bin"]),
        (["sub/**/c.bin"], ["sub/deep/c.bin"]),
        (["**"], ["a.bin", "sub/b.bin", "sub/deep/c.bin"]),
        (["su?/[ab].bin"], ["sub/b.bin"]),
        (["/".join(["**", "*"] * 50)], []),
    ],
)
@pytest.mark.proves("docs/emulator.md", "Weights")
def test_weights_patterns_match_like_the_platform(patterns: list[str], matching: list[str]) -> None:
    names = ["a.bin", "sub/b.bin", "sub/deep/c.bin"]
    assert [name for name in names if matches_patterns(name, patterns, None)] == matching
    assert [name for name in names if not matches_patterns(name, None, patterns)] == matching


@pytest.mark.proves("docs/emulator.md", "Weights")
async def test_objects_are_fetched_once_with_the_jobs_own_key(
    stored: LocalWorld, store: FakeObjectStore
) -> None:
    store.bucket = {"data/a.bin": b"A" * 1000, "data/sub/b.bin": b"B", "data/sub/": b""}
    store.bucket |= {"database/c.bin": b"C", "data/d.txt": b"D"}
    source = ("s3://my-bucket/data", "cut -c 1-3 a.bin")
    for job_id in ("job1", "job2"):
        found = await fetched(stored, job_id, *source, ignore_patterns=["*.txt"])
        assert found == ["./a.bin", "./sub/b.bin", "AAA"]
    assert sorted(store.downloads()) == ["data/a.bin", "data/sub/b.bin"]
    assert all("AKIATEST" in request.headers.get("authorization", "") for request in store.taken)
    # As on Baseten, even if the bucket is public:
    assert "needs auth" in await refused(stored, "no-auth", "s3://my-bucket", auth_secret_name=None)
    assert AMBIENT.items() <= os.environ.items()
    store.bucket["data/a.bin"] = b"B" * 1000  # of the same size and age, by its entity tag another one
    assert (await fetched(stored, "job3", *source))[-1] == "BBB"


@pytest.mark.proves("docs/emulator.md", "Weights")
async def test_a_secret_opens_a_bucket_and_shows_nowhere(stored: LocalWorld, store: FakeObjectStore) -> None:
    store.bucket = {"one.bin": b"1"}
    store.needs_key = "AKIATEST"
    assert await fetched(stored, "job1", "s3://my-bucket") == ["./one.bin"]
    auth = {"auth_method": "CUSTOM_SECRET", "auth_secret_name": "bucket-key"}
    source = {"auth": auth, "auth_secret_name": None}
    assert await fetched(stored, "job2", "s3://my-bucket", **source) == ["./one.bin"]
    stored.set_secret("bucket-key", SECRET.replace("AKIATEST", "AKIAWRONG"))
    assert "my-bucket" in await refused(stored, "job3", "s3://my-bucket")
    unprefixed = {name.removeprefix("aws_"): value for name, value in KEY_PAIR.items()}
    for number, secret in enumerate(("very-secret-value without braces", json.dumps(unprefixed))):
        stored.set_secret("bucket-key", secret)
        reason = await refused(stored, f"refused{number}", "s3://my-bucket")
        assert '"aws_access_key_id" and "aws_secret_access_key"' in reason
    dump = "\n".join(stored.database._connection.iterdump())
    assert "very-secret-value" not in dump
    assert "AKIA" not in dump


async def test_objects_are_named_in_other_ways_but_never_put_elsewhere(
    tmp_path: Path, stored: LocalWorld, store: FakeObjectStore
) -> None:
    store.bucket = {"data/a.bin": b"1"}
    for number, source in enumerate(("s3://my-bucket/data/a.bin", "s3://my-bucket/data/")):
        assert await fetched(stored, f"job{number}", source) == ["./a.bin"]
    for key in ("../up", "a/../../up", "/up"):
        store.bucket = {"data/fine": b"1", f"data/{key}": b"evil"}
        await refused(stored, f"job {key.count('/')} {len(key)}", "s3://my-bucket/data")
        assert not holds(tmp_path, "up")


async def test_a_stop_ends_the_delivery(stored: LocalWorld, store: FakeObjectStore) -> None:
    store.bucket = {"a.bin": b"1"}
    store.trouble["get"] = [Trouble(silent=True)]
    await stored.create("job1", with_weights("s3://my-bucket", "echo never"))
    await stored.until(lambda: "get" in store.asked())
    assert stored.backend.job("job1").current_status == JobStatus.CREATED
    assert (await stored.backend.stop("job1")).current_status == JobStatus.STOPPED
    assert stored.messages("job1") == []


FAKE_HUB = """
import json
from pathlib import Path

def list_repo_files(repo_id, **options):
    return ["asked.json", "old.md", "sub/old.md", "sub/asked[1].json"]

def snapshot_download(repo_id, **options):
    folder = Path(options["cache_dir"]) / "snapshot"
    folder.mkdir(parents=True, exist_ok=True)
    options["cache_dir"] = ""
    for name in list_repo_files(repo_id):
        (folder / name).unlink(missing_ok=True)  # what was handed out is write-protected
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps([repo_id, options]))
    if options["token"] == "wrong-token":
        raise PermissionError("403 for wrong-token: the repository is gated")
    return str(folder)
"""


def hub_world(tmp_path: Path, hub: str) -> AbstractAsyncContextManager[LocalWorld]:
    """A world with that module as huggingface_hub, of a user who is logged in."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "huggingface_hub.py").write_text(hub)
    environ = {**os.environ, "HF_TOKEN": "the-users-own", "PYTHONPATH": str(tmp_path / "lib")}
    return local_world(tmp_path / "data", environ=environ)


@pytest.mark.proves("README.md", "On your own workspace")
async def test_the_hub_is_asked_for_the_revision_with_the_jobs_own_token(tmp_path: Path) -> None:
    auth = {"auth_method": "CUSTOM_SECRET", "auth_secret_name": "hf"}
    source = ("hf://acme/base@main", "cat asked.json")
    async with hub_world(tmp_path, FAKE_HUB) as world:
        world.set_secret("hf", "hub-token")
        patterns = {"allow_patterns": ["**/*.json", "*/*.md"], "ignore_patterns": ["*.md"]}
        *names, asked = await fetched(world, "job1", *source, auth=auth, **patterns)
        assert names == ["./asked.json", "./sub/asked[1].json", "./sub/old.md"]
        repository, options = json.loads(asked)
        assert (repository, options["revision"], options["token"]) == ("acme/base", "main", "hub-token")
        assert options["repo_type"] == "model"
        assert options["allow_patterns"] == ["asked.json", "sub/old.md", "sub/asked[[]1].json"]
        found = await fetched(world, "job2", "hf://datasets/acme/words", "cat asked.json")
        repository, options = json.loads(found[-1])
        assert (repository, options["repo_type"], options["token"]) == ("acme/words", "dataset", False)
        world.set_secret("hf", "wrong-token")
        reason = await refused(world, "job3", *source, auth=auth)
        assert "gated" in reason
        assert not any("wrong-token" in text for text in [reason, *remarks(world, "job3")])


async def test_a_hub_that_is_missing_is_named_and_a_slow_one_ends_with_a_stop(tmp_path: Path) -> None:
    async with hub_world(tmp_path, "raise ImportError('none')") as world:
        assert "pip install huggingface-hub" in await refused(world, "job1", "hf://acme/base")
        slow = "import time\ndef list_repo_files(**_): time.sleep(1000)"
        (tmp_path / "lib" / "huggingface_hub.py").write_text(slow)
        await world.create("job2", with_weights("hf://acme/base"))
        assert (await world.backend.stop("job2")).current_status == JobStatus.STOPPED
        assert living(f"{tmp_path}/data/weights") == []


SECRET_AUTH = {"auth_method": "CUSTOM_SECRET", "auth_secret_name": "none"}
BAD_SOURCES: list[tuple[str, dict[str, Any], str]] = [
    ("azure://a/b", {}, "azure://a/b"),
    ("file:///tmp", {"mount_location": "m"}, "absolute"),
    ("file:///no/such/folder", {}, "/no/such/folder"),
    ("r2://account.bucket/path", {}, "r2://"),
    ("s3://a/b", {"auth": {"auth_method": "AWS_OIDC"}, "auth_secret_name": None}, "AWS_OIDC"),
    ("s3://a/b", {"auth": SECRET_AUTH, "auth_secret_name": None}, "'none'"),
    ("s3://a/b", {"allow_patterns": "*"}, "allow_patterns"),
    ("file:///etc", {"allow_patterns": ["*.no"]}, "no file matches"),
]


async def test_what_cannot_be_delivered_says_why(tmp_path: Path) -> None:
    async with local_world(tmp_path / "data") as world:
        world.set_secret("bucket-key", SECRET)
        for number, (source, fields, reason) in enumerate(BAD_SOURCES):
            assert reason in await refused(world, f"job{number}", source, **fields)
