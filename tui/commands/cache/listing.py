"""A cache's files as a table, JSON or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

from api_client.models.cache import CacheListing, ListedPath
from tui.analysis.export import without_formula
from tui.commands.support.output import Output
from tui.commands.support.tables import print_rows
from tui.tables.column import Column, text_column
from tui.text.sanitize import sanitize
from tui.text.times import local_stamp
from tui.text.units import bytes_decimal, bytes_iec, count

UNKNOWN = "Unknown"
DIRECTORY = "directory"

COLUMNS: tuple[Column[ListedPath], ...] = (
    text_column("SIZE", lambda file: bytes_iec(file.size_bytes), right=True),
    text_column("MODIFIED", lambda file: local_stamp(file.modified), "muted"),
    text_column("TYPE", lambda file: file.file_type or UNKNOWN),
    text_column("PERMISSIONS", lambda file: file.permissions or UNKNOWN, "muted"),
    Column("PATH", "PATH", lambda file: [(file.path, "strong" if file.file_type == DIRECTORY else "plain")]),
)

MAX_ANCESTORS = 100
"""Maximum number of ancestors whose totals include a file: the official limit."""

_KEYS: dict[str, Callable[[ListedPath], Any]] = {
    "filepath": lambda file: file.path,
    "size": lambda file: file.size_bytes,
    "modified": lambda file: file.modified,
    "type": lambda file: file.file_type,
    "permissions": lambda file: file.permissions,
}


def prepare(listing: CacheListing, sort: str, *, descending: bool) -> int:
    """Set each directory's size to the total of its contents, sort, and return the total bytes.

    Call it only once. Like the official command, totals include the size of the directory entries
    themselves.
    """
    total_bytes = sum(file.size_bytes for file in listing.file_summaries)
    _total_directories(listing)
    listing.file_summaries.sort(key=_KEYS[sort], reverse=descending)
    return total_bytes


def _total_directories(listing: CacheListing) -> None:
    totals = dict.fromkeys((file.path for file in listing.file_summaries if file.file_type == DIRECTORY), 0)
    of_folder: dict[str, int] = {}
    for file in listing.file_summaries:
        if file.file_type == DIRECTORY:
            of_folder[file.path] = of_folder.get(file.path, 0) + file.size_bytes
        else:
            folder = _folder_of(file.path)
            of_folder[folder] = of_folder.get(folder, 0) + file.size_bytes
    for folder, size_bytes in of_folder.items():
        above = folder
        for _level in range(MAX_ANCESTORS):
            if above in totals:
                totals[above] += size_bytes
            parent = _folder_of(above)
            if parent == above:
                break
            above = parent
    for file in listing.file_summaries:
        if file.file_type == DIRECTORY:
            file.size_bytes = totals[file.path]


def _folder_of(path: str) -> str:
    head, slash, _name = path.rpartition("/")
    return head.rstrip("/") or slash


def print_json(output: Output, listing: CacheListing | None, project_id: str, total_bytes: int) -> None:
    files = listing.file_summaries if listing is not None else []
    output.json(
        {
            "timestamp": listing.timestamp if listing else "",
            "project_id": (listing.project_id if listing else "") or project_id,
            "total_files": len(files),
            "total_size_bytes": total_bytes,
            "total_size_human_readable": bytes_decimal(total_bytes),
            "files": [
                {
                    "path": file.path,
                    "size_bytes": file.size_bytes,
                    "size_human_readable": bytes_decimal(file.size_bytes),
                    "modified": local_stamp(file.modified),
                    "type": file.file_type or UNKNOWN,
                    "permissions": file.permissions or UNKNOWN,
                }
                for file in files
            ],
        }
    )


def print_csv(output: Output, listing: CacheListing | None) -> None:
    """Print the official columns, prefixing paths that a spreadsheet would read as a formula with ``'``."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("File Path", "Size (bytes)", "Size (human readable)", "Modified", "Type", "Permissions"))
    writer.writerows(
        (
            _csv_cell(file.path),
            file.size_bytes,
            bytes_decimal(file.size_bytes),
            _csv_cell(local_stamp(file.modified)),
            _csv_cell(file.file_type or UNKNOWN),
            sanitize(file.permissions or UNKNOWN),
        )
        for file in (listing.file_summaries if listing is not None else [])
    )
    output.data(text.getvalue())


def _csv_cell(text: str) -> str:
    return without_formula(sanitize(text))


def print_files(output: Output, listing: CacheListing, total_bytes: int) -> None:
    print_rows(output, COLUMNS, listing.file_summaries)
    output.remark(f"{count(len(listing.file_summaries))} files and directories, {bytes_iec(total_bytes)}")
