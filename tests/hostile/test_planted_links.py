"""Downloads into a folder where somebody else puts links in the place of our temporary files."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from api_client.archives import Unpacker
from api_client.transfers import DownloadError, DownloadReport, Existing, FileState, downloads
from api_client.transfers.part_file import part_paths
from support.fake_object_store import JOB, PROJECT, FakeObjectStore, Stored

CONTENT = bytes(range(256)) * 1024
VICTIM = "nobody writes here"

PLANTED: dict[str, Callable[[Path, Path], object]] = {
    "a link": lambda place, victim: place.symlink_to(victim),
    "another name of the file": lambda place, victim: place.hardlink_to(victim),
    "a link to nothing yet": lambda place, victim: place.symlink_to(victim.with_name("new")),
    "a pipe": lambda place, _victim: os.mkfifo(place),
    "a file of somebody else": lambda place, _victim: _of_somebody_else(place),
}


def _of_somebody_else(place: Path) -> None:
    place.write_bytes(b"0" * len(CONTENT))
    os.chown(place, 12345, 12345)


def names(path: Path) -> dict[str, Path]:
    part, record = part_paths(path)
    return {"part": part, "record": record, "the file": path}


async def download(store: FakeObjectStore, folder: Path) -> DownloadReport:
    async with store.client(attempts=1) as client:
        plan = await client.downloads.plan_checkpoints(PROJECT, JOB, folder)
        return await client.downloads.run(plan, existing=Existing.OVERWRITE)


@pytest.mark.parametrize("place", names(Path("a")))
@pytest.mark.parametrize("kind", PLANTED)
async def test_what_is_planted_is_not_written_to(tmp_path: Path, kind: str, place: str) -> None:
    if kind == "a file of somebody else" and os.geteuid() != 0:
        pytest.skip("only root can make a file somebody else's")
    victim, path = tmp_path / "victim", tmp_path / "in/ckpt/a.bin"
    victim.write_text(VICTIM)
    os.utime(victim, (1000, 1000))
    path.parent.mkdir(parents=True)
    PLANTED[kind](names(path)[place], victim)
    with FakeObjectStore(Stored("ckpt/a.bin", CONTENT)) as store:
        # The first time the store cuts the file, so that the record is written, too.
        store.behaviour.cut_after = lambda number: 100_000 if number == 0 else 0
        await download(store, tmp_path / "in")
        store.behaviour.cut_after = lambda _number: None
        report = await download(store, tmp_path / "in")
    assert (victim.read_text(), victim.stat().st_mtime) == (VICTIM, 1000)
    assert not (tmp_path / "new").exists()
    assert report.is_complete
    assert path.read_bytes() == CONTENT and not path.is_symlink()


@pytest.mark.parametrize("is_ours", [True, False])
async def test_the_folder_itself_may_be_a_link_of_ours_only(tmp_path: Path, is_ours: bool) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "in"
    outside.mkdir()
    inside.symlink_to(outside)
    if not is_ours:
        if os.geteuid() != 0:
            pytest.skip("only root can make a link somebody else's")
        os.lchown(inside, 12345, 12345)
    with FakeObjectStore(Stored("ckpt/a.bin", CONTENT)) as store:
        report = await download(store, inside)
    assert report.is_complete == is_ours
    assert (outside / "ckpt/a.bin").exists() == is_ours
    if not is_ours:
        assert "in is a link or a file, not a folder" in report.files[0].error


@pytest.mark.parametrize("folder", ["ckpt", "ckpt/deep"])
async def test_a_folder_that_becomes_a_link_meanwhile_is_not_followed(tmp_path: Path, folder: str) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "in"
    (outside / "deep").mkdir(parents=True)

    def swap(sent_bytes: int) -> None:
        if sent_bytes and not (inside / folder).is_symlink():
            (inside / folder).rename(tmp_path / "moved")
            (inside / folder).symlink_to(outside)

    with FakeObjectStore(Stored("ckpt/deep/a.bin", CONTENT)) as store:
        store.behaviour.before_piece = swap
        report = await download(store, inside)
    assert [file.state for file in report.files] == [FileState.DONE]
    assert [path.name for path in outside.rglob("*")] == ["deep"]
    assert [path.read_bytes() for path in (tmp_path / "moved").rglob("a.bin")] == [CONTENT]


def test_code_is_not_unpacked_below_a_link_in_the_place_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside, inside, archive = tmp_path / "outside", tmp_path / "in", tmp_path / "code.tar"
    (outside / "code").mkdir(parents=True)
    inside.mkdir()
    (tmp_path / "train.py").write_text(VICTIM)
    with tarfile.open(archive, "w") as writer:
        writer.add(tmp_path / "train.py", "train.py")

    def unpacker_after_swap(folder: Path, **options: Any) -> Unpacker:
        (draft,) = inside.iterdir()
        draft.rename(tmp_path / "moved")
        draft.symlink_to(outside)
        return Unpacker(folder, **options)

    monkeypatch.setattr(downloads, "Unpacker", unpacker_after_swap)
    with pytest.raises(DownloadError, match="is a link or a file, not a folder"):
        downloads.unpack(archive, inside / "code")
    assert [*outside.rglob("*")] == [outside / "code"]
