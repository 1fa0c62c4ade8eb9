"""Fetch weights into a mirror, then link them into a job's folder; runs as a script of its own.

A process, unlike the threads of a library, can be killed. It imports no module of this package, so that it
starts fast, and its environment gives no access to the user's accounts. The secret is in an environment
variable; the first argument is a JSON object with the fields of ``FetchRequest``. The last line of the output
is a summary or, on failure, the reason.

Each run lists the source with the job's own credentials, and fetches only files that are not in the mirror
yet. A job gets complete, write-protected files, only inside its destination.
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

CHUNK_BYTES = 32 * 1024 * 1024
"""Bytes per request, small enough for a request to finish within its timeout."""


@dataclass(frozen=True)
class FetchRequest:
    """A source with its patterns, the folder that caches fetched files, and the job's destination folder."""

    scheme: str
    location: str
    allow_patterns: list[str] | None
    ignore_patterns: list[str] | None
    mirror: str
    destination: str
    endpoint: str = ""
    """URL of an S3-compatible object store; empty for the cloud provider's own store."""


class FetchFailed(Exception):
    """The weights cannot be fetched; the message says why."""


def matches_patterns(name: str, allow: Iterable[str] | None, ignore: Iterable[str] | None) -> bool:
    """Return True if the patterns select a file; ``name`` is its path below the source."""
    return (not allow or _matches(name, allow)) and not (ignore and _matches(name, ignore))


def _matches(name: str, patterns: Iterable[str]) -> bool:
    """Match as the platform: ``*`` within a folder, ``**`` across folders, ``dir/`` all files in it."""
    path_segments = name.split("/")
    for pattern in patterns:
        positions = {0}  # numbers of path segments that the pattern so far can match
        for segment in (f"{pattern}**" if pattern.endswith("/") else pattern).split("/"):
            if segment == "**":
                positions = {end for start in positions for end in range(start, len(path_segments) + 1)}
            else:
                matched_positions = (
                    position
                    for position in positions
                    if position < len(path_segments) and fnmatch.fnmatchcase(path_segments[position], segment)
                )
                positions = {position + 1 for position in matched_positions}
        if len(path_segments) in positions:
            return True
    return False


def _matching_names(request: FetchRequest, names: Iterable[str]) -> list[str]:
    """Return the names that the patterns select; raise ``FetchFailed`` if none matches."""
    matches = [
        name for name in names if matches_patterns(name, request.allow_patterns, request.ignore_patterns)
    ]
    if not matches:
        raise FetchFailed("no file matches the patterns")
    return matches


def fetch(request: FetchRequest, secret: str) -> str:
    """Fill the destination with write-protected hard links to files of the mirror; return a summary."""
    files = _from_hub(request, secret) if request.scheme == "hf" else _from_store(request, secret)
    for name, path in files.items():
        target = Path(request.destination, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.hardlink_to(path)
        target.chmod(0o444)
    for folder, _, _ in os.walk(request.destination, topdown=False):
        Path(folder).chmod(0o555)
    size_bytes = sum(path.stat().st_size for path in files.values())
    return f"{len(files):,} file{'s' * (len(files) != 1)}, {size_bytes / 1e6:,.1f} MB"


def _from_hub(request: FetchRequest, secret: str) -> dict[str, Path]:
    """Fetch files of a repository, by exact names: huggingface_hub's patterns differ from the platform's."""
    try:
        huggingface_hub = importlib.import_module("huggingface_hub")
    except ImportError:
        install = f"{shlex.quote(sys.executable)} -m pip install huggingface-hub"
        raise FetchFailed(f"hf:// needs a package: {install}, and start the emulator again") from None
    location, _, revision = request.location.partition("@")
    options = {
        "repo_id": location.removeprefix("datasets/").strip("/"),
        "repo_type": "dataset" if location.startswith("datasets/") else "model",
        "revision": revision or None,
        # False without a token of the job: None would use the user's own login.
        "token": secret or False,
    }
    names = _matching_names(request, huggingface_hub.list_repo_files(**options))
    exact_patterns = [glob.escape(name) for name in names]
    root = Path(
        huggingface_hub.snapshot_download(
            **options, allow_patterns=exact_patterns, cache_dir=f"{request.mirror}/hub"
        )
    )
    return {name: (root / name).resolve(strict=True) for name in names}


def _from_store(request: FetchRequest, secret: str) -> dict[str, Path]:
    """Fetch all objects below the source's path, or the single object that it names."""
    store, prefix = _open_store(request, secret)
    objects = _list_objects(store, prefix)
    names = _matching_names(request, objects)
    for name in names:
        path = PurePosixPath(name)
        if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name:
            raise FetchFailed(f"the source has a file with an unusable name: {name!r}")
    with ThreadPoolExecutor(4) as threads:
        paths = threads.map(lambda name: _download(request, store, objects[name]), names)
        return dict(zip(names, paths, strict=True))


def _open_store(request: FetchRequest, secret: str) -> tuple[Any, str]:
    """Return the source's object store and the path in it; raise ``FetchFailed`` for an unusable secret."""
    if request.scheme == "file":
        path = Path(unquote(request.location)).resolve()
        if not path.exists():
            raise FetchFailed(f"{path} does not exist on this machine")
        return LocalStore(), str(path).strip("/")
    if not secret:
        raise FetchFailed("s3:// needs auth with a secret, as on Baseten")
    bucket, _, prefix = request.location.partition("/")
    # Only the documented fields: the platform also refuses names without the prefix ``aws_``.
    content = _json_object(secret)
    if not (content.get("aws_access_key_id") and content.get("aws_secret_access_key")):
        raise FetchFailed(
            'the secret must be a JSON object with "aws_access_key_id" and "aws_secret_access_key";'
            ' "aws_region" and "aws_session_token" are optional'
        )
    fields = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token", "aws_region")
    config: Any = {"aws_region": "us-east-1"}
    config |= {name: str(content[name]) for name in fields if content.get(name)}
    if request.endpoint:
        config["endpoint"] = request.endpoint
    client: Any = {"timeout": "120s", "connect_timeout": "10s", "allow_http": True}
    return S3Store(bucket, config=config, client_options=client), prefix.strip("/")


def _json_object(secret: str) -> Mapping[str, Any]:
    with contextlib.suppress(ValueError):
        content = json.loads(secret)
        if isinstance(content, dict):
            return content
    return {}


def _list_objects(store: Any, prefix: str) -> dict[str, Any]:
    """Return objects by their path below the prefix, without the empty objects that mark folders."""
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


def _download(request: FetchRequest, store: Any, meta: Mapping[str, Any]) -> Path:
    """Return the object's file in the mirror, fetched if missing; fail if the object changes meanwhile."""
    version = meta["e_tag"] or meta["last_modified"].isoformat()
    bucket = request.location.partition("/")[0]
    identity = "\0".join((request.scheme, bucket, meta["path"], version, str(meta["size"])))
    path = Path(request.mirror, hashlib.sha256(identity.encode(errors="surrogatepass")).hexdigest())
    if not path.exists():
        options: Any = {"if_match": meta["e_tag"]} if meta["e_tag"] else {}
        with tempfile.NamedTemporaryFile(dir=request.mirror, prefix=".") as file:
            for start in range(0, meta["size"], CHUNK_BYTES):
                span = (start, min(start + CHUNK_BYTES, meta["size"]))
                file.write(obstore.get(store, meta["path"], options=options | {"range": span}).bytes())
            file.flush()
            with contextlib.suppress(FileExistsError):  # another job fetched it meanwhile
                path.hardlink_to(file.name)
    return path


def _error_text(error: Exception, secret: str) -> str:
    """Return the error in one line, without the debug output that obstore appends, and without the secret."""
    text = str(error).partition("Debug source")[0].strip() or type(error).__name__
    if not isinstance(error, FetchFailed):
        text = f"{type(error).__name__}: {text}"
    secret_texts = {secret, secret.strip(), *map(str, _json_object(secret).values())}
    for secret_text in sorted(secret_texts, key=len, reverse=True):
        if len(secret_text) > 3:  # shorter values occur in any text
            text = text.replace(secret_text, "***")
    return " ".join(text.split())[:600]


def main() -> int:
    secret = os.environ.pop(SECRET_VARIABLE, "")
    try:
        summary = fetch(FetchRequest(**json.loads(sys.argv[1])), secret)
    except Exception as error:  # noqa: BLE001 - libraries may fail in any way, and name secrets
        print(_error_text(error, secret), flush=True)  # noqa: T201
        return 1
    print(summary, flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
