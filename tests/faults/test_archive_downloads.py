"""The archive of a job's code: kept, or unpacked without trusting it."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from api_client.transfers import DestinationExists, DownloadError, DownloadReport, downloads
from support.fake_object_store import JOB, PROJECT, FakeObjectStore, serving

NAME = f"my project_{JOB}"


def archive_of(*members: tarfile.TarInfo, content: bytes = b"print('hello')") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for member in members:
            member.size = len(content) if member.isreg() else 0
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, target, 0o755
    return info


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def fetch(store: FakeObjectStore, folder: Path, *, unpack: bool = True) -> DownloadReport:
    async with store.client() as client:
        plan = await client.downloads.plan_archive(
            PROJECT, JOB, folder, project_name="my project", unpack=unpack
        )
        return await client.downloads.run(plan)


async def test_unpacked(tmp_path: Path) -> None:
    with serving() as store:
        store.archive = archive_of(member("config.py"), member("src/train.py"))
        report = await fetch(store, tmp_path)
        assert report.unpacked_to == tmp_path / NAME
        assert (tmp_path / NAME / "src/train.py").read_text() == "print('hello')"
        assert names_in(tmp_path) == [NAME]
        with pytest.raises(DestinationExists):
            await fetch(store, tmp_path)


async def test_kept_packed(tmp_path: Path) -> None:
    with serving() as store:
        store.archive = archive_of(member("config.py"))
        await fetch(store, tmp_path, unpack=False)
        assert (tmp_path / f"{NAME}.tgz").read_bytes() == store.archive
        with pytest.raises(DestinationExists):
            await fetch(store, tmp_path, unpack=False)


@pytest.mark.parametrize(
    "content",
    [b"", b"no code archive", archive_of(member("a"), content=b"x" * 5000)[:-30]],
    ids=["empty", "text", "cut"],
)
async def test_no_sound_archive(tmp_path: Path, content: bytes) -> None:
    with serving() as store:
        store.archive = content
        with pytest.raises(DownloadError, match="damaged or not an archive"):
            await fetch(store, tmp_path)
        assert not (tmp_path / NAME).exists()


async def test_an_archive_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "MAX_BYTES", 1000)
    with serving() as store:
        store.archive = archive_of(member("a"), member("b"), content=b"x" * 600)
        with pytest.raises(DownloadError, match="over the free disk space"):
            await fetch(store, tmp_path)
        assert not (tmp_path / NAME).exists()


async def test_a_job_without_code(tmp_path: Path) -> None:
    with serving() as store, pytest.raises(DownloadError, match="no code archive"):
        await fetch(store, tmp_path)


async def test_the_archive_s_url_is_renewed(tmp_path: Path) -> None:
    with serving() as store:
        store.archive = archive_of(member("config.py"))
        async with store.client() as client:
            plan = await client.downloads.plan_archive(PROJECT, JOB, tmp_path, unpack=True)
            store.token = 2
            report = await client.downloads.run(plan)
        assert report.unpacked_to is not None
