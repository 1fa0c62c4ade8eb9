"""The runs of the demo world: each has training curves, a trainer's log, load, checkpoints and incidents."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from types import MappingProxyType

from api_client.emulator.fleet.plans import Load, Saves, Scenario
from api_client.emulator.fleet.run_log import (
    errs,
    fails,
    loss_is_nan,
    out_of_memory,
    restarting,
    warns,
)
from api_client.emulator.fleet.trainer_logs import (
    MEGATRON,
    TORCHTITAN,
    VERL,
    json_lines,
    progress_bar,
    transformers,
)
from api_client.emulator.fleet.training import StepSchedule, TrainingCurves

SLOW_NODE, SLOW_SHARE = 2, 0.63
"""GPU utilization of the slow node as a share of the other nodes' utilization."""
PER_HOUR = 1 / 3600
SAVES_END_S = 8_640.0
NODE_VANISHES_S = 7_200.0
ATTEMPT_S, BREAK_S = 2_400.0, 45.0
"""The restarting run: seconds from attempt to attempt, and from a failure to the next attempt."""

LLAMA_70B_NAME, LLAMA_8B_NAME = "meta-llama/Llama-3.1-70B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"
MISTRAL_NAME, QWEN_NAME = "mistralai/Mistral-Small-24B-Instruct-2501", "Qwen/Qwen3-8B"


def curves(
    steps: int,
    step_s: float,
    warmup_s: float,
    *,
    pause: tuple[int, float] = (0, 0.0),
    loss: tuple[float, float] = (2.1, 0.82),
    half: float = 300,
    noise: float = 0.04,
    rate: float = 2e-5,
    epoch: int = 3000,
    nan_from: int | None = None,
    explodes_from: int | None = None,
    halts_after_s: float | None = None,
) -> TrainingCurves:
    """Build curves: ``pause`` is (every so many steps, seconds), ``loss`` (start, floor)."""
    every, pause_s = pause
    seed = steps + int(half)
    return TrainingCurves(
        StepSchedule(steps, step_s, warmup_s, every, pause_s, halts_after_s, seed),
        *loss,
        half,
        noise,
        rate,
        epoch,
        nan_from,
        explodes_from,
        seed,
    )


LLAMA_70B_SFT = Scenario(
    "healthy multinode fine-tuning",
    curves(9000, 5.3, 95, pause=(500, 45), loss=(2.08, 0.79), half=420, epoch=3150),
    transformers(LLAMA_70B_NAME),
    Load(gpu=0.968, gpu_memory=0.86, disk=0.22, disk_growth=1e-6),
    Saves("llama-70b-full", 500, write_s=41, sync_s=190),
    cache_share=0.34,
)
LLAMA_70B_SLOW_NODE = Scenario(
    "one slow node",
    curves(3000, 11.4, 140, pause=(250, 30), loss=(2.3, 1.12), half=180, rate=1e-4, epoch=1500),
    transformers(LLAMA_70B_NAME, noise_s=10),
    Load(gpu=0.955, gpu_memory=0.91, node_factor=MappingProxyType({SLOW_NODE: SLOW_SHARE})),
    Saves("llama-70b-lora", 250),
    incidents=(
        warns(
            11.0,
            "WARNING dataloader: worker {local} took {x:.1f}4 s for one batch (usual: 0.2 s)",
            "WARNING dataloader: /scratch reads at 0.{ms} GB/s, expected 1.7 GB/s",
            "WARNING step waited for this rank: {x:.2f} s behind the fastest",
            node=SLOW_NODE,
        ),
    ),
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
LLAMA_8B_ABLATION = replace(
    LLAMA_8B_LORA,
    key="shorter LoRA fine-tuning",
    curves=curves(900, 1.45, 40, pause=(300, 12), loss=(1.94, 0.99), half=80, rate=1e-4, epoch=600),
)
LLAMA_OUT_OF_MEMORY = replace(
    LLAMA_70B_SFT,
    key="out of GPU memory",
    load=Load(gpu=0.9, gpu_memory=0.9, gpu_memory_growth=7e-5),
    saves=None,
    incidents=(out_of_memory,),
)
LLAMA_8B_NEARLY_FULL_GPU = Scenario(
    "GPU memory near its limit",
    curves(6000, 4.6, 60, loss=(1.88, 0.97), half=260, rate=1e-4, epoch=2000),
    transformers(LLAMA_8B_NAME, every=5),
    Load(gpu=0.95, gpu_memory=0.983),
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
MISTRAL_DPO_NAN = replace(
    MISTRAL_DPO,
    key="loss is not a number",
    curves=replace(MISTRAL_DPO.curves, peak_learning_rate=5e-5, nan_from=2074),
    incidents=(loss_is_nan,),
)
QWEN_GRPO = Scenario(
    "reinforcement learning",
    curves(2000, 26.0, 180, pause=(100, 30), loss=(2.4, 0.9), half=350, rate=1e-6, epoch=500),
    VERL,
    Load(gpu=0.86, gpu_noise=0.11, gpu_memory=0.77, host_memory=0.52),
    Saves("qwen3-8b-grpo", 100, write_s=25, sync_s=150),
    cache_share=0.61,
)
QWEN_GRPO_HANG = replace(
    QWEN_GRPO,
    key="hang at full utilisation",
    curves=replace(QWEN_GRPO.curves, pace=replace(QWEN_GRPO.curves.pace, halts_after_s=23306)),
    incidents=(
        fails(
            4.0,
            "[rank11]:[E ProcessGroupNCCL.cpp:629] [Rank 11] Watchdog caught collective operation timeout: "
            "WorkNCCL(SeqNum=88214, OpType=ALLREDUCE, NumelIn=134217728, Timeout(ms)=5400000)",
            node=1,
        ),
    ),
)
QWEN_GRPO_OUT_OF_MEMORY = replace(QWEN_GRPO, incidents=(out_of_memory,))
QWEN_8B_SFT = Scenario(
    "full fine-tuning",
    curves(2400, 2.2, 60, pause=(600, 25), loss=(1.7, 0.71), half=150, epoch=1200),
    transformers(QWEN_NAME, every=2, evaluates=True),
    Load(gpu=0.95, gpu_memory=0.72),
    Saves("qwen3-8b-full", 600, write_s=22, sync_s=900),
    cache_share=0.61,
)
QWEN_8B_SAVES_NO_MORE = Scenario(
    "checkpoints that stopped coming",
    curves(24000, 1.9, 60, pause=(300, 20), loss=(0.693, 0.38), half=900, rate=5e-6, epoch=8000),
    transformers(QWEN_NAME, every=5),
    Load(gpu=0.94, gpu_memory=0.72),
    Saves("qwen3-8b-full", 300, write_s=14, sync_s=60, until_s=SAVES_END_S),
    cache_share=0.61,
)
REWARD_MODEL_EXPLODES = Scenario(
    "exploding loss",
    curves(9000, 2.6, 45, pause=(500, 15), loss=(0.71, 0.24), half=400, rate=9e-5, explodes_from=1900),
    transformers(QWEN_NAME, every=5),
    Load(gpu=0.93, gpu_memory=0.66),
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
SPEECH_RESTARTS = Scenario(
    "restarts again and again",
    curves(6000, 4.0, 60, pause=(200, 12), loss=(1.4, 0.22), half=260, rate=1e-5, epoch=2000),
    restarting(
        transformers("openai/whisper-large-v3", every=2),
        attempt_s=ATTEMPT_S,
        break_s=BREAK_S,
        save_every=200,
    ),
    Load(
        gpu=0.88,
        gpu_memory=0.7,
        cpu=0.4,
        idle=tuple((n * ATTEMPT_S - BREAK_S, n * ATTEMPT_S + 50.0) for n in range(1, 13)),
    ),
    Saves(None, 200),
)
_PICTURES = (
    "saved preview {n:05}.png in {ms} ms",
    "latents cached: {count}",
    "text encoder moved to the CPU",
)
FLUX_LORA = Scenario(
    "image adapter",
    curves(1000, 2.33, 50, pause=(250, 40), loss=(0.31, 0.082), half=120, noise=0.2, rate=1e-4, epoch=50),
    progress_bar("Steps", "Training FLUX.1-dev LoRA, resolution 1024, rank 16", *_PICTURES, has_loss=True),
    Load(gpu=0.97, gpu_memory=0.61),
    Saves("flux-lora", 250, write_s=3, sync_s=12),
)
FLUX_FILLING_DISK = Scenario(
    "scratch disk fills up",
    curves(12000, 2.33, 50, pause=(1000, 40), loss=(0.33, 0.079), half=700, noise=0.2, rate=1e-4, epoch=640),
    progress_bar("Steps", "Training FLUX.1-dev LoRA, previews every 10 steps", *_PICTURES, has_loss=True),
    Load(gpu=0.97, gpu_memory=0.61, disk_growth=0.235 * PER_HOUR),
    Saves("flux-lora", 1000, write_s=3, sync_s=12),
    incidents=(
        warns(30.0, "WARNING scratch disk is filling up: previews written to /scratch/samples/{n:05}.png"),
        fails(3.0, "OSError: [Errno 28] No space left on device: '/scratch/samples/06120.png'"),
    ),
)
EMBEDDER = Scenario(
    "contrastive training",
    curves(20000, 0.9, 30, pause=(2000, 20), loss=(3.1, 0.38), half=900, rate=3e-5, epoch=6800),
    json_lines(every=10),
    Load(gpu=0.86, gpu_noise=0.05, gpu_memory=0.5),
    Saves("bge-large", 20000),
)
EMBEDDER_LEAK = replace(
    EMBEDDER,
    key="GPU memory leak",
    log=json_lines(every=5),
    load=Load(gpu=0.84, gpu_noise=0.05, gpu_memory=0.62, gpu_memory_growth=0.127 * PER_HOUR),
    incidents=(
        warns(40.0, "WARNING allocator: {count} MiB in {ms} cached blocks not released, call {n}"),
        out_of_memory,
    ),
)
EMBEDDER_FILLS_CACHE = Scenario(
    "cache fills up",
    curves(30000, 0.9, 30, loss=(3.2, 0.41), half=1100, rate=3e-5, epoch=10_000),
    json_lines(every=5),
    Load(gpu=0.84, gpu_noise=0.05, gpu_memory=0.52, cpu=0.4),
    cache_share=0.67,
    cache_growth=0.12 * PER_HOUR,
)
EMBEDDER_LOSES_NODE = Scenario(
    "a node without metrics",
    curves(40000, 1.1, 50, pause=(2000, 20), loss=(3.4, 0.41), half=1200, rate=3e-5, epoch=9000),
    json_lines(every=10),
    Load(gpu=0.9, gpu_noise=0.03, gpu_memory=0.55, vanishes=MappingProxyType({1: NODE_VANISHES_S})),
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
        unit="ex",
        every=10,
    ),
    Load(cpu=0.9, host_memory=0.44, disk=0.5),
)
_SCORES = ("cached {count} requests", "scored {ms} answers, running accuracy {x:.3f}")
EVALUATION = Scenario(
    "evaluation",
    curves(1400, 0.85, 60),
    progress_bar("Running loglikelihood requests", "lm-eval: mmlu, 57 subjects", *_SCORES, every=2),
    Load(gpu=0.9, gpu_noise=0.08, gpu_memory=0.74),
)
EVALUATION_LOSES_DATA = Scenario(
    "evaluation that loses its data",
    curves(541, 2.4, 60),
    progress_bar("Running generate_until requests", "lm-eval: ifeval, 541 prompts", *_SCORES),
    Load(gpu=0.83, gpu_noise=0.08, gpu_memory=0.74),
    incidents=(
        fails(40.0, "huggingface_hub: read timed out, retry 1 of 3"),
        fails(5.0, "ERROR huggingface_hub: 3 of 3 attempts failed: ConnectionError(datasets-server)"),
    ),
)
EVALUATION_IMPORT_ERROR = Scenario(
    "missing package",
    EVALUATION_LOSES_DATA.curves,
    progress_bar("Running generate_until requests", "python evaluate.py"),
    incidents=(
        errs(
            (
                3.5,
                "Traceback (most recent call last):\n"
                '  File "/b10/workspace/evaluate.py", line 9, in <module>\n'
                "    import lm_eval\n"
                "ModuleNotFoundError: No module named 'lm_eval'",
            )
        ),
    ),
)
IDLE = Scenario(
    "idle GPU",
    curves(40, 20, 20),
    progress_bar(
        "trial",
        "sleep infinity: session open over SSH",
        "session: client connected from the proxy, latency {ms} ms",
        "session: heartbeat {n}",
    ),
    Load(gpu=0.6, gpu_memory=0.3, idle=((860.0, inf),)),
)
NEVER_STARTED = Scenario("never started", IDLE.curves, IDLE.log)
IMAGE = "registry.demo.example/research/trainer:2.7-cu129"
BROKEN_IMAGE = replace(
    NEVER_STARTED,
    key="image that cannot be pulled",
    incidents=(
        errs(
            (20.0, f'Failed to pull image "{IMAGE}": manifest unknown'),
            (50.0, f'Back-off pulling image "{IMAGE}" (ErrImagePull)'),
        ),
    ),
)
