"""A cache's files as a table, JSON or CSV, written line by line: there may be 100,000."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

from api_client.models.cache import CacheListing, ListedPath
from tui.commands.support.output import DELETE, Output
from tui.commands.support.tables import COLUMN_GAP
from tui.text.sanitize import cell_width, sanitize
from tui.text.times import LocalStamps
from tui.text.units import bytes_decimal, bytes_iec, count

UNKNOWN = "Unknown"
DIRECTORY = "directory"


def table_lines(files: Sequence[ListedPath], output: Output) -> Iterator[str]:
    """Yield the header and one line per file, each with a line break.

    The output equals that of ``tables.render_table`` for these columns, but without keeping every cell in
    memory and without measuring repeated values again.
    """
    times = LocalStamps()
    size_cells = max(len("SIZE"), *(len(bytes_iec(file.size_bytes)) for file in files))
    when_cells = _widest("MODIFIED", {_when_width_key(times.of(file.modified)) for file in files})
    kind_cells = _widest("TYPE", {file.file_type or UNKNOWN for file in files})
    mode_cells = _widest("PERMISSIONS", {file.permissions or UNKNOWN for file in files})
    kinds: dict[str, str] = {}
    modes: dict[str, str] = {}

    header = (
        _cell("SIZE", size_cells, right=True),
        _cell("MODIFIED", when_cells),
        _cell("TYPE", kind_cells),
        _cell("PERMISSIONS", mode_cells),
    )
    yield COLUMN_GAP.join(output.paint(title, "muted") for title in (*header, "PATH")) + "\n"
    for file in files:
        kind, mode = file.file_type or UNKNOWN, file.permissions or UNKNOWN
        if kind not in kinds:
            kinds[kind] = _cell(kind, kind_cells)
        if mode not in modes:
            modes[mode] = output.paint(_cell(mode, mode_cells), "muted")
        when = output.paint(_cell(times.of(file.modified), when_cells), "muted")
        path = sanitize(file.path)
        if kind == DIRECTORY:
            path = output.paint(path, "strong")
        yield (
            f"{bytes_iec(file.size_bytes):>{size_cells}}{COLUMN_GAP}{when}{COLUMN_GAP}{kinds[kind]}"
            f"{COLUMN_GAP}{modes[mode]}{COLUMN_GAP}{path}\n"
        )


_DIGITS = str.maketrans("123456789", "0" * 9)


def _when_width_key(when: str) -> str:
    """Map all digits to 0 so that thousands of times collapse to one text to measure."""
    return when.translate(_DIGITS)


def _widest(title: str, texts: Iterable[str]) -> int:
    return max(len(title), *(cell_width(sanitize(text)) for text in texts))


def _cell(text: str, cells: int, *, right: bool = False) -> str:
    shown = sanitize(text)
    padding = " " * (cells - cell_width(shown))
    return padding + shown if right else shown + padding


AT_A_TIME = 500
MAX_ANCESTORS = 100
"""Maximum number of ancestors whose totals include a file: the official limit."""
_FORMULA_SIGNS = "=+-@\t\r"

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
    total_bytes = sum(file.size_bytes for file in listing.files)
    _total_directories(listing)
    listing.files.sort(key=_KEYS[sort], reverse=descending)
    return total_bytes


def _total_directories(listing: CacheListing) -> None:
    totals = dict.fromkeys((file.path for file in listing.files if file.file_type == DIRECTORY), 0)
    of_folder: dict[str, int] = {}
    for file in listing.files:
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
    for file in listing.files:
        if file.file_type == DIRECTORY:
            file.size_bytes = totals[file.path]


def _folder_of(path: str) -> str:
    head, slash, _name = path.rpartition("/")
    return head.rstrip("/") or slash


def print_json(output: Output, listing: CacheListing | None, project_id: str, total_bytes: int) -> None:
    files = listing.files if listing is not None else []
    head = (
        f'{{\n  "timestamp": {_quoted(listing.timestamp if listing else "")},\n'
        f'  "project_id": {_quoted((listing.project_id if listing else "") or project_id)},\n'
        f'  "total_files": {len(files)},\n  "total_size_bytes": {total_bytes},\n'
        f'  "total_size_human_readable": {_quoted(bytes_decimal(total_bytes))},\n'
    )
    if not files:
        output.data(head + '  "files": []\n}\n')
        return
    output.data(head + '  "files": [\n')
    write_entry = _entry_writer()
    before = ""
    for part in _parts(files):
        # DEL can only occur inside a string: escape it in a single pass over the whole text.
        text = ",\n".join([write_entry(file) for file in part]).replace(DELETE, "\\u007f")
        output.data(before + text)
        before = ",\n"
    output.data("\n  ]\n}\n")


def _entry_writer() -> Callable[[ListedPath], str]:
    """Return a function that renders a file as JSON, caching the type and permissions files share."""
    time_of = LocalStamps().of
    kinds: dict[tuple[str, str], str] = {}

    def write(file: ListedPath) -> str:
        kind = (file.file_type, file.permissions)
        end = kinds.get(kind)
        if end is None:
            end = kinds[kind] = (
                f'      "type": {quoted(kind[0] or UNKNOWN)},\n'
                f'      "permissions": {quoted(kind[1] or UNKNOWN)}\n    }}'
            )
        size_bytes = file.size_bytes
        return (
            f'    {{\n      "path": {quoted(file.path)},\n      "size_bytes": {size_bytes},\n'
            f'      "size_human_readable": "{bytes_decimal(size_bytes)}",\n'
            f'      "modified": {quoted(time_of(file.modified))},\n{end}'
        )

    return write


def _quoted(text: str) -> str:
    """Encode `text` as ASCII JSON without any control character."""
    return quoted(text).replace(DELETE, "\\u007f")


def print_csv(output: Output, listing: CacheListing | None) -> None:
    """Print the official columns, prefixing paths that a spreadsheet would read as a formula with ``'``."""
    rows = io.StringIO()
    writer = csv.writer(rows, lineterminator="\n")
    writer.writerow(("File Path", "Size (bytes)", "Size (human readable)", "Modified", "Type", "Permissions"))
    times = LocalStamps()
    for part in _parts(listing.files if listing is not None else []):
        writer.writerows(
            (
                csv_text(file.path),
                file.size_bytes,
                bytes_decimal(file.size_bytes),
                csv_text(times.of(file.modified)),
                csv_text(file.file_type or UNKNOWN),
                sanitize(file.permissions or UNKNOWN),
            )
            for file in part
        )
        output.data(rows.getvalue())
        rows.seek(0)
        rows.truncate()
    output.data(rows.getvalue())


def csv_text(text: str) -> str:
    """Return a server's text as a CSV cell without formulas or escape sequences (JSON has the exact text)."""
    shown = sanitize(text)
    return f"'{shown}" if shown.startswith(tuple(_FORMULA_SIGNS)) else shown


def print_table(output: Output, listing: CacheListing, total_bytes: int) -> None:
    if listing.files:
        lines = table_lines(listing.files, output)
        while part := "".join(islice(lines, AT_A_TIME)):
            output.data(part)
    output.remark(f"{count(len(listing.files))} files and directories, {bytes_iec(total_bytes)}")


def _parts(files: list[ListedPath]) -> Iterator[list[ListedPath]]:
    for start in range(0, len(files), AT_A_TIME):
        yield files[start : start + AT_A_TIME]
