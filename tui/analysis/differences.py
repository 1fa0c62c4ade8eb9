"""The differences between two jobs: of their hardware, and of the files of their archives, as bounded diffs.

Configs are read, never run. Values of environment variables (see ``redaction``) and texts that are recognized
as secrets are hidden; a line in which one of them differs is shown without it.
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
"""Larger files, such as data, are compared as a whole, not line by line."""
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
    """A file that differs. Texts are sanitized."""

    path: str
    change: Change
    former_path: str | None = None
    """The path in the other job, if the file moved."""
    size_bytes_before: int | None = None
    size_bytes_after: int | None = None
    lines: tuple[str, ...] = ()
    """A unified diff; empty for a file that is not text, or cannot be shown safely."""
    more: int = 0
    """Number of differing lines that are not in ``lines``."""


def code_differences(before: Files, after: Files) -> tuple[FileDifference, ...]:
    """Compare the files of two archives, configs first."""
    marks = _Marks()
    old, new = _JobFiles(before, marks), _JobFiles(after, marks)
    texts = [*old.texts.values(), *new.texts.values()]
    scrub = Scrubber(secret for secret in old.secrets | new.secrets if any(secret in text for text in texts))
    former = _former_paths(before, after)
    differences: list[FileDifference] = []
    for path in sorted(before.keys() - former.values() | after.keys(), key=new.sort_key):
        old_path = former.get(path, path)
        content_before, content_after = before.get(old_path), after.get(path)
        if content_before == content_after and old_path == path:
            continue
        change: Change = (
            "added" if content_before is None else "removed" if content_after is None else "changed"
        )
        lines, more = list[str](), 0
        if content_before == content_after:
            change = "renamed"
        elif (lines_before := old.lines(old_path, scrub)) is not None and (
            lines_after := new.lines(path, scrub)
        ) is not None:
            lines, more = _differing_lines(lines_before, lines_after, marks)
        if old.is_hidden(old_path) or new.is_hidden(path):
            lines, more = [], more + sum(line[0] in "+-" for line in lines)
        shown = lines[:MAX_LINES] if len(differences) < MAX_LINES else []
        difference = FileDifference(
            sanitize(path),
            change,
            sanitize(old_path) if old_path != path else None,
            _size_bytes(content_before),
            _size_bytes(content_after),
            tuple(shown),
            more + len(lines) - len(shown),
        )
        differences.append(difference)
    return tuple(differences)


class _Marks:
    """Makes marks that replace hidden values, with a number for each value. No text contains such marks."""

    _MARK = re.compile("<\0([0-9]+)\0>")

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __call__(self, value: str) -> str:
        return f"<\0{self._numbers.setdefault(value, len(self._numbers))}\0>"

    def shown(self, line: str, before: set[str]) -> str:
        """Return a line of a diff with words for its marks; ``before`` are the marks in the old file."""

        def placeholder(mark: re.Match[str]) -> str:
            return "<new value>" if line[0] == "+" and mark[0] not in before else "<hidden>"

        return sanitize(self._MARK.sub(placeholder, line))

    def marks_in(self, lines: Iterable[str]) -> set[str]:
        return {mark[0] for line in lines for mark in self._MARK.finditer(line)}


class _JobFiles:
    """The files of one of the two jobs: their texts, and how to show them without secrets."""

    def __init__(self, files: Files, marks: _Marks) -> None:
        self._files = files
        self._marks = marks
        self.texts = _texts(files)
        self._shown, self.secrets = redaction(self.texts, marks)

    def sort_key(self, path: str) -> tuple[bool, str]:
        return "truss_train" not in self.texts.get(path, ""), path

    def is_hidden(self, path: str) -> bool:
        return path in self.texts and self._shown(path) is None

    def lines(self, path: str, scrub: Scrubber) -> list[str] | None:
        """Return the lines of a file that may be shown; empty for a missing file, None if it is not text."""
        if path not in self._files:
            return []
        if path not in self.texts:
            return None
        shown = self._shown(path)
        if shown is None:
            return list(map(self._marks, _split_lines(self.texts[path])))
        lines, clean = _split_lines(shown), _split_lines(scrub(shown))
        if len(lines) != len(clean):  # a secret of several lines
            return clean
        return [
            line if line == clean_line else clean_line.replace(REMOVED, self._marks(line))
            for line, clean_line in zip(lines, clean, strict=True)
        ]


def _differing_lines(before: list[str], after: list[str], marks: _Marks) -> tuple[list[str], int]:
    """Return a unified diff; if the files are too long for one, no lines and how many differ at most."""
    start = _common_prefix_length(before, after)
    end = _common_prefix_length(before[start:][::-1], after[start:][::-1])
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    # comparing more takes seconds
    if len(old) + len(new) > 4_000:
        return [], max(len(old), len(new))
    begin, rest = max(0, start - _CONTEXT_LINES), max(0, end - _CONTEXT_LINES)
    diff = unified_diff(
        before[begin : len(before) - rest], after[begin : len(after) - rest], n=_CONTEXT_LINES, lineterm=""
    )
    known_marks = marks.marks_in(before)
    lines = [
        re.sub(r"(?<=[-+])[0-9]+", lambda number: str(int(number[0]) + begin), line)
        if line[0] == "@"
        else marks.shown(line, known_marks)
        for line in islice(diff, 2, None)
    ]
    return lines or ["differs only in what is not shown: secrets, ends of lines"] * bool(before), 0


def _common_prefix_length(before: list[str], after: list[str]) -> int:
    """Return the number of equal lines at the beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))


def _texts(files: Files) -> dict[str, str]:
    """Return the text files by path, with normalized line ends; the smallest ones, up to a total size."""
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
    """Return the old path of each moved file by its new one: of equal content, else of the same name."""
    former: dict[str, str] = {}
    for key in (lambda files, path: files[path], lambda _, path: PurePosixPath(path).name):
        removed = {
            key(before, path): path for path in sorted(before.keys() - after.keys() - set(former.values()))
        }
        added = {key(after, path): path for path in sorted(after.keys() - before.keys() - former.keys())}
        former |= {added[content]: removed[content] for content in removed.keys() & added.keys()}
    return former


_HARDWARE_ROWS = frozenset({"project", "instance", "gpu_type", "nodes", "gpus", "availability"})
"""The rows of a comparison that describe a job's project and hardware, not its run."""
TONES = {"+": "good", "-": "bad", "@": "muted"}
"""Tones of lines by their first character."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A property with different values. Sanitized."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class JobDifferences:
    """The differences between two jobs; ``not_compared`` says why their code was not compared."""

    before: TrainingJob
    after: TrainingJob
    files: tuple[FileDifference, ...] = ()
    not_compared: str = ""

    @property
    def job(self) -> list[Difference]:
        """The differences in project and hardware."""
        rows = comparison_rows([ComparedRun(self.before), ComparedRun(self.after)])
        return [Difference(row.title, *row.shown) for row in rows if row.id in _HARDWARE_ROWS and row.differs]

    @property
    def title(self) -> str:
        """Both jobs, sanitized."""
        return " → ".join(
            sanitize(f"{job.name} ({job.id})" if job.name else job.id) for job in (self.before, self.after)
        )

    @property
    def none_words(self) -> str:
        """A message that nothing differs; empty if something does."""
        if self.job or self.files:
            return ""
        return "the machines are the same" if self.not_compared else "no differences in hardware or code"

    def lines(self) -> Iterator[tuple[str, str | None]]:
        """Yield sanitized lines and their tones."""
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
        return f"{heading} ({counted(file.more, 'line')} more)" if file.more else heading
    if file.more:
        return f"{heading}: {counted(file.more, 'line')} not shown"
    sizes = [bytes_iec(size) for size in (file.size_bytes_before, file.size_bytes_after) if size is not None]
    return heading if file.change == "renamed" else f"{heading}: {' → '.join(sizes)}"
