"""The cache of a project, as its most recent job left it; also as plain records for 100,000 files.

pydantic keeps the whole document beside the models while it parses; ``read_listing`` turns every entry into
its record at once, which takes a third of the memory.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from api_client.models.base import ApiModel, TolerantList


class CachedFile(ApiModel):
    """File or directory of the cache; ``modified`` is the server's own text."""

    path: str
    size_bytes: int = 0
    modified: str = ""
    file_type: str = ""
    permissions: str = ""


class CacheSummary(ApiModel):
    """All files of a project's cache at ``timestamp``."""

    timestamp: str = ""
    project_id: str = ""
    file_summaries: TolerantList[CachedFile] = []


WINDOW_BYTES = 1024 * 1024
_MAX_LISTING_BYTES = 2**63
_LIST_NAME = "file_summaries"
_LIST_KEY = b'"file_summaries"'
_LIST = re.compile(rb'"file_summaries"\s{0,9}:\s{0,9}\[\s{0,99}')
_GAP = re.compile(r"\s{0,99},\s{0,99}")
_GAP_IN_BYTES = re.compile(rb"\s{0,99},\s{0,99}")


class NotAListing(ValueError):
    """The document is not a cache summary. The message quotes no values."""


@dataclass(slots=True)
class ListedPath:
    """File or directory of the cache, as the server sends it; null or missing values are empty or zero."""

    path: str
    size_bytes: int = 0
    modified: str = ""
    file_type: str = ""
    permissions: str = ""


@dataclass(slots=True)
class CacheListing:
    """Content of ``CacheSummary``, without fields added by newer servers."""

    timestamp: str
    project_id: str
    files: list[ListedPath]


def read_listing(content: bytes) -> CacheListing | None:
    """Parse the answer; None for null or an empty object, which mean that there is no cache.

    Raises NotAListing.
    """
    try:
        summary = _read_in_windows(content)
        if summary is None:
            text = content.decode("utf-8-sig", errors="replace")
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


def _read_in_windows(content: bytes) -> dict[str, Any] | None:
    """Parse the document, its long list in pieces; None if it does not have the usual form.

    Decoding it whole would need as much memory again as the bytes.
    """
    opening = _LIST.search(content)
    # Don't use the pattern again: it takes ten times as long if there is no match.
    if opening is None or content.find(_LIST_KEY, opening.end()) >= 0:
        return None
    decoder = json.JSONDecoder(object_hook=_record, strict=False)
    files: list[Any] = []
    place = opening.end()
    while content[place : place + 1] != b"]":
        window = content[place : place + WINDOW_BYTES]
        used = _read_whole_objects(window, files)
        if used:
            place = _skipped(content, place + used)
            continue
        try:
            text = window[: window.rfind(b"}") + 1].decode()
        except UnicodeDecodeError:
            return None
        used = _read_objects(decoder, text, files)
        if not used:
            return None
        place += used if text.isascii() else len(text[:used].encode())
        place = _skipped(content, place)
    rest = json.loads(content[: opening.end()] + content[place:])
    if not isinstance(rest, dict) or rest.get(_LIST_NAME) != []:
        return None
    return {**rest, _LIST_NAME: files}


def _read_whole_objects(window: bytes, files: list[Any]) -> int:
    """Append the objects up to the last ``}`` and return its position; 0 if that does not parse.

    This is three times as fast as parsing one object after the other, and works for every window but the
    last.
    """
    begin = _GAP_IN_BYTES.match(window)
    if (begin is not None) != bool(files):
        return 0
    end = window.rfind(b"}") + 1
    try:
        entries = from_json(b"[" + window[begin.end() if begin else 0 : end] + b"]")
    except ValueError:
        return 0
    if not all(isinstance(entry, dict) for entry in entries):
        return 0
    files.extend(map(_record, entries))
    return end if entries else 0


def _read_objects(decoder: json.JSONDecoder, text: str, files: list[Any]) -> int:
    """Append the objects that the text begins with; return the end of the last complete one."""
    used = 0
    while True:
        following = _GAP.match(text, used)
        start = following.end() if following is not None else used
        if (files and following is None) or (following and not files) or not text.startswith("{", start):
            return used
        try:
            value, used = decoder.raw_decode(text, start)
        except ValueError:
            return used  # cut off by the window, or invalid: the next window shows which
        files.append(value)


def _skipped(content: bytes, place: int) -> int:
    """Return the position after the comma that must be followed by another entry, or the end of the list."""
    while content[place : place + 1].isspace():
        place += 1
    return place


def _record(entry: dict[str, Any]) -> Any:
    try:
        path, size = entry["path"], entry["size_bytes"]
        modified, kind, permissions = entry["modified"], entry["file_type"], entry["permissions"]
    except KeyError:
        return _lenient_record(entry)
    if (
        type(size) is int
        and type(path) is type(modified) is type(kind) is type(permissions) is str
        and -_MAX_LISTING_BYTES < size < _MAX_LISTING_BYTES
    ):
        return ListedPath(path, size, modified, kind, permissions)
    return _lenient_record(entry)


def _lenient_record(entry: dict[str, Any]) -> Any:
    path = entry.get("path")
    if not isinstance(path, str) or _LIST_NAME in entry:
        return entry
    size = entry.get("size_bytes")
    return ListedPath(
        path,
        int(size) if isinstance(size, int | float) and abs(size) < _MAX_LISTING_BYTES else 0,
        _text(entry.get("modified")),
        _text(entry.get("file_type")),
        _text(entry.get("permissions")),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
