"""Which requests only read, and the refusal of all others by a client that was made read-only.

The one table of it: whatever is not named here as a read counts as a change, so that a request that is
added later is refused until somebody says that it reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from api_client.errors import ReadOnlyError
from api_client.http.request_words import words_for

READING_METHODS = frozenset({"GET", "HEAD"})

READS_BY_POST = tuple(
    re.compile(pattern)
    for pattern in (
        "/v1/training_jobs/search",
        "/v1/training_projects/[^/]+/jobs/[^/]+/(logs|metrics)",  # deprecated twins of GETs
        "/v1/models/[^/]+/deployments/[^/]+/logs",
    )
)
"""Routes of the published API that are asked by POST and change nothing."""

CHANGES_BY_GET = frozenset({"/v1/blobs/credentials/train"})
"""Credentials to upload with: nobody needs them who is not about to."""

GRAPHQL_PATH = "/graphql/"
_CHANGING_OPERATIONS = ("mutation", "subscription")


def is_query(graphql: str) -> bool:
    """Whether a GraphQL document only reads; one that merely has the word in it counts as a change."""
    return not any(word in graphql for word in _CHANGING_OPERATIONS)


def only_reads(method: str, path: str, body: Any = None) -> bool:
    """Whether a request to the remote changes nothing there."""
    if method in READING_METHODS:
        return path not in CHANGES_BY_GET
    if method != "POST":
        return False
    if path == GRAPHQL_PATH:
        query = body.get("query") if isinstance(body, Mapping) else None
        return isinstance(query, str) and is_query(query)
    return any(pattern.fullmatch(path) for pattern in READS_BY_POST)


def refusal(read_only_by: str, method: str, path: str, what: str = "") -> ReadOnlyError:
    """The error for a change that was not sent; ``read_only_by`` is the setting that forbids it."""
    named = what or words_for(method, path)
    return ReadOnlyError(
        f"not done, as nothing may be changed (read-only by {read_only_by}): {named}",
        method=method,
        path=path,
        attempts=0,
    )
