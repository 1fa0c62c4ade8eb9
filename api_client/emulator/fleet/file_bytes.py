"""The bytes of the demo world's checkpoint files, generated on demand.

Small files have the content that their names promise; weights start with a valid safetensors header,
followed by noise. The same range of the same file always has the same bytes.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import shake_128

from api_client.emulator.backend import StoredFile
from api_client.emulator.fleet.families import FileSpec
from api_client.emulator.fleet.scenarios.families import FAMILIES

BLOCK_BYTES = 64 * 1024
_FILE_BITS = 12
_STEP_BITS = 28


def file_seed(family: int, step: int, file: int) -> int:
    """Return a file's ``synthetic_seed``: index of its family in ``FAMILIES``, step and index of the file."""
    return (family << (_STEP_BITS + _FILE_BITS)) | (step << _FILE_BITS) | file


@lru_cache(maxsize=256)
def checkpoint_file_specs(family: int, step: int) -> tuple[FileSpec, ...]:
    return tuple(FAMILIES[family].file_specs(step))


def file_spec(file: StoredFile) -> FileSpec:
    """Return the design of a synthetic file; raise LookupError for a file with a path on disk."""
    seed = file.synthetic_seed
    if seed is None:
        raise LookupError(f"{file.relative_name} is not a synthetic file")
    place = seed & ((1 << _FILE_BITS) - 1)
    step = (seed >> _FILE_BITS) & ((1 << _STEP_BITS) - 1)
    return checkpoint_file_specs(seed >> (_STEP_BITS + _FILE_BITS), step)[place]


def content(file: StoredFile) -> bytes | None:
    """Return the content of a small file (such as JSON), or None if the file is mostly noise."""
    design = file_spec(file)
    return design.head if design.is_whole else None


def synthetic_bytes(file: StoredFile, start: int, end: int) -> bytes:
    """Return the bytes from ``start`` (inclusive) to ``end`` (exclusive), limited to the file's size."""
    design = file_spec(file)
    start, end = max(0, start), min(end, design.size_bytes)
    if start >= end:
        return b""
    found = bytearray(design.head[start:end])
    place = start + len(found)
    while place < end:
        number, skip = divmod(place, BLOCK_BYTES)
        block = _noise(file.synthetic_seed or 0, number)
        part = block[skip : skip + end - place]
        found += part
        place += len(part)
    return bytes(found)


@lru_cache(maxsize=8)
def _noise(seed: int, block: int) -> bytes:
    return shake_128(f"{seed}:{block}".encode()).digest(BLOCK_BYTES)
