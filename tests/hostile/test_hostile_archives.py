"""Archives of a job's code that mean to write, link or read outside of the folder."""

from __future__ import annotations

import gzip
import io
import os
import stat
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from api_client.transfers import DownloadError, downloads
from support.fake_object_store import JOB, PROJECT, FakeObjectStore

NAME = f"my project_{JOB}"
VICTIM = b"nobody writes here"
LONG = "d" * 247
"""Sixteen of them are longer than PATH_MAX."""

Member = tuple[tarfile.TarInfo, bytes]


def file(name: str, content: bytes = b"evil", mode: int = 0o644, **headers: str) -> Member:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.pax_headers = len(content), mode, dict(headers)
    return info, content


def other(name: str, kind: bytes, target: str = "", mode: int = 0o777) -> Member:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, target, mode
    return info, b""


def link(name: str, target: str) -> Member:
    return other(name, tarfile.SYMTYPE, target)


def hard(name: str, target: str) -> Member:
    return other(name, tarfile.LNKTYPE, target)


def folder(name: str, mode: int = 0o755) -> Member:
    return other(name, tarfile.DIRTYPE, mode=mode)


def chain(ups: int) -> tuple[list[Member], str]:
    """Links whose real path is longer than PATH_MAX, and the path through them that ends ``ups`` higher.

    What resolves such a path gives up and takes the rest for plain names.
    """
    members: list[Member] = []
    path = ""
    for step in "abcdefghijklmnop":
        members += [folder(f"{path}{LONG}"), link(f"{path}{step}", LONG)]
        path += f"{LONG}/"
    short = "/".join("abcdefghijklmnop")
    top = f"{short}/{'l' * 254}"
    return [*members, link(top, "../" * 16)], f"{top}/{'../' * ups}"


def through_chain(*last: Member) -> list[Member]:
    return [*chain(0)[0], *last]


OUT = chain(2)[1] + "outside"
HOSTILE: dict[str, list[Member]] = {
    "a name with two dots": [file("../outside/victim")],
    "two dots in the middle": [folder("a"), file("a/../../outside/victim")],
    "an absolute name": [file("//tmp/../victim")],
    "a link and a file through it": [link("way", "../../outside"), file("way/victim")],
    "a link in the place of a folder": [folder("way"), link("way", "../../outside"), file("way/victim")],
    "two links that add up": [
        folder("a/b/c"),
        link("a/b/c/up", "../../.."),
        link("out", "a/b/c/up/../../outside"),
        file("out/victim"),
    ],
    "links inside of links": [
        link("one", "."),
        link("one/two", ".."),
        link("one/two/three", "../outside"),
        file("three/victim"),
    ],
    "a file over its own link": [link("victim", "../../outside/victim"), file("victim")],
    "a hard link to a link": [link("way", "../../outside/victim"), hard("two", "way"), file("two")],
    "a hard link through a link": [link("way", "../../outside"), hard("two", "way/victim"), file("two")],
    "a hard link outside": [hard("two", "../../outside/victim"), file("two")],
    "a chain beyond PATH_MAX": through_chain(link("escape", OUT), file("escape/victim")),
    "a hard link through the chain": through_chain(
        link("escape", OUT), hard("flag", "escape/victim"), file("flag")
    ),
    "only the permissions of what a link leads to": through_chain(
        link("escape", f"{OUT}/victim"), other("escape", tarfile.DIRTYPE, mode=0o4777)
    ),
    "the time of what a link leads to": [link("way", "../../outside"), folder("way")],
    "a link to itself": [link("loop", "loop/../../outside"), file("loop/victim")],
    "a target with two slashes": [link("way", "//etc")],
    "a link to nothing": [link("way", "")],
    "a link to the folder itself, and out of it": [link("here", "."), link("out", "here/../../outside")],
    "a long target": [link("way", "a/" * 3000 + "victim")],
    "a long name": [file("a/" * 3000 + "victim")],
    "a name with a zero": [file("x", path="good\0/../../outside/victim")],
    "a path of another header": [file("good", path="../../outside/victim")],
    "a target of another header": [(link("way", "good")[0], b"")],
    "a device": [other("null", tarfile.CHRTYPE)],
    "a disk": [other("disk", tarfile.BLKTYPE)],
    "a pipe": [other("pipe", tarfile.FIFOTYPE)],
    "a file in the place of a folder": [file("a"), file("a/victim")],
    "a folder in the place of a file": [folder("a/b"), file("a")],
    "a hard link to a folder": [folder("a"), hard("b", "a")],
}
HOSTILE["a target of another header"][0][0].pax_headers = {"linkpath": "../../outside/victim"}


def packed(members: list[Member]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return raw.getvalue()


async def fetch(archive: bytes, into: Path) -> Path:
    with FakeObjectStore() as store:
        store.archive = archive
        async with store.client() as client:
            plan = await client.downloads.plan_archive(
                PROJECT, JOB, into, project_name="my project", unpack=True
            )
            return (await client.downloads.run(plan)).unpacked_to or Path()


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the one that is downloaded into: what hostile archives are after."""
    path = tmp_path / "outside"
    path.mkdir()
    (path / "victim").write_bytes(VICTIM)
    (path / "victim").chmod(0o600)
    os.utime(path, (1000, 1000))
    path.chmod(0o711)
    return path


def names_in(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir())


def state(path: Path) -> object:
    """All that could be changed of a folder and its file."""
    return [
        (each.name, found.st_mode, found.st_nlink, found.st_uid, found.st_mtime, each.is_symlink())
        for each in (path, *sorted(path.iterdir()))
        for found in (each.lstat(),)
    ]


@pytest.mark.parametrize("members", HOSTILE.values(), ids=HOSTILE)
async def test_nothing_outside_is_touched_and_nothing_inside_appears(
    tmp_path: Path, outside: Path, members: list[Member]
) -> None:
    before = state(outside)
    with pytest.raises(DownloadError, match=r"^the code could not be unpacked: .*kept"):
        await fetch(packed([file("good", b"good"), *members]), tmp_path / "in")
    assert state(outside) == before
    assert (outside / "victim").read_bytes() == VICTIM
    assert names_in(tmp_path / "in") == [f"{NAME}.tgz"]
    assert names_in(tmp_path) == ["in", "outside"]


async def test_code_with_links_and_programs_unpacks_as_it_was(tmp_path: Path) -> None:
    members = [
        folder("./"),
        link("current", "src"),
        file("src/v2/train.py", b"train"),
        link("src/v2/shared", "../../lib/deep"),
        file("lib/deep/a.py", b"a"),
        file("run.sh", b"#!/bin/sh", mode=0o6755),
        hard("again.py", "src/v2/train.py"),
        file("run.sh", b"#!/bin/bash", mode=0o4711),
        folder("open", mode=0o7777),
    ]
    into = await fetch(packed(members), tmp_path)
    assert (into / "current/v2/train.py").read_bytes() == b"train"
    assert (into / "src/v2/shared/a.py").read_bytes() == b"a"
    assert (into / "again.py").samefile(into / "src/v2/train.py")
    assert (into / "run.sh").read_bytes() == b"#!/bin/bash"
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((into / "run.sh").stat().st_mode) == 0o777 & ~umask
    assert stat.S_IMODE((into / "open").stat().st_mode) == 0o777 & ~umask
    assert stat.S_IMODE((into / "src/v2/train.py").stat().st_mode) == 0o666 & ~umask


async def test_names_that_the_disk_takes_for_one_are_refused(
    tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a disk that knows no difference of upper and lower case: WAY and way are one there."""

    def folded(call: Callable[..., Any], place: int) -> Callable[..., Any]:
        def folding(*given: Any, dir_fd: int | None = None, **options: Any) -> Any:
            name = given[place] if dir_fd is None else given[place].casefold()
            return call(*given[:place], name, *given[place + 1 :], dir_fd=dir_fd, **options)

        return folding

    for name, place in (("open", 0), ("mkdir", 0), ("symlink", 1)):
        monkeypatch.setattr(os, name, folded(getattr(os, name), place))
    for members in (
        [link("WAY", "src"), file("src/a"), file("way/victim")],
        [file("Train.py", b"one"), file("train.py", b"two")],
        [folder("src"), link("SRC", "lib")],
    ):
        with pytest.raises(DownloadError, match="conflicts with another member"):
            await fetch(packed(members), tmp_path / "in")
        (tmp_path / "in" / f"{NAME}.tgz").unlink()
    assert (outside / "victim").read_bytes() == VICTIM


def checked(header: bytearray) -> bytes:
    """The header with the sum that belongs to it."""
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


def pax_of(size_bytes: int) -> bytes:
    """A header that announces more headers of that size, which follow."""
    info = tarfile.TarInfo("h")
    info.type, info.size = tarfile.XHDTYPE, size_bytes
    return info.tobuf(tarfile.USTAR_FORMAT) + b"1" * size_bytes


def sparse_without_end(blocks: int) -> bytes:
    """An old sparse file whose list of holes goes on for that many blocks."""
    header = bytearray(tarfile.TarInfo("holes").tobuf(tarfile.GNU_FORMAT))
    header[156:157], header[482] = tarfile.GNUTYPE_SPARSE, 1
    return checked(header) + (b"00000000001\0" * 42 + b"\1" + b"\0" * 7) * blocks


def of_size(size_bytes: int) -> bytes:
    header = bytearray(tarfile.TarInfo("a").tobuf(tarfile.GNU_FORMAT))
    header[124:136] = struct.pack(">Iq", 0xFFFFFFFF if size_bytes < 0 else 0x80000000, size_bytes)
    return checked(header)


def headers_for_all(members: int) -> bytes:
    """Before each member a header that holds for all that follow; each has another name."""
    return b"".join(
        tarfile.TarInfo.create_pax_global_header({f"key{number}": "x" * 10_000})
        + tarfile.TarInfo(f"file{number}").tobuf(tarfile.USTAR_FORMAT)
        for number in range(members)
    )


BROKEN = {
    "headers without end": (pax_of(8 * 1024 * 1024), "too large"),
    "headers that add up": (headers_for_all(2), "too large"),
    "holes without end": (sparse_without_end(1000), "too large"),
    "a negative size": (of_size(-1024), "negative"),
    "a size beyond all disks": (of_size(2**62), "too large to unpack"),
    "damage in the middle": (b"\x55" * 512, "damaged in the middle"),
}


@pytest.mark.parametrize(("content", "words"), BROKEN.values(), ids=BROKEN)
async def test_headers_that_mean_harm_are_refused(tmp_path: Path, content: bytes, words: str) -> None:
    sound = packed([file("good", b"good")])
    archive = gzip.decompress(sound)[:1024] + content + b"\0" * 10_240
    with pytest.raises(DownloadError, match=words):
        await fetch(gzip.compress(archive), tmp_path)
    assert names_in(tmp_path) == [f"{NAME}.tgz"]


SOUND = packed([file("good", VICTIM * 300)])


async def test_no_sound_archive(tmp_path: Path) -> None:
    wrong_sum = SOUND[:-8] + bytes([SOUND[-8] ^ 1]) + SOUND[-7:]
    for content in (b"", b"no code archive", SOUND[:-30], wrong_sum):
        with pytest.raises(DownloadError, match="damaged or not an archive"):
            await fetch(content, tmp_path)
        assert names_in(tmp_path) == [f"{NAME}.tgz"]  # the first one; later ones are not kept


async def test_an_archive_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "MAX_BYTES", 1000)
    with pytest.raises(DownloadError, match="over the free disk space"):
        await fetch(packed([file("a", b"x" * 600), file("b", b"x" * 600)]), tmp_path)
    assert not (tmp_path / NAME).exists()


async def test_the_archive_s_url_is_renewed(tmp_path: Path) -> None:
    with FakeObjectStore() as store:
        store.archive = SOUND
        async with store.client() as client:
            plan = await client.downloads.plan_archive(PROJECT, JOB, tmp_path, unpack=True)
            store.token = 2
            report = await client.downloads.run(plan)
    assert report.unpacked_to is not None
