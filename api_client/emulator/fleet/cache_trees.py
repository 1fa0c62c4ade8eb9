"""Contents of the demo projects' caches: Hugging Face hubs, wheels, prepared data."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from api_client.emulator.fleet.clock import NS_PER_S
from api_client.emulator.fleet.training import mix
from api_client.emulator.formats import moment_at
from api_client.models import CachedFile

HUB = "huggingface/hub"
NEWEST_S = 3_600
"""Range of file ages: from one hour to twelve days before the world's epoch."""

Files = tuple[str, int, int, int]
"""Numbered files: template (``{n}`` from 0, ``{number}`` from 1, ``{count}``), count, size, its growth."""
CacheTree = tuple[Files, ...]


def _hub_model(name: str, shards: int, shard_bytes: int) -> CacheTree:
    root = f"{HUB}/models--{name}"
    snapshot = f"{root}/snapshots/{mix(len(name), shards):016x}{mix(shards, len(name)):016x}0a1b2c3d"
    return (
        (f"{root}/refs/main", 1, 40, 0),
        (f"{snapshot}/model-{{number:05}}-of-{{count:05}}.safetensors", shards, shard_bytes, -1_048_576),
        (f"{snapshot}/model.safetensors.index.json", 1, 59_600, 0),
        (f"{snapshot}/config.json", 1, 855, 0),
        (f"{snapshot}/tokenizer.json", 1, 17_209_920, 0),
        (f"{snapshot}/tokenizer_config.json", 1, 55_351, 0),
    )


def _hub_dataset(name: str, shards: int, shard_bytes: int) -> Files:
    root = f"{HUB}/datasets--{name}/snapshots/{mix(shards, len(name)):016x}/data"
    return f"{root}/train-{{n:05}}-of-{{count:05}}.parquet", shards, shard_bytes, 7_919


def _wheels(*names: str) -> CacheTree:
    return tuple(
        (f"pip/wheels/{mix(len(name), 7):016x}/{name}-py3-none-any.whl", 1, 90_000 + len(name) * 41_017, 0)
        for name in names
    )


def _prepared(folder: str, shards: int, shard_bytes: int) -> CacheTree:
    root = f"user_artifacts/{folder}"
    return (f"{root}/shard-{{n:05}}.arrow", shards, shard_bytes, -65_537), (
        f"{root}/dataset_info.json",
        1,
        2_318,
        0,
    )


CACHES: Mapping[str, CacheTree] = {
    "llama-sft": (
        *_hub_model("meta-llama--Llama-3.1-70B-Instruct", 30, 4_966_188_032),
        *_hub_model("meta-llama--Llama-3.1-8B-Instruct", 4, 4_976_698_592),
        *_hub_model("mistralai--Mistral-Small-24B-Instruct-2501", 10, 4_781_571_736),
        _hub_dataset("allenai--tulu-3-sft-mixture", 24, 312_441_907),
        *_prepared("packed-8192", 128, 536_870_912),
        *_wheels("flash_attn-2.8.0", "liger_kernel-0.6.2", "trl-0.21.0", "peft-0.17.0"),
    ),
    "qwen3-grpo": (
        *_hub_model("Qwen--Qwen3-8B", 5, 3_996_250_744),
        _hub_dataset("open-r1--OpenR1-Math-220k", 20, 214_748_364),
        *_prepared("rollouts/qwen3-grpo-7", 88, 41_943_040),
        *_prepared("rollouts/qwen3-grpo-5", 100, 39_845_888),
        ("user_artifacts/torch_compile/aotautograd/cache.bin", 1, 1_918_337_210, 0),
        *_wheels("vllm-0.10.1", "verl-0.5.0", "ray-2.48.0", "flashinfer_python-0.2.11"),
    ),
    "whisper-asr": (
        *_hub_model("openai--whisper-large-v3", 2, 3_087_130_976),
        _hub_dataset("mozilla-foundation--common_voice_17_0", 36, 498_073_600),
        *_prepared("log-mel/de", 40, 268_435_456),
    ),
    "evals": (),
}
"""Cache contents by project; a project that is not listed has no cache."""


@lru_cache(maxsize=8)
def cached_files(tree: CacheTree | None, epoch_ns: int) -> list[CachedFile] | None:
    """List all files and directories of a cache, sorted by path; None if there is no cache."""
    if tree is None:
        return None
    entries: dict[str, CachedFile] = {}
    for template, count, size_bytes, growth_bytes in tree:
        for n in range(count):
            path, size = template.format(n=n, number=n + 1, count=count), size_bytes + n * growth_bytes
            age_s = NEWEST_S + mix(len(path), size) % ((12 * 86_400) - NEWEST_S)
            modified = moment_at(epoch_ns - age_s * NS_PER_S).isoformat()
            for end in range(path.count("/")):
                folder = path.rsplit("/", end + 1)[0]
                entries.setdefault(folder, _entry(folder, 4096, modified, "directory", "drwxr-xr-x"))
            entries[path] = _entry(path, size, modified, "file", "-rw-r--r--")
    return [entries[path] for path in sorted(entries)]


def _entry(path: str, size_bytes: int, modified: str, file_type: str, permissions: str) -> CachedFile:
    return CachedFile.model_construct(
        path=path, size_bytes=size_bytes, modified=modified, file_type=file_type, permissions=permissions
    )
