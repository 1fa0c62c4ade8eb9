"""What the archive tells: files that the start commands need, and its size."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from api_client.preflight.findings import Finding
from api_client.preflight.job_request import JobRequest
from api_client.preflight.shell_words import ScriptUse, script_uses

LARGEST_ARCHIVE_BYTES = 5 * 1024**3
"""What the platform takes (API facts, 3.5)."""
NEAR_LIMIT_BYTES = LARGEST_ARCHIVE_BYTES * 9 // 10
NAMES_SHOWN = 5
FIRST_LINE_BYTES = 256
_SHELL_SUFFIXES = (".sh", ".bash")
_EXECUTABLE = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH


class ArchiveListing(Protocol):
    """What would be uploaded: (file on disk, name in the archive, size in bytes) and what is left out."""

    @property
    def files(self) -> Sequence[tuple[Path, str, int]]:
        """The files."""
        ...

    @property
    def dropped(self) -> Sequence[tuple[str, str]]:
        """Name and reason of what is left out; a folder stands for all below it."""
        ...

    @property
    def size_bytes(self) -> int:
        """Size of the archive."""
        ...

    @property
    def warnings(self) -> Sequence[str]:
        """What was odd while the files were listed."""
        ...


def archive_findings(request: JobRequest, plan: ArchiveListing) -> Iterator[Finding]:
    """Findings about scripts, size and what is left out."""
    on_disk = {name: path for path, name, _size in plan.files}
    seen = set()
    for use in script_uses(request.start_commands):
        if use not in seen:
            seen.add(use)
            yield from _script_findings(use, request, plan, on_disk)
    yield from _size_findings(plan)
    for warning in plan.warnings:
        yield Finding("warning", "archive", warning)
    yield from _dropped_findings(plan)


def _script_findings(
    use: ScriptUse, request: JobRequest, plan: ArchiveListing, on_disk: dict[str, Path]
) -> Iterator[Finding]:
    field = "runtime.start_commands"
    path = on_disk.get(use.path)
    if path is None:
        yield _missing(use, request, plan, field)
        return
    if use.executes and not _is_executable(path):
        remedy = f"chmod +x {use.path}, or start it with: bash {use.path}"
        yield Finding("error", field, f"{use.path} is not executable", remedy)
    if use.path.endswith(_SHELL_SUFFIXES) and _has_windows_lines(path):
        problem = f"{use.path} has Windows line endings (CRLF), which shells on Linux stumble over"
        yield Finding("warning", field, problem, "save it with LF line endings")


def _missing(use: ScriptUse, request: JobRequest, plan: ArchiveListing, field: str) -> Finding:
    problem = f"{use.path} is not in the archive"
    for name, reason in plan.dropped:
        if use.path == name or use.path.startswith(name.rstrip("/") + "/"):
            remedy = "a .truss_ignore file of your own replaces the built-in ignore rules"
            return Finding("error", field, f"{problem}: {reason}", remedy)
    if use.doubt == "much":
        return Finding("info", field, f"{problem}; an earlier command has to bring it")
    if use.doubt == "some":
        return Finding("warning", field, f"{problem}, unless an earlier command makes it")
    if not request.uses_workdir:
        remedy = "check that the image has it in its working directory"
        return Finding("warning", field, problem, remedy)
    return Finding("error", field, problem, "put it beside the config, or correct the command")


def _size_findings(plan: ArchiveListing) -> Iterator[Finding]:
    size_gib = plan.size_bytes / 1024**3
    if plan.size_bytes > LARGEST_ARCHIVE_BYTES:
        remedy = "keep data in an object store or in the cache, and exclude it here"
        yield Finding("error", "archive", f"{size_gib:.2f} GiB: the platform takes at most 5 GiB", remedy)
    elif plan.size_bytes > NEAR_LIMIT_BYTES:
        remedy = "keep data in an object store or in the cache"
        yield Finding("warning", "archive", f"{size_gib:.2f} GiB is close to the limit of 5 GiB", remedy)


def _dropped_findings(plan: ArchiveListing) -> Iterator[Finding]:
    """What is left out is never left out silently."""
    names = [name for name, _reason in plan.dropped]
    if names:
        more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
        yield Finding("info", "archive", f"left out: {', '.join(names[:NAMES_SHOWN])}{more}")


def _is_executable(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & _EXECUTABLE) or os.name == "nt"  # Windows has no such bit
    except OSError:
        return True  # packing will say what is wrong with it


def _has_windows_lines(path: Path) -> bool:
    try:
        with path.open("rb") as opened:
            return opened.readline(FIRST_LINE_BYTES).endswith(b"\r\n")
    except OSError:
        return False
