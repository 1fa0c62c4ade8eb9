"""The process that fetches weights: from Hugging Face, an object store or this machine.

Files are kept for later jobs under a hash of their location and entity tag, so a changed object is a new
file. The list of objects is requested every time, with the asking job's own credentials. A job gets complete,
write-protected files, only inside its destination.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import secrets
import shlex
import shutil
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from api_client.emulator.runner.weights import (
    HUGGING_FACE,
    LOCAL_FILES,
    FetchFailed,
    FetchOrder,
    Progress,
    report_event,
)

READ_ONLY_FILE = 0o444
READ_ONLY_FOLDER = 0o555


def link_or_copy(source: Path, destination: Path, name: str, *, link: bool) -> None:
    """Make ``destination/name`` the file ``source``, as a hard link if ``link`` and possible, else a copy.

    ``name`` comes from a server; raise ``FetchFailed`` if it leads outside the destination.
    """
    target = destination / safe_name(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    if link:
        try:
            target.hardlink_to(source)
            return
        except FileExistsError as error:
            raise FetchFailed(f"two files are named {name!r}") from error
        except OSError:
            pass  # another disk, or one without hard links
    shutil.copyfile(source, target)
    shutil.copystat(source, target)
    target.chmod(READ_ONLY_FILE)


def safe_name(name: str) -> PurePosixPath:
    """Return a relative path that stays inside; raise ``FetchFailed`` for any other."""
    path = PurePosixPath(name)
    if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name:
        raise FetchFailed(f"the source has a file with an unusable name: {name!r}")
    return path


def make_read_only(folder: Path) -> tuple[int, int]:
    """Write-protect all folders; return the number of files and their total bytes."""
    count, size_bytes = 0, 0
    for parent, _, names in os.walk(folder, topdown=False):
        for name in names:
            count += 1
            size_bytes += (Path(parent) / name).stat().st_size
        Path(parent).chmod(READ_ONLY_FOLDER)
    return count, size_bytes


def fetch_files(order: FetchOrder, progress: Progress) -> None:
    """Copy the files of a folder, or a single file; raise ``FetchFailed`` if it does not exist."""
    source = Path(unquote(order.location))
    if not source.is_absolute():
        raise FetchFailed("a file:// source needs an absolute path, as in file:///home/me/model")
    if source.is_dir():
        found = {path.relative_to(source).as_posix(): path for path in _below(source)}
    elif source.is_file():
        found = {source.name: source}
    else:
        raise FetchFailed(f"{source} does not exist on this machine")
    wanted = {name: path for name, path in sorted(found.items()) if order.wants(name)}
    progress.expect(len(wanted), sum(path.stat().st_size for path in wanted.values()))
    for name, path in wanted.items():
        link_or_copy(path, Path(order.destination), name, link=False)
        progress.add(path.stat().st_size)


def _below(folder: Path) -> list[Path]:
    """Return every file below the folder; follow links to files but not to folders."""
    return [
        Path(parent) / name
        for parent, _, names in os.walk(folder)
        for name in names
        if (Path(parent) / name).is_file()
    ]


HUB_LIBRARY = "huggingface_hub"
DATASETS = "datasets/"
MAXIMUM_NAME_PARTS = 2


def fetch_from_hub(order: FetchOrder, progress: Progress) -> None:
    """Fetch a repository at its revision into the mirror and place the files that match the patterns."""
    try:
        library: Any = importlib.import_module(HUB_LIBRARY)
    except ImportError as error:
        raise FetchFailed(
            f"hf:// needs a package: {shlex.quote(sys.executable)} -m pip install huggingface-hub,"
            " and start the emulator again"
        ) from error
    is_dataset = order.location.startswith(DATASETS)
    repository = order.location.removeprefix(DATASETS).strip("/")
    if len(repository.split("/")) > MAXIMUM_NAME_PARTS:
        raise FetchFailed(f"expected a repository owner/name, not {repository!r}")
    snapshot = Path(
        library.snapshot_download(
            repository,
            repo_type="dataset" if is_dataset else "model",
            revision=order.revision,
            allow_patterns=list(order.allow) or None,
            ignore_patterns=list(order.ignore) or None,
            token=order.secret if order.secret is not None else False,  # never use the user's own login
            cache_dir=Path(order.mirror) / "hub",
        )
    )
    for parent, _, names in os.walk(snapshot):
        for file_name in sorted(names):
            path = Path(parent) / file_name
            name = path.relative_to(snapshot).as_posix()
            if order.wants(name):
                stored = path.resolve()
                stored.chmod(READ_ONLY_FILE)
                link_or_copy(stored, Path(order.destination), name, link=True)
                progress.add(stored.stat().st_size)


STORE_LIBRARY = "obstore"
REGION_TIMEOUT_S = 10
DEFAULT_REGION = "us-east-1"
REQUEST_TIMEOUT = "120s"
CONNECT_TIMEOUT = "10s"
_AWS_FIELDS = ("access_key_id", "secret_access_key", "session_token", "region")


def object_library() -> Any:
    """Return the object store library; raise ``FetchFailed`` if it is not installed."""
    try:
        return importlib.import_module(STORE_LIBRARY)
    except ImportError as error:
        raise FetchFailed(
            "this source needs the package obstore: pip install obstore, and start the emulator again"
        ) from error


def open_bucket(order: FetchOrder) -> tuple[Any, str]:
    bucket, _, path = order.location.partition("/")
    store_module: Any = importlib.import_module(f"{object_library().__name__}.store")
    if order.scheme == "gs":
        return store_module.GCSStore(bucket, config=_gcs_config(order), **_options()), path
    account = None
    if order.scheme == "r2":
        account, separator, bucket = bucket.partition(".")
        if not separator or not account or not bucket:
            raise FetchFailed("an r2:// source must be r2://account_id.bucket/path")
    return store_module.S3Store(bucket, config=_s3_config(order, bucket, account), **_options()), path


def _options() -> dict[str, Any]:
    endpoints = (_aws_endpoint(), os.environ.get("STORAGE_EMULATOR_HOST"))
    is_plain = any(endpoint and endpoint.startswith("http://") for endpoint in endpoints)
    client = {"timeout": REQUEST_TIMEOUT, "connect_timeout": CONNECT_TIMEOUT, "allow_http": is_plain}
    return {"client_options": client}


def _aws_endpoint() -> str | None:
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or None


def _s3_config(order: FetchOrder, bucket: str, account: str | None) -> dict[str, Any]:
    endpoint = _aws_endpoint()
    if endpoint is None and account is not None:
        endpoint = f"https://{account}.r2.cloudflarestorage.com"
    secret = _secret_object(order)
    config: dict[str, Any] = {"skip_signature": order.secret is None}
    for field in _AWS_FIELDS:
        value = secret.get(field) or secret.get(f"aws_{field}")
        if value:
            config[field] = str(value)
    if order.secret is not None and not {"access_key_id", "secret_access_key"} <= config.keys():
        raise FetchFailed(
            'the secret must be a JSON object: {"access_key_id": …, "secret_access_key": …, "region": …}'
        )
    if endpoint is not None:
        config["endpoint"] = endpoint
    if "region" not in config:
        config["region"] = "auto" if account else _region_of(bucket, endpoint)
    return config


def _gcs_config(order: FetchOrder) -> dict[str, Any]:
    endpoint = os.environ.get("STORAGE_EMULATOR_HOST")
    if endpoint:
        base = endpoint if "://" in endpoint else f"http://{endpoint}"
        account = {"gcs_base_url": base, "disable_oauth": True, "client_email": "", "private_key": ""}
        return {"service_account_key": json.dumps(account | {"private_key_id": ""})}
    if order.secret is None:
        return {"skip_signature": True}
    if not _secret_object(order):
        raise FetchFailed("the secret must be a service account key (a JSON object)")
    return {"service_account_key": order.secret}


def _secret_object(order: FetchOrder) -> Mapping[str, Any]:
    try:
        content = json.loads(order.secret or "{}")
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _region_of(bucket: str, endpoint: str | None) -> str:
    """Return the region of an AWS bucket, which AWS reveals to anyone; elsewhere any region works."""
    if endpoint is not None:
        return os.environ.get("AWS_REGION") or DEFAULT_REGION
    request = urllib.request.Request(f"https://s3.amazonaws.com/{bucket}", method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=REGION_TIMEOUT_S) as answer:
            headers = answer.headers
    except urllib.error.HTTPError as refusal:
        headers = refusal.headers
    except OSError:
        return DEFAULT_REGION
    return str(headers.get("x-amz-bucket-region") or DEFAULT_REGION)


PIECE_BYTES = 32 * 1024 * 1024
"""Bytes per request: short enough that no request takes long and an interrupted one costs little."""
DOWNLOADS_AT_ONCE = 4

Meta = Mapping[str, Any]
"""Metadata of an object in a store: path, size, e_tag, last_modified."""


def fetch_objects(order: FetchOrder, progress: Progress) -> None:
    """Fetch all objects below the source's path, or the single object that it names."""
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
        link_or_copy(kept, Path(order.destination), name, link=True)

    with ThreadPoolExecutor(DOWNLOADS_AT_ONCE) as pool:
        for _ in pool.map(fetch, wanted.items()):
            pass


def _listed(library: Any, store: Any, prefix: str) -> dict[str, Meta]:
    """Return objects by their path below the prefix, without empty ones that stand for folders."""
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
        raise FetchFailed(f"the bucket has nothing at {prefix!r}") from error


def _key(order: FetchOrder, meta: Meta) -> str:
    bucket = order.location.partition("/")[0]
    version = meta.get("e_tag") or meta["last_modified"].isoformat()
    subject = "\0".join((order.scheme, bucket, meta["path"], version, str(meta["size"])))
    return hashlib.sha256(subject.encode(errors="surrogatepass")).hexdigest()


def _modified_s(meta: Meta) -> float:
    moment: datetime = meta["last_modified"]
    return float(int(moment.timestamp()))


def _is_intact(kept: Path, meta: Meta) -> bool:
    """Return True if the file is complete and unmodified: it has the object's own modification time."""
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
                    raise FetchFailed(f"{meta['path']!r} changed during the download")
                piece = answer.bytes()
                file.write(piece)
                progress.add(len(piece))
        os.utime(temporary, (_modified_s(meta), _modified_s(meta)))
        temporary.chmod(READ_ONLY_FILE)
        temporary.replace(kept)
    finally:
        temporary.unlink(missing_ok=True)


MAXIMUM_REASON_CHARACTERS = 600


def main() -> int:
    """Fetch the weights; return 1 on failure, with the reason as the last line of output."""
    order = FetchOrder.from_json(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_asker, daemon=True).start()
    try:
        count, size_bytes = _fetch(order)
    except Exception as error:  # noqa: BLE001 – a library may fail in any way; all of them are an answer
        report_event({"error": _reason(error)})
        return 1
    report_event({"delivered_files": count, "delivered_bytes": size_bytes})
    return 0


def _fetch(order: FetchOrder) -> tuple[int, int]:
    destination = Path(order.destination)
    destination.mkdir(parents=True)
    Path(order.mirror).mkdir(parents=True, exist_ok=True)
    fetchers = {HUGGING_FACE: fetch_from_hub, LOCAL_FILES: fetch_files}
    fetchers.get(order.scheme, fetch_objects)(order, Progress())
    count, size_bytes = make_read_only(destination)
    if count == 0:
        raise FetchFailed("no file matches the patterns" if order.allow or order.ignore else "it is empty")
    return count, size_bytes


def _reason(error: Exception) -> str:
    words = str(error).strip() or type(error).__name__
    if not isinstance(error, FetchFailed):
        words = f"{type(error).__name__}: {words}"
    return " ".join(words.split())[:MAXIMUM_REASON_CHARACTERS]


def _end_with_asker() -> None:
    with contextlib.suppress(OSError):
        os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
