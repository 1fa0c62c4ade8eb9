"""Twenty healthy runs that look sick, and ten sick ones; see ``simulated_runs`` for the words."""

from __future__ import annotations

import math

from support.simulated_runs import (
    Case,
    Run,
    Trouble,
    bump,
    case,
    path,
    power,
    saw,
    settle,
    total,
    wave,
)  # fmt: skip

RL = (("rollout", 0.7), ("update", 0.3))


@case(2, "megatron", nodes=4, steps=95_000)
def pipeline_stages(run: Run) -> None:
    """Stages of a pipeline: the last computes the loss, those in the middle wait for it."""
    for node, load, memory in zip(run.nodes, (0.83, 0.71, 0.7, 0.96), (0.9, 0.74, 0.6, 0.88), strict=True):
        node.loads["train"], node.gpu_memory = load, memory
    run.start(8)
    for _ in range(5):
        run.train(35, 18, power(11, 1.9, 4), every=1)
        run.save(1.5)


@case(4, "loop", nodes=4, steps=60_000)
def parameter_server(run: Run) -> None:
    """The first node serves parameters; it has no work for GPUs, and a clock that is late."""
    server, *workers = run.nodes
    server.loads.update(train=0.01, eval=0.0, save=0.0)
    server.gpu_memory, server.memory, server.cores, server.skew_s = 0.03, 0.8, 60.0, -45.0
    for index, worker in enumerate(workers):
        worker.loads["train"] = 0.62 + 0.07 * index
        worker.skew_s = 20.0 * index
    run.speaker = 1
    run.start(3)
    for _ in range(4):
        run.train(40, 0.8, power(0.71, 0.44, 10), every=50)
        run.save()


@case(6, "verl", nodes=4, steps=500)
def rollout_and_trainer_nodes(run: Run) -> None:
    """Two nodes generate, two train: each idles while the others work."""
    for node in run.nodes[:2]:
        node.loads.update(rollout=0.9, update=0.0)
    for node in run.nodes[2:]:
        node.loads.update(rollout=0.0, update=0.95)
    run.signals.update(reward=path((0, 0.1), (200, 0.5)), length=420, kl=0.002)
    run.norm, run.epoch_steps = 0.08, 58
    run.start(9, "(WorkerDict pid=118271) Initializing vLLM engine")
    for _ in range(4):
        run.train(45, 210, wave(17, 0.0, 0.01), parts=(("rollout", 0.6), ("update", 0.4)), spread=10)
        run.save(2)


@case(8, "titan", nodes=4, steps=20_000)
def evaluator_node(run: Run) -> None:
    """The last node does nothing but evaluate checkpoints, for some minutes of each half hour."""
    run.nodes[3].loads["train"] = lambda minute: 0.88 if minute % 32 > 24 else 0.0
    run.start(5)
    for _ in range(6):
        run.train(31, 6.2, power(10.9, 2.2, 3), every=5)
        run.save(0.5)


@case(10, "hf", steps=12_000)
def evaluations_of_20_minutes(run: Run) -> None:
    run.epoch_steps = 900
    run.start(4)
    for number in range(3):
        run.train(50, 4.1, power(2.4, 1.1, 8), every=10)
        run.evaluate(20, 1.3 - 0.05 * number, has_bar=False)
        run.save()
    run.train(20, 4.1, power(2.4, 1.1, 8), every=10)


@case(12, "torchtune", nodes=2, steps=13_000)
def long_checkpoint_writes(run: Run) -> None:
    """Seven minutes of writing each half hour, with idle GPUs; the second node logs rarely."""
    run.start(5)
    for _ in range(5):
        for _ in range(3):
            run.train(9, 2.3, power(1.9, 0.9, 6), every=10)
            run.say("INFO:torchtune.utils._logging:rank 1 alive", node=1)
        run.save(7)


@case(14, "titan", nodes=2, steps=8_000)
def compiles_for_25_minutes(run: Run) -> None:
    run.start(4)
    compiling = run.filled("[rank0]:[titan] {stamp},120 - root - INFO - Compiling each TransformerBlock")
    run.spend(12, "compile", f"{compiling} with torch.compile")
    run.spend(13, "compile", "AUTOTUNE mm(8192x4096, 4096x14336)", "  triton_mm_12 0.8120 ms 100.0%")
    run.train(70, 3.1, power(10.9, 2.6, 3), every=10)
    run.save()
    run.spend(6, "compile", "torch._dynamo hit config.recompile_limit (8), recompiling for dynamic shapes")
    run.train(60, 2.9, power(10.9, 2.6, 3), every=10)


@case(16, "hf", nodes=2, steps=4_000)
def preprocesses_for_70_minutes(run: Run) -> None:
    """Only the first node tokenizes; the other waits for it."""
    run.nodes[1].cores = 2.0
    run.start(2)
    run.bars(50, "data", "Map (num_proc=64)", 18_211_452, every=0.5)
    run.bars(20, "data", "Grouping texts in chunks of 4096", 18_211_452, every=0.5)
    run.nodes[1].cores = path((72, 2.0), (73, 14.0))
    run.train(60, 7.5, power(3.1, 1.7, 5), every=5)
    run.save()


@case(18, "axolotl", steps=1_490)
def uploads_after_the_end(run: Run) -> None:
    run.epoch_steps = 500
    run.start(4)
    for _ in range(3):
        run.train(33, 4.0, power(1.6, 0.8, 8), every=1)
        run.save()
    run.step = run.steps
    run.print_step(0.81)
    run.say("{'train_runtime': '6120', 'train_samples_per_second': '2.1', 'train_loss': '0.9312'}")
    run.say("[INFO] [axolotl.train.train:231] [PID:1310] Training completed! Saving trained model.")
    run.bars(30, "idle", "Uploading model-00001-of-00004.safetensors", 15_800, every=1)


@case(20, "megatron", nodes=2, steps=40_000)
def sequences_double(run: Run) -> None:
    """The length of sequences doubles twice: each step takes longer, and the loss jumps and falls again."""
    run.start(6)
    for factor, offset in ((1, 0.0), (2, 0.45), (4, 0.7)):
        begin, run.sequence, run.flops = run.trained, 4096 * factor, 2.4 * factor
        run.train(65, 5.5 * factor, total(power(10.8, 2.1, 3), bump(begin, offset, 18)), every=4)
        run.save(1.5)


@case(22, "grpo", nodes=2, steps=900)
def answers_grow(run: Run) -> None:
    """Answers grow, and a step takes three times as long; reward is flat, then rises, and so does KL."""
    run.signals["reward"] = path((0, 0.21), (90, 0.22), (200, 0.58))
    run.signals["length"] = path((0, 380), (220, 1900))
    run.signals["kl"] = path((0, 0.0004), (60, 0.002), (220, 0.09))
    run.norm = 0.13
    run.start(8)
    for _ in range(4):
        run.train(55, path((0, 34), (220, 104)), wave(23, 0.0, 0.004), parts=RL, spread=20)
        run.save()


@case(24, "nemo", nodes=2, steps=30_000)
def spikes_come_back(run: Run) -> None:
    """Spikes of the loss that a few minutes of training repair, as large models show them."""
    spikes = [bump(at, height, tau) for at, height, tau in ((48, 2.1, 1.5), (90, 1.2, 4), (131, 3.5, 2))]
    run.norm = total(0.5, *[bump(at, 9, 1) for at in (48, 90, 131)])
    run.start(7)
    for _ in range(4):
        run.train(45, 4.4, total(power(10.9, 2.0, 3), *spikes), every=3)
        run.save()


@case(26, "lightning", steps=60_000)
def epochs_like_a_saw(run: Run) -> None:
    """Each epoch goes from short to long samples: its loss rises, and falls back when the next begins."""
    run.epoch_steps = 1500
    run.start(3)
    for epoch in range(7):
        begin, level = run.trained, 2.4 * 0.9**epoch
        step_s = path((begin, 0.8), (begin + 25, 1.2))
        loss = path((begin, level * 0.82), (begin + 25, level * 1.2))
        run.train(99, step_s, loss, every=20, steps=1500)
        run.evaluate(1.5, level)


@case(28, "gan", steps=200_000)
def adversaries(run: Run) -> None:
    """Two networks against each other: neither loss falls."""
    run.epoch_steps = 1583
    run.signals["generator"] = total(2.8, wave(41, 0, 1.1), path((0, 0), (180, 2.5)))
    run.start(2)
    discriminator = total(0.7, wave(29, 0, 0.35), path((0, 0.5), (60, 0), (180, 0.4)))
    for _ in range(6):
        run.train(30, 0.3, discriminator, every=100, spread=6)
        run.save(0.1)


@case(30, "hf", nodes=2, steps=9_000)
def cache_fills_and_is_cleared(run: Run) -> None:
    """A cache of the data set fills half of the disk in half an hour, and is cleared again."""
    for node in run.nodes:
        node.disk = saw(37, 0.18, 0.68)
    run.start(4)
    for _ in range(6):
        run.train(30, 3.0, power(2.9, 1.4, 6), every=10)
        run.save()


@case(32, "torchtune", steps=9_000)
def memory_reaches_a_plateau(run: Run) -> None:
    """The pages of the data set are cached in memory until all of it is read once."""
    run.nodes[0].memory = settle(0.18, 0.74, 55)
    run.start(5)
    for _ in range(6):
        run.train(38, 2.0, power(1.7, 0.85, 5), every=15)
        run.save(1)


@case(34, "megatron", nodes=4, steps=50_000)
def batches_grow(run: Run) -> None:
    """A ramp of the batch size: a step takes longer with each stage; shards are uneven among nodes."""
    for index, node in enumerate(run.nodes):
        node.loads["train"], node.memory = 0.94 - 0.03 * index, 0.3 + 0.05 * index
    run.start(7)
    for stage, batch in enumerate((128, 256, 384, 512, 1024)):
        run.batch = batch
        run.train(30, 2.2 * batch / 128, power(10.9, 2.3 - 0.03 * stage, 4), every=5)
        run.save(1)


@case(36, "lightning", steps=3_000)
def five_folds(run: Run) -> None:
    """Five trainings in one job: steps and losses start again each time, and so does the checkpoint."""
    run.epoch_steps = 300
    run.start(3)
    for fold in range(5):
        run.refit(f"===== Fold {fold + 1}/5 =====", "LOCAL_RANK: 0 - CUDA_VISIBLE_DEVICES: [0,1]")
        for epoch in range(3):
            run.train(99, 2.1, settle(1.9 + 0.05 * fold, 0.4, 12), every=10, steps=300)
            run.evaluate(0.7, 0.9 - 0.12 * epoch)
        run.say("`Trainer.fit` stopped: `max_epochs=3` reached.")


OVERFLOW = (
    "[{stamp},118] [INFO] [loss_scaler.py:190:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step."
    " Attempted loss scale: {scale}, reducing to {less}"
)


@case(38, "hf", nodes=2, steps=6_000)
def loss_scale_settles(run: Run) -> None:
    """In half precision the first steps overflow until the loss scale fits; now and then one later does."""
    run.start(5)
    run.norm = math.inf
    for exponent in range(32, 16, -1):
        run.train(99, 6.8, 2.4, steps=1)
        run.say(run.filled(OVERFLOW, scale=2**exponent, less=2 ** (exponent - 1)))
    run.norm = 1.1
    for _ in range(5):
        run.train(30, 6.8, power(2.4, 1.2, 9), every=5)
        run.say(run.filled(OVERFLOW, scale=65536, less=32768))
        run.save()


@case(40, "loop", steps=400_000)
def processors_do_the_work(run: Run) -> None:
    """A small model whose environments run on the CPUs: GPUs are mostly idle by design."""
    for node in run.nodes:
        node.loads["train"] = lambda minute: 0.14 + 0.1 * math.sin(minute)
        node.cores, node.gpu_memory = 88.0, 0.11
    run.signals["reward"] = path((0, 12), (30, 11), (160, 230))
    run.start(2)
    for _ in range(4):
        run.train(40, 0.5, total(-0.02, wave(31, 0, 0.03)), every=60, spread=15)
        run.save(0.1)


# Sick runs.


@case(
    2, "megatron", Trouble("loss is NaN", ("nan", "not finite", "not-finite"), 95, 107), nodes=2, steps=30_000
)
def loss_is_nan(run: Run) -> None:
    run.start(6)
    run.train(50, 6.0, power(10.9, 2.2, 3), every=3)
    run.save()
    run.train(95 - run.minute, 6.0, power(10.9, 2.2, 3), every=3)
    run.norm = math.nan
    run.train(40, 6.0, math.nan, every=3)


WORSE = ("explod", "diverg", "spike", "rising", "rises", "rose", "worse", "jump", "higher", "loss")


@case(4, "titan", Trouble("loss diverges within minutes", WORSE, 100, 120), nodes=2, steps=20_000)
def diverges_fast(run: Run) -> None:
    run.norm = path((96, 0.6), (100, 60), (104, 8))
    run.start(4)
    run.train(50, 5.0, power(10.9, 2.2, 3), every=4)
    run.save()
    run.train(90, 5.0, total(power(10.9, 2.2, 3), path((95.5, 0), (99, 5.4))), every=4)


HANG = ("stall", "hang", "hung", "stuck", "no step", "no progress", "no new", "silent", "idle")


@case(6, "hf", Trouble("all nodes hang", HANG, 80, 100), nodes=2, steps=9_000)
def all_nodes_hang(run: Run) -> None:
    run.start(4)
    for _ in range(2):
        run.train(35, 3.3, power(2.4, 1.3, 6), every=10)
        run.save()
    run.train(80 - run.minute, 3.3, power(2.4, 1.3, 6), every=10)
    run.spend(45, "idle")


GONE = Trouble("a node is gone; the others wait", (*HANG, "missing", "lost", "gone", "no metrics"), 70, 90)


@case(8, "megatron", GONE, nodes=4, steps=9_000)
def node_disappears(run: Run) -> None:
    run.nodes[1].gone = 70
    run.start(6)
    run.train(64, 8.0, power(10.9, 2.2, 3), every=2)
    run.spend(40, "hang")


SLOW = ("slow", "straggl", "behind", "less than", "below", "underused", "starv", "idle")


@case(
    10,
    "deepspeed",
    Trouble("a node reads its data slowly; all wait for it", SLOW, 85, 115),
    nodes=4,
    steps=9_000,
)
def node_reads_slowly(run: Run) -> None:
    run.nodes[2].loads["train"] = path((85, 0.93), (87, 0.42))
    run.start(5)
    for _ in range(5):
        run.train(30, path((80, 5.0), (81, 8.5)), power(2.6, 1.4, 8), every=5)
        run.save()


@case(
    12,
    "loop",
    Trouble("a GPU is dead", (*SLOW, "dead", "gpu 2", "gpu-2"), 60, 85),
    nodes=2,
    gpus=4,
    steps=90_000,
)
def gpu_is_dead(run: Run) -> None:
    """Elastic training continues with the seven GPUs that are left."""
    run.nodes[0].gpu_loads[2] = path((60, 1.0), (60.5, 0.0))
    run.start(4)
    for _ in range(4):
        run.train(35, path((56, 0.6), (57, 0.68)), power(2.9, 1.9, 6), every=60)
        run.save()


@case(
    14,
    "nemo",
    Trouble("gradients explode, and the loss does not come back", WORSE, 110, 132),
    nodes=2,
    steps=20_000,
)
def gradients_explode(run: Run) -> None:
    run.norm = path((104, 0.5), (105, 900), (106, 20_000), (180, 4_000))
    run.start(5)
    for _ in range(2):
        run.train(50, 4.0, power(10.9, 2.1, 3), every=4)
        run.save()
    run.train(70, 4.0, total(power(10.9, 2.1, 3), path((103.5, 0), (105, 4.1), (190, 3.4))), every=4)


@case(16, "axolotl", Trouble("the disk fills up", ("disk", "storage", "space", "full"), 40, 140), steps=9_000)
def disk_fills_up(run: Run) -> None:
    """Files that nobody deletes: at this rate the disk is full 150 minutes after the start."""
    run.nodes[0].disk = path((40, 0.3), (150, 1.0))
    run.start(4)
    for _ in range(5):
        run.train(29, 3.0, power(1.7, 0.9, 6), every=5)
        run.save()


@case(18, "lightning", Trouble("slow storage starves the GPUs", SLOW, 70, 105), nodes=2, steps=60_000)
def storage_becomes_slow(run: Run) -> None:
    run.epoch_steps = 4_000
    for node in run.nodes:
        node.loads["train"] = path((70, 0.93), (85, 0.2))
    run.start(3)
    for _ in range(5):
        run.train(30, path((66, 1.1), (81, 5.1)), power(3.2, 1.5, 6), every=10)


@case(
    20,
    "hf",
    Trouble("checkpoints are no longer written", ("checkpoint", "save"), 107, 165),
    nodes=2,
    steps=15_000,
)
def checkpoints_stop(run: Run) -> None:
    run.start(4)
    for number in range(10):
        run.train(20, 2.5, power(2.3, 1.2, 6), every=10)
        if number < 4:
            run.save()


CASES = [value for value in globals().values() if isinstance(value, Case)]
