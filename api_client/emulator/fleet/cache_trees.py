"""Contents of the demo projects' caches: Hugging Face hubs, wheels, prepared data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from api_client.emulator.fleet.clock import NS_PER_S
from api_client.emulator.fleet.training import mix
from api_client.emulator.formats import moment_at
from api_client.models import CachedFile

FILE, DIRECTORY = "file", "directory"
FILE_PERMISSIONS, DIRECTORY_PERMISSIONS = "-rw-r--r--", "drwxr-xr-x"
DIRECTORY_BYTES = 4096
HUB = "huggingface/hub"
NEWEST_S, OLDEST_S = 3_600, 12 * 86_400
"""Range of file ages: from one hour to twelve days before the world's epoch."""

Sizes = Iterator[tuple[str, int]]
CacheTree = Callable[[], Sizes]


def _files(template: str, count: int, size_bytes: int, step_bytes: int = 0) -> Sizes:
    """Yield numbered files; ``template`` may use ``{n}`` from 0, ``{number}`` from 1, and ``{count}``."""
    for n in range(count):
        yield template.format(n=n, number=n + 1, count=count), size_bytes + n * step_bytes


def _hub_model(name: str, shards: int, shard_bytes: int) -> Sizes:
    root = f"{HUB}/models--{name}"
    commit = f"{mix(len(name), shards):016x}{mix(shards, len(name)):016x}0a1b2c3d"
    snapshot = f"{root}/snapshots/{commit}"
    yield f"{root}/refs/main", len(commit)
    weights = f"{snapshot}/model-{{number:05}}-of-{{count:05}}.safetensors"
    yield from _files(weights, shards, shard_bytes, -1_048_576)
    yield f"{snapshot}/model.safetensors.index.json", 59_600
    yield f"{snapshot}/config.json", 855
    yield f"{snapshot}/tokenizer.json", 17_209_920
    yield f"{snapshot}/tokenizer_config.json", 55_351


def _hub_dataset(name: str, shards: int, shard_bytes: int) -> Sizes:
    root = f"{HUB}/datasets--{name}/snapshots/{mix(shards, len(name)):016x}/data"
    return _files(f"{root}/train-{{n:05}}-of-{{count:05}}.parquet", shards, shard_bytes, 7_919)


def _wheels(*names: str) -> Sizes:
    for name in names:
        folder = f"pip/wheels/{mix(len(name), 7):x}"[:14]
        yield f"{folder}/{name}-py3-none-any.whl", 90_000 + len(name) * 41_017


def _prepared(folder: str, shards: int, shard_bytes: int) -> Sizes:
    yield from _files(f"user_artifacts/{folder}/shard-{{n:05}}.arrow", shards, shard_bytes, -65_537)
    yield f"user_artifacts/{folder}/dataset_info.json", 2_318


def _llama() -> Sizes:
    yield from _hub_model("meta-llama--Llama-3.1-70B-Instruct", 30, 4_966_188_032)
    yield from _hub_model("meta-llama--Llama-3.1-8B-Instruct", 4, 4_976_698_592)
    yield from _hub_model("mistralai--Mistral-Small-24B-Instruct-2501", 10, 4_781_571_736)
    yield from _hub_dataset("allenai--tulu-3-sft-mixture", 24, 312_441_907)
    yield from _prepared("packed-8192", 128, 536_870_912)
    yield from _wheels("flash_attn-2.8.0", "liger_kernel-0.6.2", "trl-0.21.0", "peft-0.17.0")


def _qwen() -> Sizes:
    yield from _hub_model("Qwen--Qwen3-8B", 5, 3_996_250_744)
    yield from _hub_dataset("open-r1--OpenR1-Math-220k", 20, 214_748_364)
    yield from _prepared("rollouts/qwen3-grpo-7", 88, 41_943_040)
    yield from _prepared("rollouts/qwen3-grpo-5", 100, 39_845_888)
    yield "user_artifacts/torch_compile/aotautograd/cache.bin", 1_918_337_210
    yield from _wheels("vllm-0.10.1", "verl-0.5.0", "ray-2.48.0", "flashinfer_python-0.2.11")


def _whisper() -> Sizes:
    yield from _hub_model("openai--whisper-large-v3", 2, 3_087_130_976)
    yield from _hub_dataset("mozilla-foundation--common_voice_17_0", 36, 498_073_600)
    yield from _prepared("log-mel/de", 40, 268_435_456)


CACHES: Mapping[str, CacheTree] = {
    "llama-sft": _llama,
    "qwen3-grpo": _qwen,
    "whisper-asr": _whisper,
    "evals": lambda: iter(()),
}
"""Cache contents by project; a project that is not listed has no cache."""


@lru_cache(maxsize=8)
def cached_files(tree: CacheTree | None, epoch_ns: int) -> list[CachedFile] | None:
    """List all files and directories of a cache, sorted by path; None if there is no cache."""
    if tree is None:
        return None
    found: dict[str, CachedFile] = {}
    for path, size_bytes in tree():
        age_s = NEWEST_S + mix(len(path), size_bytes) % (OLDEST_S - NEWEST_S)
        modified = moment_at(epoch_ns - age_s * NS_PER_S).isoformat()
        parts = path.split("/")
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth])
            if folder not in found:
                found[folder] = _entry(folder, DIRECTORY_BYTES, modified, DIRECTORY, DIRECTORY_PERMISSIONS)
        found[path] = _entry(path, size_bytes, modified, FILE, FILE_PERMISSIONS)
    return [found[path] for path in sorted(found)]


def _entry(path: str, size_bytes: int, modified: str, file_type: str, permissions: str) -> CachedFile:
    return CachedFile.model_construct(
        path=path, size_bytes=size_bytes, modified=modified, file_type=file_type, permissions=permissions
    )
