"""Plan and write the archive of a job's code: first decide what is included, then write the file.

The layout is the official client's. Built-in rules, or a ``.truss_ignore`` that replaces them, decide what is
left out. The file's syntax is that of ``.gitignore``, parsed by the same library as in the official client,
so that both agree on every unusual pattern. The archive is an uncompressed tar, written directly from the
source files.
"""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from pathspec import PathSpec
from pathspec.patterns.gitignore import GitIgnorePatternError
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from api_client.definitions import Workspace
from api_client.errors import ArchiveError
from api_client.files import PRIVATE_FILE_MODE, new_file, os_errors_as, read_small_file
from api_client.words import listed

IGNORE_FILE = ".truss_ignore"  # at the root of the archived folder; replaces all built-in rules
BUILT_IN_RULES = (
    "__pycache__/", "*.py[cod]", "*$py.class", "*.so", "cython_debug/", ".Python", "build/",
    "develop-eggs/", "dist/", "downloads/", "eggs/", ".eggs/", "lib/", "lib64/", "parts/", "sdist/",
    "var/", "wheels/", "share/python-wheels/", "*.egg-info/", ".installed.cfg", "*.egg", "MANIFEST",
    "*.manifest", "*.spec", "pip-log.txt", "pip-delete-this-directory.txt", "htmlcov/", ".tox/", ".nox/",
    ".coverage", ".coverage.*", ".cache", "nosetests.xml", "coverage.xml", "*.cover", "*.py,cover",
    ".hypothesis/", ".pytest_cache/", "cover/", "*.mo", "*.pot", "*.log", "local_settings.py",
    "db.sqlite3", "db.sqlite3-journal", "instance/", ".webassets-cache", ".scrapy", "docs/_build/",
    ".pybuilder/", "target/", ".ipynb_checkpoints", "profile_default/", "ipython_config.py", ".pdm.toml",
    "__pypackages__/", "celerybeat-schedule", "celerybeat.pid", "*.sage.py", ".env", ".venv", "env/",
    "venv/", "ENV/", "env.bak/", "venv.bak/", ".spyderproject", ".spyproject", ".ropeproject",
    ".mypy_cache/", ".dmypy.json", "dmypy.json", ".ruff_cache/", ".pyre/", ".pytype/", ".DS_Store",
    ".git", "*.tmp", "*.swp",
)  # fmt: skip
"""The official client's own list. None of the rules negates another, so their order does not matter."""

SURPRISING_RULES = frozenset(
    {"build/", "dist/", "downloads/", "instance/", "lib/", "lib64/", "parts/", "sdist/", "target/", "var/",
     "wheels/", "eggs/", "cover/", "*.so", "*.spec", "*.manifest", "MANIFEST", "local_settings.py"}
)  # fmt: skip
"""Built-in rules for names that people also give to their own code or data; each match causes a warning."""


def read_ignore_rules(layout: WorkspaceLayout) -> tuple[str, ...]:
    """Return the rules of ``.truss_ignore``, else the built-in rules.

    Raises ArchiveError if it is unreadable.
    """
    path = layout.root / IGNORE_FILE
    if IGNORE_FILE in layout.excluded:
        return BUILT_IN_RULES
    try:
        text = read_small_file(path).decode("utf-8-sig", errors="surrogateescape")
    except FileNotFoundError:
        return BUILT_IN_RULES
    except OSError as error:
        raise ArchiveError(f"{path} cannot be read: {error.strerror or type(error).__name__}") from None
    # Unlike git, the official client ignores spaces around a rule.
    lines = [line.strip() for line in text.splitlines()]
    return tuple(line for line in lines if line and not line.startswith("#"))


@dataclass(frozen=True, slots=True)
class WorkspaceLayout:
    """The folders to archive: ``root`` becomes the working directory, ``externals`` become folders in it.

    ``excluded`` are names at the top of ``root`` that are left out. With ``follows_links`` (for a workspace),
    links are replaced by their targets; without it (for a plain config folder), they stay links.
    """

    root: Path
    externals: tuple[Path, ...] = ()
    excluded: frozenset[str] = frozenset()
    follows_links: bool = False
    warnings: tuple[str, ...] = ()


def resolve_folders(config_dir: Path, workspace: Workspace | None) -> WorkspaceLayout:
    """Return the folders to archive. Raises ArchiveError, which names the unusable setting."""
    config_dir = Path(os.path.abspath(config_dir))  # noqa: PTH100 – links in the path stay as they are
    if not config_dir.is_dir():
        raise ArchiveError(f"{config_dir} is not a folder")
    if workspace is None or not (
        workspace.workspace_root or workspace.external_dirs or workspace.exclude_dirs
    ):
        return WorkspaceLayout(config_dir)
    config_dir = config_dir.resolve()
    root = (config_dir / (workspace.workspace_root or ".")).resolve()
    if not config_dir.is_relative_to(root):
        raise ArchiveError(f"workspace_root: {root} does not contain the config's folder {config_dir}")
    excluded = frozenset(_excluded_name(text, config_dir, root) for text in workspace.exclude_dirs)
    externals, warnings = _external_folders(workspace.external_dirs, config_dir, root, excluded)
    return WorkspaceLayout(root, externals, excluded, follows_links=True, warnings=warnings)


def _excluded_name(text: str, config_dir: Path, root: Path) -> str:
    path = (config_dir / text).resolve()
    if path.parent != root or path == root:
        raise ArchiveError(
            f"exclude_dirs: '{text}' is {path}, not directly inside the workspace's root {root}; only its "
            f"top-level entries can be excluded"
        )
    return path.name


def _external_folders(
    settings: list[str], config_dir: Path, root: Path, excluded: frozenset[str]
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    used_names = {entry.name for entry in root.iterdir()} - excluded if settings else set()
    folders: list[Path] = []
    warnings: list[str] = []
    for setting in settings:
        path = (config_dir / setting).resolve()
        if path.is_relative_to(root):
            warnings.append(f"external_dirs: '{setting}' is already inside the workspace's root; skipped")
            continue
        if not path.is_dir():
            problem = "is not a folder" if path.exists() else "does not exist"
            raise ArchiveError(f"external_dirs: '{setting}' ({path}) {problem}")
        if path.name in used_names:
            raise ArchiveError(
                f"external_dirs: '{setting}' would be '{path.name}' in the archive, which already exists"
            )
        used_names.add(path.name)
        folders.append(path)
    return tuple(folders), tuple(warnings)


class ArchivedFile(NamedTuple):
    """A planned file: its path on disk, its name in the archive, its size in bytes (0 for a link)."""

    path: Path
    name: str
    size_bytes: int


class DroppedEntry(NamedTuple):
    """A file or folder that is left out, and the reason. A folder's name ends with ``/``."""

    name: str
    reason: str


class _Folder(NamedTuple):
    """Folder to scan: its path, its name in the archive, its parents' real paths (to detect cycles)."""

    path: str
    prefix: str
    ancestors: frozenset[str]


class FolderScan:
    """Scans folders, and sorts their entries into ``files`` and ``dropped``.

    ``surprising`` are names that match ``SURPRISING_RULES``. Raises ArchiveError for an unusable
    ``.truss_ignore``.
    """

    def __init__(self, layout: WorkspaceLayout) -> None:
        self._rules = read_ignore_rules(layout)
        try:
            # The fastest backend, RE2, rejects names that are not UTF-8.
            self._spec = PathSpec.from_lines(GitIgnoreSpecPattern, self._rules, backend="simple")
        except GitIgnorePatternError as error:
            raise ArchiveError(f"invalid pattern in {layout.root / IGNORE_FILE}: {error}") from None
        self._layout = layout
        self._real_root = layout.root.resolve()
        self.files: list[ArchivedFile] = []
        self.dropped: list[DroppedEntry] = []
        self.surprising: list[str] = []
        self.warnings = list(layout.warnings)

    def walk(self, folder: Path, prefix: str) -> None:
        """Scan a folder; ``prefix`` is its name in the archive with a trailing slash, or empty."""
        queue = [_Folder(str(folder), prefix, frozenset({os.path.realpath(folder)}))]
        while queue:
            current_folder = queue.pop()
            for entry in self._entries(current_folder):
                name = current_folder.prefix + entry.name
                if not current_folder.prefix and entry.name in self._layout.excluded:
                    self._drop(name + "/" * entry.is_dir(), "excluded by exclude_dirs")
                elif entry.is_symlink():
                    self._add_link(entry, name, current_folder, queue)
                elif entry.is_dir():
                    if self.is_included(name, is_folder=True):
                        real_path = os.path.realpath(entry.path)
                        queue.append(_Folder(entry.path, name + "/", current_folder.ancestors | {real_path}))
                elif self.is_included(name, is_folder=False):
                    self._add_file(Path(entry.path), name, entry.stat())

    def is_included(self, name: str, *, is_folder: bool) -> bool:
        """Return True if no rule excludes the name; otherwise record that it is dropped.

        A dropped folder is not scanned, so a later ``!`` rule cannot include anything in it.
        """
        for candidate in (name, name + "/") if is_folder else (name,):
            result = self._spec.check_file(candidate)
            if result.include and result.index is not None:
                self._drop_by_rule(name + "/" * is_folder, self._rules[result.index])
                return False
        return True

    def _drop_by_rule(self, displayed_name: str, rule: str) -> None:
        is_built_in = self._rules is BUILT_IN_RULES
        origin = "the built-in rule" if is_built_in else f"the {IGNORE_FILE} rule"
        self._drop(displayed_name, f"ignored by {origin} {rule}")
        if is_built_in and rule in SURPRISING_RULES:
            self.surprising.append(displayed_name)

    def _entries(self, folder: _Folder) -> list[os.DirEntry[str]]:
        prefix = folder.prefix
        try:
            with os.scandir(folder.path) as scanned:
                entries = list(scanned)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            if not prefix:
                raise ArchiveError(f"{folder.path} cannot be read: {reason}") from None
            self._drop(prefix, f"cannot be read ({reason})", warns=True)
            return []
        if not entries and prefix:
            self._drop(prefix, "empty folder (archives contain only files)")
        return entries

    def _add_link(
        self, entry: os.DirEntry[str], name: str, current_folder: _Folder, queue: list[_Folder]
    ) -> None:
        """Follow a link in a workspace; otherwise, archive the link if its target is a file in the folder."""
        try:
            is_folder, status = entry.is_dir(), entry.stat()
        except OSError:
            if self.is_included(name, is_folder=False):
                self._drop(name, "a broken link", warns=True)
            return
        # Rules match a link to a folder like a file, as in git, unless links are followed.
        if not self.is_included(name, is_folder=is_folder):
            return
        real_path = os.path.realpath(entry.path)
        if self._layout.follows_links:
            if not is_folder:
                self._add_file(Path(real_path), name, status)
            elif real_path in current_folder.ancestors:
                self._drop(name, "a link to a folder that contains it", warns=True)
            else:
                queue.append(_Folder(entry.path, name + "/", current_folder.ancestors | {real_path}))
        elif is_folder:
            self._drop(name, "a link to a folder, which is not followed", warns=True)
        elif not stat.S_ISREG(status.st_mode):
            self._drop(name, "not a plain file")
        elif Path(entry.path).readlink().is_absolute() or not Path(real_path).is_relative_to(self._real_root):
            self._drop(name, "a link that leads out of the folder", warns=True)
        else:
            self.files.append(ArchivedFile(Path(entry.path), name, 0))

    def _add_file(self, path: Path, name: str, status: os.stat_result) -> None:
        if stat.S_ISREG(status.st_mode):
            self.files.append(ArchivedFile(path, name, status.st_size))
        else:
            self._drop(name, "not a plain file")

    def _drop(self, name: str, reason: str, *, warns: bool = False) -> None:
        self.dropped.append(DroppedEntry(name, reason))
        if warns:
            self.warnings.append(f"{name} is not in the archive: it is {reason}")


MAX_ARCHIVE_BYTES = 5 * 1024**3  # the platform's limit
_MAX_NAMES = 5  # shown in one message


@dataclass(frozen=True, slots=True)
class ArchivePlan:
    """The files of an archive, in order. ``size_bytes`` is the size of the archive."""

    files: tuple[ArchivedFile, ...]
    dropped: tuple[DroppedEntry, ...]
    size_bytes: int
    warnings: tuple[str, ...] = ()


def plan_archive(config_dir: Path, workspace: Workspace | None = None) -> ArchivePlan:
    """Scan the disk and decide what to include; reads no contents.

    ``config_dir`` is the config file's folder.

    Raises ArchiveError for an invalid workspace, an unusable ``.truss_ignore``, or more than
    ``MAX_ARCHIVE_BYTES``.
    """
    layout = resolve_folders(config_dir, workspace)
    scan = FolderScan(layout)
    scan.walk(layout.root, "")
    for external in layout.externals:
        if scan.is_included(external.name, is_folder=True):
            scan.walk(external, external.name + "/")
    files = tuple(sorted(scan.files, key=lambda file: file.name))
    size_bytes = _archive_size_bytes(files)
    if size_bytes > MAX_ARCHIVE_BYTES:
        largest = sorted(files, key=lambda file: -file.size_bytes)[:_MAX_NAMES]
        names = ", ".join(f"{file.name} ({_gigabytes(file.size_bytes)})" for file in largest)
        raise ArchiveError(
            f"the archive would be {_gigabytes(size_bytes)}, but the platform accepts at most 5 GiB; largest "
            f"files: {names}. Exclude some with exclude_dirs or a {IGNORE_FILE} file"
        )
    warnings = scan.warnings
    if scan.surprising:
        warnings.append(
            f"excluded by the official built-in rules: {listed(sorted(scan.surprising), _MAX_NAMES)}"
            f" (a {IGNORE_FILE} file, even an empty one, replaces these rules)"
        )
    if size_bytes > 1_000_000_000:  # above this size the documentation recommends object storage
        warnings.append(
            f"the archive is {_gigabytes(size_bytes)}: above 1 GB, keep weights and data in object storage "
            f"(weights=[…]) or in the cache"
        )
    return ArchivePlan(files, tuple(sorted(scan.dropped)), size_bytes, tuple(warnings))


def write_archive(
    plan: ArchivePlan, to: Path, on_progress: Callable[[int, int], object] | None = None
) -> Path:
    """Write the planned archive as a new file, readable only by its owner; return ``to``.

    ``on_progress`` is called with the bytes of content written so far and in total; an exception that it
    raises aborts the writing. Blocks; memory use does not grow with the size. Raises ArchiveError if a file
    has vanished or cannot be read, or if the disk is full.
    """
    with writing_archive(to), open(new_file(to, PRIVATE_FILE_MODE), "wb") as file:  # noqa: PTH123 – a descriptor
        pack(plan, file, on_progress)
    return to


def writing_archive(path: Path) -> AbstractContextManager[None]:
    """Translate OSError to ArchiveError."""
    return os_errors_as(ArchiveError, f"can't write the archive to {path}")


def pack(plan: ArchivePlan, file: IO[bytes], on_progress: Callable[[int, int], object] | None = None) -> None:
    """Write the planned archive to an open file, as ``write_archive`` does. Raises ArchiveError, OSError."""
    total_bytes = sum(archived.size_bytes for archived in plan.files)
    report = on_progress or (lambda _done, _total: None)
    meter = _ArchiveMeter(total_bytes, report)
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for archived in plan.files:
            _add(archive, archived, meter)
            # Otherwise, tarfile would keep every member in memory.
            archive.members.clear()  # type: ignore[attr-defined]  # documented, but missing in the type stubs
    file.flush()
    report(total_bytes, total_bytes)


@dataclass(slots=True)
class _ArchiveMeter:
    """Reads the current ``file``, and reports progress about once per MiB."""

    total_bytes: int
    on_progress: Callable[[int, int], object]
    file: IO[bytes] | None = None
    done_bytes: int = 0
    reported_bytes: int = 0

    def read(self, size: int = -1) -> bytes:
        assert self.file is not None
        content = self.file.read(size)
        self.done_bytes = min(self.done_bytes + len(content), self.total_bytes)
        if self.done_bytes - self.reported_bytes >= 1024 * 1024:
            self.reported_bytes = self.done_bytes
            self.on_progress(self.done_bytes, self.total_bytes)
        return content


def _add(archive: tarfile.TarFile, archived: ArchivedFile, meter: _ArchiveMeter) -> None:
    try:
        if archived.path.is_symlink():
            status = archived.path.lstat()
            member = _member(archived.name, status)
            member.type, member.linkname = tarfile.SYMTYPE, str(archived.path.readlink())
            archive.addfile(member)
            return
        source = archived.path.open("rb")
    except OSError as error:
        raise ArchiveError(
            f"{archived.path} cannot be read: {error.strerror or type(error).__name__}"
        ) from None
    with source:
        status = os.fstat(source.fileno())
        member = _member(archived.name, status)
        member.size = status.st_size
        try:
            meter.file = source
            archive.addfile(member, meter)
        except OSError as error:
            if error.errno is None:
                # tarfile's exception for a file that ended before its size.
                raise ArchiveError(f"{archived.path} became shorter while being read") from None
            raise


def _member(name: str, status: os.stat_result) -> tarfile.TarInfo:
    """Create a tar header that has no data of this machine: no owner, times in whole seconds."""
    member = tarfile.TarInfo(name)
    member.mode = status.st_mode & 0o777
    member.mtime = int(status.st_mtime)
    return member


def _archive_size_bytes(files: tuple[ArchivedFile, ...]) -> int:
    """Return the size of the archive; links with long targets add a few bytes to it."""
    blocks = 2
    for file in files:
        is_plain = file.name.isascii() and len(file.name) <= tarfile.LENGTH_NAME
        header_bytes = tarfile.BLOCKSIZE if is_plain else len(tarfile.TarInfo(file.name).tobuf())
        blocks += -(-(header_bytes + file.size_bytes) // tarfile.BLOCKSIZE)
    return -(-blocks * tarfile.BLOCKSIZE // tarfile.RECORDSIZE) * tarfile.RECORDSIZE


def _gigabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1_000_000_000:.2f} GB"
