"""Decide if a request only reads, and refuse changes in read-only mode."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from api_client.errors import ReadOnlyError
from api_client.http.failures import request_description

READING_METHODS = frozenset({"GET", "HEAD"})

READS_BY_POST = tuple(
    re.compile(pattern)
    for pattern in (
        "/v1/training_jobs/search",
        "/v1/training_projects/[^/]+/jobs/[^/]+/(logs|metrics)",  # deprecated equivalents of GETs
        "/v1/models/[^/]+/deployments/[^/]+/logs",
    )
)
"""Routes of the published API that use POST but change nothing."""

CHANGES_BY_GET = frozenset({"/v1/blobs/credentials/train"})  # only needed for an upload
GRAPHQL_PATH = "/graphql/"
_CHANGING_OPERATIONS = ("mutation", "subscription")


def is_query(graphql: str) -> bool:
    """Return True if a GraphQL document only reads; if it merely contains the word, it counts as a change."""
    return not any(word in graphql for word in _CHANGING_OPERATIONS)


def only_reads(method: str, path: str, body: Any = None) -> bool:
    if method in READING_METHODS:
        return path not in CHANGES_BY_GET
    if method != "POST":
        return False
    if path == GRAPHQL_PATH:
        query = body.get("query") if isinstance(body, Mapping) else None
        return isinstance(query, str) and is_query(query)
    return any(pattern.fullmatch(path) for pattern in READS_BY_POST)


def refusal(read_only_by: str, method: str = "", path: str = "", what: str = "") -> ReadOnlyError:
    """Build the error for a change that was not sent; ``read_only_by`` is the setting that forbids it."""
    named = what or request_description(method, path)
    return ReadOnlyError(
        f"refused (read-only by {read_only_by}): {named}", method=method, path=path, attempts=0
    )
