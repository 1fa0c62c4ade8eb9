"""Training curves of the demo world's runs; shared by their logs, load and checkpoints."""

from __future__ import annotations

from api_client.emulator.fleet.training import StepSchedule, TrainingCurves

LLAMA_70B_FULL = TrainingCurves(
    StepSchedule(total_steps=9000, step_s=5.3, warmup_s=95, pause_every=500, pause_s=45, seed=11),
    loss_start=2.08,
    loss_floor=0.79,
    half_steps=420,
    peak_learning_rate=2e-5,
    steps_per_epoch=3150,
    seed=70,
)
LLAMA_70B_LONG = TrainingCurves(
    StepSchedule(total_steps=3000, step_s=11.4, warmup_s=140, pause_every=250, pause_s=30, seed=12),
    loss_start=2.3,
    loss_floor=1.12,
    half_steps=180,
    peak_learning_rate=1e-4,
    steps_per_epoch=1500,
    seed=71,
)
LLAMA_8B_LORA = TrainingCurves(
    StepSchedule(total_steps=1800, step_s=1.45, warmup_s=40, pause_every=300, pause_s=12, seed=13),
    loss_start=1.9,
    loss_floor=0.94,
    half_steps=90,
    peak_learning_rate=2e-4,
    steps_per_epoch=600,
    seed=8,
)
LLAMA_8B_LONG_CONTEXT = TrainingCurves(
    StepSchedule(total_steps=6000, step_s=4.6, warmup_s=60, seed=34),
    loss_start=1.88,
    loss_floor=0.97,
    half_steps=260,
    peak_learning_rate=1e-4,
    steps_per_epoch=2000,
    seed=10,
)
EMBEDDER_CRAWL = TrainingCurves(
    StepSchedule(total_steps=30000, step_s=0.9, warmup_s=30, seed=35),
    loss_start=3.2,
    loss_floor=0.41,
    half_steps=1100,
    peak_learning_rate=3e-5,
    steps_per_epoch=10_000,
    seed=43,
)
LLAMA_8B_SHORT = TrainingCurves(
    StepSchedule(total_steps=900, step_s=1.45, warmup_s=40, pause_every=300, pause_s=12, seed=14),
    loss_start=1.94,
    loss_floor=0.99,
    half_steps=80,
    peak_learning_rate=1e-4,
    steps_per_epoch=600,
    seed=9,
)
MISTRAL_DPO = TrainingCurves(
    StepSchedule(total_steps=4000, step_s=3.1, warmup_s=70, pause_every=400, pause_s=20, seed=15),
    loss_start=0.693,
    loss_floor=0.31,
    half_steps=500,
    peak_learning_rate=5e-6,
    steps_per_epoch=2000,
    seed=24,
)
MISTRAL_DPO_NAN = TrainingCurves(
    StepSchedule(total_steps=4000, step_s=3.1, warmup_s=70, pause_every=400, pause_s=20, seed=16),
    loss_start=0.693,
    loss_floor=0.31,
    half_steps=500,
    peak_learning_rate=5e-5,
    steps_per_epoch=2000,
    nan_from=2074,
    seed=25,
)
QWEN_GRPO = TrainingCurves(
    StepSchedule(total_steps=2000, step_s=26.0, warmup_s=180, pause_every=100, pause_s=30, seed=17),
    loss_start=2.4,
    loss_floor=0.9,
    half_steps=350,
    peak_learning_rate=1e-6,
    steps_per_epoch=500,
    seed=36,
)
QWEN_GRPO_HANG = TrainingCurves(
    StepSchedule(
        total_steps=2000, step_s=26.0, warmup_s=180, pause_every=100, pause_s=30, halts_after_s=23306, seed=18
    ),
    loss_start=2.4,
    loss_floor=0.9,
    half_steps=350,
    peak_learning_rate=1e-6,
    steps_per_epoch=500,
    seed=37,
)
QWEN_8B_FULL = TrainingCurves(
    StepSchedule(total_steps=2400, step_s=2.2, warmup_s=60, pause_every=600, pause_s=25, seed=19),
    loss_start=1.7,
    loss_floor=0.71,
    half_steps=150,
    steps_per_epoch=1200,
    seed=38,
)
WHISPER = TrainingCurves(
    StepSchedule(total_steps=600, step_s=4.5, warmup_s=35, pause_every=100, pause_s=25, seed=20),
    loss_start=1.35,
    loss_floor=0.19,
    half_steps=60,
    peak_learning_rate=1e-5,
    steps_per_epoch=200,
    seed=51,
)
WHISPER_DISTILLED = TrainingCurves(
    StepSchedule(total_steps=400, step_s=1.6, warmup_s=25, pause_every=100, pause_s=10, seed=21),
    loss_start=1.1,
    loss_floor=0.28,
    half_steps=50,
    peak_learning_rate=3e-5,
    steps_per_epoch=200,
    seed=52,
)
FLUX_LORA = TrainingCurves(
    StepSchedule(total_steps=1000, step_s=2.33, warmup_s=50, pause_every=250, pause_s=40, seed=22),
    loss_start=0.31,
    loss_floor=0.082,
    half_steps=120,
    noise=0.2,
    peak_learning_rate=1e-4,
    steps_per_epoch=50,
    seed=61,
)
FLUX_PORTRAITS = TrainingCurves(
    StepSchedule(total_steps=12000, step_s=2.33, warmup_s=50, pause_every=1000, pause_s=40, seed=23),
    loss_start=0.33,
    loss_floor=0.079,
    half_steps=700,
    noise=0.2,
    peak_learning_rate=1e-4,
    steps_per_epoch=640,
    seed=62,
)
EMBEDDER = TrainingCurves(
    StepSchedule(total_steps=20000, step_s=0.9, warmup_s=30, pause_every=2000, pause_s=20, seed=24),
    loss_start=3.1,
    loss_floor=0.38,
    half_steps=900,
    peak_learning_rate=3e-5,
    steps_per_epoch=6800,
    seed=41,
)
EMBEDDER_SHORT = TrainingCurves(
    StepSchedule(total_steps=1400, step_s=0.9, warmup_s=30, pause_every=700, pause_s=20, seed=25),
    loss_start=3.1,
    loss_floor=0.52,
    half_steps=220,
    peak_learning_rate=3e-5,
    steps_per_epoch=700,
    seed=42,
)
TITAN = TrainingCurves(
    StepSchedule(total_steps=30000, step_s=1.9, warmup_s=80, pause_every=1000, pause_s=15, seed=26),
    loss_start=10.9,
    loss_floor=2.35,
    half_steps=260,
    noise=0.015,
    peak_learning_rate=3e-4,
    steps_per_epoch=30000,
    seed=14,
)
NEMOTRON = TrainingCurves(
    StepSchedule(total_steps=20000, step_s=8.4, warmup_s=160, pause_every=1000, pause_s=60, seed=27),
    loss_start=2.9,
    loss_floor=1.74,
    half_steps=900,
    noise=0.012,
    peak_learning_rate=6e-5,
    steps_per_epoch=20000,
    seed=88,
)
QWEN_8B_DPO = TrainingCurves(
    StepSchedule(total_steps=24000, step_s=1.9, warmup_s=60, pause_every=300, pause_s=20, seed=32),
    loss_start=0.693,
    loss_floor=0.38,
    half_steps=900,
    peak_learning_rate=5e-6,
    steps_per_epoch=8000,
    seed=81,
)
REWARD_MODEL = TrainingCurves(
    StepSchedule(total_steps=9000, step_s=2.6, warmup_s=45, pause_every=500, pause_s=15, seed=33),
    loss_start=0.71,
    loss_floor=0.24,
    half_steps=400,
    peak_learning_rate=9e-5,
    steps_per_epoch=3000,
    explodes_from=1900,
    seed=82,
)
EMBEDDER_PAIR = TrainingCurves(
    StepSchedule(total_steps=40000, step_s=1.1, warmup_s=50, pause_every=2000, pause_s=20, seed=34),
    loss_start=3.4,
    loss_floor=0.41,
    half_steps=1200,
    peak_learning_rate=3e-5,
    steps_per_epoch=9000,
    seed=83,
)
SPEECH = TrainingCurves(
    StepSchedule(total_steps=6000, step_s=4.0, warmup_s=60, pause_every=200, pause_s=12, seed=35),
    loss_start=1.4,
    loss_floor=0.22,
    half_steps=260,
    peak_learning_rate=1e-5,
    steps_per_epoch=2000,
    seed=84,
)
TOKENIZING = TrainingCurves(StepSchedule(total_steps=24000, step_s=0.4, warmup_s=20, seed=28), seed=31)
EVALUATION = TrainingCurves(StepSchedule(total_steps=1400, step_s=0.85, warmup_s=60, seed=29), seed=32)
EVALUATION_SHORT = TrainingCurves(StepSchedule(total_steps=541, step_s=2.4, warmup_s=60, seed=30), seed=33)
TRYING_OUT = TrainingCurves(StepSchedule(total_steps=40, step_s=20, warmup_s=20, seed=31), seed=34)
