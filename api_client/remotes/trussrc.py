"""The credentials file of the truss CLI: an INI file, a section for each remote (API facts, 4)."""

from __future__ import annotations

import re
import stat
from collections.abc import Collection, Iterator, Mapping
from configparser import ConfigParser
from configparser import Error as IniError
from pathlib import Path

from api_client.errors import ConfigurationError
from api_client.files import why_not_written, write_private

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


# The lines as configparser tells them apart, with its default signs.
_HEADER = re.compile(r"\s*\[(?P<name>.+)\]")
_OPTION = re.compile(r"(?P<name>[^\s=:#;\[][^=:]*?)\s*[=:].*")
_NAME = re.compile(r"[^\[\]\x00-\x1f\x7f\s](?:[^\[\]\x00-\x1f\x7f]*[^\[\]\x00-\x1f\x7f\s])?")


def check_section_name(name: str) -> None:
    """Raises ConfigurationError for a name that no section of the file can have."""
    if not _NAME.fullmatch(name) or name == "DEFAULT" or name.startswith("<"):
        raise ConfigurationError(f"{name!r} cannot be a remote's name: letters, digits, dots and dashes can")


def set_section(path: Path, name: str, values: Mapping[str, str], *, without: Collection[str] = ()) -> None:
    """Set options of a section, made if need be, and drop those of ``without``; mode 0600 afterwards.

    Raises ConfigurationError if the file cannot be read or written as it is; it is left alone then.
    """
    check_section_name(name)
    content = _read(path)
    before = sections_of(content, path)
    lines = _lines(content)
    newline = "\r\n" if any(line.endswith("\r\n") for line in lines) else "\n"
    start, end = _span(lines, name)
    if start is None:
        added = _appended(lines, name, values, newline)
    else:
        added = [*lines[:start], *_changed(lines[start:end], values, without, newline), *lines[end:]]
    wanted = {option: value for option, value in before.get(name, {}).items() if option not in without}
    _write(path, added, before | {name: {**wanted, **values}})


def remove_section(path: Path, name: str) -> bool:
    """Drop a section but for its comments; whether there was one. Raises ConfigurationError."""
    content = _read(path)
    before = sections_of(content, path)
    lines = _lines(content)
    start, end = _span(lines, name)
    if start is None:
        return False
    comments = [line for line in lines[start:end] if line.lstrip().startswith(("#", ";"))]
    after = {other: options for other, options in before.items() if other != name}
    _write(path, [*lines[:start], *comments, *lines[end:]], after)
    return True


def _changed(
    block: list[str], values: Mapping[str, str], without: Collection[str], newline: str
) -> Iterator[str]:
    """The section's lines with the new values where the old ones stood, and new options below the last."""
    left = dict(values)
    last_line = max(index for index, line in enumerate(block) if line.strip())
    in_dropped_option = False
    for index, line in enumerate(block):
        option = _option_of(line) if index else None
        if option is not None:
            in_dropped_option = option in values or option in without
            if option in left:
                yield _option_line(line, option, left.pop(option), newline)
            elif not in_dropped_option:
                yield line
        elif not (in_dropped_option and _continues(line)):
            yield line
        if index == last_line:
            if left and not line.endswith("\n"):
                yield newline
            yield from (f"{name} = {value}{newline}" for name, value in left.items())
            left = {}


def _option_line(old: str, option: str, value: str, newline: str) -> str:
    ending = newline if old.endswith("\n") else ""
    return f"{option} = {value}{ending}"


def _appended(lines: list[str], name: str, values: Mapping[str, str], newline: str) -> list[str]:
    added = [f"[{name}]{newline}", *(f"{option} = {value}{newline}" for option, value in values.items())]
    if not "".join(lines).strip("\ufeff\r\n"):
        return [*lines, *added]
    gap = newline if lines[-1].endswith("\n") else newline * 2
    return [*lines, gap, *added]


def _span(lines: list[str], name: str) -> tuple[int | None, int]:
    """Where a section starts and ends; no start if there is none of that name."""
    start = None
    for index, line in enumerate(lines):
        header = _HEADER.match(line.removeprefix("\ufeff"))
        if header is None or (line[:1].isspace() and start is not None):
            continue
        if start is not None:
            return start, index
        if header["name"] == name:
            start = index
    return start, len(lines)


def _option_of(line: str) -> str | None:
    """The option that a line sets, as configparser names it."""
    if line[:1].isspace():
        return None
    match = _OPTION.match(line)
    return match["name"].rstrip().lower() if match else None


def _continues(line: str) -> bool:
    """Whether a line goes on with the value of the option above it."""
    return line[:1].isspace() and bool(line.strip()) and not line.lstrip().startswith(("#", ";"))


def _lines(content: bytes) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", content.decode())


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        problem = error.strerror or "it cannot be opened"
    raise ConfigurationError(f"{path} cannot be read: {problem}")


def _write(path: Path, lines: list[str], expected: Mapping[str, Section]) -> None:
    """Replace the file, provided that it now says what is meant. Raises ConfigurationError."""
    content = "".join(lines).encode()
    if sections_of(content, path) != expected:
        raise ConfigurationError(
            f"{path} is written in a way that cannot be changed safely: edit it yourself"
        )
    problem = ""
    try:
        target = path.resolve()  # a link into somebody's collection of settings stays a link
        target.parent.mkdir(parents=True, exist_ok=True)
        write_private(target, content)
        return
    except OSError as error:
        problem = why_not_written(error)
    raise ConfigurationError(f"can't write {path}: {problem}")
