"""The bytes of the demo world's checkpoint files, made when they are asked for.

Small files hold what their names promise; weights begin with a true safetensors header and go on with
noise. The same range of the same file is the same bytes, always.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import shake_128

from api_client.emulator.backend import StoredFile
from api_client.emulator.fleet.families import Blueprint
from api_client.emulator.fleet.scenarios.families import FAMILIES

BLOCK_BYTES = 64 * 1024
_FILE_BITS = 12
_STEP_BITS = 28


def file_seed(family: int, step: int, file: int) -> int:
    """The ``synthetic_seed`` of a file: its family's place in ``FAMILIES``, the step, its own place."""
    return (family << (_STEP_BITS + _FILE_BITS)) | (step << _FILE_BITS) | file


@lru_cache(maxsize=256)
def checkpoint_blueprints(family: int, step: int) -> tuple[Blueprint, ...]:
    """The files of one checkpoint, as designed."""
    return tuple(FAMILIES[family].blueprints(step))


def blueprint(file: StoredFile) -> Blueprint:
    """The design of a synthetic file; LookupError if the file is not one of ours."""
    seed = file.synthetic_seed
    if seed is None:
        raise LookupError(f"{file.relative_name} is not a synthetic file")
    place = seed & ((1 << _FILE_BITS) - 1)
    step = (seed >> _FILE_BITS) & ((1 << _STEP_BITS) - 1)
    return checkpoint_blueprints(seed >> (_STEP_BITS + _FILE_BITS), step)[place]


def content(file: StoredFile) -> bytes | None:
    """All of a small file (JSON and the like); None for files whose bytes are mostly noise."""
    design = blueprint(file)
    return design.head if design.is_whole else None


def synthetic_bytes(file: StoredFile, start: int, end: int) -> bytes:
    """Bytes ``start`` (included) to ``end`` (excluded) of a file, cut to its size."""
    design = blueprint(file)
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
