"""Downloads from a store that cuts, forgets, lies and lets its URLs expire."""

from __future__ import annotations

import asyncio
import base64
import errno
import hashlib
import os
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from api_client.transfers import (
    DownloadProgress,
    DownloadReport,
    Existing,
    FileState,
    NoRoom,
    downloads,
)
from api_client.transfers.part_file import part_paths
from support.fake_object_store import (
    JOB,
    LISTED_TIME,
    PROJECT,
    Answer,
    Behaviour,
    FakeObjectStore,
    Stored,
    error,
)

UNIT = 128 * 1024
"""An eighth of a MiB stands for one: writes are as much smaller here."""


@pytest.fixture(autouse=True)
def _small_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "WRITE_BYTES", UNIT // 2)


def some_bytes(size_bytes: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size_bytes)


class Folder:
    """A folder that is downloaded into, and the store that the files come from."""

    def __init__(self, path: Path, store: FakeObjectStore) -> None:
        self.path = path
        self.store = store
        self.file = path / "ckpt/a.bin"

    def serve(self, *files: Stored, **behaviour: Any) -> FakeObjectStore:
        self.store.files, self.store.behaviour = list(files), Behaviour(**behaviour)
        return self.store

    async def download(
        self, *files: Stored, existing: Existing = Existing.SKIP, attempts: int = 4, **behaviour: Any
    ) -> DownloadReport:
        """Download these files from a store that behaves so; without any, what it serves already."""
        if files:
            self.serve(*files, **behaviour)
        async with self.store.client(attempts) as client:
            plan = await client.downloads.plan_checkpoints(PROJECT, JOB, self.path)
            return await client.downloads.run(plan, existing=existing)

    async def download_whole(self, *files: Stored, **behaviour: Any) -> DownloadReport:
        """Download, and find each file as the store has it now, and nothing else."""
        report = await self.download(*files, **behaviour)
        assert report.is_complete, report.files
        assert all((self.path / file.name).read_bytes() == file.content for file in self.store.files)
        assert not self.leftovers
        return report

    @property
    def leftovers(self) -> list[str]:
        return [path.name for path in self.path.rglob(".bt-tui-*")]

    @property
    def files(self) -> list[Path]:
        return [path for path in self.path.rglob("*") if path.is_file()]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with FakeObjectStore() as store:
        yield Folder(tmp_path, store)


async def test_a_large_file_arrives_whole_through_many_cuts(folder: Folder) -> None:
    content = some_bytes(64 * UNIT)
    chance = random.Random(7)
    cuts = dict(enumerate(chance.randrange(1, 3 * UNIT) for _ in range(24)))
    await folder.download_whole(Stored("ckpt/model.bin", content), cut_after=cuts.get)
    assert len(folder.store.requests) > len(cuts)
    # What was there is not fetched twice, but for what was on its way when a connection broke.
    assert folder.store.sent_bytes < 1.4 * len(content)


async def test_files_are_fetched_several_at_once(folder: Folder) -> None:
    meeting = threading.Barrier(3)
    requests: set[int] = set()

    def meet(number: int) -> None:
        # None of these is answered before all three are under way.
        if number in (0, 1, 2):
            meeting.wait(20)
            requests.add(number)

    files = [Stored(f"ckpt/{number}.bin", some_bytes(UNIT, number)) for number in range(5)]
    await folder.download_whole(*files, answer=meet)
    assert requests == {0, 1, 2}
    assert folder.store.sent_bytes == 5 * UNIT


async def test_a_url_that_expires_in_the_middle_is_renewed_once_for_all(folder: Folder) -> None:
    store = folder.store

    def expire(sent_bytes: int) -> None:
        if sent_bytes > 5 * UNIT and store.token == 1:
            store.token = 2

    files = [Stored(f"ckpt/{number}.bin", some_bytes(UNIT, number)) for number in range(12)]
    await folder.download_whole(*files, before_piece=expire)
    assert store.listings == 2  # the plan's, and the renewal's


async def test_nothing_of_ours_reaches_the_store(folder: Folder) -> None:
    store = folder.serve(Stored("ckpt/a.bin", b"a"), Stored("ckpt/b.bin", b"b" * UNIT))
    with FakeObjectStore(Stored("elsewhere", b"a")) as other:
        where = other.url(other.files[0])
        store.behaviour.answer = lambda number: (307, {"Location": where}, b"") if number == 0 else None
        assert (await folder.download()).is_complete
    assert other.requests
    for _path, headers in [*store.requests, *other.requests]:
        assert not {"authorization", "cookie", "referer", "proxy-authorization"} & set(headers)
        assert headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("has_length", [True, False])
async def test_a_store_without_ranges_or_listed_sizes(folder: Folder, has_length: bool) -> None:
    cuts = {0: 9 * UNIT, 1: 9 * UNIT}
    file = Stored("ckpt/a.bin", some_bytes(40 * UNIT))
    await folder.download_whole(file, ignores_ranges=True, has_length=has_length, cut_after=cuts.get)
    for size_bytes in (0, 1, 100_000):
        file = Stored(f"ckpt/{size_bytes}.bin", some_bytes(size_bytes), listed_size=-1)
        report = await folder.download_whole(file, has_length=has_length)
        assert report.files[0].size_bytes == size_bytes


PAGE = (200, {"Content-Type": "text/html"}, b"<html>please log in</html>")
NO_FILE: dict[str, tuple[int, int, Answer | None, str, int]] = {
    "empty": (0, 100, None, "instead of the listed 100", 3),
    "not empty": (90, 0, None, "instead of the listed 0", 3),
    "shorter": (90, 100, None, "instead of the listed 100", 3),
    "longer": (110, 100, None, "instead of the listed 100", 3),
    "far longer": (40 * UNIT, 100, None, "instead of the listed 100", 3),
    "a web page": (1000, 1000, PAGE, "web page", 1),
    "a web page of unknown size": (1000, -1, PAGE, "web page", 1),
    "refused": (10, 10, error(403, "AccessDenied"), "403 AccessDenied", 3),
}
"""What the store has, what is listed, its answer, the error, and the number of requests until then."""


@pytest.mark.parametrize("case", NO_FILE)
async def test_what_is_not_the_listed_file_fails_alone(folder: Folder, case: str) -> None:
    real_bytes, listed_size, answer, words, requests = NO_FILE[case]
    bad = Stored("ckpt/bad", b"x" * real_bytes, listed_size=listed_size)
    report = await folder.download(
        bad, Stored("ckpt/good", b"y"), answer_to=lambda path: answer if path.endswith("bad") else None
    )
    assert [file.state for file in report.files] == [FileState.FAILED, FileState.DONE]
    assert words in report.files[0].error
    assert sum(path.endswith("bad") for path, _headers in folder.store.requests) == requests
    assert [path.name for path in folder.files] == ["good"]


async def test_file_of_unknown_size_that_never_ends_is_given_up(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "MAX_BYTES", 4 * UNIT)
    content = some_bytes(16 * UNIT)
    report = await folder.download(Stored("ckpt/a.bin", content, listed_size=-1), has_length=False)
    assert [file.state for file in report.files] == [FileState.FAILED]
    assert "announced no size" in report.files[0].error


@pytest.mark.parametrize("size_bytes", [110, 40 * UNIT])
async def test_more_bytes_than_listed_are_not_the_file(folder: Folder, size_bytes: int) -> None:
    file = Stored("ckpt/a.bin", some_bytes(size_bytes), listed_size=size_bytes - 10)
    report = await folder.download(file, has_length=False, ignores_ranges=True)
    assert report.files[0].state is FileState.FAILED
    assert not folder.files


async def test_range_longer_than_announced_is_not_saved(folder: Folder) -> None:
    content = some_bytes(40 * UNIT)
    headers = {"Content-Range": f"bytes 0-{16 * UNIT - 1}/{len(content)}", "Transfer-Encoding": "chunked"}
    body = content[: 16 * UNIT] + b"more"
    too_long = (206, headers, b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
    await folder.download(Stored("ckpt/a.bin", content), answer=lambda _number: too_long)
    folder.store.behaviour = Behaviour()
    await folder.download_whole()


async def test_a_dead_store_is_given_up_on(folder: Folder) -> None:
    files = [Stored(f"ckpt/{number}", b"x") for number in range(100)]
    report = await folder.download(*files, attempts=2, answer=lambda _number: (500, {}, b""))
    assert len(report.failed) == 100
    assert len(folder.store.requests) < 40
    assert all(file.is_retryable for file in report.failed)


def in_base64(algorithm: str, content: bytes) -> str:
    return base64.b64encode(hashlib.new(algorithm, content).digest()).decode()


CONTENT, OTHER = b"the content of a file", b"other content"
DIGESTS = {
    "sha256": lambda content: {"x-amz-checksum-sha256": in_base64("sha256", content)},
    "md5 ": lambda content: {"x-goog-hash": f"crc32c=x,md5={in_base64('md5', content)}"},
    "md5": lambda content: {"ETag": f'"{hashlib.md5(content).hexdigest()}"', "x-amz-request-id": "1"},
}


@pytest.mark.parametrize("algorithm", DIGESTS)
async def test_a_digest_that_the_store_gives_is_checked(folder: Folder, algorithm: str) -> None:
    digests = [Stored(f"ckpt/{len(of)}", CONTENT, headers=DIGESTS[algorithm](of)) for of in (OTHER, CONTENT)]
    report = await folder.download(*digests)
    assert [file.state for file in report.files] == [FileState.FAILED, FileState.DONE]
    assert algorithm.strip() in report.files[0].error
    assert report.files[1].verified_by == algorithm.strip()
    assert [path.name for path in folder.files] == [str(len(CONTENT))]


TAG = {"ETag": '"0123456789abcdef0123456789abcdef"'}


@pytest.mark.parametrize(
    "headers",
    [
        {"ETag": '"0123456789abcdef0123456789abcdef-3"', "x-amz-request-id": "1"},
        TAG,
        {**TAG, "x-amz-request-id": "1", "x-amz-server-side-encryption": "aws:kms"},
        {"x-amz-checksum-sha256": "n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg=-2"},
        {"Content-MD5": "not base64"},
    ],
)
async def test_what_is_no_digest_of_the_file_fails_nothing(folder: Folder, headers: dict[str, str]) -> None:
    report = await folder.download_whole(Stored("ckpt/a", CONTENT, headers=headers))
    assert report.files[0].verified_by == "size"


async def fetch_half(folder: Folder, content: bytes, **headers: str) -> None:
    """Run until half is here; then the store hangs up."""
    file = Stored("ckpt/a.bin", content, headers=headers)
    cuts = {0: len(content) // 2}
    report = await folder.download(file, attempts=1, cut_after=lambda number: cuts.get(number, 0))
    assert not report.is_complete
    assert not folder.file.exists()
    folder.store.behaviour = Behaviour()


async def test_a_download_that_broke_off_resumes_where_it_stopped(folder: Folder) -> None:
    content, store = some_bytes(8 * UNIT), folder.store
    await fetch_half(folder, content)
    before = store.sent_bytes
    seen: list[DownloadProgress] = []
    async with store.client() as client:
        plan = await client.downloads.plan_checkpoints(PROJECT, JOB, folder.path)
        assert plan.files[0].part_bytes > 2 * UNIT
        assert plan.needed_bytes == len(content) - plan.files[0].part_bytes
        report = await client.downloads.run(plan, on_progress=seen.append)
    assert report.is_complete
    assert store.sent_bytes - before == report.fetched_bytes == plan.needed_bytes
    assert seen[-1].done_bytes == seen[-1].total_bytes == len(content)
    assert seen[0].done_bytes in (0, plan.files[0].part_bytes)
    assert folder.file.read_bytes() == content
    assert not folder.leftovers


DAMAGE: dict[str, Callable[[str], str | None]] = {
    "garbage": lambda _record: "{\n",
    "another job": lambda record: record.replace(f'"{JOB}"', '"another"'),
    "cut off": lambda record: record.rstrip(),
    "no digest": lambda record: record.rstrip() + "\nmd5:0\n",
    "unknown digest": lambda record: record.rstrip() + "\nmd0:0\n",
    "gone": lambda _record: None,
}


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_record_that_does_not_fit_starts_the_file_over(folder: Folder, damage: str) -> None:
    await fetch_half(folder, some_bytes(4 * UNIT), ETag='"tag"')
    part, record = part_paths(folder.file)
    damaged = DAMAGE[damage](record.read_text())
    record.unlink() if damaged is None else record.write_text(damaged)
    part.write_bytes(b"z" * part.stat().st_size)
    await folder.download_whole()


async def test_a_part_longer_than_its_file_starts_the_file_over(folder: Folder) -> None:
    await fetch_half(folder, some_bytes(4 * UNIT))
    part_paths(folder.file)[0].write_bytes(b"z" * (4 * UNIT + 1))
    await folder.download_whole()


@pytest.mark.parametrize(
    ("now", "listed", "should_continue"),
    [
        ('"same"', LISTED_TIME, True),
        ("", LISTED_TIME, True),
        ('"new"', LISTED_TIME, False),
        ('"same"', "last week", False),
    ],
)
async def test_download_starts_over_if_the_file_was_replaced(
    folder: Folder, now: str, listed: str, should_continue: bool
) -> None:
    new = some_bytes(4 * UNIT, 1 if should_continue else 2)
    await fetch_half(folder, some_bytes(4 * UNIT, 1), ETag='"same"')
    _part, record = part_paths(folder.file)
    record.write_text(record.read_text().replace(LISTED_TIME, listed))
    folder.serve(Stored("ckpt/a.bin", new, headers={"ETag": now} if now else {}))
    report = await folder.download_whole()
    assert (report.fetched_bytes < len(new) - UNIT) == should_continue


async def test_two_downloads_of_one_file_do_not_mix(folder: Folder) -> None:
    content = some_bytes(2 * UNIT)
    entered, leave = threading.Event(), threading.Event()

    def hold(_sent_bytes: int) -> None:
        entered.set()
        leave.wait(20)

    first = asyncio.create_task(folder.download(Stored("ckpt/a.bin", content), before_piece=hold))
    await asyncio.to_thread(entered.wait, 20)
    second = await folder.download()
    assert "another bt-tui" in second.files[0].error
    leave.set()
    assert (await first).is_complete
    assert folder.file.read_bytes() == content


REFUSED = {"../../etc/passwd", "ckpt/../../out", "..\\..\\out", "", ".", ".."}
HOSTILE = [
    *("/etc/passwd", "C:\\Windows\\system32", "ckpt/line\nbreak", "ckpt/[red]markup[/]", "ckpt/nul\0nul"),
    *("ckpt/\x1b[31mred", "ckpt/" + "long" * 200 + ".bin", "ckpt/CON", "ckpt/Model.bin", "ckpt/model.bin"),
    *("ckpt/dir", "ckpt/dir/file", "ckpt/.bt-tui-0.part", "ckpt/half\ud800letter", *sorted(REFUSED)),
]


async def test_no_name_leads_out_and_none_is_lost(folder: Folder, tmp_path: Path) -> None:
    folder.path = tmp_path / "inside"
    report = await folder.download(
        *[Stored(name, f"{number}".encode()) for number, name in enumerate(HOSTILE)]
    )
    assert {name.name for name in report.refused} == REFUSED
    assert not report.failed
    inside, folder.path = folder.path, tmp_path
    there = folder.files
    assert all(path.is_relative_to(inside) and str(path).isprintable() for path in there)
    assert sorted(path.read_text() for path in there) == sorted(
        str(number) for number, name in enumerate(HOSTILE) if name not in REFUSED
    )


async def test_links_files_and_directories_in_the_way_are_left_alone(folder: Folder, tmp_path: Path) -> None:
    folder.path = tmp_path / "in"
    outside = tmp_path / "outside"
    outside.mkdir()
    folder.path.mkdir()
    (folder.path / "ckpt").symlink_to(outside)
    report = await folder.download(Stored("ckpt/a", b"x"))
    assert "is a link" in report.files[0].error
    assert list(outside.iterdir()) == []

    folder.path = tmp_path / "file"
    folder.path.touch()
    report = await folder.download()
    assert "file is a link or a file, not a folder" in report.files[0].error

    folder.path = tmp_path / "directory"
    (folder.path / "ckpt/a/deep").mkdir(parents=True)
    report = await folder.download(existing=Existing.OVERWRITE)
    assert "is a directory" in report.files[0].error
    assert (folder.path / "ckpt/a/deep").is_dir()


async def test_what_is_there_is_not_fetched_again(folder: Folder) -> None:
    await folder.download(Stored("ckpt/a", b"one"), Stored("ckpt/b", b""))
    before = len(folder.store.requests)
    for existing in Existing:
        report = await folder.download(existing=existing)
        assert [file.state for file in report.files] == [FileState.SKIPPED] * 2
    assert len(folder.store.requests) == before


@pytest.mark.parametrize(
    ("existing", "texts"),
    [
        (Existing.SKIP, {"a.txt": "mine"}),
        (Existing.OVERWRITE, {"a.txt": "ours"}),
        (Existing.RENAME, {"a.txt": "mine", "a.1.txt": "ours"}),
    ],
)
async def test_another_file_in_the_way(folder: Folder, existing: Existing, texts: dict[str, str]) -> None:
    """Of the same size even: its time differs."""
    folder.file.parent.mkdir()
    (folder.path / "ckpt/a.txt").write_text("mine")
    for _ in range(2):  # the second time changes nothing
        await folder.download(Stored("ckpt/a.txt", b"ours"), existing=existing)
        assert {path.name: path.read_text() for path in folder.files} == texts


async def test_the_root_checkpoint_has_what_is_in_no_other(folder: Folder) -> None:
    store = folder.serve(*(Stored(name, b"x") for name in ("ckpt/a", "config.json", "./notes", "runs/1/log")))
    store.no_checkpoints = {"runs"}
    async with store.client() as client:
        plan = await client.downloads.plan_checkpoints(PROJECT, JOB, folder.path, checkpoints=["."])
        listed = await client.checkpoints.files_of(PROJECT, JOB, ".")
    assert {file.name for file in plan.files} == {file.relative_file_name for file in listed}
    assert {file.name for file in plan.files} == {"config.json", "./notes", "runs/1/log"}


async def test_files_of_several_nodes_get_a_folder_each_and_the_server_s_time(folder: Folder) -> None:
    await folder.download(Stored("ckpt/a", b"zero"), Stored("ckpt/a", b"one", rank=1))
    assert (folder.path / "rank-0/ckpt/a").read_text() == "zero"
    assert (folder.path / "rank-1/ckpt/a").read_text() == "one"
    assert (folder.path / "rank-0/ckpt/a").stat().st_mtime == 1772359200  # the server's


async def test_a_selected_file_gets_the_path_that_it_has_in_the_whole(folder: Folder) -> None:
    store = folder.serve(Stored("ckpt/a", b"zero"), Stored("ckpt/a", b"one", rank=1))
    async with store.client() as client:
        whole = await client.downloads.plan_checkpoints(PROJECT, JOB, folder.path)
        (first, _) = await client.checkpoints.files_of(PROJECT, JOB, "ckpt")
        for by_rank in (None, True):
            plan = await client.downloads.plan_files(PROJECT, JOB, folder.path, [first], by_rank=by_rank)
            assert plan.files[0].path == whole.files[0].path == folder.path / "rank-0/ckpt/a"


class SmallDisk:
    """A disk of ``size_bytes`` for all files: what goes beyond, the system refuses."""

    def __init__(self, size_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.size_bytes = size_bytes
        self._files: dict[int, int] = {}
        self._pwrite, self._truncate = os.pwrite, os.ftruncate
        monkeypatch.setattr(os, "pwrite", self.pwrite)
        monkeypatch.setattr(os, "ftruncate", self.truncate)

    def pwrite(self, descriptor: int, chunk: bytes, offset: int) -> int:
        file = os.fstat(descriptor).st_ino
        end = self.size_bytes - sum(size for other, size in self._files.items() if other != file)
        written = min(len(chunk), max(end, self._files.get(file, 0)) - offset)
        if written <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._files[file] = max(self._files.get(file, 0), offset + written)
        return self._pwrite(descriptor, chunk[:written], offset)

    def truncate(self, descriptor: int, size_bytes: int) -> None:
        file = os.fstat(descriptor).st_ino
        self._files[file] = min(self._files.get(file, 0), size_bytes)
        self._truncate(descriptor, size_bytes)


async def test_what_arrived_is_kept_on_a_full_disk(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.serve(Stored("ckpt/a", some_bytes(4 * UNIT)))
    with monkeypatch.context() as patch:
        SmallDisk(2 * UNIT, patch)
        with pytest.raises(NoRoom, match="run it again to resume"):
            await folder.download()
    assert sorted(path.suffix for path in folder.files) == [".part", ".record"]
    report = await folder.download_whole()
    assert report.fetched_bytes < 2.1 * UNIT  # all that found room was kept


async def test_files_that_are_gone_are_said_so(folder: Folder) -> None:
    store = folder.serve(Stored("ckpt/a", b"x"), Stored("ckpt/b", b"y"))
    async with store.client() as client:
        plan = await client.downloads.plan_checkpoints(PROJECT, JOB, folder.path)
        store.token, store.files = 2, store.files[1:]
        report = await client.downloads.run(plan)
    assert report.files[0].error == "the job no longer has this file"


async def test_a_digest_is_remembered_until_the_file_is_whole(folder: Folder) -> None:
    """Its answer may have been read by a process that has been killed since."""
    content = some_bytes(4 * UNIT)
    await fetch_half(folder, content, **{"x-amz-checksum-sha256": in_base64("sha256", content)})
    with part_paths(folder.file)[0].open("r+b") as damaged:
        damaged.write(b"damage")
    await folder.download_whole(Stored("ckpt/a.bin", content))
