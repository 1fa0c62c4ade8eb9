"""Weights of a job: fetched into a mirror in the data folder, then linked into the job's own folder.

Sources are listed each time with the job's own credentials; files that are in the mirror already are not
fetched again. A job gets complete, write-protected files, inside its destination only. No variable of
the environment chooses an account.
"""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
import glob
import hashlib
import json
import os
import secrets
import shlex
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import obstore
from obstore.store import GCSStore, LocalStore, S3Store
from pydantic import ValidationError

from api_client.definitions.weights import WeightsAuthMethod, WeightsSource
from api_client.emulator.answers import first_problem
from api_client.emulator.runner.folders import CannotStart
from api_client.emulator.runner.node_process import NodeProcess
from api_client.environment import hidden_variables
from api_client.words import counted

HUGGING_FACE, LOCAL_FILES = "hf", "file"
NEED_AUTH = ("s3", "gs", "r2")
"""Sources that the platform refuses without a secret, even if they are public."""
SCHEMES = (HUGGING_FACE, *NEED_AUTH, LOCAL_FILES)

PIECE_BYTES = 32 * 1024 * 1024
"""Bytes per request: short enough that no request takes long."""
DOWNLOADS_AT_ONCE = 4
REPORT_INTERVAL_S = 10.0
"""Interval between progress lines in the log."""
CLIENT_OPTIONS = {"timeout": "120s", "connect_timeout": "10s"}
REGION_TIMEOUT_S = 10
DEFAULT_REGION = "us-east-1"
"""Region of a bucket whose secret names none, as on the platform."""
READ_ONLY_FILE = 0o444
READ_ONLY_FOLDER = 0o555
MAXIMUM_REASON_CHARACTERS = 600
SHORTEST_SECRET_CHARACTERS = 4
"""Shorter values are not hidden, because they occur in any text."""

Log = Callable[[str], None]
Meta = Mapping[str, Any]
"""Metadata of an object in a store: path, size, e_tag, last_modified."""


class FetchFailed(Exception):
    """The weights cannot be fetched; the message says why."""


def parse_weights(items: Sequence[Any]) -> tuple[WeightsSource, ...]:
    """Parse all entries; raise ``CannotStart`` naming the first one that cannot be delivered."""
    return tuple(_parse(item, f"weights[{index}]") for index, item in enumerate(items))


def _parse(item: Any, where: str) -> WeightsSource:
    try:
        weights = WeightsSource.model_validate(item)
    except ValidationError as error:
        raise CannotStart(first_problem(where, error)) from error
    if weights.scheme not in SCHEMES:
        supported = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise CannotStart(f"{where}.source {weights.source!r}: the emulator delivers {supported}")
    mount = weights.mount_location
    if ".." in PurePosixPath(mount).parts or "\0" in mount:
        raise CannotStart(f"{where}.mount_location must not contain '..' or NUL: {mount!r}")
    method = weights.auth.auth_method if weights.auth is not None else WeightsAuthMethod.CUSTOM_SECRET
    if method is not WeightsAuthMethod.CUSTOM_SECRET:
        raise CannotStart(
            f"{where}.auth: {method.value} needs the platform's identity; use CUSTOM_SECRET here"
        )
    return weights


def secret_name(weights: WeightsSource) -> str | None:
    return (weights.auth.auth_secret_name if weights.auth is not None else None) or weights.auth_secret_name


def wants(weights: WeightsSource, name: str) -> bool:
    """Return True if the patterns let a file through; ``name`` is its path below the source."""
    allow, ignore = weights.allow_patterns, weights.ignore_patterns
    return (not allow or _matches(name, allow)) and not (ignore and _matches(name, ignore))


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(_matches_path(name.split("/"), pattern) for pattern in patterns)


def _matches_path(parts: Sequence[str], pattern: str) -> bool:
    """Match like the platform: a star stays in its folder, and ``**`` also matches folders.

    ``folder/`` matches everything in it.
    """
    if pattern.endswith("/"):
        pattern += "**"
    reached = {0}  # numbers of parts that the beginning of the pattern can match
    for piece in pattern.split("/"):
        if piece == "**":
            reached = set(range(min(reached, default=len(parts) + 1), len(parts) + 1))
        else:
            inside = (count for count in reached if count < len(parts))
            reached = {count + 1 for count in inside if fnmatch.fnmatchcase(parts[count], piece)}
    return len(parts) in reached


def _chosen(weights: WeightsSource, names: Iterable[str], log: Log) -> list[str]:
    """Return the names that the patterns let through; log a warning if ``*`` leaves out subfolders."""
    chosen = [name for name in names if wants(weights, name)]
    nested = [f"**/{pattern}" for pattern in weights.allow_patterns or ()]
    everywhere = weights.model_copy(update={"allow_patterns": nested})
    left_out = [name for name in names if nested and wants(everywhere, name) and not wants(weights, name)]
    if left_out:
        files = f"{len(left_out):,} file{'s' * (len(left_out) != 1)}"
        log(
            f"[emulator] WARNING weights {weights.source}: allow_patterns leave out {files} in subfolders,"
            f" such as {left_out[0]}; use **/ to include them"
        )
    return chosen


class WeightsMirror:
    """Fetches weights and keeps them in ``folder`` for later jobs."""

    def __init__(self, folder: Path, environ: Mapping[str, str], monotonic: Callable[[], float]) -> None:
        self._folder = folder
        self._environ = environ
        self._monotonic = monotonic

    async def deliver(self, weights: WeightsSource, destination: Path, secret: str | None, log: Log) -> None:
        """Fill ``destination``; raise ``CannotStart`` on failure, without the secret in its message."""
        log(f"[emulator] INFO fetching weights {weights.source}")
        if secret is None and weights.scheme in NEED_AUTH:
            log(f"[emulator] WARNING weights {weights.source}: without auth they can't be fetched on Baseten")
        started_s = self._monotonic()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if weights.scheme == HUGGING_FACE:
                files = await self._from_hub(weights, secret, log)
            else:
                files = await self._from_store(weights, secret, log)
            if not files:
                raise FetchFailed("no file matches the patterns")
            size_bytes = await asyncio.to_thread(_link_files, files, destination)
        except Exception as error:  # noqa: BLE001 – libraries may fail in any way, and name secrets
            reason = without_secret(_reason(error), secret)
            raise CannotStart(f"can't fetch the weights {weights.source}: {reason}") from None
        log(
            f"[emulator] INFO weights {weights.source}: {counted(len(files), 'file')},"
            f" {_megabytes(size_bytes)}, delivered in {self._monotonic() - started_s:.1f} s"
        )

    async def _from_hub(self, weights: WeightsSource, secret: str | None, log: Log) -> dict[str, Path]:
        """Fetch a snapshot of the files that the patterns let through.

        huggingface_hub's own patterns are not the platform's, so it gets the names of the files.
        """
        location, _, revision = _location(weights).partition("@")
        options = {
            "repo_id": location.removeprefix("datasets/").strip("/"),
            "repo_type": "dataset" if location.startswith("datasets/") else "model",
            "revision": revision or None,
        }
        names = None
        if weights.allow_patterns or weights.ignore_patterns:
            listed = await self._ask_hub("list_repo_files", options, secret)
            names = [glob.escape(name) for name in _chosen(weights, listed, log)]
            if not names:
                return {}
        where = {"allow_patterns": names, "cache_dir": str(self._folder / "hub")}
        folder = await self._ask_hub("snapshot_download", options | where, secret)
        files = await asyncio.to_thread(_files_below, Path(folder))
        return {name: path for name, path in files.items() if wants(weights, name)}

    async def _ask_hub(self, function: str, options: Mapping[str, Any], secret: str | None) -> Any:
        """Return the result of huggingface_hub's function.

        It runs in a process, because its threads can't be cancelled. A file passes the options and the
        result: thousands of names do not fit in an argument.
        """
        output: list[str] = []

        def take(lines: list[str]) -> bool:
            output.extend(lines)
            return True

        process = NodeProcess(take)
        quiet = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
        exchange = self._folder / f".{secrets.token_hex(4)}"
        await asyncio.to_thread(exchange.write_text, json.dumps([function, dict(options)]))
        try:
            await process.start(
                [sys.executable, "-P", "-c", HUB_SCRIPT, str(exchange)],
                cwd=self._folder,
                environment={**self._environ, **quiet, "HF_TOKEN": secret or ""},
                grace_s=0,
            )
            try:
                code = await process.wait()
            except asyncio.CancelledError:
                process.kill()
                await process.wait()
                raise
            if code:
                raise FetchFailed("\n".join(output) or "the download ended without an error message")
            return json.loads(await asyncio.to_thread(exchange.read_bytes))
        finally:
            exchange.unlink(missing_ok=True)

    async def _from_store(self, weights: WeightsSource, secret: str | None, log: Log) -> dict[str, Path]:
        """Fetch all objects below the source's path, or the single object that it names."""
        store, prefix = await open_store(weights, secret, self._environ)
        found = await _list_objects(store, prefix)
        wanted = {safe_name(name): found[name] for name in _chosen(weights, found, log)}
        total_bytes = sum(meta["size"] for meta in wanted.values())
        done_bytes, reported_s = 0, self._monotonic()
        room = asyncio.Semaphore(DOWNLOADS_AT_ONCE)

        def add(size_bytes: int) -> None:
            nonlocal done_bytes, reported_s
            done_bytes += size_bytes
            if self._monotonic() - reported_s >= REPORT_INTERVAL_S:
                reported_s = self._monotonic()
                amount = f"{_megabytes(done_bytes)} of {_megabytes(total_bytes)}"
                log(f"[emulator] INFO weights {weights.source}: {amount} fetched")

        async def fetch(meta: Meta) -> Path:
            kept = self._folder / _key(weights, meta)
            async with room:
                if not kept.exists():
                    await _download(store, meta, kept, add)
            return kept

        try:
            async with asyncio.TaskGroup() as group:
                tasks = {name: group.create_task(fetch(meta)) for name, meta in wanted.items()}
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        return {name: task.result() for name, task in tasks.items()}


HUB_SCRIPT = f"""
import json, os, sys
with open(sys.argv[1]) as file:
    function, options = json.load(file)
try:
    import huggingface_hub
except ImportError:
    install = {f"{shlex.quote(sys.executable)} -m pip install huggingface-hub"!r}
    sys.exit(f"hf:// needs a package: {{install}}, and start the emulator again")
try:
    # Without a token of the job, False: never use the user's own login.
    answer = getattr(huggingface_hub, function)(**options, token=os.environ["HF_TOKEN"] or False)
    with open(sys.argv[1], "w") as file:
        json.dump(answer, file)
except Exception as error:
    sys.exit(f"{{type(error).__name__}}: {{error}}")
"""


def _location(weights: WeightsSource) -> str:
    return weights.source.partition("://")[2]


async def open_store(
    weights: WeightsSource, secret: str | None, environ: Mapping[str, str]
) -> tuple[Any, str]:
    """Return the source's object store and the path in it; raise ``FetchFailed`` for an unusable secret.

    ``AWS_ENDPOINT_URL`` and ``STORAGE_EMULATOR_HOST`` of ``environ`` redirect to another store.
    """
    if weights.scheme == LOCAL_FILES:
        return LocalStore(), _local_path(_location(weights))
    bucket, _, path = _location(weights).partition("/")
    endpoint = environ.get("STORAGE_EMULATOR_HOST" if weights.scheme == "gs" else "AWS_ENDPOINT_URL") or ""
    if endpoint and "://" not in endpoint:
        endpoint = f"http://{endpoint}"
    open_bucket: Any = GCSStore if weights.scheme == "gs" else S3Store
    if weights.scheme == "gs":
        config = _gcs_config(secret, endpoint)
    else:
        config = _s3_config(secret)
        if weights.scheme == "r2":
            account, _, bucket = bucket.partition(".")
            if not account or not bucket:
                raise FetchFailed("an r2:// source must be r2://account_id.bucket/path")
            endpoint = endpoint or f"https://{account}.r2.cloudflarestorage.com"
            config.setdefault("aws_region", "auto")
        if endpoint:
            config["endpoint"] = endpoint
        if "aws_region" not in config:
            is_known = endpoint or secret is not None
            config["aws_region"] = DEFAULT_REGION if is_known else await asyncio.to_thread(_region_of, bucket)
    options = {**CLIENT_OPTIONS, "allow_http": endpoint.startswith("http://")}
    with hidden_variables("AWS_", "GOOGLE_"):
        return open_bucket(bucket, config=config, client_options=options), path.strip("/")


def _local_path(location: str) -> str:
    path = Path(unquote(location)).resolve()
    if not path.exists():
        raise FetchFailed(f"{path} does not exist on this machine")
    return str(path).strip("/")


def _s3_config(secret: str | None) -> dict[str, Any]:
    """Read the documented fields only: the platform refuses a secret without the prefix, too."""
    if secret is None:
        return {"skip_signature": True}
    content = _json_object(secret)
    if not (content.get("aws_access_key_id") and content.get("aws_secret_access_key")):
        raise FetchFailed(
            'the secret must be a JSON object with "aws_access_key_id" and "aws_secret_access_key";'
            ' "aws_region" and "aws_session_token" are optional'
        )
    fields = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token", "aws_region")
    return {field: str(content[field]) for field in fields if content.get(field)}


def _gcs_config(secret: str | None, endpoint: str) -> dict[str, Any]:
    if endpoint:
        return {"base_url": endpoint, "skip_signature": True}
    if secret is None:
        return {"skip_signature": True}
    if not _json_object(secret):
        raise FetchFailed("the secret must be a service account key (a JSON object)")
    return {"service_account_key": secret}


def _json_object(secret: str | None) -> Mapping[str, Any]:
    with contextlib.suppress(ValueError):
        content = json.loads(secret or "{}")
        if isinstance(content, dict):
            return content
    return {}


def _region_of(bucket: str) -> str:
    """Return the region of an AWS bucket, which AWS reveals to anyone, also when it refuses."""
    request = urllib.request.Request(f"https://s3.amazonaws.com/{bucket}", method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=REGION_TIMEOUT_S) as answer:
            headers = answer.headers
    except urllib.error.HTTPError as refusal:
        headers = refusal.headers
    except OSError:
        return DEFAULT_REGION
    return str(headers.get("x-amz-bucket-region") or DEFAULT_REGION)


def _files_below(folder: Path) -> dict[str, Path]:
    return {
        path.relative_to(folder).as_posix(): path.resolve() for path in folder.rglob("*") if path.is_file()
    }


async def _list_objects(store: Any, prefix: str) -> dict[str, Meta]:
    """Return objects by their path below the prefix, without empty ones that stand for folders."""
    found: dict[str, Meta] = {}
    async for batch in obstore.list(store, prefix=prefix or None):
        found |= {meta["path"].removeprefix(prefix).lstrip("/"): meta for meta in batch}
    folders = {str(folder) for name in found for folder in PurePosixPath(name).parents}
    found = {name: meta for name, meta in sorted(found.items()) if meta["size"] or name not in folders}
    if found or not prefix:
        return found
    try:
        return {prefix.rpartition("/")[2]: await obstore.head_async(store, prefix)}
    except FileNotFoundError:
        raise FetchFailed(f"there is nothing at {prefix!r}") from None


def _key(weights: WeightsSource, meta: Meta) -> str:
    version = meta["e_tag"] or meta["last_modified"].isoformat()
    bucket = _location(weights).partition("/")[0]
    subject = "\0".join((weights.scheme, bucket, meta["path"], version, str(meta["size"])))
    return hashlib.sha256(subject.encode(errors="surrogatepass")).hexdigest()


async def _download(store: Any, meta: Meta, kept: Path, add: Callable[[int], None]) -> None:
    """Fetch an object piece by piece; fail if it changes meanwhile."""
    partial = kept.with_name(f".{kept.name}.{secrets.token_hex(4)}")
    options: Any = {"if_match": meta["e_tag"]} if meta["e_tag"] else {}
    try:
        with partial.open("xb") as file:
            for start in range(0, meta["size"], PIECE_BYTES):
                options["range"] = (start, min(start + PIECE_BYTES, meta["size"]))
                answer = await obstore.get_async(store, meta["path"], options=options)
                piece = await answer.bytes_async()
                await asyncio.to_thread(file.write, piece)
                add(len(piece))
        partial.replace(kept)
    finally:
        partial.unlink(missing_ok=True)


def safe_name(name: str) -> str:
    """Return the relative path if it stays inside; raise ``FetchFailed`` for any other."""
    path = PurePosixPath(name)
    if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name:
        raise FetchFailed(f"the source has a file with an unusable name: {name!r}")
    return name


def _link_files(files: Mapping[str, Path], destination: Path) -> int:
    """Hard-link files into the new folder, all write-protected; return their total bytes."""
    size_bytes = 0
    for name, kept in files.items():
        target = destination / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.hardlink_to(kept)
        target.chmod(READ_ONLY_FILE)
        size_bytes += target.stat().st_size
    for parent, _, _ in os.walk(destination, topdown=False):
        Path(parent).chmod(READ_ONLY_FOLDER)
    return size_bytes


def _reason(error: Exception) -> str:
    """Return the error in one line, without the debug output that obstore appends."""
    text = str(error).partition("Debug source")[0].strip() or type(error).__name__
    if not isinstance(error, FetchFailed):
        text = f"{type(error).__name__}: {text}"
    return " ".join(text.split())


def without_secret(text: str, secret: str | None) -> str:
    """Mask the secret in the text, including each string inside a secret that is a JSON object."""
    parts = {secret or "", (secret or "").strip()}
    parts.update(value for value in _json_object(secret).values() if isinstance(value, str))
    for part in sorted(parts, key=len, reverse=True):
        if len(part) >= SHORTEST_SECRET_CHARACTERS:
            text = text.replace(part, "***")
    return text[:MAXIMUM_REASON_CHARACTERS]


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.1f} MB"
