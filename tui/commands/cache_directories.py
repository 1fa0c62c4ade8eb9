"""The directories of a cache with their totals: where the room goes."""

from __future__ import annotations

import csv
import io
from datetime import datetime

from api_client.models.cache_listing import CacheListing
from tui.commands.cache_listing import csv_text
from tui.commands.options import CSV, JSON
from tui.commands.output import Output
from tui.commands.tables import Cell, Column, render_table
from tui.insight.file_tree import ROOT, FileEntry, FileTree, build
from tui.insight.units import bytes_iec, count, percent

_COLUMNS = (
    Column("SIZE", right=True),
    Column("SHARE", right=True),
    Column("FILES", right=True),
    Column("DIRECTORY"),
)


def entries_of(listing: CacheListing) -> list[FileEntry]:
    """The files of a cache for a tree."""
    return [
        FileEntry(
            file.path, file.size_bytes, _seconds(file.modified), file.file_type or "file", file.permissions
        )
        for file in listing.files
    ]


def _seconds(stamp: str) -> float | None:
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def print_directories(
    output: Output, listing: CacheListing, project_id: str, depth: int, output_format: str
) -> None:
    """Directories down to that depth, the largest first, files in deeper ones counted where they show."""
    tree = build(entries_of(listing))
    nodes = [
        node for node in range(ROOT + 1, len(tree)) if tree.is_directory(node) and tree.depths[node] < depth
    ]
    nodes.sort(key=lambda node: (-tree.sizes[node], tree.path(node)))
    if output_format == JSON:
        output.json(_document(tree, nodes, listing, project_id))
    elif output_format == CSV:
        rows = io.StringIO()
        writer = csv.writer(rows, lineterminator="\n")
        writer.writerow(("Directory", "Size (bytes)", "Files", "Share"))
        for node in nodes:
            cells = (tree.sizes[node], tree.file_counts[node], round(tree.share_of_total(node), 6))
            writer.writerow((csv_text(tree.path(node)), *cells))
        output.data(rows.getvalue())
    elif nodes:
        table = [
            [
                Cell(bytes_iec(tree.sizes[node])),
                Cell(percent(tree.share_of_total(node))),
                Cell(count(tree.file_counts[node])),
                Cell(tree.path(node), "strong" if tree.depths[node] == 0 else None),
            ]
            for node in nodes
        ]
        output.data(render_table(_COLUMNS, table, width_cells=output.width_cells, paint=output.paint))


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
