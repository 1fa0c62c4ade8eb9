"""Weights that are delivered before a job starts."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from local_world import LocalWorld, job_spec, living, local_world

from api_client.emulator.runner.weights import FetchFailed, safe_name
from api_client.models import JobStatus
from support.fake_object_store import FakeObjectStore

SECRET = json.dumps(
    {"access_key_id": "AKIATEST", "secret_access_key": "very-secret-value", "region": "eu-west-1"}
)
MOUNT = "/app/models/llama"


@pytest.fixture
def store() -> Iterator[FakeObjectStore]:
    with FakeObjectStore() as store:
        yield store


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder of weights."""
    folder = tmp_path / "my model"
    (folder / "sub").mkdir(parents=True)
    for name in ("a.safetensors", "words.txt", "README.md", "sub/b.safetensors"):
        (folder / name).write_text(name)
    return folder


def with_weights(spec: dict[str, Any], *weights: dict[str, Any]) -> dict[str, Any]:
    return {**spec, "weights": list(weights)}


def listing(more: str = "true", nodes: int = 1) -> dict[str, Any]:
    return job_spec(f'cd "$BT_EMULATOR_ROOT{MOUNT}" && find . -type f | sort; {more}', nodes=nodes)


def store_world(tmp_path: Path, store: FakeObjectStore) -> AbstractAsyncContextManager[LocalWorld]:
    endpoints = dict.fromkeys(("AWS_ENDPOINT_URL", "STORAGE_EMULATOR_HOST"), store.objects_url)
    return local_world(tmp_path / "data", environ={**os.environ, **endpoints})


def remarks(world: LocalWorld, job_id: str) -> list[str]:
    return [r["message"] for r in world.records(job_id) if r["message"].startswith("[emulator]")]


def is_writable(path: Path) -> bool:
    return bool(path.stat().st_mode & stat.S_IWUSR)


def holds(folder: Path, name: str) -> bool:
    return any(folder.rglob(name))


async def test_a_folder_is_delivered_through_the_patterns_during_created(tmp_path: Path, model: Path) -> None:
    source = {
        "source": f"file://{model}",
        "mount_location": MOUNT,
        "allow_patterns": ["*.safetensors", "words.*"],
        "ignore_patterns": ["sub/"],
    }
    show = "cat words.txt; echo; stat -L -c %a . words.txt"
    async with local_world(tmp_path / "data") as world:
        job = await world.run("job1", with_weights(listing(show, nodes=2), source))
        assert job.current_status == JobStatus.COMPLETED, job.error_message
        shown = ["./a.safetensors", "./words.txt", "words.txt", "555", "444"]
        assert [world.messages("job1", node) for node in ("node-0", "node-1")] == [shown, shown]
        created, deploying = world.backend.events("job1")[:2]
        assert (created.status, deploying.status) == (JobStatus.CREATED, JobStatus.DEPLOYING)
        delivered = next(record for record in world.records("job1") if "delivered in" in record["message"])
        assert deploying.created is not None
        assert int(delivered["timestamp"]) <= deploying.created.timestamp() * 1e9
        said = remarks(world, "job1")
        assert any(MOUNT in line and f"$BT_EMULATOR_ROOT{MOUNT}" in line for line in said[:3])
        assert not (tmp_path / "data" / "jobs" / "job1" / "weights").exists()
        assert is_writable(model / "words.txt")  # the user's own are left alone


AMBIENT = {
    "AWS_ACCESS_KEY_ID": "AKIAMINE",
    "AWS_SECRET_ACCESS_KEY": "mine",
    "AWS_SESSION_TOKEN": "mine",
    "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1",
    "GOOGLE_SERVICE_ACCOUNT": "/no/such/account.json",
}
"""What a user's shell may have for other work; obstore reads it by itself."""


async def test_objects_are_fetched_anonymously_and_only_once(
    tmp_path: Path, store: FakeObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in AMBIENT.items():
        monkeypatch.setenv(name, value)
    store.bucket = {
        "data/a.bin": b"A" * 1000,
        "data/sub/b.bin": b"B",
        "data/sub/": b"",
        "database/c.bin": b"C",
        "data/d.txt": b"D",
    }
    source = {"source": "s3://my-bucket/data", "mount_location": MOUNT, "ignore_patterns": ["*.txt"]}
    async with store_world(tmp_path, store) as world:
        for job_id in ("job1", "job2"):
            job = await world.run(job_id, with_weights(listing("wc -c < a.bin"), source))
            assert job.current_status == JobStatus.COMPLETED, job.error_message
            assert world.messages(job_id) == ["./a.bin", "./sub/b.bin", "1000"]
        assert sorted(store.downloads()) == ["data/a.bin", "data/sub/b.bin"]
        assert {each.headers.get("authorization", "") for each in store.taken} == {""}
        assert AMBIENT.items() <= os.environ.items()
        store.bucket["data/a.bin"] = b"B" * 1000  # of the same size and age, by its entity tag another one
        await world.run("job3", with_weights(listing("cut -c 1-3 a.bin"), source))
        assert world.messages("job3")[-1] == "BBB"


@pytest.mark.parametrize("in_auth", [True, False])
async def test_a_secret_opens_a_private_bucket_and_shows_nowhere(
    tmp_path: Path, store: FakeObjectStore, in_auth: bool
) -> None:
    store.bucket = {"one.bin": b"1"}
    store.needs_key = "AKIATEST"
    name = {"auth_secret_name": "bucket-key"}
    auth = {"auth": {"auth_method": "CUSTOM_SECRET", **name}} if in_auth else name
    source = {"source": "s3://my-bucket", "mount_location": MOUNT, **auth}
    async with store_world(tmp_path, store) as world:
        world.set_secret("bucket-key", SECRET)
        job = await world.run("job1", with_weights(listing(), source))
        assert job.current_status == JobStatus.COMPLETED, job.error_message
        assert world.messages("job1") == ["./one.bin"]
        world.set_secret("bucket-key", SECRET.replace("AKIATEST", "AKIAWRONG"))
        refused = await world.run("job2", with_weights(listing(), source))
        assert refused.current_status == JobStatus.DEPLOY_FAILED
        assert "my-bucket" in (refused.error_message or "")
        world.set_secret("bucket-key", "very-secret-value without braces")
        broken = await world.run("job3", with_weights(listing(), source))
        assert "JSON object" in (broken.error_message or "")
        dump = "\n".join(world.database._connection.iterdump())
        assert "very-secret-value" not in dump
        assert "AKIA" not in dump


async def test_other_ways_to_name_objects(
    tmp_path: Path, store: FakeObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in AMBIENT.items():
        monkeypatch.setenv(name, value)
    store.bucket = {"data/a.bin": b"1"}
    sources = ("s3://my-bucket/data/a.bin", "r2://account0.my-bucket/data", "gs://my-bucket/data/")
    async with store_world(tmp_path, store) as world:
        for number, source in enumerate(sources):
            weights = {"source": source, "mount_location": MOUNT}
            job = await world.run(f"job{number}", with_weights(listing(), weights))
            assert job.current_status == JobStatus.COMPLETED, job.error_message
            assert world.messages(job.id) == ["./a.bin"]


async def test_a_stop_ends_the_delivery(tmp_path: Path, store: FakeObjectStore) -> None:
    store.bucket = {"a.bin": b"1"}
    store.hangs = True
    source = {"source": "s3://my-bucket", "mount_location": MOUNT}
    async with store_world(tmp_path, store) as world:
        await world.create("job1", with_weights(job_spec("echo never"), source))
        assert await asyncio.to_thread(store.asked_for_object.wait, 20)
        assert world.backend.job("job1").current_status == JobStatus.CREATED
        assert (await world.backend.stop("job1")).current_status == JobStatus.STOPPED
        assert world.messages("job1") == []


FAKE_HUB = """
import json
from pathlib import Path

def snapshot_download(repo_id, **options):
    folder = Path(options["cache_dir"]) / "snapshot"
    folder.mkdir(parents=True, exist_ok=True)
    options["cache_dir"] = ""
    for name, text in (("asked.json", json.dumps([repo_id, options])), ("old.md", "of another time")):
        (folder / name).unlink(missing_ok=True)  # what was handed out is write-protected
        (folder / name).write_text(text)
    if options["token"] == "wrong-token":
        raise PermissionError("403 for wrong-token: the repository is gated")
    return str(folder)
"""


async def test_the_hub_is_asked_for_the_revision_with_the_jobs_own_token(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "huggingface_hub.py").write_text(FAKE_HUB)
    source = {
        "source": "hf://acme/base@main",
        "mount_location": MOUNT,
        "ignore_patterns": ["*.md"],
        "auth": {"auth_method": "CUSTOM_SECRET", "auth_secret_name": "hf"},
    }
    open_source = {"source": "hf://datasets/acme/words", "mount_location": MOUNT}
    environ = {**os.environ, "HF_TOKEN": "the-users-own", "PYTHONPATH": str(tmp_path / "lib")}
    async with local_world(tmp_path / "data", environ=environ) as world:
        world.set_secret("hf", "hub-token")
        job = await world.run("job1", with_weights(listing("cat asked.json"), source))
        assert job.current_status == JobStatus.COMPLETED, job.error_message
        name, asked = world.messages("job1")
        assert name == "./asked.json"
        repository, options = json.loads(asked)
        assert (repository, options["revision"], options["token"]) == ("acme/base", "main", "hub-token")
        assert (options["repo_type"], options["ignore_patterns"]) == ("model", ["*.md"])
        await world.run("job2", with_weights(listing("cat asked.json"), open_source))
        repository, options = json.loads(world.messages("job2")[-1])
        assert (repository, options["repo_type"], options["token"]) == ("acme/words", "dataset", False)
        world.set_secret("hf", "wrong-token")
        refused = await world.run("job3", with_weights(job_spec("true"), source))
        assert refused.current_status == JobStatus.DEPLOY_FAILED
        assert "gated" in (refused.error_message or "")
        assert not any(
            "wrong-token" in text for text in [refused.error_message or "", *remarks(world, "job3")]
        )


@pytest.mark.parametrize(
    ("hub", "expected"),
    [
        ("raise ImportError('none')", "pip install huggingface-hub"),
        ("import time\ndef snapshot_download(**_): time.sleep(1000)", None),
    ],
)
async def test_a_hub_that_is_missing_or_slow(tmp_path: Path, hub: str, expected: str | None) -> None:
    (tmp_path / "huggingface_hub.py").write_text(hub)
    source = {"source": "hf://acme/base", "mount_location": MOUNT}
    async with local_world(tmp_path / "data", environ={**os.environ, "PYTHONPATH": str(tmp_path)}) as world:
        await world.create("job1", with_weights(job_spec("true"), source))
        if expected is None:
            assert (await world.backend.stop("job1")).current_status == JobStatus.STOPPED
            assert living("acme/base") == []
        else:
            job = await world.finished("job1")
            assert expected in (job.error_message or "")


SECRET_AUTH = {"auth_method": "CUSTOM_SECRET", "auth_secret_name": "none"}
BAD_SOURCES: list[tuple[dict[str, Any], str]] = [
    ({"source": "azure://a/b", "mount_location": "/m"}, "azure://a/b"),
    ({"mount_location": "/m"}, "weights[0].source"),
    ({"source": "file:///tmp", "mount_location": "m"}, "absolute"),
    ({"source": "file:///tmp", "mount_location": "/m/../../etc"}, "'..'"),
    ({"source": "file:///no/such/folder", "mount_location": "/m"}, "/no/such/folder"),
    ({"source": "file://model", "mount_location": "/m"}, "absolute path"),
    ({"source": "r2://bucket/path", "mount_location": "/m"}, "account_id"),
    (
        {"source": "s3://a/b", "mount_location": "/m", "auth": {"auth_method": "AWS_OIDC"}},
        "AWS_OIDC",
    ),
    ({"source": "s3://a/b", "mount_location": "/m", "auth": SECRET_AUTH}, "'none'"),
    (
        {"source": "s3://a/b", "mount_location": "/m", "auth": SECRET_AUTH, "auth_secret_name": "x"},
        "given twice",
    ),
    ({"source": "s3://a/b", "mount_location": "/m", "allow_patterns": "*"}, "allow_patterns"),
    ({"source": "file:///etc", "mount_location": "/m", "allow_patterns": ["*.no"]}, "no file that matches"),
]


async def test_what_cannot_be_delivered_says_why(tmp_path: Path) -> None:
    async with local_world(tmp_path / "data") as world:
        for number, (source, reason) in enumerate(BAD_SOURCES):
            job = await world.run(f"job{number}", with_weights(job_spec("true"), source))
            assert job.current_status == JobStatus.DEPLOY_FAILED, source
            assert reason in (job.error_message or "")
            assert JobStatus.DEPLOYING not in world.statuses(job.id)


@pytest.mark.parametrize("key", ["../up", "a/../../up"])
async def test_an_object_cannot_be_put_elsewhere(tmp_path: Path, store: FakeObjectStore, key: str) -> None:
    store.bucket = {"data/fine": b"1", f"data/{key}": b"evil"}
    source = {"source": "s3://my-bucket/data", "mount_location": MOUNT}
    async with store_world(tmp_path, store) as world:
        job = await world.run("job1", with_weights(job_spec("true"), source))
        assert job.current_status == JobStatus.DEPLOY_FAILED
        assert not holds(tmp_path, "up")


@pytest.mark.parametrize("name", ["../up", "a/../../up", "/etc/up", "", "nul\0"])
def test_a_file_is_never_placed_outside(name: str) -> None:
    with pytest.raises(FetchFailed):
        safe_name(name)
