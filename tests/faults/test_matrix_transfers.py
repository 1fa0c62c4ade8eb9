"""Every transfer × every fault of the object store: whole and right in the end, or an error that says why.

The emulator's API and its objects share a socket here; the faults strike the objects alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fault_table import ATTEMPTS

from api_client import RetryPolicy, TrainingClient, errors
from api_client.definitions import Image, Runtime, TrainingJob, TrainingProject
from api_client.emulator.backend import StoredFile
from api_client.emulator.store.blobs import BUCKET
from api_client.transfers import DownloadPlan, objects, uploads
from support.fake_backend import START
from support.faulty import FaultyServer
from support.log_server import FastClock
from support.remotes import remote_of
from support.resource_calls import World, prepared_world
from support.served_platform import counting_bytes, served_platform

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
"""Silence for ever has a test below; that of an upload, and uploads in parts, are in test_upload_faults."""


class Transfer:
    """One run of a transfer, and what it is asked to move; ``failures`` are the errors of single files."""

    def __init__(self, client: TrainingClient, world: World, folder: Path) -> None:
        self.client, self.world, self.folder = client, world, folder
        self.failures: list[str] = []

    async def download(self) -> bool:
        plan = await self.client.downloads.plan_checkpoints(*self.world.job, self.folder)
        return await self._run(plan, CONTENT)

    async def download_archive(self) -> bool:
        plan = await self.client.downloads.plan_archive(*self.world.job, self.folder)
        return await self._run(plan, ARCHIVE)

    async def _run(self, plan: DownloadPlan, content: bytes) -> bool:
        report = await self.client.downloads.run(plan)
        self.failures = [file.error for file in report.files if file.error]
        found = [path.read_bytes() for path in self.folder.rglob("*") if path.is_file()]
        return report.is_complete and found == [content]

    async def preview(self) -> bool:
        (file,) = await self.client.checkpoints.files_of(*self.world.job, "checkpoint-100")
        head = await self.client.checkpoint_contents.read(*self.world.job, file, length=1000)
        return head == CONTENT[:1000]

    async def push(self) -> bool:
        (self.folder / "train.py").write_text("print()")
        job = TrainingJob(image=Image(base_image="x"), runtime=Runtime(start_commands=["true"]))
        before = len(self.world.served.backend.specs)
        config = TrainingProject(name="llama-sft", job=job)
        submission = await self.client.push(config, source_dir=self.folder)
        (spec,) = self.world.served.backend.specs[before:]
        (artifact,) = spec["runtime"]["artifacts"]
        stored = self.world.served.platform.stores.blobs.path(artifact["s3_bucket"], artifact["s3_key"])
        return bool(submission.training_job.id) and stored is not None


TRANSFERS: dict[str, Callable[[Transfer], Awaitable[bool]]] = {
    "downloads.plan_checkpoints": Transfer.download,
    "downloads.plan_archive": Transfer.download_archive,
    "checkpoint_contents.read": Transfer.preview,
    "push": Transfer.push,
}


@pytest.fixture(scope="module")
def world(faulty: FaultyServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with served_platform(faulty, tmp_path_factory.mktemp("platform")) as served:
        prepared = asyncio.run(prepared_world(served))
        served.backend.stored_files[served.job_id] = [FILE]
        served.backend.add_archive(served.job_id, BUCKET, "code.tgz")
        with served.platform.stores.blobs.receive(BUCKET, "code.tgz") as incoming:
            incoming.write(ARCHIVE)
            incoming.commit()
        yield prepared


@dataclass
class Run:
    """Whether all arrived, the error if one was raised, and those of single files."""

    is_all: bool
    error: errors.RequestError | None
    failures: list[str]


@pytest.fixture
def run(
    world: World, faulty: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, str], Awaitable[Run]]:
    """Run the named transfer under faults of the object store."""
    monkeypatch.setattr(uploads, "FIRST_BACKOFF_S", 0.02)
    monkeypatch.setattr(uploads, "MAX_RETRIES", ATTEMPTS)

    async def run(name: str, faults: str) -> Run:
        target = tmp_path / name
        target.mkdir()
        clock = FastClock(begin_s=time.time(), pause_s=0.001)
        # Presigned URLs are dated by the platform's clock.
        world.served.clock.moment = clock.now()
        faulty.layer.clock = clock
        faulty.set_faults(f"{faults};paths=/checkpoint-files,/{BUCKET}")
        policy = RetryPolicy(max_attempts=ATTEMPTS)
        async with TrainingClient(remote_of(faulty), clock=clock, retry=policy) as client:
            transfer = Transfer(client, world, target)
            try:
                return Run(await TRANSFERS[name](transfer), None, transfer.failures)
            except errors.RequestError as error:
                return Run(False, error, transfer.failures)

    return run


Runner = Callable[[str, str], Awaitable[Run]]


@pytest.mark.parametrize("fault", PASSING)
async def test_transient_faults_are_retried(fault: str, run: Runner, faulty: FaultyServer) -> None:
    wrong = []
    # obstore waits by the wall clock, on which a restart never ends.
    for name in TRANSFERS.keys() - ({"push"} if fault.startswith("restart") else set()):
        done = await run(name, f"{fault};times=1")
        if not done.is_all or not faulty.struck():
            wrong.append(f"{name}: {done}, struck {faulty.struck()}")
    assert wrong == []


@pytest.mark.parametrize("moment", ["before", "handled", "during"])
async def test_silence_is_not_waited_for_for_ever(
    moment: str, run: Runner, faulty: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "READ_TIMEOUT_S", LONGEST_SILENCE_S)
    assert await run("downloads.plan_archive", f"stall@{moment};times=1") == Run(True, None, [])
    assert len(faulty.struck()) == 1


LASTING: dict[str, tuple[type[errors.RequestError], str]] = {
    **{status: (errors.UrlExpired, status) for status in ("400", "401", "403", "404")},
    **{status: (errors.ErrorAnswer, status) for status in ("409", "422")},
    "503": (errors.ServerFault, "503"),
    **dict.fromkeys(("html", "truncated", "empty"), (errors.InvalidAnswer, "")),
    "reset@during": (errors.Unreachable, "broke"),
    "redirect": (errors.RedirectRefused, "redirect"),
}
UNNOTICED = {
    # No listing has its size.
    "downloads.plan_archive": {"truncated", "empty"},
    # The half that came holds what was asked for.
    "checkpoint_contents.read": {"truncated"},
    # A store's answer to an upload has no body to lose.
    "push": {"truncated", "empty", "reset@during"},
}


@pytest.mark.parametrize("fault", LASTING)
async def test_lasting_faults_are_reported(fault: str, run: Runner, world: World, tmp_path: Path) -> None:
    """A download reports it for the file and leaves nothing half under its name; an upload makes no job."""
    kind, words = LASTING[fault]
    wrong = []
    for name in TRANSFERS:
        if fault in UNNOTICED.get(name, ()):
            continue
        jobs = len(world.served.backend.specs)
        done = await run(name, fault)
        if name == "push":
            is_told = isinstance(done.error, errors.UploadFailed)
        elif name == "checkpoint_contents.read":
            is_told = isinstance(done.error, kind) and words in str(done.error)
        else:
            is_told = done.error is None and any(words in each for each in done.failures)
        left = [path.name for path in (tmp_path / name).rglob("*.txt")]
        if done.is_all or not is_told or len(world.served.backend.specs) != jobs or left:
            wrong.append(f"{name}: {done}, left {left}")
    assert wrong == []
