"""Every transfer × every fault of the object store: whole and right in the end, or an error that says why.

The emulator's API and its objects share a socket here; the faults strike the objects alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from fast_clock import FastClock
from fault_table import ATTEMPTS
from pydantic import SecretStr
from resource_calls import World, prepared_world

from api_client import (
    ErrorAnswer,
    InvalidAnswer,
    RedirectRefused,
    Remote,
    RequestError,
    RetryPolicy,
    ServerFault,
    TrainingClient,
    Unreachable,
    UploadFailed,
    UrlExpired,
)
from api_client.definitions import Image, Runtime, TrainingJob, TrainingProject
from api_client.emulator.backend import StoredFile
from api_client.emulator.store.blobs import BUCKET
from api_client.transfers import DownloadReport, connections, uploads
from support.fake_backend import START
from support.faulty import FaultyServer
from support.served_platform import KEY, counting_bytes, served_platform

SIZE_BYTES = 300_000
FILE = StoredFile("checkpoint-100/notes.txt", 0, SIZE_BYTES, START.isoformat(), generate=counting_bytes)
CONTENT = counting_bytes(0, SIZE_BYTES)
LONGEST_SILENCE_S = 0.25
ARCHIVE = bytes(range(256)) * 1000
PASSING = (
    "408", "429", "429(retry-after=2)", "500", "502(html)", "503", "504", "reset@before", "reset@handled",
    "reset@during", "reset@after", "cut@before", "cut@during", "stall=2ms",
    "slow=4ms", "restart=1ms",
)  # fmt: skip
"""Silence for ever has a test below; that of an upload is in test_upload_faults."""


class Transfer:
    """One run of a transfer, and what it is asked to move."""

    def __init__(self, client: TrainingClient, world: World, folder: Path) -> None:
        self.client = client
        self.world = world
        self.folder = folder
        self.told: list[str] = []

    async def download(self) -> bool:
        plan = await self.client.downloads.plan_checkpoints(*self.world.job, self.folder)
        return self._is_there(await self.client.downloads.run(plan), CONTENT)

    async def download_archive(self) -> bool:
        plan = await self.client.downloads.plan_archive(*self.world.job, self.folder)
        return self._is_there(await self.client.downloads.run(plan), ARCHIVE)

    def _is_there(self, report: DownloadReport, content: bytes) -> bool:
        self.told = [file.error for file in report.files if file.error]
        found = [path for path in self.folder.rglob("*") if path.is_file()]
        return report.is_complete and [path.read_bytes() for path in found] == [content]

    async def preview(self) -> bool:
        (file,) = await self.client.checkpoints.files_of(*self.world.job, "checkpoint-100")
        head = await self.client.checkpoint_contents.read(*self.world.job, file, length=1000)
        return head == CONTENT[:1000]

    async def upload(self) -> bool:
        path = self.folder / "code.tgz"
        path.write_bytes(ARCHIVE)
        credentials = await self.client.blobs.training_credentials()
        await self.client.blobs.upload(path, credentials)
        return self._is_stored(credentials.s3_bucket, credentials.s3_key)

    async def push(self) -> bool:
        (self.folder / "train.py").write_text("print()")
        config = TrainingProject(
            name="llama-sft",
            job=TrainingJob(image=Image(base_image="x"), runtime=Runtime(start_commands=["true"])),
        )
        before = len(self.world.served.backend.specs)
        submission = await self.client.push(config, source_dir=self.folder)
        (spec,) = self.world.served.backend.specs[before:]
        (artifact,) = spec["runtime"]["artifacts"]
        return bool(submission.training_job.id) and self._is_stored(artifact["s3_bucket"], artifact["s3_key"])

    def _is_stored(self, bucket: str, key: str) -> bool:
        return self.world.served.platform.stores.blobs.path(bucket, key) is not None


TRANSFERS: dict[str, Callable[[Transfer], Awaitable[bool]]] = {
    "downloads.plan_checkpoints": Transfer.download,
    "downloads.plan_archive": Transfer.download_archive,
    "checkpoint_contents.read": Transfer.preview,
    "blobs.upload": Transfer.upload,
    "push": Transfer.push,
}


@pytest.fixture(autouse=True)
def _quick_uploads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "FIRST_BACKOFF_S", 0.02)
    monkeypatch.setattr(uploads, "MAX_RETRIES", ATTEMPTS)


@pytest.fixture(scope="module")
def world(faulty: FaultyServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with served_platform(faulty, tmp_path_factory.mktemp("platform")) as served:
        prepared = asyncio.run(prepared_world(served))
        served.backend.stored_files[served.job_id] = [FILE]
        served.backend.add_archive(served.job_id, BUCKET, "code.tgz")
        with served.platform.stores.blobs.receive(BUCKET, "code.tgz") as incoming:
            incoming.write(ARCHIVE)
            incoming.keep()
        yield prepared


async def run(
    name: str, faults: str, world: World, faulty: FaultyServer, folder: Path
) -> tuple[bool, RequestError | None, list[str]]:
    """Whether all arrived, the error if one was raised, and what was told of single files."""
    target = folder / name
    target.mkdir()
    clock = FastClock()
    # Presigned URLs are dated by the platform's clock.
    world.served.clock.moment = clock.now()
    faulty.layer.clock = clock
    faulty.set_faults(f"{faults};paths=/checkpoint-files,/{BUCKET}")
    remote = Remote("lab", faulty.url, faulty.url, key=SecretStr(KEY), key_origin="a test")
    async with TrainingClient(remote, clock=clock, retry=RetryPolicy(max_attempts=ATTEMPTS)) as client:
        transfer = Transfer(client, world, target)
        try:
            return await TRANSFERS[name](transfer), None, transfer.told
        except RequestError as error:
            return False, error, transfer.told


@pytest.mark.parametrize("fault", PASSING)
async def test_what_passes_is_got_over(
    fault: str, world: World, faulty: FaultyServer, tmp_path: Path
) -> None:
    wrong = []
    # obstore waits by the wall clock, on which this outage never ends.
    uploads_too = not fault.startswith("restart")
    for name in TRANSFERS if uploads_too else set(TRANSFERS) - {"blobs.upload", "push"}:
        is_all, error, told = await run(name, f"{fault};times=1", world, faulty, tmp_path)
        if not is_all or not faulty.struck():
            wrong.append(f"{name}: {error!r} {told}, struck {faulty.struck()}")
    assert wrong == []


@pytest.mark.parametrize("moment", ["before", "handled", "during"])
async def test_silence_is_not_waited_for_for_ever(
    moment: str, world: World, faulty: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "READ_TIMEOUT_S", LONGEST_SILENCE_S)
    name = "downloads.plan_archive"
    is_all, error, told = await run(name, f"stall@{moment};times=1", world, faulty, tmp_path)
    assert (is_all, error, told) == (True, None, [])
    assert len(faulty.struck()) == 1


LASTING: dict[str, tuple[type[RequestError], str]] = {
    "400": (UrlExpired, "400"),
    "401": (UrlExpired, "401"),
    "403": (UrlExpired, "403"),
    "404": (UrlExpired, "404"),
    "409": (ErrorAnswer, "409"),
    "422": (ErrorAnswer, "422"),
    "503": (ServerFault, "503"),
    "html": (InvalidAnswer, ""),
    "truncated": (InvalidAnswer, ""),
    "empty": (InvalidAnswer, ""),
    "reset@during": (Unreachable, "broke"),
    "redirect": (RedirectRefused, "redirect"),
}


UNNOTICED = {
    ("truncated", "downloads.plan_archive"): "its size stands in no listing",
    ("empty", "downloads.plan_archive"): "its size stands in no listing",
    ("truncated", "checkpoint_contents.read"): "the half that came holds what was asked for",
    **{
        (fault, name): "a store's answer to an upload has no body to lose"
        for fault in ("truncated", "empty", "reset@during")
        for name in ("blobs.upload", "push")
    },
}
"""Cells where a fault cannot be seen, and why."""


@pytest.mark.parametrize("fault", LASTING)
async def test_what_stays_is_told(fault: str, world: World, faulty: FaultyServer, tmp_path: Path) -> None:
    """A download tells it of the file and leaves nothing half under its name; an upload makes no job."""
    kind, words = LASTING[fault]
    wrong = []
    for name in TRANSFERS:
        if (fault, name) in UNNOTICED:
            continue
        jobs = len(world.served.backend.specs)
        is_all, error, told = await run(name, fault, world, faulty, tmp_path)
        if name in ("blobs.upload", "push"):
            is_told = isinstance(error, UploadFailed)
        elif name == "checkpoint_contents.read":
            is_told = isinstance(error, kind) and words in str(error)
        else:
            is_told = error is None and any(words in each for each in told)
        if is_all or not is_told or len(world.served.backend.specs) != jobs:
            wrong.append(f"{name}: {is_all} {error!r} {told} {len(faulty.struck())} faults")
        left = [path.name for path in (tmp_path / name).rglob("*.txt")]
        if left:
            wrong.append(f"{name} left {left}")
    assert wrong == []
