"""The runs of the demo world: each has training curves, a log style, load and incidents."""

from __future__ import annotations

from types import MappingProxyType

from api_client.emulator.fleet.metrics import Load
from api_client.emulator.fleet.plans import Scenario
from api_client.emulator.fleet.scenarios import courses, incidents
from api_client.emulator.fleet.scenarios.incidents import Restarting
from api_client.emulator.fleet.scenarios.trainer_logs import (
    JsonLines,
    Megatron,
    ProgressBar,
    Torchtitan,
    TransformersTrainer,
    Verl,
)

SLOW_NODE = 2
SLOW_SHARE = 0.63
"""GPU utilization of the slow node as a share of the other nodes' utilization."""
GROWTH_PER_HOUR = 1 / 3600

SAVES_END_S = 8_640.0
NODE_VANISHES_S = 7_200.0
ATTEMPT_S = 2_400.0
BREAK_S = 45.0
"""The restarting run: seconds between the failure of an attempt and the start of the next."""

IMAGE_WORDS = (
    "saved preview {n:05}.png in {ms} ms",
    "latents cached: {count}",
    "text encoder moved to the CPU",
)
TOKEN_WORDS = ("worker {n}: {count} documents a minute", "flushed arrow file {n:05} ({ms} MB)")
EVALUATION_WORDS = ("cached {count} requests", "scored {ms} answers, running accuracy {x:.3f}")
SESSION_WORDS = ("session: client connected from the proxy, latency {ms} ms", "session: heartbeat {n}")

LLAMA_70B_SFT = Scenario(
    "healthy multinode fine-tuning",
    courses.LLAMA_70B_FULL,
    TransformersTrainer(save_steps=500, model="meta-llama/Llama-3.1-70B-Instruct"),
    Load(courses.LLAMA_70B_FULL.pace, gpu=0.968, gpu_memory=0.86, disk=0.22, disk_growth=1e-6),
    family="llama-70b-full",
    save_every=500,
    write_s=41,
    sync_s=190,
    cache_share=0.34,
)
LLAMA_70B_STRAGGLER = Scenario(
    "one slow node",
    courses.LLAMA_70B_LONG,
    TransformersTrainer(save_steps=250, model="meta-llama/Llama-3.1-70B-Instruct", unrelated_every_s=10),
    Load(
        courses.LLAMA_70B_LONG.pace,
        gpu=0.955,
        gpu_memory=0.91,
        node_factor=MappingProxyType({SLOW_NODE: SLOW_SHARE}),
    ),
    family="llama-70b-lora",
    save_every=250,
    incidents=(incidents.slow_node(SLOW_NODE),),
    cache_share=0.34,
)
LLAMA_8B_LORA = Scenario(
    "short LoRA fine-tuning",
    courses.LLAMA_8B_LORA,
    TransformersTrainer(
        logging_steps=5, save_steps=300, eval_steps=300, model="meta-llama/Llama-3.1-8B-Instruct"
    ),
    Load(courses.LLAMA_8B_LORA.pace, gpu=0.93, gpu_memory=0.58),
    family="llama-8b-lora",
    save_every=300,
    write_s=4,
    sync_s=20,
    cache_share=0.34,
)
LLAMA_8B_ABLATION = Scenario(
    "shorter LoRA fine-tuning",
    courses.LLAMA_8B_SHORT,
    TransformersTrainer(logging_steps=5, save_steps=300, model="meta-llama/Llama-3.1-8B-Instruct"),
    Load(courses.LLAMA_8B_SHORT.pace, gpu=0.92, gpu_memory=0.55),
    family="llama-8b-lora",
    save_every=300,
    write_s=4,
    sync_s=20,
    cache_share=0.34,
)
LLAMA_OUT_OF_MEMORY = Scenario(
    "out of GPU memory",
    courses.LLAMA_70B_FULL,
    TransformersTrainer(save_steps=0, model="meta-llama/Llama-3.1-70B-Instruct"),
    Load(courses.LLAMA_70B_FULL.pace, gpu=0.9, gpu_memory=0.9, gpu_memory_growth=7e-5),
    incidents=(incidents.out_of_memory,),
)
MISTRAL_DPO = Scenario(
    "preference tuning",
    courses.MISTRAL_DPO,
    TransformersTrainer(logging_steps=2, save_steps=400, model="mistralai/Mistral-Small-24B-Instruct-2501"),
    Load(courses.MISTRAL_DPO.pace, gpu=0.94, gpu_memory=0.79),
    family="mistral-24b-lora",
    save_every=400,
    sync_s=40,
    cache_share=0.34,
)
MISTRAL_DPO_NAN = Scenario(
    "loss is not a number",
    courses.MISTRAL_DPO_NAN,
    TransformersTrainer(logging_steps=2, save_steps=400, model="mistralai/Mistral-Small-24B-Instruct-2501"),
    Load(courses.MISTRAL_DPO_NAN.pace, gpu=0.94, gpu_memory=0.79),
    family="mistral-24b-lora",
    save_every=400,
    sync_s=40,
    incidents=(incidents.loss_is_nan,),
    cache_share=0.34,
)
QWEN_GRPO = Scenario(
    "reinforcement learning",
    courses.QWEN_GRPO,
    Verl(),
    Load(courses.QWEN_GRPO.pace, gpu=0.86, gpu_noise=0.11, gpu_memory=0.77, host_memory=0.52),
    family="qwen3-8b-grpo",
    save_every=100,
    write_s=25,
    sync_s=150,
    cache_share=0.61,
)
QWEN_GRPO_HANG = Scenario(
    "hang at full utilisation",
    courses.QWEN_GRPO_HANG,
    Verl(),
    Load(courses.QWEN_GRPO_HANG.pace, gpu=0.86, gpu_noise=0.11, gpu_memory=0.77, host_memory=0.52),
    family="qwen3-8b-grpo",
    save_every=100,
    write_s=25,
    sync_s=150,
    incidents=(incidents.hangs,),
    cache_share=0.61,
)
QWEN_8B_SFT = Scenario(
    "full fine-tuning",
    courses.QWEN_8B_FULL,
    TransformersTrainer(logging_steps=2, save_steps=600, eval_steps=600, model="Qwen/Qwen3-8B"),
    Load(courses.QWEN_8B_FULL.pace, gpu=0.95, gpu_memory=0.72),
    family="qwen3-8b-full",
    save_every=600,
    write_s=22,
    sync_s=900,
    cache_share=0.61,
)
WHISPER_FT = Scenario(
    "speech recognition",
    courses.WHISPER,
    TransformersTrainer(
        save_steps=100,
        eval_steps=100,
        eval_metric="eval_wer",
        model="openai/whisper-large-v3",
        unrelated_every_s=5,
    ),
    Load(courses.WHISPER.pace, gpu=0.88, gpu_noise=0.05, gpu_memory=0.81, cpu=0.44),
    family="whisper-large",
    save_every=100,
    write_s=12,
    sync_s=35,
    cache_share=0.08,
)
WHISPER_SMALL = Scenario(
    "distillation",
    courses.WHISPER_DISTILLED,
    TransformersTrainer(
        logging_steps=2, save_steps=100, eval_steps=100, eval_metric="eval_wer", model="openai/whisper-small"
    ),
    Load(courses.WHISPER_DISTILLED.pace, gpu=0.79, gpu_noise=0.07, gpu_memory=0.46, cpu=0.5),
    family="whisper-small",
    save_every=100,
    write_s=4,
    sync_s=15,
    cache_share=0.08,
)
FLUX_LORA = Scenario(
    "image adapter",
    courses.FLUX_LORA,
    ProgressBar(
        opening="Training FLUX.1-dev LoRA, resolution 1024, rank 16", save_every=250, words=IMAGE_WORDS
    ),
    Load(courses.FLUX_LORA.pace, gpu=0.97, gpu_memory=0.61),
    family="flux-lora",
    save_every=250,
    write_s=3,
    sync_s=12,
)
FLUX_FILLING_DISK = Scenario(
    "scratch disk fills up",
    courses.FLUX_PORTRAITS,
    ProgressBar(
        opening="Training FLUX.1-dev LoRA, resolution 1024, previews every 10 steps",
        save_every=1000,
        words=IMAGE_WORDS,
    ),
    Load(courses.FLUX_PORTRAITS.pace, gpu=0.97, gpu_memory=0.61, disk_growth=0.235 * GROWTH_PER_HOUR),
    family="flux-lora",
    save_every=1000,
    write_s=3,
    sync_s=12,
    incidents=(incidents.disk_fills, incidents.disk_is_full),
)
EMBEDDER_LEAK = Scenario(
    "GPU memory leak",
    courses.EMBEDDER,
    JsonLines(every=5),
    Load(
        courses.EMBEDDER.pace,
        gpu=0.84,
        gpu_noise=0.05,
        gpu_memory=0.5,
        gpu_memory_growth=0.16 * GROWTH_PER_HOUR,
    ),
    family="bge-large",
    save_every=20000,
    incidents=(incidents.memory_leaks, incidents.out_of_memory),
)
EMBEDDER_FILLS_CACHE = Scenario(
    "cache fills up",
    courses.EMBEDDER_CRAWL,
    JsonLines(every=5),
    Load(courses.EMBEDDER_CRAWL.pace, gpu=0.84, gpu_noise=0.05, gpu_memory=0.52, cpu=0.4),
    cache_share=0.55,
    cache_growth=0.14 * GROWTH_PER_HOUR,
)
LLAMA_8B_NEARLY_FULL_GPU = Scenario(
    "GPU memory near its limit",
    courses.LLAMA_8B_LONG_CONTEXT,
    TransformersTrainer(logging_steps=5, save_steps=0, model="meta-llama/Llama-3.1-8B-Instruct"),
    Load(courses.LLAMA_8B_LONG_CONTEXT.pace, gpu=0.95, gpu_memory=0.983),
    cache_share=0.34,
)
EMBEDDER = Scenario(
    "contrastive training",
    courses.EMBEDDER,
    JsonLines(every=10),
    Load(courses.EMBEDDER.pace, gpu=0.86, gpu_noise=0.05, gpu_memory=0.5),
    family="bge-large",
    save_every=20000,
)
RERANKER = Scenario(
    "short contrastive training",
    courses.EMBEDDER_SHORT,
    JsonLines(every=2),
    Load(courses.EMBEDDER_SHORT.pace, gpu=0.81, gpu_noise=0.05, gpu_memory=0.44),
    family="bge-large",
    save_every=1400,
)
TITAN = Scenario(
    "pre-training, torchtitan",
    courses.TITAN,
    Torchtitan(save_every=1000),
    Load(courses.TITAN.pace, gpu=0.985, gpu_noise=0.008, gpu_memory=0.78),
    family="qwen3-14b-titan",
    save_every=1000,
    write_s=14,
    sync_s=240,
)
NEMOTRON = Scenario(
    "continued pre-training, Megatron-LM",
    courses.NEMOTRON,
    Megatron(save_every=1000),
    Load(courses.NEMOTRON.pace, gpu=0.975, gpu_noise=0.012, gpu_memory=0.88),
    family="nemotron-8b",
    save_every=1000,
    write_s=55,
    sync_s=300,
)
TOKENIZING = Scenario(
    "CPU only",
    courses.TOKENIZING,
    ProgressBar(
        "Map (num_proc=64)",
        unit="ex",
        every=10,
        prints_loss=False,
        opening="Tokenizing 24,000 shards",
        words=TOKEN_WORDS,
    ),
    Load(courses.TOKENIZING.pace, cpu=0.9, host_memory=0.44, disk=0.5),
)
EVALUATION = Scenario(
    "evaluation",
    courses.EVALUATION,
    ProgressBar(
        "Running loglikelihood requests",
        every=2,
        prints_loss=False,
        opening="lm-eval: mmlu, 57 subjects",
        words=EVALUATION_WORDS,
    ),
    Load(courses.EVALUATION.pace, gpu=0.9, gpu_noise=0.08, gpu_memory=0.74),
)
EVALUATION_LOSES_DATA = Scenario(
    "evaluation that loses its data",
    courses.EVALUATION_SHORT,
    ProgressBar(
        "Running generate_until requests",
        prints_loss=False,
        opening="lm-eval: ifeval, 541 prompts",
        words=EVALUATION_WORDS,
    ),
    Load(courses.EVALUATION_SHORT.pace, gpu=0.83, gpu_noise=0.08, gpu_memory=0.74),
    incidents=(incidents.lost_connection,),
)
EVALUATION_IMPORT_ERROR = Scenario(
    "missing package",
    courses.EVALUATION_SHORT,
    ProgressBar("Running generate_until requests", prints_loss=False, opening="python evaluate.py"),
    Load(courses.EVALUATION_SHORT.pace),
    incidents=(incidents.import_fails,),
)
QWEN_8B_SAVES_NO_MORE = Scenario(
    "checkpoints that stopped coming",
    courses.QWEN_8B_DPO,
    TransformersTrainer(logging_steps=5, save_steps=300, model="Qwen/Qwen3-8B", saves_end_s=SAVES_END_S),
    Load(courses.QWEN_8B_DPO.pace, gpu=0.94, gpu_memory=0.72),
    family="qwen3-8b-full",
    save_every=300,
    write_s=14,
    sync_s=60,
    cache_share=0.61,
    saves_end_s=SAVES_END_S,
)
REWARD_MODEL_EXPLODES = Scenario(
    "exploding loss",
    courses.REWARD_MODEL,
    TransformersTrainer(logging_steps=5, save_steps=0, model="Qwen/Qwen3-8B"),
    Load(courses.REWARD_MODEL.pace, gpu=0.93, gpu_memory=0.66),
    cache_share=0.61,
)
EMBEDDER_LOSES_A_NODE = Scenario(
    "a node without metrics",
    courses.EMBEDDER_PAIR,
    JsonLines(every=10),
    Load(
        courses.EMBEDDER_PAIR.pace,
        gpu=0.9,
        gpu_noise=0.03,
        gpu_memory=0.55,
        vanishes=MappingProxyType({1: NODE_VANISHES_S}),
    ),
)
SPEECH_RESTARTS = Scenario(
    "restarts again and again",
    courses.SPEECH,
    Restarting(
        TransformersTrainer(logging_steps=2, save_steps=200, model="openai/whisper-large-v3"),
        attempt_s=ATTEMPT_S,
        break_s=BREAK_S,
        save_every=200,
    ),
    Load(
        courses.SPEECH.pace,
        gpu=0.88,
        gpu_memory=0.7,
        cpu=0.4,
        breaks=tuple((n * ATTEMPT_S - BREAK_S, n * ATTEMPT_S + 50.0) for n in range(1, 13)),
    ),
)
IDLE = Scenario(
    "idle GPU",
    courses.TRYING_OUT,
    ProgressBar(
        "trial", prints_loss=False, opening="sleep infinity: session open over SSH", words=SESSION_WORDS
    ),
    Load(courses.TRYING_OUT.pace, gpu=0.6, gpu_memory=0.3, idle_after_s=860),
)
BROKEN_IMAGE = Scenario(
    "image that cannot be pulled",
    courses.TRYING_OUT,
    ProgressBar(),
    Load(courses.TRYING_OUT.pace),
    incidents=(incidents.image_is_missing,),
)
NEVER_STARTED = Scenario("never started", courses.TRYING_OUT, ProgressBar(), Load(courses.TRYING_OUT.pace))
