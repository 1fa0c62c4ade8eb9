"""``bt-tui cache``: Inspect the cache of a project."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable
from typing import Any

import click

from api_client.client import TrainingClient
from api_client.models.cache import CacheListing, ListedPath
from tui.analysis.checkpoints.facts import cache_entries
from tui.analysis.export import csv_lines, without_formula
from tui.analysis.file_tree.tree import ROOT, FileTree
from tui.analysis.ordering import ordered
from tui.commands.support.options import (
    ASCENDING,
    DESCENDING,
    examples,
    listing_format_option,
    order_option,
    project_named,
    selected_project,
)
from tui.commands.support.output import CSV, JSON, CommandFailed, CommandOutput, ExitCode
from tui.commands.support.session import client_command
from tui.commands.support.tables import table_text_if_any
from tui.tables.column import Column, text_column
from tui.text.sanitize import sanitize_whole
from tui.text.times import local_stamp
from tui.text.units import bytes_decimal, bytes_iec, count, counted, percent

UNKNOWN = "Unknown"
DIRECTORY = "directory"

COLUMNS: tuple[Column[ListedPath], ...] = (
    text_column("SIZE", lambda file: bytes_iec(file.size_bytes), right_aligned=True),
    text_column("MODIFIED", lambda file: local_stamp(file.modified), "muted"),
    text_column("TYPE", lambda file: file.file_type or UNKNOWN),
    text_column("PERMISSIONS", lambda file: file.permissions or UNKNOWN, "muted"),
    Column("PATH", "PATH", lambda file: [(file.path, "strong" if file.file_type == DIRECTORY else "plain")]),
)

_SORT_KEYS: dict[str, Callable[[ListedPath], Any]] = {
    "filepath": lambda file: file.path,
    "size": lambda file: file.size_bytes,
    "modified": lambda file: file.modified or None,
    "type": lambda file: file.file_type or None,
    "permissions": lambda file: file.permissions or None,
}

PATH_SORT_KEY = "path"
"""The baseten CLI's sort key for paths, whose order is always ascending."""


def _set_directory_totals(listing: CacheListing) -> None:
    """Set each directory's size to the total of its contents; call it only once.

    Like the official command, totals include the size of the directory entries themselves.
    """
    totals = dict.fromkeys((file.path for file in listing.file_summaries if file.file_type == DIRECTORY), 0)
    bytes_of_folder: Counter[str] = Counter()
    for file in listing.file_summaries:
        bytes_of_folder[file.path if file.file_type == DIRECTORY else _parent_folder(file.path)] += (
            file.size_bytes
        )
    ancestors: list[str] = []
    # sorted so that the contents of a folder directly follow it
    for folder in sorted({*totals, *bytes_of_folder}, key=_path_prefix):
        while ancestors and not _path_prefix(folder).startswith(_path_prefix(ancestors[-1])):
            ancestors.pop()
        if folder in totals:
            ancestors.append(folder)
        for directory in ancestors:
            totals[directory] += bytes_of_folder[folder]
    for file in listing.file_summaries:
        if file.file_type == DIRECTORY:
            file.size_bytes = totals[file.path]


def _path_prefix(folder: str) -> str:
    return folder.rstrip("/") + "/"


def _parent_folder(path: str) -> str:
    head, slash, _name = path.rpartition("/")
    return head.rstrip("/") or slash


def _files_document(listing: CacheListing, project_id: str, total_bytes: int) -> dict[str, object]:
    return {
        "timestamp": listing.timestamp,
        "project_id": listing.project_id or project_id,
        "total_files": len(listing.file_summaries),
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
            for file in listing.file_summaries
        ],
    }


def _files_csv(listing: CacheListing) -> str:
    """Return the official columns; paths that a spreadsheet would read as a formula begin with ``'``."""
    csv_buffer = io.StringIO()
    writer = csv.writer(csv_buffer, lineterminator="\n")
    writer.writerow(("File Path", "Size (bytes)", "Size (human readable)", "Modified", "Type", "Permissions"))
    writer.writerows(
        (
            _csv_cell(file.path),
            file.size_bytes,
            bytes_decimal(file.size_bytes),
            _csv_cell(local_stamp(file.modified)),
            _csv_cell(file.file_type or UNKNOWN),
            sanitize_whole(file.permissions or UNKNOWN),
        )
        for file in listing.file_summaries
    )
    return csv_buffer.getvalue()


def _csv_cell(text: str) -> str:
    return without_formula(sanitize_whole(text))


def _print_directories(output: CommandOutput, listing: CacheListing, project_id: str, depth: int) -> None:
    """Print directories up to `depth`, largest first; deeper files count towards the directories shown."""
    tree = FileTree(cache_entries(listing.file_summaries))
    nodes = [
        node for node in range(ROOT + 1, len(tree)) if tree.is_directory(node) and tree.depths[node] < depth
    ]
    nodes.sort(key=lambda node: (-tree.sizes[node], tree.path(node)))
    columns: tuple[Column[int], ...] = (
        text_column("SIZE", lambda node: bytes_iec(tree.sizes[node]), right_aligned=True),
        text_column("SHARE", lambda node: percent(tree.share_of_total(node)), right_aligned=True),
        text_column("FILES", lambda node: count(tree.file_counts[node]), right_aligned=True),
        text_column("DIRECTORY", tree.path),
    )
    directories: list[dict[str, str | int | float]] = [
        {
            "path": tree.path(node),
            "size_bytes": tree.sizes[node],
            "file_count": tree.file_counts[node],
            "share": round(tree.share_of_total(node), 6),
        }
        for node in nodes
    ]
    document = {
        "timestamp": listing.timestamp,
        "project_id": listing.project_id or project_id,
        "total_files": tree.file_count,
        "total_size_bytes": tree.total_bytes,
        "directories": directories,
    }
    titles = ("Directory", "Size (bytes)", "Files", "Share")
    output.print_result(
        document,
        table_text_if_any(columns, nodes, output),
        csv_lines([titles, *(tuple(directory.values()) for directory in directories)]),
    )


@examples("bt-tui cache summarize llama-sft", "bt-tui cache summarize --help")
@click.group()
def cache() -> None:
    """Inspect the cache of a project."""


@examples(
    "bt-tui cache summarize llama-sft",
    "bt-tui cache summarize llama-sft --files --sort size --order desc | head",
    "bt-tui cache summarize llama-sft --by-directory 3",
    "bt-tui cache summarize llama-sft -o json | jq .total_size_human_readable",
)
@cache.command(short_help="Show what takes up space in a project's cache.")
@click.argument("project", metavar="[PROJECT]", required=False)
@click.option("--project", "project_option", metavar="PROJECT", help="Same as the argument.")
@click.option(
    "--sort",
    type=click.Choice((*_SORT_KEYS, PATH_SORT_KEY)),
    help="Sort key of the files (default: filepath); path: filepath, ascending.",
)
@order_option
@click.option("--files", "lists_files", is_flag=True, help="List every file and directory.")
@click.option(
    "--by-directory",
    "depth",
    type=click.IntRange(1, 100),
    metavar="DEPTH",
    help="Only directories down to this depth (default: 2), with totals, largest first.",
)
@listing_format_option
@client_command
async def summarize(
    client: TrainingClient,
    output: CommandOutput,
    project: str | None,
    project_option: str | None,
    sort: str | None,
    order: str,
    lists_files: bool,
    depth: int | None,
) -> None:
    """Show what takes up space in the cache of a project (id or name), as reported by its most recent job.

    The table shows the largest directories; --files or --sort lists every file, as JSON and CSV do without
    --by-directory. The size of a directory includes everything in it. If the project has no cache, the exit
    code is 7 and the JSON and CSV output is empty, as in the official CLI; an empty cache is not an error.
    """
    name_or_id = selected_project(project, project_option)
    if name_or_id is None:
        raise click.UsageError("which project? Give PROJECT or --project PROJECT")
    if sort == PATH_SORT_KEY:
        sort, order = "filepath", ASCENDING
    owning_project = await project_named(client, name_or_id)
    listing = await client.cache.listing(owning_project.id)
    if listing is None:
        if output.format in (CSV, JSON):
            _print_files(output, CacheListing(), owning_project.id, 0)
        raise CommandFailed(f"project {owning_project.name} has no cache", ExitCode.NOT_FOUND)
    files = listing.file_summaries
    total_bytes = sum(file.size_bytes for file in files)
    output.print_message(_headline(listing, owning_project.name, total_bytes))
    lists_files = lists_files or sort is not None or output.format in (CSV, JSON)
    if depth is not None or not lists_files:
        _print_directories(output, listing, owning_project.id, depth or 2)
        return
    _set_directory_totals(listing)
    files[:] = ordered(files, _SORT_KEYS[sort or "filepath"], descending=order == DESCENDING)
    _print_files(output, listing, owning_project.id, total_bytes)


def _print_files(output: CommandOutput, listing: CacheListing, project_id: str, total_bytes: int) -> None:
    output.print_result(
        lambda: _files_document(listing, project_id, total_bytes),
        lambda: table_text_if_any(COLUMNS, listing.file_summaries, output),
        lambda: _files_csv(listing),
    )


def _headline(listing: CacheListing, name: str, total_bytes: int) -> str:
    time_text = local_stamp(listing.timestamp) or "an unknown time"
    entries = counted(len(listing.file_summaries), "file or directory", "files and directories")
    content = f"has {entries}, {bytes_iec(total_bytes)}" if listing.file_summaries else "is empty"
    return f"the cache of {name} {content}, as of {time_text}"
