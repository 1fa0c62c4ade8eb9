"""What is found wrong with a config before anything is sent; and which machine it gets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from deployable import CHECKPOINTS, EXAMPLES, JOB_ID, checkpoint

from api_client.definitions import (
    CheckpointList,
    Compute,
    DeployCheckpointsConfig,
    LoRACheckpoint,
    LoRADetails,
)
from api_client.deployment import build_config, smallest_instance, validate
from api_client.models import Checkpoint, CheckpointFile, InstanceType
from api_client.servable import memory_hint, not_text, stored_weight_bytes
from api_client.submission.findings import Finding

MACHINES = [
    InstanceType(id="two", gpu_type="H100", gpu_count=2),
    InstanceType(id="one", gpu_type="H100", gpu_count=1),
    InstanceType(id="dash", gpu_type="A100-40GB", gpu_count=1),
    InstanceType(id="wide", gpu_type="A10G", gpu_count=1, node_count=2),
    InstanceType(id="big-cpu", millicpu_limit=16_000, memory_limit_mib=65_536),
    InstanceType(id="cpu", millicpu_limit=2_000, memory_limit_mib=4_096),
]


def adapter_config(rank: object, *names: str, base: str | None = None) -> DeployCheckpointsConfig:
    """Of these adapters; the rank is put in as it is, whatever a definition would say."""
    details = LoRADetails.model_construct(rank=rank)
    lora = LoRACheckpoint(training_job_id=JOB_ID, checkpoint_name="a")
    adapters = [
        lora.model_copy(update={"checkpoint_name": name, "lora_details": details}) for name in names or "a"
    ]
    listed = CheckpointList().model_copy(update={"base_model_id": base, "checkpoints": adapters})
    config = DeployCheckpointsConfig(model_name="m", compute=Compute.model_validate({"accelerator": "H100"}))
    return config.model_copy(update={"checkpoint_details": listed})


def found(config: DeployCheckpointsConfig, checkpoints: list[Checkpoint], **facts: Any) -> list[Finding]:
    return [each for each in validate(config, checkpoints, **facts) if each.severity != "info"]


RANKS = "8, 16, 32, 64, 128, 256, 320, 512"


def test_a_rank_that_cannot_be_served_is_an_error() -> None:
    not_one = f"is not a LoRA rank; use {RANKS}"
    below, above = "below the adapter's rank 24", "above the maximum of 512"
    for rank, r, problem in ((24, 8, not_one), (16, 24, below), (16, 600, above)):
        [finding] = found(adapter_config(rank), [checkpoint("a", r=r)])
        assert (finding.severity, bool(finding.remedy)) == ("error", True)
        assert finding.field == "checkpoint_details.checkpoints.0.lora_details.rank"
        assert problem in finding.problem


@pytest.mark.parametrize(
    ("listed", "reason"),
    [
        ([checkpoint("a", sync_status="SYNCING")], "still uploading"),
        ([checkpoint("a", "diffusion")], "unknown"),
        ([checkpoint("a", base=None)], "needs a base model"),
        ([], "has no checkpoint 'a'"),
    ],
)
def test_a_checkpoint_that_cannot_be_deployed_is_an_error(listed: list[Checkpoint], reason: str) -> None:
    findings = found(adapter_config(16), listed)
    assert reason in findings[0].problem
    assert {each.severity for each in findings} == {"error"}


def test_names_of_the_job_are_listed_and_those_of_two_jobs_told_apart() -> None:
    [finding] = found(adapter_config(16, "checkpoint-10"), [checkpoint("checkpoint-100"), checkpoint("x")])
    assert finding.remedy == "it has 'checkpoint-100', 'x'"
    config = adapter_config(16, "a", "a")
    assert config.checkpoint_details is not None
    config.checkpoint_details.checkpoints[1].training_job_id = "job2"
    [finding] = found(config, [checkpoint("a"), checkpoint("a", training_job_id="job2")])
    assert (finding.severity, "named 'a'" in finding.problem) == ("warning", True)


@pytest.mark.parametrize(
    ("beside", "missing"),
    [
        ("config.json", "no tokenizer"),
        ("", "no config.json and no tokenizer"),
        ("config.json vocab.json", ""),
        ("model.gguf", ""),
    ],
)
def test_full_weights_that_vllm_cannot_serve_are_warned_about(beside: str, missing: str) -> None:
    names = ("model.safetensors", *beside.split())
    files = (CheckpointFile(url="u", relative_file_name=f"merged/{name}") for name in names)
    config = build_config(EXAMPLES["without_gpu"], CHECKPOINTS)
    told = [(each.severity, missing in each.problem) for each in found(config, CHECKPOINTS, files=files)]
    assert told == ([("warning", True)] if missing else [])


def test_a_base_model_of_one_s_own_helps_or_is_warned_about_and_an_empty_config_lacks_everything() -> None:
    assert found(adapter_config(16, base="org/base"), [checkpoint("a", base=None)]) == []
    [warning] = found(adapter_config(16, base="org/base"), [checkpoint("a")])
    assert (warning.severity, warning.field) == ("warning", "checkpoint_details.base_model_id")
    fields = [each.field for each in validate(DeployCheckpointsConfig(), [])]
    assert fields == ["checkpoint_details.checkpoints", "model_name", "compute"]


def test_a_machine_that_does_not_exist_is_an_error_and_a_missing_secret_a_warning() -> None:
    config = build_config(replace(EXAMPLES["whisper"], gpu="T4"), CHECKPOINTS)
    [finding] = found(config, CHECKPOINTS, instances=MACHINES)
    assert finding.problem == "no single-node instance type has T4"
    assert found(config, CHECKPOINTS, secret_names=["hf"]) == []
    [finding] = found(config, CHECKPOINTS, secret_names=["another"])
    assert (finding.severity, finding.field) == ("warning", "runtime.environment_variables.HF_TOKEN")


def test_smallest_machine_that_fits_is_chosen_and_without_a_gpu_cpu_and_memory_count() -> None:
    for gpu, chosen in {"H100": "one", "H100:2": "two", "A100_40GB": "dash", "A10G": None}.items():
        machine = smallest_instance(MACHINES, Compute.model_validate({"accelerator": gpu}))
        assert (machine and machine.id) == chosen
    for memory, chosen in (("0Mi", "cpu"), ("4Gi", "cpu"), ("5Gi", "big-cpu")):
        machine = smallest_instance(MACHINES, Compute(cpu_count=0, memory=memory))
        assert machine is not None and machine.id == chosen
    assert smallest_instance(MACHINES, Compute(cpu_count=99)) is None


@pytest.mark.parametrize(
    ("weights", "hint"),
    [
        ({"base": "meta-llama/Llama-3.1-8B-Instruct"}, "Instruct needs about 16 GB of GPU memory"),
        ({"base": "mistralai/Mixtral-8x7B-v0.1"}, "needs about 112 GB"),
        ({"base": "Qwen/Qwen3-30B-A3B"}, "needs about 60 GB"),
        *(({"base": unsaid}, "") for unsaid in ("org/model", None)),
        ({"kind": "full", "size_bytes": 16_000_000_000}, "the weights may need 16 GB"),
        ({"kind": "full", "size_bytes": 500}, "the weights may need less than 0.1 GB"),
        ({"kind": "full", "size_bytes": None}, ""),
    ],
)
def test_memory_is_that_of_the_weights_and_of_an_adapter_s_base(weights: dict[str, Any], hint: str) -> None:
    told = memory_hint([checkpoint("a", **weights)])
    assert hint in told
    assert bool(told) == bool(hint)


FLUX = {"base_model_class": "FluxTransformer2DModel", "parent_library": "diffusers.models.transformers.flux"}
NO_TEXT = [
    (
        {"auto_mapping": FLUX, "task_type": None},
        [],
        "an adapter of a diffusers model ('FluxTransformer2DModel')",
    ),
    ({}, ["a/pytorch_lora_weights.safetensors"], "an adapter of a diffusers pipeline"),
    ({}, ["a/model_index.json", "a/unet/config.json"], "a diffusers pipeline"),
    ({"task_type": "SEQ_CLS"}, [], "an adapter for the task SEQ_CLS"),
    ({"task_type": "CAUSAL_LM"}, ["a/adapter_model.safetensors", "b/model_index.json"], ""),
    ({"task_type": "NEW_TASK", "auto_mapping": {"parent_library": "transformers.models.llama"}}, [], ""),
    ({"task_type": None, "auto_mapping": [3], "target_modules": ["to_q"]}, [], ""),
    ({"task_type": 7, "auto_mapping": {"parent_library": ["diffusers"]}}, [], ""),
]


@pytest.mark.parametrize(("config", "names", "kind"), NO_TEXT)
@pytest.mark.proves("docs/commands.md", "Inspect, download and deploy checkpoints")
def test_only_facts_show_that_a_checkpoint_is_no_language_model(
    config: dict[str, Any], names: list[str], kind: str
) -> None:
    adapter = checkpoint("a").model_copy(update={"lora_adapter_config": {"r": 16} | config})
    files = [CheckpointFile(relative_file_name=name) for name in names]
    assert not_text(adapter, files) == kind
    findings = found(adapter_config(16), [adapter], files=files)
    assert [(one.severity, kind in one.problem) for one in findings] == ([("warning", True)] if kind else [])


GB = 10**9
SHARDS = {f"model-0000{number}-of-00004.safetensors": 35 * GB for number in range(1, 5)}
STORED = [
    (SHARDS | {"optimizer.pt": 280 * GB, "config.json": 1}, 140 * GB),
    (SHARDS | {"pytorch_model.bin": 280 * GB}, 140 * GB),
    ({"pytorch_model.bin": 16 * GB}, 16 * GB),
    (SHARDS | {"consolidated.safetensors": 140 * GB}, None),
    (SHARDS | {"model-00001-of-00002.safetensors": 70 * GB}, None),
    ({"unet/diffusion.safetensors": GB, "model_index.json": 1}, None),
    ({"model.safetensors": 0}, None),
    ({}, None),
]


@pytest.mark.parametrize(("sizes", "stored"), STORED)
def test_weights_are_as_large_as_their_files_or_unknown(sizes: dict[str, int], stored: int | None) -> None:
    full = checkpoint("a", kind="full", size_bytes=420 * GB)
    files = [
        CheckpointFile(relative_file_name=f"a/{name}", size_bytes=size, node_rank=rank)
        for name, size in sizes.items()
        for rank in (0, 1)
    ]
    assert stored_weight_bytes([full], files) == stored
    assert stored_weight_bytes([full], None) is None
    assert stored_weight_bytes([checkpoint("a")], files) is None


def memory_warnings(weights: Checkpoint, sizes: dict[str, int], **machine: Any) -> list[str]:
    h100 = InstanceType(id="h", gpu_type="H100", gpu_count=1, **machine)
    files = [
        CheckpointFile(relative_file_name=f"a/{name}", size_bytes=size)
        for name, size in {"config.json": 1, "tokenizer.json": 1, **sizes}.items()
    ]
    answers = replace(EXAMPLES["two_adapters"], checkpoint_names=("a",), gpu="H100:1", base_model=None)
    config = build_config(answers, [weights])
    findings = validate(config, [weights], files=files, instances=[h100])
    return [one.problem for one in findings if one.field == "compute.accelerator"]


@pytest.mark.proves("docs/commands.md", "Inspect, download and deploy checkpoints")
def test_weights_larger_than_the_chosen_gpus_are_a_warning() -> None:
    full = checkpoint("a", kind="full", size_bytes=420 * GB)
    too_large = "the weights take 140 GB as stored, but 1 × H100 has 80 GiB of memory"
    assert memory_warnings(full, SHARDS, gpu_memory_limit_mib=80 * 1024) == [too_large]
    assert memory_warnings(full, {"model.safetensors": 16 * GB}, gpu_memory_limit_mib=80 * 1024) == []
    assert memory_warnings(full, SHARDS) == []


def test_base_model_larger_than_the_chosen_gpus_is_a_warning_if_named() -> None:
    adapter, memory = {"adapter_model.safetensors": GB}, {"gpu_memory_limit_mib": 80 * 1024}
    large = "Llama-3.1-70B needs about 140 GB of GPU memory in 16 bits, but 1 × H100 has 80 GiB of memory"
    named = checkpoint("a", base="meta-llama/Llama-3.1-70B", size_bytes=1000)
    assert memory_warnings(named, adapter, **memory) == [large]
    assert memory_warnings(checkpoint("a", base="black-forest-labs/FLUX.1-dev"), adapter, **memory) == []
