"""The cache of a project as plain records, for a hundred thousand of them.

pydantic keeps the whole document beside the models while it reads it; here every entry becomes its record as
soon as it is read, which takes a third of the memory.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


class NotAListing(ValueError):
    """The document is not a cache summary. The message quotes no values."""


@dataclass(slots=True)
class ListedPath:
    """A file or directory of the cache, as the server words it; what was null or missing is empty or zero."""

    path: str
    size_bytes: int = 0
    modified: str = ""
    file_type: str = ""
    permissions: str = ""


@dataclass(slots=True)
class CacheListing:
    """What ``CacheSummary`` has, without the fields that a newer server may have added."""

    timestamp: str
    project_id: str
    files: list[ListedPath]


def read_listing(content: bytes) -> CacheListing | None:
    """Read the answer; None for null or an empty object, which say that there is no cache.

    Raises NotAListing.
    """
    text = content.decode("utf-8-sig", errors="replace")
    try:
        summary = json.loads(text, object_hook=_record, strict=False)
    except RecursionError:
        raise NotAListing("it is nested too deeply") from None
    except ValueError:
        raise NotAListing("it is not JSON") from None
    if summary is None or summary == {}:
        return None
    if not isinstance(summary, dict):
        raise NotAListing("it is not a JSON object")
    files = summary.get("file_summaries") or []
    if not isinstance(files, list) or not all(isinstance(file, ListedPath) for file in files):
        raise NotAListing("file_summaries is not a list of files with a path")
    return CacheListing(_text(summary.get("timestamp")), _text(summary.get("project_id")), files)


def _record(entry: dict[str, Any]) -> Any:
    path = entry.get("path")
    if not isinstance(path, str) or "file_summaries" in entry:
        return entry
    size = entry.get("size_bytes")
    return ListedPath(
        path,
        int(size) if isinstance(size, int | float) and abs(size) < 2**63 else 0,
        _text(entry.get("modified")),
        _text(entry.get("file_type")),
        _text(entry.get("permissions")),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
