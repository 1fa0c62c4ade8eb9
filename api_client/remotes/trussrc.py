"""The credentials file of the truss CLI: an INI file, a section for each remote (API facts, 4)."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from configparser import ConfigParser
from configparser import Error as IniError
from pathlib import Path

from api_client.errors import ConfigurationError

TRUSSRC_VARIABLE = "USER_TRUSSRC_PATH"
DEFAULT_PATH = "~/.trussrc"

Section = dict[str, str]


def trussrc_path(environ: Mapping[str, str]) -> Path:
    """Where the file is, or would be."""
    configured = environ.get(TRUSSRC_VARIABLE, "").strip()
    return Path(configured or DEFAULT_PATH).expanduser()


def read_sections(path: Path) -> dict[str, Section]:
    """Sections of the file; none if there is no file. Raises ConfigurationError; quotes no content."""
    problem = ""
    try:
        return sections_of(path.read_bytes(), path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        problem = error.strerror or "it cannot be opened"
    raise ConfigurationError(f"{path} cannot be read: {problem}")


def sections_of(content: bytes, path: Path) -> dict[str, Section]:
    """Sections in the content of a file. Raises ConfigurationError, which names ``path`` alone."""
    parser = ConfigParser(interpolation=None)
    problem = ""
    try:
        parser.read_string(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        problem = "it is not UTF-8 text"
    except IniError as error:
        # Never the parser's own message: it quotes the line, which may hold a key.
        line = getattr(error, "lineno", None)
        problem = "it is not a well-formed INI file" + (f" (line {line})" if line else "")
    if problem:
        raise ConfigurationError(f"{path} cannot be read: {problem}")
    return {name: dict(parser[name]) for name in parser.sections()}


def readable_by_others(path: Path) -> str | None:
    """The file's mode, as chmod takes it, if others than its owner may read or write it."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None
    return f"{mode:o}" if mode & 0o077 else None
