"""The differences between two jobs: in hardware, and in the files of their source archives.

Configs are parsed, never run. Values of environment variables (see ``redaction``) and recognized secrets are
hidden: a line that differs in such a value is shown with a placeholder instead of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from itertools import islice, takewhile
from pathlib import PurePosixPath
from typing import Literal

from api_client.models import TrainingJob
from api_client.recordings.scrub import REMOVED, Scrubber
from tui.analysis.comparison import ComparedRun, comparison_rows
from tui.analysis.redaction import redaction
from tui.text.sanitize import sanitize
from tui.text.units import bytes_iec, counted

MAX_FILE_BYTES = 512 * 1024
"""Larger files, such as data sets, are compared by size and digest, not line by line."""
MAX_LINES = 200
"""Maximum number of lines shown per file, and of files shown line by line."""
_CONTEXT_LINES = 3

Change = Literal["added", "removed", "changed", "renamed"]


@dataclass(frozen=True, slots=True)
class LargeFile:
    """Size and digest of a file that is too large to show."""

    size_bytes: int
    digest: str


Files = Mapping[str, bytes | LargeFile]
"""The content of files by path."""


@dataclass(frozen=True, slots=True)
class FileDifference:
    """A file that differs between the two jobs. Texts are sanitized."""

    path: str
    change: Change
    former_path: str | None = None
    """The path in the other job, if the file moved."""
    size_bytes_before: int | None = None
    size_bytes_after: int | None = None
    lines: tuple[str, ...] = ()
    """A unified diff; empty for a file that is not text, or whose text may contain secrets."""
    unshown_count: int = 0
    """Number of differing lines that are not in ``lines``."""


def code_differences(before: Files, after: Files) -> tuple[FileDifference, ...]:
    """Return the files that differ between two archives: configs first, then by path."""
    marks = _HiddenValues()
    old, new = _JobFiles(before, marks), _JobFiles(after, marks)
    texts = [*old.texts.values(), *new.texts.values()]
    scrub = Scrubber(secret for secret in old.secrets | new.secrets if any(secret in text for text in texts))
    former_paths = _former_paths(before, after)
    differences: list[FileDifference] = []
    for path in sorted(before.keys() - former_paths.values() | after.keys(), key=new.sort_key):
        old_path = former_paths.get(path, path)
        old_content, new_content = before.get(old_path), after.get(path)
        if old_content == new_content and old_path == path:
            continue
        change: Change = "added" if old_content is None else "removed" if new_content is None else "changed"
        lines, unshown_count = list[str](), 0
        if old_content == new_content:
            change = "renamed"
        elif (lines_before := old.lines(old_path, scrub)) is not None and (
            lines_after := new.lines(path, scrub)
        ) is not None:
            lines, unshown_count = _differing_lines(lines_before, lines_after, marks)
        if old.is_hidden(old_path) or new.is_hidden(path):
            lines, unshown_count = [], unshown_count + sum(line[0] in "+-" for line in lines)
        shown_lines = lines[:MAX_LINES] if len(differences) < MAX_LINES else []
        difference = FileDifference(
            sanitize(path),
            change,
            sanitize(old_path) if old_path != path else None,
            _size_bytes(old_content),
            _size_bytes(new_content),
            tuple(shown_lines),
            unshown_count + len(lines) - len(shown_lines),
        )
        differences.append(difference)
    return tuple(differences)


class _HiddenValues:
    """Replaces hidden values by marks, numbered so that equal values have equal marks.

    A mark contains NUL characters, so it cannot occur in a text file.
    """

    _MARK = re.compile("<\0([0-9]+)\0>")

    def __init__(self) -> None:
        self._number_by_value: dict[str, int] = {}

    def __call__(self, value: str) -> str:
        return f"<\0{self._number_by_value.setdefault(value, len(self._number_by_value))}\0>"

    def with_placeholders(self, line: str, old_marks: set[str]) -> str:
        """Return a line of a diff in which ``<hidden>``, or ``<new value>``, replaces each mark.

        ``old_marks`` are the marks in the old file: other marks stand for new values.
        """

        def placeholder(mark: re.Match[str]) -> str:
            return "<new value>" if line[0] == "+" and mark[0] not in old_marks else "<hidden>"

        return sanitize(self._MARK.sub(placeholder, line))

    def marks_in(self, lines: Iterable[str]) -> set[str]:
        return {mark[0] for line in lines for mark in self._MARK.finditer(line)}


class _JobFiles:
    """The files of one of the two jobs: their texts, and their lines without secrets."""

    def __init__(self, files: Files, marks: _HiddenValues) -> None:
        self._files = files
        self._marks = marks
        self.texts = _texts(files)
        self._redacted_text, self.secrets = redaction(self.texts, marks)

    def sort_key(self, path: str) -> tuple[bool, str]:
        return "truss_train" not in self.texts.get(path, ""), path

    def is_hidden(self, path: str) -> bool:
        return path in self.texts and self._redacted_text(path) is None

    def lines(self, path: str, scrub: Scrubber) -> list[str] | None:
        """Return the lines of a file without secrets; empty for a missing file, None if it is not text.

        If nothing of the file may be shown, each line is a mark, so that the files can still be compared.
        """
        if path not in self._files:
            return []
        if path not in self.texts:
            return None
        redacted = self._redacted_text(path)
        if redacted is None:
            return list(map(self._marks, _split_lines(self.texts[path])))
        lines, scrubbed = _split_lines(redacted), _split_lines(scrub(redacted))
        if len(lines) != len(scrubbed):  # a secret of several lines was removed
            return scrubbed
        return [
            line if line == scrubbed_line else scrubbed_line.replace(REMOVED, self._marks(line))
            for line, scrubbed_line in zip(lines, scrubbed, strict=True)
        ]


def _differing_lines(before: list[str], after: list[str], marks: _HiddenValues) -> tuple[list[str], int]:
    """Return a unified diff and 0; for files too long to diff, no lines and the most that can differ."""
    prefix = _common_prefix_length(before, after)
    suffix = _common_prefix_length(before[prefix:][::-1], after[prefix:][::-1])
    old, new = before[prefix : len(before) - suffix], after[prefix : len(after) - suffix]
    # comparing more lines takes seconds
    if len(old) + len(new) > 4_000:
        return [], max(len(old), len(new))
    # equal lines farther than the context are left out, which makes the comparison fast
    diff_start, lines_after_diff = max(0, prefix - _CONTEXT_LINES), max(0, suffix - _CONTEXT_LINES)
    diff = unified_diff(
        before[diff_start : len(before) - lines_after_diff],
        after[diff_start : len(after) - lines_after_diff],
        n=_CONTEXT_LINES,
        lineterm="",
    )
    old_marks = marks.marks_in(before)
    lines = [
        re.sub(r"(?<=[-+])[0-9]+", lambda number: str(int(number[0]) + diff_start), line)
        if line[0] == "@"
        else marks.with_placeholders(line, old_marks)
        for line in islice(diff, 2, None)
    ]
    return lines or ["differs only in what is not shown: secrets, ends of lines"] * bool(before), 0


def _common_prefix_length(before: list[str], after: list[str]) -> int:
    """Return the number of lines at the beginning that are equal in both."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))


def _texts(files: Files) -> dict[str, str]:
    """Return the texts by path, with normalized line ends: the smallest text files, up to a total size."""
    texts: dict[str, str] = {}
    # total bytes of the files that are compared line by line
    bytes_left = 2 * 1024**2
    for path, content in sorted(files.items(), key=lambda file: _size_bytes(file[1]) or 0):
        if (
            isinstance(content, LargeFile)
            or b"\0" in content
            or (bytes_left := bytes_left - len(content)) < 0
        ):
            continue
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            continue
        texts[path] = text.replace("\r\n", "\n").replace("\r", "\n")
    return texts


def _split_lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _size_bytes(content: bytes | LargeFile | None) -> int | None:
    if content is None:
        return None
    return content.size_bytes if isinstance(content, LargeFile) else len(content)


def _former_paths(before: Files, after: Files) -> dict[str, str]:
    """Return the old path of each moved file by its new path.

    A file has moved if its content is equal at both paths, or else if its name is.
    """
    former_paths: dict[str, str] = {}
    for identity in (lambda files, path: files[path], lambda _, path: PurePosixPath(path).name):
        removed = {
            identity(before, path): path
            for path in sorted(before.keys() - after.keys() - set(former_paths.values()))
        }
        added = {
            identity(after, path): path for path in sorted(after.keys() - before.keys() - former_paths.keys())
        }
        former_paths |= {added[file_id]: removed[file_id] for file_id in removed.keys() & added.keys()}
    return former_paths


_HARDWARE_ROW_IDS = frozenset({"project", "instance", "gpu_type", "nodes", "gpus", "availability"})
"""Ids of the comparison rows that describe a job's project and hardware, not its run."""
TONES = {"+": "good", "-": "bad", "@": "muted"}
"""Tones of the lines of a diff by their first character."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A property of the jobs and its two values. Sanitized."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class JobDifferences:
    """The differences between two jobs; ``not_compared`` is the reason why their code was not compared."""

    before: TrainingJob
    after: TrainingJob
    files: tuple[FileDifference, ...] = ()
    not_compared: str = ""

    @property
    def job(self) -> list[Difference]:
        """The differences in project and hardware."""
        rows = comparison_rows([ComparedRun(self.before), ComparedRun(self.after)])
        return [
            Difference(row.title, *row.texts) for row in rows if row.id in _HARDWARE_ROW_IDS and row.differs
        ]

    @property
    def title(self) -> str:
        """The names and ids of both jobs, such as ``a (x1) → b (x2)``. Sanitized."""
        return " → ".join(
            sanitize(f"{job.name} ({job.id})" if job.name else job.id) for job in (self.before, self.after)
        )

    @property
    def no_differences_text(self) -> str:
        """A message if there are no differences; empty if there are any."""
        if self.job or self.files:
            return ""
        return "the machines are the same" if self.not_compared else "no differences in hardware or code"

    def lines(self) -> Iterator[tuple[str, str | None]]:
        """Yield the lines of a report, sanitized, with their tones."""
        if self.job:
            yield from (("", None), ("job", "muted"))
        for difference in self.job:
            yield f"  {difference.name}: {difference.before} → {difference.after}", None
        for file in self.files:
            yield from (("", None), (_heading(file), "strong"))
            yield from ((line, TONES.get(line[:1])) for line in file.lines)


def _heading(file: FileDifference) -> str:
    name = f"{file.former_path} → {file.path}" if file.former_path else file.path
    heading = f"{name} {file.change}"
    if file.lines:
        return f"{heading} ({counted(file.unshown_count, 'line')} more)" if file.unshown_count else heading
    if file.unshown_count:
        return f"{heading}: {counted(file.unshown_count, 'line')} not shown"
    sizes = [bytes_iec(size) for size in (file.size_bytes_before, file.size_bytes_after) if size is not None]
    return heading if file.change == "renamed" else f"{heading}: {' → '.join(sizes)}"
