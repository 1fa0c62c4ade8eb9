"""The healthy runs of the demo world; what breaks in a run is written at its job."""

from __future__ import annotations

import sys

from api_client.emulator.fleet.logs import (
    MEGATRON,
    TORCHTITAN,
    VERL,
    json_lines,
    progress_bar,
    transformers,
)
from api_client.emulator.fleet.plans import Load, Saves, Scenario
from api_client.emulator.fleet.training import StepSchedule, TrainingCurves

LLAMA_70B_NAME, LLAMA_8B_NAME = "meta-llama/Llama-3.1-70B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"
MISTRAL_NAME, QWEN_NAME = "mistralai/Mistral-Small-24B-Instruct-2501", "Qwen/Qwen3-8B"


def curves(
    steps: int,
    step_s: float,
    warmup_s: float,
    *,
    pause: tuple[int, float] = (sys.maxsize, 0.0),
    loss: tuple[float, float] = (2.1, 0.82),
    half: float = 300,
    noise: float = 0.04,
    rate: float = 2e-5,
    epoch: int = 3000,
    explodes_from: int = sys.maxsize,
) -> TrainingCurves:
    """Build curves: ``pause`` is (every so many steps, seconds), ``loss`` (start, floor)."""
    every, pause_s = pause
    seed = steps + int(half)
    return TrainingCurves(
        StepSchedule(steps, step_s, warmup_s, every, pause_s, seed=seed),
        *loss,
        half,
        noise,
        rate,
        epoch,
        explodes_from=explodes_from,
        seed=seed,
    )


LLAMA_70B_SFT = Scenario(
    "healthy multinode fine-tuning",
    curves(9000, 5.3, 95, pause=(500, 45), loss=(2.08, 0.79), half=420, epoch=3150),
    transformers(LLAMA_70B_NAME),
    Load(gpu=0.968, gpu_memory=0.86, disk=0.22, disk_growth=1e-6),
    Saves("llama-70b-full", 500, write_s=41, sync_s=190),
    cache_share=0.34,
)
LLAMA_8B_LORA = Scenario(
    "short LoRA fine-tuning",
    curves(1800, 1.45, 40, pause=(300, 12), loss=(1.9, 0.94), half=90, rate=2e-4, epoch=600),
    transformers(LLAMA_8B_NAME, every=5, evaluates=True),
    Load(gpu=0.93, gpu_memory=0.58),
    Saves("llama-8b-lora", 300, write_s=4, sync_s=20),
    cache_share=0.34,
)
MISTRAL_DPO = Scenario(
    "preference tuning",
    curves(4000, 3.1, 70, pause=(400, 20), loss=(0.693, 0.31), half=500, rate=5e-6, epoch=2000),
    transformers(MISTRAL_NAME, every=2),
    Load(gpu=0.94, gpu_memory=0.79),
    Saves("mistral-24b-lora", 400, sync_s=40),
    cache_share=0.34,
)
QWEN_GRPO = Scenario(
    "reinforcement learning",
    curves(2000, 26.0, 180, pause=(100, 30), loss=(2.4, 0.9), half=350, rate=1e-6, epoch=500),
    VERL,
    Load(gpu=0.86, gpu_noise=0.11, gpu_memory=0.77, host_memory=0.52),
    Saves("qwen3-8b-grpo", 100, write_s=25, sync_s=150),
    cache_share=0.61,
)
QWEN_8B_SFT = Scenario(
    "full fine-tuning",
    curves(2400, 2.2, 60, pause=(600, 25), loss=(1.7, 0.71), half=150, epoch=1200),
    transformers(QWEN_NAME, every=2, evaluates=True),
    Load(gpu=0.95, gpu_memory=0.72),
    Saves("qwen3-8b-full", 600, write_s=22, sync_s=900),
    cache_share=0.61,
)
WHISPER_FT = Scenario(
    "speech recognition",
    curves(600, 4.5, 35, pause=(100, 25), loss=(1.35, 0.19), half=60, rate=1e-5, epoch=200),
    transformers("openai/whisper-large-v3", evaluates=True, metric="eval_wer", noise_s=5),
    Load(gpu=0.88, gpu_noise=0.05, gpu_memory=0.81, cpu=0.44),
    Saves("whisper-large", 100, write_s=12, sync_s=35),
    cache_share=0.08,
)
WHISPER_SMALL = Scenario(
    "distillation",
    curves(400, 1.6, 25, pause=(100, 10), loss=(1.1, 0.28), half=50, rate=3e-5, epoch=200),
    transformers("openai/whisper-small", every=2, evaluates=True, metric="eval_wer"),
    Load(gpu=0.79, gpu_noise=0.07, gpu_memory=0.46, cpu=0.5),
    Saves("whisper-small", 100, write_s=4, sync_s=15),
    cache_share=0.08,
)
PICTURES = (
    "saved preview {n:05}.png in {ms} ms",
    "latents cached: {count}",
    "text encoder moved to the CPU",
)
FLUX_LORA = Scenario(
    "image adapter",
    curves(1000, 2.33, 50, pause=(250, 40), loss=(0.31, 0.082), half=120, noise=0.2, rate=1e-4, epoch=50),
    progress_bar("Steps", "Training FLUX.1-dev LoRA, resolution 1024, rank 16", *PICTURES, has_loss=True),
    Load(gpu=0.97, gpu_memory=0.61),
    Saves("flux-lora", 250, write_s=3, sync_s=12),
)
EMBEDDER = Scenario(
    "contrastive training",
    curves(20000, 0.9, 30, pause=(2000, 20), loss=(3.1, 0.38), half=900, rate=3e-5, epoch=6800),
    json_lines(every=10),
    Load(gpu=0.86, gpu_noise=0.05, gpu_memory=0.5),
    Saves("bge-large", 20000),
)
RERANKER = Scenario(
    "short contrastive training",
    curves(1400, 0.9, 30, pause=(700, 20), loss=(3.1, 0.52), half=220, rate=3e-5, epoch=700),
    json_lines(every=2),
    Load(gpu=0.81, gpu_noise=0.05, gpu_memory=0.44),
    Saves("bge-large", 1400),
)
TITAN = Scenario(
    "pre-training, torchtitan",
    curves(
        30000, 1.9, 80, pause=(1000, 15), loss=(10.9, 2.35), half=260, noise=0.015, rate=3e-4, epoch=30000
    ),
    TORCHTITAN,
    Load(gpu=0.985, gpu_noise=0.008, gpu_memory=0.78),
    Saves("qwen3-14b-titan", 1000, write_s=14, sync_s=240),
)
NEMOTRON = Scenario(
    "continued pre-training, Megatron-LM",
    curves(
        20000, 8.4, 160, pause=(1000, 60), loss=(2.9, 1.74), half=900, noise=0.012, rate=6e-5, epoch=20000
    ),
    MEGATRON,
    Load(gpu=0.975, gpu_noise=0.012, gpu_memory=0.88),
    Saves("minitron-8b", 1000, write_s=55, sync_s=300),
)
TOKENIZING = Scenario(
    "CPU only",
    curves(24000, 0.4, 20),
    progress_bar(
        "Map (num_proc=64)",
        "Tokenizing 24,000 shards",
        "worker {n}: {count} documents a minute",
        "flushed arrow file {n:05} ({ms} MB)",
        every=10,
    ),
    Load(cpu=0.9, host_memory=0.44, disk=0.5),
)
SCORES = ("cached {count} requests", "scored {ms} answers, running accuracy {x:.3f}")
EVALUATION = Scenario(
    "evaluation",
    curves(1400, 0.85, 60),
    progress_bar("Running loglikelihood requests", "lm-eval: mmlu, 57 subjects", *SCORES, every=2),
    Load(gpu=0.9, gpu_noise=0.08, gpu_memory=0.74),
)
