"""The weights of a checkpoint: all of its safetensors files together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from api_client.checkpoint_files.errors import UnreadableFile
from api_client.checkpoint_files.safetensors import SafetensorsHeader, Tensor, parameters_by_dtype
from api_client.models import CheckpointFile

INDEX_SUFFIX = ".safetensors.index.json"


@dataclass(frozen=True, slots=True)
class ReadShard:
    """One file: its header, or why it cannot be read."""

    file: CheckpointFile
    header: SafetensorsHeader | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Weights:
    """What the files say together. ``missing`` are files that an index names and the checkpoint has not."""

    shards: tuple[ReadShard, ...]
    missing: tuple[str, ...] = ()

    @property
    def headers(self) -> Iterator[SafetensorsHeader]:
        """The headers that could be read."""
        return (shard.header for shard in self.shards if shard.header is not None)

    @property
    def tensors(self) -> list[Tensor]:
        """All tensors, file after file."""
        return [tensor for header in self.headers for tensor in header.tensors]

    @property
    def parameter_count(self) -> int:
        """Values of all tensors."""
        return sum(header.parameter_count for header in self.headers)

    @property
    def parameters_by_dtype(self) -> dict[str, int]:
        """Values of each type, the most first."""
        return parameters_by_dtype(self.tensors)

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata of all files together; of two with one name, the first file's."""
        found: dict[str, str] = {}
        for header in self.headers:
            found = header.metadata | found
        return found

    @property
    def data_bytes(self) -> int:
        """Bytes of all values."""
        return sum(header.data_bytes for header in self.headers)

    @property
    def bytes_read(self) -> int:
        """How much was fetched to know all this, at least: the headers."""
        return sum(header.header_bytes for header in self.headers)

    @property
    def problems(self) -> list[str]:
        """What does not fit, in sentences that are not inert."""
        unread = [
            f"{shard.file.relative_file_name}: {shard.problem}" for shard in self.shards if shard.problem
        ]
        return unread + [f"{name} is named by the index but is not there" for name in self.missing]


def shards_of_index(index: Any) -> list[str]:
    """The file names in a ``model.safetensors.index.json``. Raises UnreadableFile if it is no such thing."""
    files = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(files, dict) or not all(isinstance(name, str) for name in files.values()):
        raise UnreadableFile("it has no weight_map of files by tensor")
    return sorted(set(files.values()))
