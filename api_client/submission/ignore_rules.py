"""Which files an archive leaves out: the official built-in rules, or a ``.truss_ignore`` instead of them.

Source: API facts, 3.5. The syntax is that of ``.gitignore``, read by the same library as the official
client uses, so that both agree on every odd pattern.
"""

from __future__ import annotations

from pathlib import Path

from pathspec import PathSpec
from pathspec.patterns.gitignore import GitIgnorePatternError
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from api_client.errors import ArchiveError

IGNORE_FILE = ".truss_ignore"
"""Lies at the root of what is archived; its rules replace the built-in ones as a whole."""

_COMPILED = ("__pycache__/", "*.py[cod]", "*$py.class", "*.so", "cython_debug/")
_PACKAGED = (
    ".Python", "build/", "develop-eggs/", "dist/", "downloads/", "eggs/", ".eggs/", "lib/", "lib64/",
    "parts/", "sdist/", "var/", "wheels/", "share/python-wheels/", "*.egg-info/", ".installed.cfg",
    "*.egg", "MANIFEST", "*.manifest", "*.spec", "pip-log.txt", "pip-delete-this-directory.txt",
)  # fmt: skip
_TESTED = (
    "htmlcov/", ".tox/", ".nox/", ".coverage", ".coverage.*", ".cache", "nosetests.xml", "coverage.xml",
    "*.cover", "*.py,cover", ".hypothesis/", ".pytest_cache/", "cover/",
)  # fmt: skip
_FRAMEWORKS = (
    "*.mo", "*.pot", "*.log", "local_settings.py", "db.sqlite3", "db.sqlite3-journal", "instance/",
    ".webassets-cache", ".scrapy", "docs/_build/", ".pybuilder/", "target/", ".ipynb_checkpoints",
    "profile_default/", "ipython_config.py", ".pdm.toml", "__pypackages__/", "celerybeat-schedule",
    "celerybeat.pid", "*.sage.py",
)  # fmt: skip
_ENVIRONMENTS = (".env", ".venv", "env/", "venv/", "ENV/", "env.bak/", "venv.bak/")
_TOOLS = (
    ".spyderproject", ".spyproject", ".ropeproject", ".mypy_cache/", ".dmypy.json", "dmypy.json",
    ".ruff_cache/", ".pyre/", ".pytype/", ".DS_Store", ".git", "*.tmp", "*.swp",
)  # fmt: skip

BUILT_IN_RULES = (*_COMPILED, *_PACKAGED, *_TESTED, *_FRAMEWORKS, *_ENVIRONMENTS, *_TOOLS)
"""The official client's own list. None of them negates another, so their order means nothing."""

SURPRISING_RULES = frozenset(
    {"build/", "dist/", "downloads/", "instance/", "lib/", "lib64/", "parts/", "sdist/", "target/", "var/",
     "wheels/", "eggs/", "cover/", "*.so", "*.spec", "*.manifest", "MANIFEST", "local_settings.py"}
)  # fmt: skip
"""Built-in rules that drop what people write by hand; worth a warning, not only a line in a list."""


class IgnoreRules:
    """Compiled rules. ``is_built_in`` says whether they are the official list."""

    def __init__(self, patterns: tuple[str, ...], *, is_built_in: bool) -> None:
        self.patterns = patterns
        self.is_built_in = is_built_in
        # Not the fastest backend there happens to be: RE2's refuses names that are no UTF-8.
        self._spec = PathSpec.from_lines(GitIgnoreSpecPattern, patterns, backend="simple")

    def rule_against(self, name: str, *, is_folder: bool) -> str | None:
        """The rule that drops this name (relative to the root, ``/`` between parts), or None.

        A dropped folder is not entered, so a later ``!`` cannot bring back what is in it.
        """
        for candidate in (name, name + "/") if is_folder else (name,):
            found = self._spec.check_file(candidate)
            if found.include and found.index is not None:
                return self.patterns[found.index]
        return None


def built_in_rules() -> IgnoreRules:
    """The official list, compiled."""
    return IgnoreRules(BUILT_IN_RULES, is_built_in=True)


def read_ignore_rules(root: Path) -> IgnoreRules:
    """The rules for an archive of ``root``. Raises ArchiveError for an unusable ``.truss_ignore``."""
    path = root / IGNORE_FILE
    try:
        text = path.read_text(encoding="utf-8-sig", errors="surrogateescape")
    except FileNotFoundError:
        return built_in_rules()
    except OSError as error:
        raise ArchiveError(f"{path} cannot be read: {error.strerror or type(error).__name__}") from None
    # Spaces around a rule mean nothing to the official client, unlike to git.
    lines = [line.strip() for line in text.splitlines()]
    patterns = tuple(line for line in lines if line and not line.startswith("#"))
    try:
        return IgnoreRules(patterns, is_built_in=False)
    except GitIgnorePatternError as error:
        raise ArchiveError(f"{path} has a rule that is no pattern: {error}") from None
