"""Checkpoint families written by the demo world's jobs."""

from __future__ import annotations

from api_client.emulator.fleet.families import Family
from api_client.emulator.fleet.scenarios import courses
from api_client.emulator.fleet.weights import Decoder, Encoder

LLAMA_70B = Decoder("LlamaForCausalLM", 80, 8192, 28672, 64, 8, 128256)
LLAMA_8B = Decoder("LlamaForCausalLM", 32, 4096, 14336, 32, 8, 128256)
MISTRAL_24B = Decoder("MistralForCausalLM", 40, 5120, 32768, 32, 8, 131072)
QWEN3_8B = Decoder("Qwen3ForCausalLM", 36, 4096, 12288, 32, 8, 151936)
QWEN3_14B = Decoder("Qwen3ForCausalLM", 40, 5120, 17408, 40, 8, 151936)
NEMOTRON_8B = Decoder("NemotronForCausalLM", 32, 4096, 16384, 48, 8, 256000)
WHISPER_LARGE = Encoder(
    "WhisperForConditionalGeneration", 32, 1280, 51866, ("model.encoder", "model.decoder")
)
WHISPER_SMALL = Encoder("WhisperForConditionalGeneration", 12, 768, 51865, ("model.encoder", "model.decoder"))
FLUX = Encoder("FluxTransformer2DModel", 38, 3072, 4096, ("transformer.single_transformer_blocks",))
BGE_LARGE = Encoder("XLMRobertaModel", 24, 1024, 250002)

FAMILIES: tuple[Family, ...] = (
    Family(
        "llama-70b-full",
        "full",
        "transformers",
        "meta-llama/Llama-3.1-70B-Instruct",
        LLAMA_70B,
        courses.LLAMA_70B_FULL,
        node_count=4,
        gpus_per_node=8,
        training_state=False,
        data_workers=8,  # a job with eighteen of these checkpoints has over 5,000 files
    ),
    Family(
        "llama-70b-lora",
        "lora",
        "adapter",
        "meta-llama/Llama-3.1-70B-Instruct",
        LLAMA_70B,
        courses.LLAMA_70B_LONG,
        node_count=4,
        gpus_per_node=8,
        rank=64,
    ),
    Family(
        "llama-8b-lora",
        "lora",
        "adapter",
        "meta-llama/Llama-3.1-8B-Instruct",
        LLAMA_8B,
        courses.LLAMA_8B_LORA,
        gpus_per_node=8,
        rank=16,
    ),
    Family(
        "mistral-24b-lora",
        "lora",
        "adapter",
        "mistralai/Mistral-Small-24B-Instruct-2501",
        MISTRAL_24B,
        courses.MISTRAL_DPO,
        gpus_per_node=8,
        rank=24,
    ),
    Family(
        "qwen3-8b-grpo",
        "full",
        "verl",
        "Qwen/Qwen3-8B",
        QWEN3_8B,
        courses.QWEN_GRPO,
        directory="global_step_{step}",
        node_count=2,
        gpus_per_node=8,
    ),
    Family(
        "qwen3-8b-full",
        "full",
        "transformers",
        "Qwen/Qwen3-8B",
        QWEN3_8B,
        courses.QWEN_8B_FULL,
        gpus_per_node=8,
    ),
    Family(
        "whisper-large", "whisper", "transformers", "openai/whisper-large-v3", WHISPER_LARGE, courses.WHISPER
    ),
    Family(
        "whisper-small",
        "whisper",
        "transformers",
        "openai/whisper-small",
        WHISPER_SMALL,
        courses.WHISPER_DISTILLED,
    ),
    Family(
        "flux-lora",
        "lora",
        "adapter",
        "black-forest-labs/FLUX.1-dev",
        FLUX,
        courses.FLUX_LORA,
        rank=16,
        training_state=False,
    ),
    Family(
        "bge-large",
        "full",
        "transformers",
        "BAAI/bge-m3",
        BGE_LARGE,
        courses.EMBEDDER,
        directory=".",
        training_state=False,
    ),
    Family(
        "qwen3-14b-titan",
        "full",
        "distributed",
        "Qwen/Qwen3-14B",
        QWEN3_14B,
        courses.TITAN,
        directory="step-{step}",
        gpus_per_node=8,
    ),
    Family(
        "nemotron-8b",
        "full",
        "distributed",
        "nvidia/Minitron-8B-Base",
        NEMOTRON_8B,
        courses.NEMOTRON,
        directory="iter_{step:07}",
        gpus_per_node=8,
    ),
)


def family_number(key: str) -> int:
    """Return a family's index in ``FAMILIES``; raise LookupError for an unknown key."""
    for number, family in enumerate(FAMILIES):
        if family.key == key:
            return number
    raise LookupError(f"no checkpoint family {key!r}")
