"""Parse the header of a safetensors file, and add up the shards of one model, without reading the weights.

The format (huggingface/safetensors): eight bytes, little-endian, hold the length of a JSON object. For every
tensor the object has a dtype, a shape and the offsets in the data that follows. The tensors' data is
contiguous, without holes, and ends where the file ends.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from api_client.errors import UnreadableFile
from api_client.models import CheckpointFile
from api_client.words import counted

LENGTH_BYTES = 8
MAX_HEADER_BYTES = 100_000_000  # limit set by the format
MAX_DIMENSIONS = 64
METADATA = "__metadata__"

BITS_OF_DTYPE = {
    **dict.fromkeys(("F64", "I64", "U64", "C64"), 64),
    **dict.fromkeys(("F32", "I32", "U32"), 32),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 16),
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "F8_E8M0", "I8", "U8", "BOOL"), 8),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    "F4": 4,
}
"""Bits per value. Unknown (newer) types are accepted as they are."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor: name (not sanitized), type, shape and size of its data in bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size_bytes: int

    @property
    def parameter_count(self) -> int:
        """Return the number of values; one for a scalar."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class SafetensorsHeader:
    """Header of one file: tensors in data order, the writer's metadata, and sizes in bytes."""

    tensors: tuple[Tensor, ...]
    metadata: dict[str, str]
    header_bytes: int
    data_bytes: int

    @property
    def parameter_count(self) -> int:
        """Number of values in all tensors."""
        return sum(tensor.parameter_count for tensor in self.tensors)

    @property
    def parameters_by_dtype(self) -> dict[str, int]:
        """Number of values of each type, largest first."""
        return parameters_by_dtype(self.tensors)


def parameters_by_dtype(tensors: Iterable[Tensor]) -> dict[str, int]:
    """Number of values of each type, largest first."""
    counts: dict[str, int] = {}
    for tensor in tensors:
        counts[tensor.dtype] = counts.get(tensor.dtype, 0) + tensor.parameter_count
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def header_length(first_bytes: bytes, file_bytes: int | None) -> int:
    """Read the length of the JSON in bytes from the first eight bytes. Raises UnreadableFile.

    ``file_bytes`` is the size of the file, if known.
    """
    if len(first_bytes) < LENGTH_BYTES:
        raise UnreadableFile(f"too short for a safetensors file ({counted(len(first_bytes), 'byte')})")
    length = int.from_bytes(first_bytes[:LENGTH_BYTES], "little")
    if length > MAX_HEADER_BYTES:
        raise UnreadableFile(f"its header claims {length:,} bytes; the format allows 100,000,000")
    if length < len("{}"):
        raise UnreadableFile("its header is empty")
    if file_bytes is not None and LENGTH_BYTES + length > file_bytes:
        raise UnreadableFile(
            f"its header claims {length:,} of {file_bytes:,} bytes: truncated, or not a safetensors file"
        )
    return length


def parse_header(header: bytes, file_bytes: int | None = None) -> SafetensorsHeader:
    """Parse the JSON header. Raises UnreadableFile for anything that the format forbids.

    If ``file_bytes``, the size of the file, is given, the tensors must fill the rest of the file.
    """
    entries = _entries(header)
    metadata = _metadata(entries.pop(METADATA, {}))
    placed = sorted(
        ((*_place(name, entry), _tensor(name, entry)) for name, entry in entries.items()),
        key=lambda item: (item[0], item[1]),
    )
    end = 0
    for begin, stop, tensor in placed:
        if begin < end:
            raise UnreadableFile(f"the bytes of {_shown(tensor.name)} overlap those of another tensor")
        if begin > end:
            raise UnreadableFile(f"no tensor covers the {begin - end:,} bytes before {_shown(tensor.name)}")
        end = stop
    if file_bytes is not None and LENGTH_BYTES + len(header) + end != file_bytes:
        there = file_bytes - LENGTH_BYTES - len(header)
        raise UnreadableFile(f"its tensors need {end:,} bytes, but the file has {there:,}")
    return SafetensorsHeader(
        tensors=tuple(tensor for _begin, _stop, tensor in placed),
        metadata=metadata,
        header_bytes=LENGTH_BYTES + len(header),
        data_bytes=end,
    )


def _entries(header: bytes) -> dict[str, Any]:
    try:
        entries = json.loads(header.decode("utf-8"), object_pairs_hook=_reject_duplicate_keys)
    except UnreadableFile:
        raise
    except RecursionError:
        raise UnreadableFile("its header is nested too deeply") from None
    except ValueError:
        raise UnreadableFile("its header is not JSON") from None
    if not isinstance(entries, dict):
        raise UnreadableFile("its header is not a JSON object")
    return entries


def _reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        twin = Counter(name for name, _value in pairs).most_common(1)[0][0]
        raise UnreadableFile(f"its header lists {_shown(twin)} twice")
    return document


def _metadata(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise UnreadableFile("the metadata in its header is not a map of strings")
    return value


def _place(name: str, entry: Any) -> tuple[int, int]:
    offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
    if not (isinstance(offsets, list) and len(offsets) == 2 and all(_is_count(part) for part in offsets)):
        raise UnreadableFile(f"its header has no offsets for {_shown(name)}")
    begin, end = offsets
    if begin > end:
        raise UnreadableFile(f"{_shown(name)} ends before it starts")
    return begin, end


def _tensor(name: str, entry: dict[str, Any]) -> Tensor:
    dtype, shape = entry.get("dtype"), entry.get("shape")
    if not isinstance(dtype, str) or not dtype:
        raise UnreadableFile(f"its header has no type for {_shown(name)}")
    if not (isinstance(shape, list) and all(_is_count(part) for part in shape)):
        raise UnreadableFile(f"{_shown(name)} has an invalid shape")
    if len(shape) > MAX_DIMENSIONS:
        raise UnreadableFile(f"{_shown(name)} has {len(shape):,} dimensions")
    begin, end = _place(name, entry)
    tensor = Tensor(name=name, dtype=dtype, shape=tuple(shape), size_bytes=end - begin)
    bits = BITS_OF_DTYPE.get(dtype)
    room_bits = tensor.size_bytes * 8
    count = tensor.parameter_count
    # The size of an unknown type is unknown, but every value takes at least one bit.
    if (count > room_bits) if bits is None else (-(-count * bits // 8) != tensor.size_bytes):
        raise UnreadableFile(
            f"{_shown(name)} has {tensor.size_bytes:,} bytes, which does not match its shape"
        )
    return tensor


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64


def _shown(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:80] + "…")


INDEX_SUFFIX = ".safetensors.index.json"


@dataclass(frozen=True, slots=True)
class ReadShard:
    """A file's header, or the reason why it cannot be read."""

    file: CheckpointFile
    header: SafetensorsHeader | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Weights:
    """Combined weights of all files. ``missing`` are files that an index names but the checkpoint lacks."""

    shards: tuple[ReadShard, ...]
    missing: tuple[str, ...] = ()

    @property
    def headers(self) -> Iterator[SafetensorsHeader]:
        """Yield the headers that could be read."""
        return (shard.header for shard in self.shards if shard.header is not None)

    @property
    def tensors(self) -> list[Tensor]:
        """Return all tensors, in file order."""
        return [tensor for header in self.headers for tensor in header.tensors]

    @property
    def parameter_count(self) -> int:
        """Number of values in all tensors."""
        return sum(header.parameter_count for header in self.headers)

    @property
    def parameters_by_dtype(self) -> dict[str, int]:
        """Number of values of each type, largest first."""
        return parameters_by_dtype(self.tensors)

    @property
    def metadata(self) -> dict[str, str]:
        """Merge the metadata of all files; for duplicate keys the first file's value is used."""
        merged: dict[str, str] = {}
        for header in self.headers:
            merged = header.metadata | merged
        return merged

    @property
    def data_bytes(self) -> int:
        """Total size of the tensors' data, in bytes."""
        return sum(header.data_bytes for header in self.headers)

    @property
    def bytes_read(self) -> int:
        """Lower bound of the bytes fetched to read the weights: the size of the headers."""
        return sum(header.header_bytes for header in self.headers)

    @property
    def problems(self) -> list[str]:
        """Return inconsistencies, as sentences that are not sanitized."""
        unread = [
            f"{shard.file.relative_file_name}: {shard.problem}" for shard in self.shards if shard.problem
        ]
        return unread + [f"{name} is in the index but missing" for name in self.missing]


def shards_of_index(index: Any) -> list[str]:
    """Return the file names in a ``model.safetensors.index.json``. Raises UnreadableFile if it is not one."""
    files = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(files, dict) or not all(isinstance(name, str) for name in files.values()):
        raise UnreadableFile("it has no weight_map")
    return sorted(set(files.values()))
