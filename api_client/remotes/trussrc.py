"""Read and change the truss CLI's credentials file: an INI file with a section for each remote.

Changes edit single lines and keep all others, because ``configparser`` would drop all comments.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from configparser import ConfigParser, Error as IniError
from pathlib import Path

from api_client.errors import ConfigurationError
from api_client.files import os_errors_as, read_small_file, update_private_file, user_path

Section = dict[str, str]


def trussrc_path(environ: Mapping[str, str]) -> Path:
    configured = environ.get("USER_TRUSSRC_PATH", "").strip()
    return user_path(configured or "~/.trussrc")


class _Parser(ConfigParser):
    OPTCRE = re.compile(r"(?P<option>[^=:]*)(?P<vi>[=:])\s*(?P<value>.*)$")
    """Matches an option line in linear time; the base class's pattern is quadratic for many spaces."""


def read_sections(path: Path) -> dict[str, Section]:
    """Read the sections of the file; empty if there is no file.

    Raises ConfigurationError, which quotes no content.
    """
    return sections_of(read_credentials(path), path)


def sections_of(content: bytes, path: Path) -> dict[str, Section]:
    """Parse the sections in a file's content. Raises ConfigurationError, which names only ``path``."""
    parser = _Parser(interpolation=None)
    problem = ""
    try:
        parser.read_string(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        problem = "it is not UTF-8 text"
    except IniError as error:
        # Never include the parser's own message: it quotes the line, which may hold a key.
        line = getattr(error, "lineno", None)
        problem = "it is not a well-formed INI file" + (f" (line {line})" if line else "")
    if problem:
        raise ConfigurationError(f"{path} cannot be read: {problem}")
    return {name: dict(parser[name]) for name in parser.sections()}


def readable_by_others(path: Path) -> str | None:
    """Return the file's mode in octal if users other than the owner can read or write it; else None."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None
    return f"{mode:o}" if mode & 0o077 else None


# These patterns classify lines as configparser does with its default prefixes.
_OPTION = re.compile(r"(?P<name>[^\s=:#;\[][^=:]*)[=:]")
_NAME = re.compile(r"[^\[\]\x00-\x1f\x7f\s](?:[^\[\]\x00-\x1f\x7f]*[^\[\]\x00-\x1f\x7f\s])?")


def check_section_name(name: str) -> None:
    if not _NAME.fullmatch(name) or name == "DEFAULT" or name.startswith("<"):
        raise ConfigurationError(f"invalid remote name {name!r}: use letters, digits, dots and dashes")


def set_section(path: Path, name: str, values: Mapping[str, str], *, without: Collection[str] = ()) -> None:
    """Set options of a section, creating the section if necessary, and delete the options in ``without``.

    Sets the file's mode to 0600. Raises ConfigurationError, and leaves the file unchanged, if the file cannot
    be read or written.
    """
    check_section_name(name)

    def change(content: bytes) -> bytes:
        old_sections = sections_of(content, path)
        lines = _split_lines(content)
        newline = "\r\n" if any(line.endswith("\r\n") for line in lines) else "\n"
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += newline
        start, end = _section_range(lines, name)
        if start is None:
            new_lines = _append_section(lines, name, values, newline)
        else:
            new_lines = [
                *lines[:start],
                *_change_section(lines[start:end], values, without, newline),
                *lines[end:],
            ]
        options = {
            option: value for option, value in old_sections.get(name, {}).items() if option not in without
        }
        return _verified_content(new_lines, old_sections | {name: {**options, **values}}, path)

    update_credentials(path, change)


def remove_section(path: Path, name: str) -> bool:
    """Delete a section but keep its comments; return True if it existed. Raises ConfigurationError."""
    existed = False

    def change(content: bytes) -> bytes | None:
        nonlocal existed
        old_sections = sections_of(content, path)
        lines = _split_lines(content)
        start, end = _section_range(lines, name)
        existed = start is not None
        if start is None:
            return None
        comments = [line for line in lines[start:end] if line.lstrip().startswith(("#", ";"))]
        new_sections = {other: options for other, options in old_sections.items() if other != name}
        return _verified_content([*lines[:start], *comments, *lines[end:]], new_sections, path)

    update_credentials(path, change)
    return existed


def _change_section(
    block: list[str], values: Mapping[str, str], without: Collection[str], newline: str
) -> Iterator[str]:
    """Yield the section's lines with changed values in place, and new options after its last line."""
    remaining = dict(values)
    last_line = max(index for index, line in enumerate(block) if line.strip())
    in_dropped_option = False
    for index, line in enumerate(block):
        option = _option_of(line) if index else None
        if option is not None:
            in_dropped_option = option in values or option in without
        if option in remaining:
            yield f"{option} = {remaining.pop(option)}{newline}"
        elif not in_dropped_option or (option is None and not _is_continuation(line)):
            yield line
        if index == last_line and remaining:
            yield from (f"{name} = {value}{newline}" for name, value in remaining.items())


def _append_section(lines: list[str], name: str, values: Mapping[str, str], newline: str) -> list[str]:
    is_empty = not "".join(lines).strip("\ufeff\r\n")
    options = [f"{option} = {value}{newline}" for option, value in values.items()]
    return [*lines, "" if is_empty else newline, f"[{name}]{newline}", *options]


def _section_range(lines: list[str], name: str) -> tuple[int | None, int]:
    """Return the start and end of a section; start is None if it does not exist."""
    start = None
    for index, line in enumerate(lines):
        header = re.match(r"\s*\[(?P<name>.+)\]", line.removeprefix("\ufeff"))
        if header is None or (line[:1].isspace() and start is not None):
            continue
        if start is not None:
            return start, index
        if header["name"] == name:
            start = index
    return start, len(lines)


def _option_of(line: str) -> str | None:
    """Return the option that a line sets, as configparser names it."""
    if line[:1].isspace():
        return None
    match = _OPTION.match(line)
    return match["name"].rstrip().lower() if match else None


def _is_continuation(line: str) -> bool:
    return line[:1].isspace() and bool(line.strip()) and not line.lstrip().startswith(("#", ";"))


def _split_lines(content: bytes) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", content.decode())


def read_credentials(path: Path) -> bytes:
    """Return the file's content; empty without a file. Raises ConfigurationError, which quotes no content."""
    try:
        return read_small_file(path)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        problem = error.strerror or "it cannot be opened"
    raise ConfigurationError(f"{path} cannot be read: {problem}")


def update_credentials(path: Path, change: Callable[[bytes], bytes | None]) -> None:
    """Replace the file's content with ``change(content)``, under a lock. Raises ConfigurationError."""
    read_credentials(path)  # report an unreadable file before anything is created
    with os_errors_as(ConfigurationError, f"can't write {path}"):
        target = path.resolve()  # keep a symbolic link, for example into a dotfiles folder
        target.parent.mkdir(parents=True, exist_ok=True)
        update_private_file(target, change)


def _verified_content(lines: list[str], expected: Mapping[str, Section], path: Path) -> bytes:
    """Return the new content. Raises ConfigurationError if it does not parse to ``expected``."""
    content = "".join(lines).encode()
    if sections_of(content, path) != expected:
        raise ConfigurationError(f"{path} can't be changed safely in its current format: edit it yourself")
    return content
