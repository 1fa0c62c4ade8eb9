"""Lines as each trainer really prints them, and lines that only look like them."""

import math
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.analysis.progress.fold import ParsedMetrics, parse

NAN, INF = math.nan, math.inf


def told(reading: ParsedMetrics | None) -> dict[str, object]:
    if reading is None:
        return {}
    values = {field.name: getattr(reading, field.name) for field in fields(reading)}
    return {name: value for name, value in values.items() if value is not None and value is not False}


def check(line: str, **expected: object) -> None:
    found = told(parse(line))
    assert found.keys() == expected.keys(), found
    for name, value in expected.items():
        if isinstance(value, float):
            assert found[name] == pytest.approx(value, nan_ok=True), name
        else:
            assert found[name] == value, name


HF = {"loss": 0.9132, "grad_norm": 0.71, "learning_rate": 1.9e-05, "epoch": 1.3}


def test_hugging_face_trainer():
    check("{'loss': 0.9132, 'grad_norm': 0.71, 'learning_rate': 1.9e-05, 'epoch': 1.3}", **HF)
    check("{'loss': '0.9132', 'grad_norm': '0.71', 'learning_rate': '1.9e-05', 'epoch': '1.3'}", **HF)
    check(
        "[rank0]: {'loss': 0.5, 'learning_rate': 2e-05, 'epoch': 0.1}",
        loss=0.5,
        learning_rate=2e-05,
        epoch=0.1,
        rank=0,
    )
    check(
        "{'eval_loss': 1.052, 'eval_runtime': 41.7, 'eval_samples_per_second': 96.1, 'epoch': 2.0}",
        eval_loss=1.052,
        epoch=2.0,
    )
    # TRL adds rewards and what not; the bar may stand on the same line.
    check(
        " 46%|████▌     | 4120/9000 [6:12:03<7:10:44,  5.30s/it]"
        "{'loss': 0.0012, 'grad_norm': 0.4, 'reward': 0.61, 'rewards/chosen': -1.2, 'kl': 0.003, 'epoch': 0.46}",
        loss=0.0012, grad_norm=0.4, epoch=0.46, step=4120, total_steps=9000, step_time_s=5.3, from_bar=True,
    )  # fmt: skip


def test_the_summary_of_a_finished_run_is_no_point_of_the_loss_curve():
    line = "{'train_runtime': 47123.5, 'train_samples_per_second': 12.3, 'train_loss': 1.1, 'epoch': 3.0}"
    check(line, epoch=3.0, samples_per_s=12.3)


@pytest.mark.parametrize(
    ("line", "loss"),
    [
        ("{'loss': nan, 'grad_norm': nan, 'learning_rate': 0.0, 'epoch': 0.5}", NAN),
        ("{'loss': inf, 'epoch': 0.5}", INF),
        ("step=40 loss=nan", NAN),
        ("step 40 | loss: NaN | lr: 1e-4", NAN),
        ('{"step": 40, "loss": NaN}', NAN),
        ("iteration       40/    9000 | lm loss: NAN | grad norm: nan |", NAN),
        ("[titan] step: 40  loss:  nan  memory: 61.20GiB(77%)  tps: 1,234", NAN),
        ("step=40 loss=-inf", -INF),
    ],
)
def test_a_loss_that_is_no_number_is_kept(line, loss):
    reading = parse(line)
    assert reading is not None
    assert repr(reading.loss) == repr(loss)


def test_tqdm():
    bar = " 46%|████▌     | 4120/9000 [6:12:03<7:10:44,  5.30s/it]"
    check(bar, step=4120, total_steps=9000, step_time_s=5.3, from_bar=True)
    check("  0%|          | 0/9000 [00:00<?, ?it/s]", step=0, total_steps=9000, from_bar=True)
    check(
        "Training:  31%|███▏      | 310/1000 [12:03<26:50,  2.50it/s, loss=0.0912, lr=1e-5]",
        step=310, total_steps=1000, step_time_s=0.4, loss=0.0912, learning_rate=1e-5, from_bar=True,
    )  # fmt: skip
    check(
        "(TaskRunner pid=2114) Training Progress:  46%|████▌     | 412/900 [6:12:03<7:10:44, 53.1s/it]",
        step=412, total_steps=900, step_time_s=53.1, from_bar=True, rank=2114,
    )  # fmt: skip
    # torchtune writes its values before the bar.
    check(
        "1|40|Loss: 0.9132:   4%|▍         | 40/900 [01:00<21:00,  1.50s/it]",
        step=40, total_steps=900, loss=0.9132, step_time_s=1.5, from_bar=True,
    )  # fmt: skip


def test_of_a_bar_that_overwrote_itself_the_last_state_counts():
    states = [
        f"\r\x1b[32m {n // 90}%|██        | {n}/9000 [01:00<21:00,  5.30s/it]\x1b[0m"
        for n in (4118, 4119, 4120)
    ]
    check("".join(states), step=4120, total_steps=9000, step_time_s=5.3, from_bar=True)
    check("".join(states * 500), step=4120, total_steps=9000, step_time_s=5.3, from_bar=True)


@pytest.mark.parametrize(
    "line",
    [
        "Loading checkpoint shards: 100%|██████████| 30/30 [00:12<00:00,  2.41it/s]",
        "Map:  45%|████▌     | 45000/100000 [00:12<00:14, 3821.11 examples/s]",
        "Downloading shards:   7%|▋         | 2/30 [01:02<14:21, 30.77s/it]",
        "model-00001-of-00030.safetensors:  45%|████▌     | 2.21G/4.90G [00:12<00:14, 181MB/s]",
        "Evaluating:  45%|████▌     | 45/100 [00:10<00:12,  4.41it/s]",
        "Validation DataLoader 0:  50%|█████     | 10/20 [00:02<00:02,  4.41it/s]",
        "Tokenizing train dataset:  50%|█████     | 10/20 [00:02<00:02,  4.41it/s]",
        "tqdm off: 45/100",
    ],
)
def test_bars_of_other_work_tell_nothing(line):
    assert parse(line) is None


def test_lightning():
    check(
        "Epoch 3:  46%|████▌     | 41/90 [00:12<00:14,  3.40it/s, v_num=0, train_loss=0.913]",
        step=311, epoch_step=41, epoch_steps=90, whole_epochs=3, epoch=3 + 41 / 90, loss=0.913,
        step_time_s=1 / 3.4, from_bar=True,
    )  # fmt: skip
    check(
        "Epoch 3/9  ━━━━━━━━━━╸━━━━━━ 41/90 0:00:12 • 0:00:14 3.40it/s v_num: 0.000 train_loss: 0.913",
        step=311, total_steps=900, total_epochs=10, epoch_step=41, epoch_steps=90, whole_epochs=3,
        epoch=3 + 41 / 90, loss=0.913, step_time_s=1 / 3.4, from_bar=True,
    )  # fmt: skip
    check(
        "Epoch 2/3:  46%|████▌     | 41/90 [00:12<00:14,  3.40it/s, loss=0.9]",
        step=131, total_steps=270, total_epochs=3, epoch_step=41, epoch_steps=90, whole_epochs=1,
        epoch=1 + 41 / 90, loss=0.9, step_time_s=1 / 3.4, from_bar=True,
    )  # fmt: skip


def test_keras():
    check("Epoch 3/10", epoch=2.0, total_epochs=10.0, whole_epochs=2)
    check(
        "41/90 ━━━━━━━━━━━━━━━━━━━━ 12s 290ms/step - accuracy: 0.7012 - loss: 0.9132 - learning_rate: 1.0000e-04",
        epoch_step=41, epoch_steps=90, loss=0.9132, learning_rate=1e-4, step_time_s=0.29,
    )  # fmt: skip
    check(
        "\b" * 60 + "\x1b[1m90/90\x1b[0m \x1b[32m━━━━━━━━\x1b[0m\x1b[37m━━\x1b[0m \x1b[1m26s\x1b[0m 2s/step"
        " - loss: 0.9132 - val_loss: 1.0500",
        epoch_step=90, epoch_steps=90, loss=0.9132, eval_loss=1.05, step_time_s=2.0,
    )  # fmt: skip
    check(
        "41/90 [============>.................] - ETA: 12s - loss: 0.9132 - accuracy: 0.70",
        epoch_step=41, epoch_steps=90, loss=0.9132,
    )  # fmt: skip


def test_megatron():
    check(
        " [2024-05-01 12:00:00] iteration     4120/    9000 | consumed samples:       527360 | elapsed time per"
        " iteration (ms): 5312.4 | throughput per GPU (TFLOP/s/GPU): 412.3 | learning rate: 1.900000E-05 |"
        " global batch size:   128 | lm loss: 9.132000E-01 | loss scale: 1.0 | grad norm: 0.710 |"
        " number of skipped iterations:   0 | number of nan iterations:   0 |",
        step=4120, total_steps=9000, learning_rate=1.9e-5, loss=0.9132, grad_norm=0.71, step_time_s=5.3124,
        samples_per_s=128 / 5.3124,
    )  # fmt: skip
    check(
        " validation loss at iteration 1000 | lm loss value: 1.050000E+00 | lm loss PPL: 2.857651E+00 |",
        step=1000, eval_loss=1.05,
    )  # fmt: skip


def test_torchtitan():
    check(
        "[rank0]:[titan] 2025-05-01 12:00:00,123 - root - INFO - \x1b[31mstep: 4120  \x1b[32mloss:  0.9132  "
        "\x1b[38;2;180;60;0mgrad_norm:  0.7100  \x1b[33mmemory: 61.20GiB(77.31%)  \x1b[34mtps: 1,234  "
        "\x1b[36mtflops: 412.30  \x1b[35mmfu: 41.69%\x1b[39m",
        step=4120, loss=0.9132, grad_norm=0.71, tokens_per_s=1234.0, rank=0,
    )  # fmt: skip
    check(
        "[titan] - root - INFO - Training starts at step 1, with local batch size 8, global batch size 64, "
        "gradient accumulation steps 1, sequence length 4096, total steps 1000 (warmup 200)",
        step=0, total_steps=1000,
    )  # fmt: skip
    check(
        "[titan] - INFO - validate step: 100  loss:  1.0500  memory: 61.2GiB(77%)  tps: 1,234",
        step=100,
        eval_loss=1.05,
    )


def test_nemo():
    check(
        "Training epoch 0, iteration 4119/8999 | lr: 1.9e-05 | global_batch_size: 128 | global_step: 4119 |"
        " peak_memory_usage: 63G | reduced_train_loss: 0.913 | train_step_timing in s: 5.31 | val_loss: 1.05",
        step=4120, total_steps=9000, epoch=0.0, learning_rate=1.9e-5, loss=0.913, step_time_s=5.31, eval_loss=1.05,
    )  # fmt: skip
    check(
        "Epoch 0: :  46%|████▌     | 4120/9000 [6:12:03<7:20:41, v_num=, reduced_train_loss=0.913,"
        " global_step=4119.0, consumed_samples=527360.0, train_step_timing in s=5.310]",
        step=4120, epoch=4120 / 9000, epoch_step=4120, epoch_steps=9000, whole_epochs=0, loss=0.913,
        step_time_s=5.31, from_bar=True,
    )  # fmt: skip


def test_verl():
    check(
        "(TaskRunner pid=2114) step:412 - global_seqlen/mean:26368.0 - actor/entropy:0.5 - "
        "actor/pg_loss:np.float64(-0.0123) - actor/kl_loss:0.0004 - actor/grad_norm:0.71 - actor/lr:1e-06 - "
        "critic/rewards/mean:0.61 - timing_s/step:53.1 - perf/throughput:1900.5",
        step=412, loss=-0.0123, grad_norm=0.71, learning_rate=1e-6, step_time_s=53.1, tokens_per_s=1900.5, rank=2114,
    )  # fmt: skip
    check("step:10 - train/loss:0.91 - train/lr(1e-3):0.019", step=10, loss=0.91, learning_rate=1.9e-5)


def test_deepspeed():
    check(
        "[2024-05-01 12:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 0] step=4120, skipped=0,"
        " lr=[1.9e-05, 1.9e-05], mom=[(0.9, 0.95), (0.9, 0.95)]",
        step=4120, learning_rate=1.9e-5,
    )  # fmt: skip
    check(
        "[INFO] [timer.py:199:stop] epoch=0/micro_step=8240/global_step=4120, RunningAvgSamplesPerSec=12.3,"
        " CurrSamplesPerSec=12.4, MemAllocated=10.2GB, MaxMemAllocated=14GB",
        step=4120, samples_per_s=12.4, epoch=0.0,
    )  # fmt: skip
    check(
        "steps: 4120 loss: 0.9132 iter time (s): 5.312 samples/sec: 24.1",
        step=4120,
        loss=0.9132,
        step_time_s=5.312,
        samples_per_s=24.1,
    )


def test_json_lines():
    check(
        '{"step": 310, "total_steps": 1000, "loss": 0.41, "lr": 1e-05}',
        step=310,
        total_steps=1000,
        loss=0.41,
        learning_rate=1e-5,
    )
    check('{"time": "12:00", "global_step": 12, "metrics": {"train_loss": 2.5}}', step=12, loss=2.5)
    check(
        '2024-05-01 | INFO | train_inner | {"epoch": 1, "update": 0.5, "loss": "7.123", "num_updates": "100",'
        ' "lr": "1e-05", "gnorm": "0.7", "wps": "12345.6"}',
        epoch=1.0, loss=7.123, step=100, learning_rate=1e-5, grad_norm=0.7, tokens_per_s=12345.6,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("step=4120 loss=0.9132 lr=1.9e-05 grad_norm=0.71", {"step": 4120, "loss": 0.9132, "learning_rate": 1.9e-5, "grad_norm": 0.71}),
        ("step 40/900 loss 1.2", {"step": 40, "total_steps": 900, "loss": 1.2}),
        ("[12:00:01] Step: 40 | Loss: 1.2", {"step": 40, "loss": 1.2}),
        ("Rank 0: step=10, loss=2.1", {"step": 10, "loss": 2.1, "rank": 0}),
        ("iter 40: loss 4.5012, time 23.12ms, mfu 12.10%", {"step": 40, "loss": 4.5012, "step_time_s": 0.02312}),
        ("step 2000: train loss 1.7, val loss 1.8", {"step": 2000, "loss": 1.7, "eval_loss": 1.8}),
        ("epoch 2 loss 0.5", {"epoch": 2.0, "loss": 0.5}),
        (
            "Epoch [2/3], Step [40/900], Loss: 1.2345",
            {"step": 940, "total_steps": 2700, "epoch": 1 + 40 / 900, "total_epochs": 3.0, "loss": 1.2345,
             "epoch_step": 40, "epoch_steps": 900, "whole_epochs": 1},
        ),
        (
            "Epoch: [1]  [ 40/900]  eta: 0:01:00  lr: 0.1  loss: 1.2 (1.3)  img/s: 12",
            {"step": 940, "epoch": 1 + 40 / 900, "learning_rate": 0.1, "loss": 1.2, "epoch_step": 40,
             "epoch_steps": 900, "whole_epochs": 1, "samples_per_s": 12.0},
        ),
        ("Train Epoch: 2 [30000/60000 (50%)]\tLoss: 2.301", {"epoch": 1.5, "loss": 2.301}),
        (
            "step   40/900 | loss 1.234567 (+1.2z)| norm 0.71 (-0.2z)| lr 1.90e-05 | 5300.10 ms | 41.2% bf16 MFU | 98765 tok/s",
            {"step": 40, "total_steps": 900, "loss": 1.234567, "grad_norm": 0.71, "learning_rate": 1.9e-5, "tokens_per_s": 98765.0},
        ),
        (
            "step 00040/21400 (0.19%) | loss: 4.51 | grad norm: 0.7123 | lrm: 1.00 | dt: 5312.40ms | tok/sec: 98,765 | mfu: 41.69",
            {"step": 40, "total_steps": 21400, "loss": 4.51, "grad_norm": 0.7123, "tokens_per_s": 98765.0, "step_time_s": 5.3124},
        ),
    ],
)  # fmt: skip
def test_lines_people_write_themselves(line, expected):
    check(line, **expected)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("Saving model checkpoint to /mnt/ckpts/checkpoint-4000", "checkpoint-4000"),
        ("Model weights saved in /mnt/ckpts/checkpoint-4000/model.safetensors", "checkpoint-4000"),
        (
            "[INFO|trainer.py:3705] 2025-01-02 03:04:05,678 >> Saving model checkpoint to ./out/checkpoint-60",
            "checkpoint-60",
        ),
        ("saving checkpoint at iteration    4000 to /mnt/ckpts in torch_dist format", "iter_0004000"),
        ("  successfully saved checkpoint from iteration    4000 to /mnt/ckpts", "iter_0004000"),
        ("[titan] - root - INFO - Saving the checkpoint (or staging if async is enabled).", ""),
        ("Saving the checkpoint at step 500 (async).", "step-500"),
        ("[Torch] Checkpoint global_step4000 is ready now!", "global_step4000"),
        ("(TaskRunner pid=2114) local_global_step_folder: /mnt/ckpts/global_step_500", "global_step_500"),
        ("Saved state to /mnt/ckpts/checkpoint-4000", "checkpoint-4000"),
        ("saved checkpoint to /mnt/ckpts/best", "best"),
        ("Saving checkpoint: s3://bucket/run/last.ckpt", "last.ckpt"),
    ],
)
def test_saved_checkpoints(line, name):
    check(line, checkpoint=name)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "Step 1/12 : FROM python:3.11",
        "step 3: installing flash-attn",
        "TrainingArguments(learning_rate=2e-05, max_steps=9000, logging_steps=10, save_steps=500, loss=ce)",
        "{'learning_rate': 2e-05, 'num_train_epochs': 3, 'max_steps': 9000, 'loss_type': 'nll'}",
        '{"max_steps": 9000, "learning_rate": 2e-05, "epochs": 3}',
        '{"loss": "cross_entropy", "epochs": 3}',
        '  File "/app/train.py", line 40, in training_step',
        "    loss = self.compute_loss(model, inputs)",
        "RuntimeError: CUDA error at step.cpp:40 in loss kernel",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.11 GiB",
        "Current loss scale reduced from 65536 to 32768",
        "loss: 0.5",
        "We expect a loss of 2.5 after the first epoch",
        "Loading checkpoint from /mnt/ckpts/checkpoint-4000",
        "Resuming from saved checkpoint /mnt/ckpts/checkpoint-4000",
        "Deleting older checkpoint [/mnt/ckpts/checkpoint-500] due to args.save_total_limit",
        "Failed to save checkpoint to /mnt/ckpts/checkpoint-500",
        "Checkpoint directory /mnt/ckpts does not exist",
        "WARNING dataloader: worker 3 took 4.1 s",
        "NCCL INFO Channel 00/16 : 0[0] -> 1[1] via P2P/CUMEM/read",
        "iterating over the epochs with a step",
        "epoch: 3",
        "lr_scheduler.step() called before optimizer.step()",
        "{'loss': ",
        '{"step": ',
    ],
)
def test_other_lines_tell_nothing(line):
    assert parse(line) is None


def test_numbers_beyond_reason_are_not_taken_for_steps():
    assert (
        parse("step=99999999999999999999 loss=1.0") is None
        or parse("step=99999999999999999999 loss=1.0").step is None
    )
    reading = parse('{"step": ' + "9" * 400 + ', "loss": 1.5}')
    assert reading is not None
    assert reading.step is None


SIGNS = [
    " ",
    "=",
    ":",
    "/",
    "|",
    "%|",
    ", ",
    "'",
    "[",
    "}",
    " - ",
    "\r",
    "\x1b[0m",
    "━━━",
    "it/s]",
    "[00:10<00:20, ",
]
WORDS = ["loss", "step", "lr", "iteration", "checkpoint", "saving ", "Epoch ", "{'loss': ", '{"step": ']
vocabulary = st.sampled_from([*SIGNS, *WORDS, "1", "40/900", "0.5", "nan"])


@given(st.text() | st.lists(vocabulary, max_size=40).map("".join))
def test_no_line_is_too_strange(line):
    parse(line)


REPEATED = [
    "step ",
    "step 1",
    "loss=",
    "- loss: ",
    "epoch ",
    "1",
    "1,",
    "1e",
    "lr=1e5e",
    "a/",
    "%|",
    "[",
    " ",
    "━",
]
REPEATED += [
    "{'loss': 1, ",
    "'a': '",
    '{"a":',
    "iteration 1/",
    "step: 1  loss: ",
    "Training starts at step 1",
]
REPEATED += ["checkpoint saved ", "saving checkpoint ", "saving checkpoint a"]


@pytest.mark.parametrize("piece", REPEATED)
def test_long_repetition_is_read_in_linear_time(piece):
    # A pattern that goes back over such a line at every place would take minutes here.
    for _ in range(20):
        parse(("step loss saving checkpoint " + piece * 8000)[:8000])


def test_huge_lines_are_not_read():
    assert parse("step=1 loss=2 " + "x" * 1_000_000) is None
