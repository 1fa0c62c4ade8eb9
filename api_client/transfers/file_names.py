"""Map the server's file names to paths below a folder: never outside it, and never colliding.

Pure: does not access the disk. Characters that a file system cannot store, or a terminal should not show,
become the ``%XX`` of their UTF-8 bytes, so that names stay readable. Two names that would collide (also if
they differ only in case, or one is a file and the other a folder) are both kept: one of them gets a ``~`` and
eight digits of the hash of its own name, so that its path is the same in each run.
"""

from __future__ import annotations

import hashlib
import os
import sys
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from api_client.files import TEMPORARY_PREFIX
from api_client.transfers.records import ServerName

MAX_COMPONENT_BYTES = 240  # file systems allow 255 bytes, and a suffix must fit
_HASH_DIGITS = 8


@dataclass(frozen=True, slots=True)
class TargetPath:
    """Path components below the folder; empty ``parts`` mean that the name is rejected for ``reason``."""

    parts: tuple[str, ...] = ()
    reason: str = ""


def resolve_names(names: Sequence[ServerName], *, by_rank: bool) -> list[TargetPath]:
    """Return the path of every name, in the given order.

    ``by_rank`` puts the files of each node below ``rank-<n>``. The order of the names does not affect their
    paths. Duplicate names get the same path.
    """
    paths = {name: _target_path(name, by_rank) for name in dict.fromkeys(names)}
    taken_keys = {
        _collision_key(path.parts[:depth]) for path in paths.values() for depth in range(1, len(path.parts))
    }
    for name in sorted(paths):
        parts, attempt = paths[name].parts, 0
        while parts and _collision_key(parts) in taken_keys:
            parts = (*parts[:-1], _with_suffix(paths[name].parts[-1], name, attempt))
            attempt += 1
        taken_keys.add(_collision_key(parts))
        paths[name] = replace(paths[name], parts=parts)
    return [paths[name] for name in names]


def safe_component(text: str) -> str:
    """Convert ``text`` to a valid file name: no separators or control characters, not too long or empty."""
    name = "".join(_escaped(character) for character in text) or "_"
    if name.lower().startswith(TEMPORARY_PREFIX):  # reserved for our own temporary files
        name = "_" + name
    if name in (".", ".."):
        name = name.replace(".", "%2E")
    if len(os.fsencode(name)) > MAX_COMPONENT_BYTES:
        name = _truncated(name, MAX_COMPONENT_BYTES - _HASH_DIGITS - 1, "~" + _short_hash(text))
    return name


def _target_path(name: ServerName, by_rank: bool) -> TargetPath:
    segments = [segment for segment in name.name.split("/") if segment not in ("", ".")]
    if not segments:
        return TargetPath(reason="it has no name")
    if any(segment in ("..", "..\\") or ".." in segment.split("\\") for segment in segments):
        return TargetPath(reason="its name points outside the folder")
    parts = [safe_component(segment) for segment in segments]
    if by_rank:
        parts.insert(0, f"rank-{name.node_rank}")
    if sum(len(os.fsencode(part)) + 1 for part in parts) > 2000:
        return TargetPath(reason="its path is too long")
    return TargetPath(tuple(parts))


def _escaped(character: str) -> str:
    category = unicodedata.category(character)
    # C: control, invisible and surrogate characters, direction marks; Zl, Zp: line and paragraph separators.
    if character not in "/\\" and category[0] != "C" and category not in ("Zl", "Zp"):
        with suppress(UnicodeEncodeError):  # the file system's encoding depends on the locale
            character.encode(sys.getfilesystemencoding())
            return character
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", errors="surrogatepass"))


def _collision_key(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return a key that is equal for paths that a file system may treat as the same."""
    return tuple(
        unicodedata.normalize("NFC", unicodedata.normalize("NFKC", part).casefold()) for part in parts
    )


def _with_suffix(component: str, name: ServerName, attempt: int) -> str:
    suffix = "~" + _short_hash(f"{name.node_rank}/{name.name}/{attempt or ''}")
    stem, dot, extension = component.rpartition(".")
    if not stem or len(extension) > 16:
        stem, dot, extension = component, "", ""
    return (
        _truncated(stem, MAX_COMPONENT_BYTES - len(suffix) - len(os.fsencode(dot + extension)), suffix)
        + dot
        + extension
    )


def _truncated(text: str, size_bytes: int, suffix: str) -> str:
    return os.fsencode(text)[:size_bytes].decode(sys.getfilesystemencoding(), errors="ignore") + suffix


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()[:_HASH_DIGITS]
