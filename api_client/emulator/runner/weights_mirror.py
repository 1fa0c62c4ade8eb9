"""Fetching objects once: what a job got is kept for the next one that asks for the same.

An object is kept under the hash of where it lies and of its entity tag, so that a changed one is another
file. The list of what there is, is asked for every time, with the asking job's own credentials.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from api_client.emulator.runner.weights_objects import object_library, open_bucket
from api_client.emulator.runner.weights_order import FetchFailed, FetchOrder, Progress
from api_client.emulator.runner.weights_placing import READ_ONLY_FILE, place, safe_name

PIECE_BYTES = 32 * 1024 * 1024
"""Fetched by one request, so that no request takes long and a cut one costs little."""
DOWNLOADS_AT_ONCE = 4

Meta = Mapping[str, Any]
"""What a store says of an object: path, size, e_tag, last_modified."""


def fetch_objects(order: FetchOrder, progress: Progress) -> None:
    """Fetch what lies below the source's path, or the one object that it names."""
    library = object_library()
    store, prefix = open_bucket(order)
    found = _listed(library, store, prefix.strip("/"))
    wanted = {name: meta for name, meta in found.items() if order.wants(name)}
    for name in wanted:
        safe_name(name)
    progress.expect(len(wanted), sum(int(meta["size"]) for meta in wanted.values()))
    mirror = Path(order.mirror) / "objects"
    mirror.mkdir(parents=True, exist_ok=True)

    def fetch(item: tuple[str, Meta]) -> None:
        name, meta = item
        kept = mirror / _key(order, meta)
        if not _is_intact(kept, meta):
            _download(library, store, meta, kept, progress)
        else:
            progress.add(int(meta["size"]))
        place(kept, Path(order.destination), name, link=True)

    with ThreadPoolExecutor(DOWNLOADS_AT_ONCE) as pool:
        for _ in pool.map(fetch, wanted.items()):
            pass


def _listed(library: Any, store: Any, prefix: str) -> dict[str, Meta]:
    """Objects by their path below the prefix; empty ones that stand for a folder are left out."""
    found: dict[str, Meta] = {}
    for batch in library.list(store, prefix=prefix or None):
        for meta in batch:
            name = meta["path"][len(prefix) :].lstrip("/") if prefix else meta["path"]
            if name:
                found[name] = meta
    folders = {str(folder) for name in found for folder in PurePosixPath(name).parents}
    if found or not prefix:
        return {name: meta for name, meta in sorted(found.items()) if meta["size"] or name not in folders}
    try:
        return {prefix.rsplit("/", 1)[-1]: library.head(store, prefix)}
    except FileNotFoundError as error:
        raise FetchFailed(f"there is nothing at {prefix!r} in the bucket") from error


def _key(order: FetchOrder, meta: Meta) -> str:
    bucket = order.location.partition("/")[0]
    version = meta.get("e_tag") or meta["last_modified"].isoformat()
    subject = "\0".join((order.scheme, bucket, meta["path"], version, str(meta["size"])))
    return hashlib.sha256(subject.encode(errors="surrogatepass")).hexdigest()


def _modified_s(meta: Meta) -> float:
    moment: datetime = meta["last_modified"]
    return float(int(moment.timestamp()))


def _is_intact(kept: Path, meta: Meta) -> bool:
    """Whether the file is whole and nobody wrote to it: it bears the object's own time."""
    try:
        status = kept.stat()
    except FileNotFoundError:
        return False
    return status.st_size == meta["size"] and status.st_mtime == _modified_s(meta)


def _download(library: Any, store: Any, meta: Meta, kept: Path, progress: Progress) -> None:
    temporary = kept.with_name(f".{kept.name}.{secrets.token_hex(4)}")
    size_bytes = int(meta["size"])
    try:
        with temporary.open("xb") as file:
            for start in range(0, size_bytes, PIECE_BYTES):
                end = min(start + PIECE_BYTES, size_bytes)
                answer = library.get(store, meta["path"], options={"range": (start, end)})
                if answer.meta.get("e_tag") != meta.get("e_tag"):
                    raise FetchFailed(f"{meta['path']!r} changed while it was fetched")
                piece = answer.bytes()
                file.write(piece)
                progress.add(len(piece))
        os.utime(temporary, (_modified_s(meta), _modified_s(meta)))
        temporary.chmod(READ_ONLY_FILE)
        temporary.replace(kept)
    finally:
        temporary.unlink(missing_ok=True)
