"""Find the files that an archive will contain, in the layout that the official client uses.

The built-in rules, or a ``.truss_ignore`` instead of them, decide what is left out. The
syntax is that of ``.gitignore``, parsed by the same library as in the official client, so that both agree on
every unusual pattern.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pathspec import PathSpec
from pathspec.patterns.gitignore import GitIgnorePatternError
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from api_client.definitions import Workspace
from api_client.errors import ArchiveError
from api_client.files import read_small_file

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
"""Built-in rules that drop names that people also use for their own files; each match causes a warning."""


def read_ignore_rules(layout: WorkspaceLayout) -> tuple[str, ...] | None:
    """Return the rules of ``.truss_ignore``, None without one. Raises ArchiveError if it can't be read."""
    path = layout.root / IGNORE_FILE
    if IGNORE_FILE in layout.excluded:
        return None
    try:
        text = read_small_file(path).decode("utf-8-sig", errors="surrogateescape")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ArchiveError(f"{path} cannot be read: {error.strerror or type(error).__name__}") from None
    # Unlike git, the official client ignores spaces around a rule.
    lines = [line.strip() for line in text.splitlines()]
    return tuple(line for line in lines if line and not line.startswith("#"))


@dataclass(frozen=True, slots=True)
class WorkspaceLayout:
    """``root`` is archived as the working directory, each of ``externals`` under its own name in it.

    ``excluded`` are names at the top of ``root`` that are left out. ``follows_links``: a workspace is
    archived as if it had been copied with links resolved; a plain config folder keeps its links.
    """

    root: Path
    externals: tuple[Path, ...] = ()
    excluded: frozenset[str] = frozenset()
    follows_links: bool = False
    warnings: tuple[str, ...] = ()


def resolve_folders(config_dir: Path, workspace: Workspace | None) -> WorkspaceLayout:
    """Determine the folders to archive. Raises ArchiveError naming an unusable setting."""
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
    externals, warnings = _externals(workspace.external_dirs, config_dir, root, excluded)
    return WorkspaceLayout(root, externals, excluded, follows_links=True, warnings=warnings)


def _excluded_name(text: str, config_dir: Path, root: Path) -> str:
    path = (config_dir / text).resolve()
    if path.parent != root or path == root:
        raise ArchiveError(
            f"exclude_dirs: '{text}' is {path}, not directly inside the workspace's root {root}; only its "
            f"top-level entries can be excluded"
        )
    return path.name


def _externals(
    texts: list[str], config_dir: Path, root: Path, excluded: frozenset[str]
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    taken = {entry.name for entry in root.iterdir()} - excluded if texts else set()
    existing: list[Path] = []
    warnings: list[str] = []
    for text in texts:
        path = (config_dir / text).resolve()
        if path.is_relative_to(root):
            warnings.append(f"external_dirs: '{text}' is already inside the workspace's root; skipped")
            continue
        if not path.is_dir():
            problem = "is not a folder" if path.exists() else "does not exist"
            raise ArchiveError(f"external_dirs: '{text}' ({path}) {problem}")
        if path.name in taken:
            raise ArchiveError(
                f"external_dirs: '{text}' would be '{path.name}' in the archive, which already exists"
            )
        taken.add(path.name)
        existing.append(path)
    return tuple(existing), tuple(warnings)


class ArchivedFile(NamedTuple):
    """File of the plan: its path, its name in the archive, its size in bytes (0 for a link)."""

    path: Path
    name: str
    size_bytes: int


class DroppedEntry(NamedTuple):
    """Entry that is left out, and the reason. The name of a folder ends with ``/``."""

    name: str
    reason: str


class _Folder(NamedTuple):
    """Folder to scan: its path, its name in the archive, the real paths above it."""

    path: str
    prefix: str
    above: frozenset[str]


class Survey:
    """Scans folders and sorts entries into ``files`` and ``dropped``.

    ``surprising``: names that a built-in rule drops although people also use them for their own files.
    Raises ArchiveError for an unusable ``.truss_ignore``.
    """

    def __init__(self, layout: WorkspaceLayout) -> None:
        own = read_ignore_rules(layout)
        self._rules = BUILT_IN_RULES if own is None else own
        self._has_own_rules = own is not None
        try:
            # Don't use the fastest available backend: RE2's rejects names that are not UTF-8.
            self._spec = PathSpec.from_lines(GitIgnoreSpecPattern, self._rules, backend="simple")
        except GitIgnorePatternError as error:
            raise ArchiveError(f"invalid pattern in {layout.root / IGNORE_FILE}: {error}") from None
        self._layout = layout
        self._real_root = layout.root.resolve()
        self.files: list[ArchivedFile] = []
        self.dropped: list[DroppedEntry] = []
        self.surprising: list[str] = []
        self.warnings: list[str] = []

    def walk(self, folder: Path, prefix: str) -> None:
        """Scan a folder; ``prefix`` is its name in the archive with a trailing slash, or empty."""
        waiting = [_Folder(str(folder), prefix, frozenset({os.path.realpath(folder)}))]
        while waiting:
            here = waiting.pop()
            for entry in self._entries(here):
                name = here.prefix + entry.name
                if not here.prefix and entry.name in self._layout.excluded:
                    self._drop(name + "/" * entry.is_dir(), "excluded by exclude_dirs")
                elif entry.is_symlink():
                    self._take_link(entry, name, here, waiting)
                elif entry.is_dir():
                    if self.is_included(name, is_folder=True):
                        real = os.path.realpath(entry.path)
                        waiting.append(_Folder(entry.path, name + "/", here.above | {real}))
                elif self.is_included(name, is_folder=False):
                    self._take_file(Path(entry.path), name, entry.stat())

    def is_included(self, name: str, *, is_folder: bool) -> bool:
        """Return True if no rule drops the name; otherwise record it.

        A dropped folder is not entered, so a later ``!`` cannot restore anything in it.
        """
        for candidate in (name, name + "/") if is_folder else (name,):
            result = self._spec.check_file(candidate)
            if result.include and result.index is not None:
                self._drop_by_rule(name + "/" * is_folder, self._rules[result.index])
                return False
        return True

    def _drop_by_rule(self, shown: str, rule: str) -> None:
        origin = f"the {IGNORE_FILE} rule" if self._has_own_rules else "the built-in rule"
        self._drop(shown, f"ignored by {origin} {rule}")
        if not self._has_own_rules and rule in SURPRISING_RULES:
            self.surprising.append(shown)

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

    def _take_link(self, entry: os.DirEntry[str], name: str, here: _Folder, waiting: list[_Folder]) -> None:
        """Handle a link: follow it in a workspace; in a plain folder keep it if it leads to a file."""
        try:
            is_folder, status = entry.is_dir(), entry.stat()
        except OSError:
            if self.is_included(name, is_folder=False):
                self._drop(name, "a broken link", warns=True)
            return
        # If links are kept, the rules see a link to a folder as a file, as in git.
        if not self.is_included(name, is_folder=is_folder):
            return
        real = os.path.realpath(entry.path)
        if self._layout.follows_links:
            if not is_folder:
                self._take_file(Path(real), name, status)
            elif real in here.above:
                self._drop(name, "a link to a folder that contains it", warns=True)
            else:
                waiting.append(_Folder(entry.path, name + "/", here.above | {real}))
        elif is_folder:
            self._drop(name, "a link to a folder, which is not followed", warns=True)
        elif not stat.S_ISREG(status.st_mode):
            self._drop(name, "not a plain file")
        elif Path(entry.path).readlink().is_absolute() or not Path(real).is_relative_to(self._real_root):
            self._drop(name, "a link that leads out of the folder", warns=True)
        else:
            self.files.append(ArchivedFile(Path(entry.path), name, 0))

    def _take_file(self, path: Path, name: str, status: os.stat_result) -> None:
        if stat.S_ISREG(status.st_mode):
            self.files.append(ArchivedFile(path, name, status.st_size))
        else:
            self._drop(name, "not a plain file")

    def _drop(self, name: str, reason: str, *, warns: bool = False) -> None:
        self.dropped.append(DroppedEntry(name, reason))
        if warns:
            self.warnings.append(f"{name} is not in the archive: it is {reason}")
