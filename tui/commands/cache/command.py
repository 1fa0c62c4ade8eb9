"""``bt-tui cache``: show what uses the space in a project's cache."""

from __future__ import annotations

from datetime import datetime

import click

from api_client.client import TrainingClient
from api_client.models.cache import CacheListing
from tui.analysis.export import csv_lines
from tui.analysis.file_tree.tree import ROOT, FileEntry, FileTree, build
from tui.commands.cache.listing import prepare, print_csv, print_files, print_json
from tui.commands.support.exit_codes import CommandFailed, ExitCode
from tui.commands.support.options import (
    CSV,
    DESCENDING,
    JSON,
    examples,
    listing_format_option,
    order_option,
    project_named,
)
from tui.commands.support.output import Output
from tui.commands.support.session import client_command
from tui.commands.support.tables import print_rows
from tui.tables.column import Column, text_column
from tui.text.times import local_stamp
from tui.text.units import bytes_iec, count, percent


def entries_of(listing: CacheListing) -> list[FileEntry]:
    return [
        FileEntry(
            file.path, file.size_bytes, _seconds(file.modified), file.file_type or "file", file.permissions
        )
        for file in listing.file_summaries
    ]


def _seconds(stamp: str) -> float | None:
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def print_directories(
    output: Output, listing: CacheListing, project_id: str, depth: int, output_format: str
) -> None:
    """Print directories up to `depth`, largest first; deeper files count towards the directories shown."""
    tree = build(entries_of(listing))
    nodes = [
        node for node in range(ROOT + 1, len(tree)) if tree.is_directory(node) and tree.depths[node] < depth
    ]
    nodes.sort(key=lambda node: (-tree.sizes[node], tree.path(node)))
    if output_format == JSON:
        output.json(_document(tree, nodes, listing, project_id))
    elif output_format == CSV:
        rows = [
            (tree.path(node), tree.sizes[node], tree.file_counts[node], round(tree.share_of_total(node), 6))
            for node in nodes
        ]
        output.data(csv_lines([("Directory", "Size (bytes)", "Files", "Share"), *rows]))
    else:
        columns: tuple[Column[int], ...] = (
            text_column("SIZE", lambda node: bytes_iec(tree.sizes[node]), right=True),
            text_column("SHARE", lambda node: percent(tree.share_of_total(node)), right=True),
            text_column("FILES", lambda node: count(tree.file_counts[node]), right=True),
            Column("DIRECTORY", "DIRECTORY", lambda node: [(tree.path(node), _tone(tree, node))]),
        )
        print_rows(output, columns, nodes)


def _tone(tree: FileTree, node: int) -> str:
    return "plain" if tree.depths[node] else "strong"


def _document(tree: FileTree, nodes: list[int], listing: CacheListing, project_id: str) -> dict[str, object]:
    return {
        "timestamp": listing.timestamp,
        "project_id": listing.project_id or project_id,
        "total_files": tree.file_count,
        "total_size_bytes": tree.total_bytes,
        "directories": [
            {
                "path": tree.path(node),
                "size_bytes": tree.sizes[node],
                "file_count": tree.file_counts[node],
                "share": round(tree.share_of_total(node), 6),
            }
            for node in nodes
        ],
    }


SORTS = ("filepath", "size", "modified", "type", "permissions")


@examples("bt-tui cache summarize llama-sft", "bt-tui cache summarize --help")
@click.group()
def cache() -> None:
    """Inspect the cache of a project."""


@examples(
    "bt-tui cache summarize llama-sft",
    "bt-tui cache summarize llama-sft --sort size --order desc | head",
    "bt-tui cache summarize llama-sft --by-directory 3",
    "bt-tui cache summarize llama-sft -o json | jq .total_size_human_readable",
)
@cache.command(short_help="List the files of a project's cache.")
@click.argument("project", metavar="PROJECT")
@click.option("--sort", type=click.Choice(SORTS), default="filepath", show_default=True, help="Sort key.")
@order_option
@click.option(
    "--by-directory",
    "depth",
    type=click.IntRange(1, 100),
    metavar="DEPTH",
    help="Only directories down to this depth, with totals, largest first.",
)
@listing_format_option
@client_command
async def summarize(
    client: TrainingClient,
    output: Output,
    project: str,
    sort: str,
    order: str,
    depth: int | None,
    output_format: str,
) -> None:
    """List the cache of a project (id or name), as reported by its most recent job.

    The size of a directory includes everything in it. If the project has no cache, the exit code is 7 and
    the JSON and CSV output is empty, as in the official CLI; an empty cache is not an error.
    """
    found = await project_named(client, project)
    listing = await client.cache.listing(found.id)
    if listing is None:
        _print(output, None, found.id, output_format, 0)
        raise CommandFailed(f"project {found.name} has no cache", ExitCode.NOT_FOUND)
    output.remark(_headline(listing, found.name))
    if depth is not None:
        print_directories(output, listing, found.id, depth, output_format)
        return

    total_bytes = prepare(listing, sort, descending=order == DESCENDING)
    _print(output, listing, found.id, output_format, total_bytes)


def _print(
    output: Output, listing: CacheListing | None, project_id: str, output_format: str, total_bytes: int
) -> None:
    if output_format == JSON:
        print_json(output, listing, project_id, total_bytes)
    elif output_format == CSV:
        print_csv(output, listing)
    elif listing is not None:
        print_files(output, listing, total_bytes)


def _headline(listing: CacheListing, name: str) -> str:
    if not listing.file_summaries:
        return f"the cache of {name} is empty as of {local_stamp(listing.timestamp) or 'an unknown time'}"
    return f"the cache of {name} as of {local_stamp(listing.timestamp) or 'an unknown time'}"
