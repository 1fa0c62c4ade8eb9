"""Weights from object stores: ``s3://bucket/path``, ``gs://bucket/path``, ``r2://account.bucket/path``.

Without a secret the store is asked anonymously, as the platform has to. ``AWS_ENDPOINT_URL`` in the
emulator's environment leads to another S3 (``s3`` and ``r2``), ``STORAGE_EMULATOR_HOST`` to another GCS.
"""

from __future__ import annotations

import importlib
import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from api_client.emulator.runner.weights_order import FetchFailed, FetchOrder

LIBRARY = "obstore"
REGION_TIMEOUT_S = 10
DEFAULT_REGION = "us-east-1"
REQUEST_TIMEOUT = "120s"
CONNECT_TIMEOUT = "10s"
_AWS_FIELDS = ("access_key_id", "secret_access_key", "session_token", "region")


def object_library() -> Any:
    """The library for object stores; raises ``FetchFailed`` if it is not installed."""
    try:
        return importlib.import_module(LIBRARY)
    except ImportError as error:
        raise FetchFailed(
            "this source needs the package obstore: pip install obstore, and start the emulator again"
        ) from error


def open_bucket(order: FetchOrder) -> tuple[Any, str]:
    """The bucket that an order names, and the path inside of it."""
    bucket, _, path = order.location.partition("/")
    store_module: Any = importlib.import_module(f"{object_library().__name__}.store")
    if order.scheme == "gs":
        return store_module.GCSStore(bucket, config=_gcs_config(order), **_options()), path
    account = None
    if order.scheme == "r2":
        account, separator, bucket = bucket.partition(".")
        if not separator or not account or not bucket:
            raise FetchFailed("an r2:// source is called r2://account_id.bucket/path")
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
        raise FetchFailed("the secret must be a service account's key, a JSON object")
    return {"service_account_key": order.secret}


def _secret_object(order: FetchOrder) -> Mapping[str, Any]:
    try:
        content = json.loads(order.secret or "{}")
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _region_of(bucket: str, endpoint: str | None) -> str:
    """Where a bucket of AWS lies; it says so even to strangers. Elsewhere the region is a formality."""
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
