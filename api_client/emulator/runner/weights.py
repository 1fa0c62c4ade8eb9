"""Fetch weights into a mirror, then link them into a job's folder; runs as a script of its own.

It is a process so that it can be ended: a library's threads can't. It imports nothing of this package, so
that it starts at once, and sees no variable that chooses an account. The secret comes in a variable; the
rest is a JSON object in the first argument, the fields of ``WeightsOrder``. The last line of its output is a
summary or, if it fails, the reason.

Sources are listed each time with the job's own credentials; files that are in the mirror already are not
fetched again. A job gets complete, write-protected files, inside its destination only.
"""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import hashlib
import importlib
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import obstore
from obstore.store import LocalStore, S3Store

SECRET_VARIABLE = "BT_EMULATOR_WEIGHTS_SECRET"
SCHEMES = ("hf", "s3", "file")

PIECE_BYTES = 32 * 1024 * 1024
"""Bytes per request: short enough that no request takes long."""


@dataclass(frozen=True)
class WeightsOrder:
    """A source with its patterns, the folder that caches fetched files, and the job's destination folder."""

    scheme: str
    location: str
    allow_patterns: list[str] | None
    ignore_patterns: list[str] | None
    mirror: str
    destination: str
    endpoint: str = ""
    """Object store to use instead of the cloud's."""


class FetchFailed(Exception):
    """The weights cannot be fetched; the message says why."""


def passes(name: str, allow: Iterable[str] | None, ignore: Iterable[str] | None) -> bool:
    """Return True if the patterns let a file through; ``name`` is its path below the source."""
    return (not allow or _matches(name, allow)) and not (ignore and _matches(name, ignore))


def _matches(name: str, patterns: Iterable[str]) -> bool:
    """Match as the platform does: ``*`` stays within a folder, ``**`` does not, ``folder/`` is all of it."""
    parts = name.split("/")
    for pattern in patterns:
        reached = {0}  # numbers of parts that the beginning of the pattern can match
        for piece in (f"{pattern}**" if pattern.endswith("/") else pattern).split("/"):
            if piece == "**":
                reached = {end for start in reached for end in range(start, len(parts) + 1)}
            else:
                fits = (at for at in reached if at < len(parts) and fnmatch.fnmatchcase(parts[at], piece))
                reached = {at + 1 for at in fits}
        if len(parts) in reached:
            return True
    return False


def _chosen(order: WeightsOrder, names: Iterable[str]) -> list[str]:
    """Return the names that the patterns let through; fail if there is none."""
    chosen = [name for name in names if passes(name, order.allow_patterns, order.ignore_patterns)]
    if not chosen:
        raise FetchFailed("no file matches the patterns")
    return chosen


def fetch(order: WeightsOrder, secret: str) -> str:
    """Fill the destination with write-protected hard links to files of the mirror; return a summary."""
    files = _from_hub(order, secret) if order.scheme == "hf" else _from_store(order, secret)
    for name, path in files.items():
        target = Path(order.destination, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.hardlink_to(path)
        target.chmod(0o444)
    for folder, _, _ in os.walk(order.destination, topdown=False):
        Path(folder).chmod(0o555)
    size_bytes = sum(path.stat().st_size for path in files.values())
    return f"{len(files):,} file{'s' * (len(files) != 1)}, {size_bytes / 1e6:,.1f} MB"


def _from_hub(order: WeightsOrder, secret: str) -> dict[str, Path]:
    """Fetch a snapshot. huggingface_hub's own patterns are not the platform's, so it gets names of files."""
    try:
        hub = importlib.import_module("huggingface_hub")
    except ImportError:
        install = f"{shlex.quote(sys.executable)} -m pip install huggingface-hub"
        raise FetchFailed(f"hf:// needs a package: {install}, and start the emulator again") from None
    location, _, revision = order.location.partition("@")
    options = {
        "repo_id": location.removeprefix("datasets/").strip("/"),
        "repo_type": "dataset" if location.startswith("datasets/") else "model",
        "revision": revision or None,
        # Without a token of the job, False: never use the user's own login.
        "token": secret or False,
    }
    names = _chosen(order, hub.list_repo_files(**options))
    exact = [glob.escape(name) for name in names]
    root = Path(hub.snapshot_download(**options, allow_patterns=exact, cache_dir=f"{order.mirror}/hub"))
    return {name: (root / name).resolve(strict=True) for name in names}


def _from_store(order: WeightsOrder, secret: str) -> dict[str, Path]:
    """Fetch all objects below the source's path, or the single object that it names."""
    store, prefix = _open_store(order, secret)
    objects = _list_objects(store, prefix)
    chosen = _chosen(order, objects)
    for name in chosen:
        path = PurePosixPath(name)
        if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name:
            raise FetchFailed(f"the source has a file with an unusable name: {name!r}")
    with ThreadPoolExecutor(4) as threads:
        paths = threads.map(lambda name: _download(order, store, objects[name]), chosen)
        return dict(zip(chosen, paths, strict=True))


def _open_store(order: WeightsOrder, secret: str) -> tuple[Any, str]:
    """Return the source's object store and the path in it; raise ``FetchFailed`` for an unusable secret."""
    if order.scheme == "file":
        path = Path(unquote(order.location)).resolve()
        if not path.exists():
            raise FetchFailed(f"{path} does not exist on this machine")
        return LocalStore(), str(path).strip("/")
    if not secret:
        raise FetchFailed("s3:// needs auth with a secret, as on Baseten")
    bucket, _, prefix = order.location.partition("/")
    # Only the documented fields: the platform refuses a secret without the prefix, too.
    content = _json_object(secret)
    if not (content.get("aws_access_key_id") and content.get("aws_secret_access_key")):
        raise FetchFailed(
            'the secret must be a JSON object with "aws_access_key_id" and "aws_secret_access_key";'
            ' "aws_region" and "aws_session_token" are optional'
        )
    fields = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token", "aws_region")
    config: Any = {"aws_region": "us-east-1"}
    config |= {name: str(content[name]) for name in fields if content.get(name)}
    if order.endpoint:
        config["endpoint"] = order.endpoint
    client: Any = {"timeout": "120s", "connect_timeout": "10s", "allow_http": True}
    return S3Store(bucket, config=config, client_options=client), prefix.strip("/")


def _json_object(secret: str) -> Mapping[str, Any]:
    with contextlib.suppress(ValueError):
        content = json.loads(secret)
        if isinstance(content, dict):
            return content
    return {}


def _list_objects(store: Any, prefix: str) -> dict[str, Any]:
    """Return objects by their path below the prefix, without empty ones that stand for folders."""
    metas = [meta for batch in obstore.list(store, prefix=prefix or None) for meta in batch]
    objects = {meta["path"].removeprefix(prefix).lstrip("/"): meta for meta in metas}
    folders = {str(folder) for name in objects for folder in PurePosixPath(name).parents}
    objects = {name: meta for name, meta in sorted(objects.items()) if meta["size"] or name not in folders}
    if objects or not prefix:
        return objects
    try:
        return {prefix.rpartition("/")[2]: obstore.head(store, prefix)}
    except FileNotFoundError:
        raise FetchFailed(f"nothing found at {prefix!r}") from None


def _download(order: WeightsOrder, store: Any, meta: Mapping[str, Any]) -> Path:
    """Return the object's file in the mirror, fetched in chunks if missing; fail if it changes meanwhile."""
    version = meta["e_tag"] or meta["last_modified"].isoformat()
    bucket = order.location.partition("/")[0]
    subject = "\0".join((order.scheme, bucket, meta["path"], version, str(meta["size"])))
    path = Path(order.mirror, hashlib.sha256(subject.encode(errors="surrogatepass")).hexdigest())
    if not path.exists():
        options: Any = {"if_match": meta["e_tag"]} if meta["e_tag"] else {}
        with tempfile.NamedTemporaryFile(dir=order.mirror, prefix=".") as file:
            for start in range(0, meta["size"], PIECE_BYTES):
                span = (start, min(start + PIECE_BYTES, meta["size"]))
                file.write(obstore.get(store, meta["path"], options=options | {"range": span}).bytes())
            file.flush()
            with contextlib.suppress(FileExistsError):  # another job fetched it meanwhile
                path.hardlink_to(file.name)
    return path


def _reason(error: Exception, secret: str) -> str:
    """Return the error in one line, without the debug output that obstore appends, and without the secret."""
    text = str(error).partition("Debug source")[0].strip() or type(error).__name__
    if not isinstance(error, FetchFailed):
        text = f"{type(error).__name__}: {text}"
    parts = {secret, secret.strip(), *map(str, _json_object(secret).values())}
    for part in sorted(parts, key=len, reverse=True):
        if len(part) > 3:  # shorter values occur in any text
            text = text.replace(part, "***")
    return " ".join(text.split())[:600]


def main() -> int:
    secret = os.environ.pop(SECRET_VARIABLE, "")
    try:
        summary = fetch(WeightsOrder(**json.loads(sys.argv[1])), secret)
    except Exception as error:  # noqa: BLE001 - libraries may fail in any way, and name secrets
        print(_reason(error, secret), flush=True)  # noqa: T201
        return 1
    print(summary, flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
