"""Parse the header of a safetensors file, and sum up the shards of one model, without reading the weights.

The format (huggingface/safetensors): eight bytes, little-endian, with the length of a JSON object, then the
object. For every tensor, the object has a dtype, a shape and the offsets in the data that follows. The
data of the tensors is contiguous and fills the rest of the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from api_client.errors import UnreadableFile
from api_client.http.decoding import describe
from api_client.models import CheckpointFile
from api_client.words import counted

LENGTH_BYTES = 8
MAX_HEADER_BYTES = 100_000_000  # limit set by the format

BITS_BY_DTYPE = {
    **dict.fromkeys(("F64", "I64", "U64", "C64"), 64),
    **dict.fromkeys(("F32", "I32", "U32"), 32),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 16),
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "F8_E8M0", "I8", "U8", "BOOL"), 8),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    "F4": 4,
}
"""Bits per value. The size of other (newer) types is not checked."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor: name (not sanitized), type, shape and size of its data in bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size_bytes: int

    @property
    def parameter_count(self) -> int:
        """Number of values; 1 for a scalar."""
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
    """Return the number of values of each type, largest first."""
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


_Count = Annotated[int, Field(strict=True, ge=0, lt=2**64)]


class _Entry(BaseModel):
    dtype: Annotated[str, Field(min_length=1)]
    shape: Annotated[tuple[_Count, ...], Field(max_length=64)]
    data_offsets: tuple[_Count, _Count]


class _Header(BaseModel):
    """The JSON object: metadata, and the tensors by their names."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, _Entry]

    written_by: dict[str, str] = Field(default={}, alias="__metadata__")


def parse_header(header: bytes, file_bytes: int | None = None) -> SafetensorsHeader:
    """Parse the JSON header. Raises UnreadableFile for anything that the format forbids.

    If the size of the file is given as ``file_bytes``, the tensors must fill the rest of the file.
    """
    try:
        parsed = _Header.model_validate_json(header)
    except ValidationError as error:
        raise UnreadableFile(describe(error, "its header")) from None
    tensors, end = [], 0
    for name, entry in sorted(parsed.__pydantic_extra__.items(), key=lambda item: item[1].data_offsets):
        begin, tensor_end = entry.data_offsets
        if begin != end or tensor_end < begin:
            raise UnreadableFile(f"the bytes of {_quoted(name)} do not follow those of the tensor before it")
        tensors.append(_tensor(name, entry))
        end = tensor_end
    if file_bytes is not None and LENGTH_BYTES + len(header) + end != file_bytes:
        data_bytes = file_bytes - LENGTH_BYTES - len(header)
        raise UnreadableFile(f"its tensors need {end:,} bytes, but the file has {data_bytes:,}")
    return SafetensorsHeader(tuple(tensors), parsed.written_by, LENGTH_BYTES + len(header), data_bytes=end)


def _tensor(name: str, entry: _Entry) -> Tensor:
    begin, end = entry.data_offsets
    tensor = Tensor(name, entry.dtype, entry.shape, size_bytes=end - begin)
    bits, count = BITS_BY_DTYPE.get(entry.dtype), tensor.parameter_count
    # A value of an unknown type takes at least one bit.
    is_possible = (
        count <= tensor.size_bytes * 8 if bits is None else -(-count * bits // 8) == tensor.size_bytes
    )
    if not is_possible:
        raise UnreadableFile(
            f"{_quoted(name)} has {tensor.size_bytes:,} bytes, which does not match its shape"
        )
    return tensor


def _quoted(name: str) -> str:
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
    """Weights of all files of a checkpoint; ``missing`` are files that the index names but do not exist."""

    shards: tuple[ReadShard, ...]
    missing: tuple[str, ...] = ()

    @property
    def headers(self) -> Iterator[SafetensorsHeader]:
        """The headers that could be read."""
        return (shard.header for shard in self.shards if shard.header is not None)

    @property
    def tensors(self) -> list[Tensor]:
        """All tensors, in file order."""
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
        """Metadata of all files; for duplicate keys, the value of the first file."""
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
        """Files that are missing or could not be read, as messages that are not sanitized."""
        read_problems = [
            f"{shard.file.relative_file_name}: {shard.problem}" for shard in self.shards if shard.problem
        ]
        return read_problems + [f"{name} is in the index but missing" for name in self.missing]


def shards_of_index(index: Any) -> list[str]:
    """Return the file names in a ``model.safetensors.index.json``. Raises UnreadableFile if it is invalid."""
    files = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(files, dict) or not all(isinstance(name, str) for name in files.values()):
        raise UnreadableFile("it has no weight_map")
    return sorted(set(files.values()))
