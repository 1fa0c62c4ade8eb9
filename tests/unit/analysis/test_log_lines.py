"""Lines as trainers print them, and lines that only look like them: what is read, and what is believed."""

from __future__ import annotations

import json
import re
import tracemalloc
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from api_client.models.logs import LogLine
from support.log_reading import CLEAR, read_line
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.progress.lines.reader import Reader
from tui.analysis.progress.lines.reading import ParsedMetrics
from tui.analysis.progress.lines.vocabulary import meaning

LINES = json.loads(Path(__file__).with_name("log_lines.json").read_text(encoding="utf-8"))
"""``read``: lines with what they report. ``ignored``: lines that report nothing."""

TRAINERS = json.loads(Path(__file__).with_name("trainer_logs.json").read_text(encoding="utf-8"))
"""Pieces of logs: what each line reads, with the values that are as good, and which of it may be missed."""


def read(line: str) -> dict[str, Any]:
    reading = read_line(line)
    return {} if reading is None else _values(reading)


def _values(reading: ParsedMetrics) -> dict[str, Any]:
    values = reading._asdict() | {"step_name": None, "loss_name": None, "metrics": dict(reading.metrics)}
    return {name: value for name, value in values.items() if value not in (None, {}) and value is not False}


def readings_of(lines: list[str]) -> list[tuple[int, dict[str, Any]]]:
    """Return what is believed in the end, by the index of its line."""
    reader = Reader()
    told = [each for index, line in enumerate(lines) for each in reader.read(line, at_ns=index)]
    return [(each.at_ns, _values(each.reading)) for each in sorted(told, key=lambda each: each.at_ns)]


@pytest.mark.proves("docs/health.md", "Progress: supported trainers")
def test_lines_of_trainers_are_read() -> None:
    wrong = {}
    for entry in LINES["read"]:
        actual = read(entry["line"])
        for name, value in entry["reads"].items():
            if actual.get(name) != pytest.approx(value, nan_ok=True):
                wrong[entry["line"], name] = actual.get(name)
    assert wrong == {}


DICT = "{'loss': '1.49', 'grad_norm': '1.9', 'epoch': '0.03'}"


@pytest.mark.parametrize(
    ("record", "losses"),
    [
        ({"severity": "INFO", "labels": {"attempt": "2"}, "message": DICT}, [1.49]),  # a cloud's agent
        ({"log": f"{DICT}\n", "stream": "stderr", "time": "2026-04-09T10:03:10Z"}, [1.49]),  # Docker
        ({"msg": "step 5 done in 3 s", "step": 5, "loss": 0.2, "lr": 1e-4}, [0.2]),  # a structured log
        ({"stream_name": "stdout", "time": 391.56, "data": f"{DICT}\n"}, [1.49]),  # Kaggle
        ({"asctime": "2026-04-09 10:03:10 UTC", "MESSAGE": DICT}, [1.49]),
        (
            {"MESSAGE": "step 3/900 loss: 2.5", "_CMDLINE": "python train.py with a long list of options"},
            [2.5],
        ),
        ({"message": ["loss", 3], "labels": {"attempt": "2"}}, []),
        ({"role": "tool", "content": f"{DICT}\n{DICT}"}, []),
    ],
    ids=["agent", "docker", "structured", "kaggle", "two texts", "journald", "no text", "conversation"],
)
@pytest.mark.parametrize("before", ["", ",", "["])
def test_line_is_read_inside_of_a_log_agents_record(
    record: dict[str, Any], losses: list[float], before: str
) -> None:
    assert [reading["loss"] for _, reading in readings_of([before + json.dumps(record)])] == losses


def test_record_that_cannot_be_parsed_is_read_as_it_is() -> None:
    assert readings_of(['{"message": ' + "[" * 100_000, '{"message": "cut off']) == []


@pytest.mark.parametrize(
    "dress", ["{}", "\x1b[32m{}\x1b[0m", "[rank0]: {}", "\r{}"], ids=["plain", "ansi", "rank", "cr"]
)
def test_lines_that_look_like_progress_are_not_believed(dress: str) -> None:
    believed = {line: told for line in LINES["ignored"] if (told := Reader().read(dress.format(line)))}
    assert believed == {}


@pytest.mark.parametrize(
    ("lines", "losses"),
    [
        (["step 7 loss 0.9"], []),
        (["step 7 loss 0.9", "step 8 loss 0.8"], [0.9, 0.8]),
        (["step 8 loss 0.8", "step 7 loss 0.9", "step 6 loss 0.7"], []),
        (["iter 20: loss 2.5, time 3ms", "iter 30: loss 2.4, mfu 31%"], [2.5, 2.4]),
        (["step 7 loss 0.9", CLEAR], [0.9, 1.0]),
        (["Iteration 2 of the loop: x = 5, loss = 3", CLEAR], [1.0]),
        ([CLEAR, "Iteration 2 of the loop: x = 5, loss = 3"], [1.0]),
        (["Iteration 2 of the loop: x = 5, loss = 3", "Iteration 3 of the loop: x = 4, loss = 2"], []),
        ([f"Iteration {n} of the loop: x = 5, loss = {n}" for n in range(5)], [0.0, 1.0, 2.0, 3.0, 4.0]),
        (["[step=5/900]", "    train/loss=2.5", "    train/accuracy=0.4"], [2.5]),
        (["step 5", "  loss: 2.5", "step 6", "  loss: 2.4"], [2.5, 2.4]),
        (["== METRICS STEP 5 ==", "  rl_trainer/avg_loss: 2.5", "== METRICS STEP 6 ==", "  rl_trainer/avg_loss: 2.4"], [2.5, 2.4]),
        (["train: [==>   ] data=012/100 loss=2.5±0.1 acc=41.2"], [2.5]),
        (["Up. 7 : step 7 : loss 2.5 * 1,000 @ 2,271 : 961.2 words/s : gNorm 0.27"], [2.5]),
        ([f"step {n} loss 2.5" for n in (13, 27, 40, 55, 69, 82, 97)], [2.5] * 7),
        ([f"step {n} loss 2.5" for n in (20, 10, 20, 10, 20, 10)], []),
        (["step 5", "step 6", "step 7"], []),
        ([f"Step {n}: Action {n % 3} of 9 taken, {n} left" for n in range(9)], []),
        (["step 3: read it, loss: 2.5", "step 4: write it, loss: 2.4"], []),
        (["| step | loss | lr |", "|---|---|---|", "| 10 | 2.5 | 0.1 |", "| 20 | 2.4 | 0.1 |"], [2.5, 2.4]),
        (["Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.5"], [2.5]),
        (["trainer.py:48] 7 [100] loss=2.5, lr=0.1", "trainer.py:48] 7 [200] loss=2.4, lr=0.1"], [2.5, 2.4]),
        (["epoch 1: loss = (1.5)^2 = 2.25", "epoch 2: loss = (1.2)^2 = 1.44"], []),
        (["max_steps: 900", "epoch: 3", "loss: 1.9"], []),
        (["loss: 0.5", CLEAR, "loss: 0.5"], [1.0]),
        (["train_loss: 0.5", CLEAR, "train_loss: 0.5"], [0.5, 1.0, 0.5]),
        (["epoch,step,train_loss,lr", "1,500,0.91,0.1", "1,600,0.90,0.1"], [0.91, 0.9]),
        (["iter;train_loss;val_loss;lr;sec", "500;0.91;0.9;0.1;12.5", "600;0.90;0.9;0.1;12.6"], [0.91, 0.9]),
        (["| Model | Batch | tok/s |", "|---|---|---|", "| 8B | 1 | 89.1 |", "| 8B | 32 | 2147.7 |"], []),
        (["epoch  train_loss  valid_loss  time", "0      1.298       1.4         00:12"], [1.298]),
        (["430 | loss 4.2", "440 | loss 4.1"], [4.2, 4.1]),
        (["{'loss': 2.5, 'learning_rate': 0.1, 'epoch': 0.1}"], [2.5]),
        (["{'loss': 2.5, 'grad_norm': 0.5}"], [2.5]),
        (["{'loss': 2.5, 'step': 3}"], []),
        (["{'loss': 2.5, 'epoch': 3}"], []),
    ],
    ids=["once", "rising", "falling", "one count in two forms", "before a training", "prose", "prose in a training", "prose twice", "repeated prose",
         "a heading with a total", "headings that rise", "headings of other words", "a drawn bar", "signs beside three measures", "steps that rise unevenly, but always", "steps that rise and fall", "headings without values", "whole numbers", "other words", "a table in Markdown",
         "samples", "the number next to the values", "a calculation", "a configuration", "a value alone", "the training's value alone", "csv", "csv with semicolons", "a table of models", "a table",
         "a number without a name", "an object", "an object that counts nothing", "an object with one value",
         "an object with a loss and an epoch"],
)  # fmt: skip
def test_belief_comes_from_form_or_from_a_rising_count(lines: list[str], losses: list[float]) -> None:
    told = readings_of(lines)
    assert [values["loss"] for _, values in told if "loss" in values] == losses
    assert losses or told == []


TOGETHER = {
    "a share of the work": (
        ["Progress:  42.1% words/sec/thread:  996275 lr:  0.28 avg.loss:  0.41 ETA:   0h 0m37s"],
        [{"learning_rate": 0.28, "loss": 0.41}],
    ),
    "a date before a time": (
        [CLEAR, "[2026-03-01:12:01:40:INFO:training:fit] Checkpoint [1]\tValidation-perplexity=24.2"],
        [{"step": 1}],
    ),
    "values of an evaluation alone": (
        [f"[{n}0]\tvalid_0's l2: 6.{n}" for n in range(2, 8)],
        [{"step": n, "loss": None} for n in range(20, 80, 10)],
    ),
    "a part of an epoch that is whole by its digits": (
        [f"loss 2.5 epoch {epoch} step {step}/590" for epoch, step in (("0.00", 1), ("0.99", 298), ("1.00", 300))],
        [
            {"step": step, "total_steps": 590, "epoch": epoch}
            for epoch, step in ((0.0, 1), (0.99, 298), (1.0, 300))
        ],
    ),
    "a count of samples": (
        [f"[Train Epoch: {n}/20] [12000/50000 images] loss=0.8, lr=0.1" for n in (2, 3)],
        [{"step": None, "epoch": 2.0, "loss": 0.8}, {"step": None, "epoch": 3.0}],
    ),
    "values named by their data, which may be losses or shares": (
        [f"Epoch {n} | train 9.{n} | val 9.{n} | f1 0.4" for n in (1, 2, 3)],
        [{"epoch": n, "loss": None, "eval_loss": None} for n in (1, 2, 3)],
    ),
    "a model's name that ends in VL": (
        [f"[Qwen2.5-VL-7B] step: {n}0/900 loss: 2.{n}" for n in (1, 2)], [{"step": 10, "loss": 2.1}, {"step": 20, "loss": 2.2}],
    ),
    "an error's code before a time": (
        [CLEAR, "E0501 12:34:57.123 4321 trainer.py:88] batch 12 loss 3.2 is too high"], [{"step": 1}, {"step": 12, "epoch": None}],
    ),
    "an epoch and its batches in brackets": (
        [f"[{epoch}, {step}000] loss: 2.5" for epoch in (1, 2) for step in (2, 4)],
        [{"epoch": epoch, "step": step * 1000} for epoch in (1, 2) for step in (2, 4)],
    ),
    "episodes and their length": (
        [f"Episode {n}0: Reward=4{n}.0, Epsilon=0.5, Steps=20{n}, Loss=1.5" for n in (1, 2, 3)],
        [{"epoch": n * 10, "step": None, "loss": 1.5} for n in (1, 2, 3)],
    ),
    "the representation of a tensor": (
        [f"Epoch {n} Loss tensor(1.{n}, device='cuda:0', grad_fn=<MseLossBackward0>)" for n in (1, 2, 3)],
        [{"epoch": n, "loss": 1 + n / 10, "metrics": None} for n in (1, 2, 3)],
    ),
    "results at the step that the training has reached": (
        ["step 00010/900 | loss: 2.5 | dt: 41ms", "Step 00010 | Validation bpb: 0.9", "(after 10 steps) allocated: 21.5 | reserved: 41.5"],
        [{"step": 10, "loss": 2.5}, {"step": 10}],
    ),
    "values of a training below a count with a rate": (
        [line for n in (1, 2) for line in (f"Epoch {n}/12  (LR=1e-3)", f"  train: loss=1.{n} kd=0.5 ce=0.4")],
        [{"epoch": 1}, {"loss": 1.1}, {"epoch": 2}, {"loss": 1.2}],
    ),
    "a time zone and labels before a save": (
        [CLEAR, '2026-10-06T08:41:38Z {pod="distill-0"} [INFO|trainer.py:3044] >> Saving model checkpoint to /out/checkpoint-100'],
        [{"step": 1}, {"step": None, "checkpoint": "checkpoint-100"}],
    ),
    "counts of one letter": (
        [f"e{n} s{n}0/900 loss=2.{n} lr=1e-3" for n in (1, 2)] + [f"E{n}/12 — tr_loss: 1.{n}, val_loss: 2.{n}" for n in (1, 2)],
        [*({"step": n * 10 + 900 * (n - 1), "loss": 2 + n / 10} for n in (1, 2)),
         *({"epoch": n, "total_epochs": 12, "loss": 1 + n / 10, "eval_loss": 2 + n / 10} for n in (1, 2))],
    ),
    "the time since the beginning": (
        [f"step {n}0/900 | loss 2.{n} | time {n}0.5s" for n in (1, 2)],
        [{"step": n * 10, "step_time_s": None} for n in (1, 2)],
    ),
    "the time of an epoch": (
        [f"Epoch {n}: Loss=0.{n}, Time=31.2s" for n in (1, 2, 3)],
        [{"epoch": n, "step_time_s": None, "metrics": {"Time": 31.2}} for n in (1, 2, 3)],
    ),
    "a count after the title of the work": (
        [f"DPO tuning iter {n}00: loss=2.{n}" for n in (1, 2)], [{"step": 100}, {"step": 200}],
    ),
    "seconds a step beside a count in brackets": (
        [f"[ {n}0/900] loss 2.{n} | 1.02 s/step | eta 1d 3h 20m" for n in (1, 2)],
        [{"step": 10, "total_steps": 900, "step_time_s": 1.02, "metrics": None}, {"step": 20}],
    ),
    "losses after the end of each epoch": (
        [line for n in (1, 2) for line in (f"Epoch {n} finished.", f"Train: Accuracy: 0.9, loss: 0.{n}")],
        [{"epoch": 1.0}, {"loss": 0.1}, {"epoch": 2.0}, {"loss": 0.2}],
    ),
    "sentences of named numbers": (
        [f"[INFO] Ball. Step: {n}000. Time Elapsed: 3.1 s. Mean Reward: 0.{n}. Training." for n in (1, 2, 3)],
        [{"step": 1000}, {"step": 2000}, {"step": 3000}],
    ),
    "the only loss of a line, whatever its name": (
        [f"Train Metrics (step {n}) - CTC Loss: 1.{n} | Gradient Norm: 2.5" for n in (200, 400)],
        [{"loss": 1.2}, {"loss": 1.4}],
    ),
    "several losses, none of which is the whole": (
        [f"step {n}/90 | box loss: 1.{n} | mask loss: 2.5 | lr: 0.1" for n in (20, 40)],
        [{"loss": None}, {"loss": None}],
    ),
    "a bar without a title that is only seen at its end": (
        [CLEAR, "100%|███| 8/8 [00:01<00:00, 4.1it/s]"],
        [{"step": 1}],
    ),
    "a bar without a title on its way": (
        [" 40%|██ | 32/80 [01:00<01:30, 1.9s/it]", "{'loss': 2.5, 'lr': 0.1, 'epoch': 0.4}", "100%|███| 80/80 [02:31<00:00, 1.9s/it]"],
        [{"step": 32}, {"loss": 2.5}, {"step": 80}],
    ),
    "a bar without a title and with another total": (
        [CLEAR, " 40%|██ | 32/80 [01:00<01:30, 1.9s/it]"],
        [{"step": 1}],
    ),
    "a bar of epochs": (
        ["Train epoch:  50%|█████ | 1/2 [3:24:10<3:24:10, 12250.11s/it]"], [{"step": None, "epoch": 1, "total_epochs": 2}],
    ),
    "a bar below the name of a container": (
        ["rm-1     |   3%|▎ | 25/795 [00:41<21:09, 1.65s/it]"], [{"step": 25, "rank": 1}],
    ),
    "a count beside a part of the loss": (
        [f"[proc 0][Train]({n}00/900) average pos_loss: 2.{n}" for n in (1, 2)], [{"step": 100}, {"step": 200}],
    ),
    "a save that names the metric": ([CLEAR, "saved new best metric model"], [{"step": 1}, {"checkpoint": ""}]),
    "a name of one letter after a count": (
        [f"step {n}0 B=4 loss 2.{n}" for n in (1, 2)], [{"step": 10}, {"step": 20}],
    ),
    "a save with a label": ([CLEAR, "Save checkpoint: 3, rank: 0"], [{"step": 1}, {"checkpoint": ""}]),
    "a short bar without a title before a training": (
        [" 40%|██ | 4/10 [00:01<00:02, 4.1it/s]", CLEAR],
        [{"step": 4}, {"step": 1}],
    ),
    "a short bar without a title": ([f"{n}0%|██ | {n}/10 [00:01<00:02, 4.1it/s]" for n in (4, 6)], []),
    "a block that counts two things": (
        ["[batch=400/900]:", " Train time/epoch: 3", " Train loss/train/total: 2.5"],
        [{"step": 400}, {"epoch": 3}, {"loss": 2.5}],
    ),
    "a heading with two counts and other numbers": (
        ["INFO [step=10/900,epoch=1,eta=5 days11:20]", "optim/total grad norm=0.5", "train/CE loss=2.5"],
        [{"step": 10}, {"grad_norm": 0.5}, {"loss": 2.5}],
    ),
    "epochs announced in words": (
        [CLEAR, *(f"Started new epoch: {n}" for n in (3, 4))], [{"step": 1}, {"epoch": 3}, {"epoch": 4}],
    ),
    "a count without an end beside a training": (
        [CLEAR, *(f"41{n}it [00:0{n}, 9.1it/s]" for n in (1, 2, 3))],
        [{"step": 1}],
    ),
    "batches of other work": ([f"batch {n}/120 written ({n}.5 rows/s)" for n in (20, 40, 60)], []),
    "generations": ([CLEAR, "Generate | Epoch 3 | 10/50 | 0.12 it/sec"], [{"step": 1}]),
    "a checkpoint of something else": (["Writing checkpoint, step 500 at 12:04"], []),
    "a checkpoint and then a loss": (
        ["Saved checkpoint to /out/checkpoint-10", "step 20 loss 2.5"],
        [{"checkpoint": "checkpoint-10"}, {"step": 20}],
    ),
    "a loss and then a checkpoint": (
        ["step 20 loss 2.5", "checkpoint written step=20 path=/out/step-20"],
        [{"step": 20}, {"checkpoint": "step-20"}],
    ),
    "checkpoints alone": (
        [f"Saved checkpoint to /out/checkpoint-{n}" for n in (10, 20)],
        [{"checkpoint": "checkpoint-10"}, {"checkpoint": "checkpoint-20"}],
    ),
    "epochs with checkpoints": (
        ["Train Epoch: 1 [0%]", "Saving model at epoch 1 to /out/G_1.pth", "Train Epoch: 2 [66%]", "Train Epoch: 3 [9%]"],
        [{"epoch": 1}, {"checkpoint": "G_1.pth"}, {"epoch": 2}, {"epoch": 3}],
    ),
    "batches of any work": ([f"Batches: 12%|█▏ | 12{n}/1000 [01:41<12:01, 1.22it/s]" for n in (1, 2)], []),
    "values in a training's bar": (
        ["Train epoch [1/1]:  12%|█▎ | 4/32 [00:41<04:52, 10.4s/it, pg=-0.012, rm=0.41]"],
        [{"step": 4, "total_steps": 32}],
    ),
    "one kind of line after two words": (
        ["INFO Step 12 | Reward: 0.4 | 41.5 tokens/s", "SUCCESS Step 13 | Reward: 0.5 | 42.5 tokens/s"],
        [{"step": 12}, {"step": 13}],
    ),
    "a table that counts by a sign": (
        ["E    #       LOSS TAGGER  LOSS NER  SCORE", "---  ------  -----------  --------  -----",
         "  0       0       711.40    412.03   0.00", "  3     200       204.11     41.71   0.71"],
        [{"step": 0}, {"step": 200}],
    ),
    "a table whose rows end with a bar": (
        ["  Epoch    GPU_mem   box_loss   cls_loss       Size",
         "  1/100      4.21G      1.412      2.901        640: 100%|███| 63/63 [00:12<00:00,  5.12it/s]",
         "  2/100      4.21G      1.312      2.801        640: 100%|███| 63/63 [00:12<00:00,  5.12it/s]"],
        [{"epoch": 1, "total_epochs": 100}, {"epoch": 2}],
    ),
    "a save below a date": (
        [CLEAR, "2026/04/08 12:00:52 - INFO - Saving checkpoint at 1 epochs"], [{"step": 1}, {"checkpoint": ""}],
    ),
    "a save in prose below headings": (
        [*(f"// Step {n}" for n in (1, 2, 3)), "The weights can then be saved along side of it", "They were saved with the weights"], [],
    ),
    "the speed of an answer": ([CLEAR, "tokens/s: 41.2"], [{"step": 1}]),
    "a number of each policy": (
        [f"step {n}/900 loss: 2.5 Throughput: 0: 91{n}.5" for n in (1, 2)],
        [{"tokens_per_s": 911.5}, {"tokens_per_s": 912.5}],
    ),
    "a kind that says something else": (
        [
            *(f"Step: {n}000. Time Elapsed: 3.1 s. Mean Reward: 0.{n}. Std: 0.5. Training." for n in (1, 2, 3)),
            "Step: 4000. Time Elapsed: 4.1 s. No episode was completed. Training.",
        ],
        [{"step": 1000}, {"step": 2000}, {"step": 3000}, {"step": 4000}],
    ),
    "settings beside a number": ([CLEAR, "[0] Settings: {'learning_rate': 0.1, 'num_epochs': 90}"], [{"step": 1}]),
    "a setting with a learning rate": ([CLEAR, "config_loaded epochs=20 lr=0.001 seed=42"], [{"step": 1}]),
    "the speed of an inference server": (
        [CLEAR, "Avg prompt throughput: 12.5 tokens/s, Avg generation throughput: 23.5 tokens/s"],
        [{"step": 1}],
    ),
    "results beside a checkpoint": ([CLEAR, "Saving results to /out/ckpt-10/results.json"], [{"step": 1}]),
    "keys of a structured log": (
        [f"INFO trainer step_done step={n} metrics.loss=2.{n} metrics.lr=0.1" for n in (10, 20)],
        [{"step": 10}, {"step": 20}],
    ),
    "a key after a word": ([CLEAR, "epoch=2 done train_loss=0.35 val_loss=0.41"], [{"step": 1}, {"loss": 0.35, "eval_loss": 0.41}]),
    "counts from zero": (
        [f"[Epoch 0][Batch {n}], LR: 1.00E-03, Speed: 41.5 samples/sec" for n in (49, 99)], [{"step": 49}, {"step": 99}],
    ),
    "batches of an epoch, and their share": (
        ["Train: 12 [ 550/1251 ( 44%)]  Loss: 3.417 (3.39)  LR: 4.811e-04"], [{"epoch_step": 550, "epoch_steps": 1251}],
    ),
    "a step in brackets": ([f"[1, {n}] loss: 2.5" for n in (2000, 4000)], [{"step": 2000}, {"step": 4000}]),
    "seconds a step": (["Step 100/900 | loss 2.5 | 1.2 s/step"], [{"step": 100, "total_steps": 900}]),
    "many values below a heading": (
        ["Epoch 1/3", *["batch loss: 0.5"] * 50, "Epoch 2/3"],
        [{"total_epochs": 3}, *[{"loss": 0.5}] * 50, {"epoch": 1}],
    ),
    "rows of a table drawn with lines": (
        ["Epoch 1/9 Train step 2/900 done.", "│ actor/update/lr │ 1e-06 │", "│ actor/update/grad_norm │ 3.5 │",
         "Epoch 1/9 Train step 3/900 done."],
        [{"step": 2}, {"learning_rate": 1e-6}, {"grad_norm": 3.5}, {"step": 3}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TOGETHER)
def test_lines_are_read_by_their_forms(case: str) -> None:
    lines, expected = TOGETHER[case]
    readings = [values for _, values in readings_of(lines)]
    assert [
        {name: values.get(name) for name in fields} for values, fields in zip(readings, expected, strict=True)
    ] == expected


BLOCKS = {
    "a table": [
        "| ep_rew_mean | {reward} |",
        "| iterations | {n} |",
        "| loss | 0.5 |",
        "| approx_kl | 0.01 |",
    ],
    "a list": ["=== Step {n}/90 ===", "  • Loss: 0.5", "  • Avg Reward: {reward}", "  • KL: 0.01", "Done."],
}


@pytest.mark.parametrize("form", BLOCKS)
def test_everything_in_a_block_of_values_is_a_metric(form: str) -> None:
    blocks = [
        line.format(n=n, reward=reward)
        for n, reward in ((1, 0.1), (2, 0.2), (3, 0.3))
        for line in BLOCKS[form]
    ]
    metrics = [metric for _, values in readings_of(blocks) for metric in values.get("metrics", {}).items()]
    reward = {value for name, value in metrics if "rew" in name.lower()}
    assert {0.2, 0.3} <= reward and {value for name, value in metrics if "kl" in name.lower()} == {0.01}


@pytest.mark.parametrize("before", [[], [CLEAR]], ids=["no training", "no block"])
def test_pair_outside_a_block_is_no_metric(before: list[str]) -> None:
    assert readings_of([*before, "Reward: 0.4", "Reward: 0.5"]) == readings_of(before)


FIELDS = {
    "step": ("step", "epoch_step"),
    "total_steps": ("total_steps", "epoch_steps"),
    "throughput": ("tokens_per_s", "samples_per_s"),
    "checkpoint_saved": ("checkpoint",),
    **{name: (name,) for name in ("loss", "eval_loss", "learning_rate", "grad_norm")},
}


@pytest.mark.parametrize("trainer", TRAINERS, ids=lambda trainer: trainer["trainer"])
def test_log_of_trainer_is_read_without_mistake(trainer: dict[str, Any]) -> None:
    reported: dict[int, dict[str, Any]] = {}
    for index, values in readings_of([entry["line"] for entry in trainer["lines"]]):
        reported.setdefault(index, {}).update(values)
    for index, entry in enumerate(trainer["lines"]):
        for field, names in FIELDS.items():
            values = [reported[index][name] for name in names if name in reported.get(index, {})]
            allowed = entry.get("reads", {}).get(field)
            if allowed is None or (field in entry.get("optional", ()) and not values):
                assert not values, (entry["line"], field)
            elif field == "checkpoint_saved":
                assert values, entry["line"]
            else:
                assert any(value == pytest.approx(other) for value in values for other in allowed), (
                    entry["line"],
                    field,
                )


def test_of_a_bar_that_overwrote_itself_the_last_state_counts() -> None:
    states = [
        f"\r\x1b[32m {n // 90}%|██        | {n}/9000 [01:00<21:00,  5.30s/it]\x1b[0m"
        for n in (4118, 4119, 4120)
    ]
    expected = {"step": 4120, "total_steps": 9000, "step_time_s": pytest.approx(5.3), "from_bar": True}
    assert read("".join(states)) == read("".join(states * 500)) == expected


def is_read_alike(lines: list[str]) -> bool:
    """Return True if a reader that forgets what it learned of a text reads the lines like one that does not."""
    remembers, forgets = Reader(), Reader(max_shapes=0)
    return all(
        repr(remembers.read(line, at_ns=index)) == repr(forgets.read(line, at_ns=index))
        for index, line in enumerate(lines)
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("step 1,234 | loss 1.5 | lr 0.1", "step 1,23 | loss 1.5 | lr 0.1"),
        ("step 12/90 | loss 1.5 | lr(1e-3) 0.1", "step 12/90 | loss 1.5 | lr(1e-4) 0.1"),
        ("step 12/90 | loss 1.5 | lr 0.1", "step 1/290 | loss2 1.5 | lr 0.1"),
        ("[rank1]: step 12/90 | loss 1.5 | lr 0.1", "[rank22]: step 12/90 | loss 1.5 | lr 0.1"),
        ("[10:20] step 12/90 | loss 1.5", "[10:2] step 12/90 | loss 1.5"),
    ],
    ids=["thousands", "a unit", "elsewhere", "a rank", "a time"],
)
def test_other_digits_in_a_known_text_are_read_like_new_ones(first: str, second: str) -> None:
    assert is_read_alike([first, first, second, first])


@given(st.sampled_from([entry["line"] for entry in LINES["read"]] + LINES["ignored"]), st.data())
def test_line_is_read_alike_whether_or_not_its_text_is_known(line: str, data: st.DataObject) -> None:
    digits = st.text("0123456789", min_size=1, max_size=5)
    other = re.sub("[0-9]+", lambda run: data.draw(st.just(run[0]) | digits, label="digits"), line)
    assert is_read_alike([line, line, other, CLEAR, other, line])


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ('{{"step": {}, "loss": 1.5, "lr": 0.1}}', "step"),
        ("step {}/100 | loss 1.0", "step"),
        ("step 1/{} | loss 1.0", "total_steps"),
    ],
)
def test_number_beyond_reason_is_no_step(line: str, field: str) -> None:
    assert field not in read(line.format("9" * 400))


PIECES = [
    "loss", "step", "epoch", " ", ": ", "=", "/", "|", "{", "}", "'", '"', "[", "]", "(", ")", "%", "█", "nan", "1", "2.5", "1e-5",
    "it/s", "\r", "\n", "\x1b[31m", "saving checkpoint", ",", "\t",
]  # fmt: skip


@given(st.text() | st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_no_line_is_too_strange(line: str) -> None:
    Reader().read(line)


def test_huge_lines_are_not_read() -> None:
    assert Reader().read(CLEAR + "x" * 1_000_000) == []


def test_lines_that_are_all_different_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("evidence", "reader"):
        monkeypatch.setattr(f"tui.analysis.progress.lines.{module}.MAX_TRACKED", 128)
    reader = Reader(max_shapes=64)
    words = ("".join(letters) for letters in product("abcdefgh", repeat=5))

    def held_after(lines: int) -> int:
        for number, word in enumerate(islice(words, lines)):
            reader.read(f"at step {number} of the {word} loop", word, number)
            reader.read(f"step,{word}_loss", word)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        for number in range(4096):  # all that is remembered of names is traced, whatever ran before
            meaning(f"name {number}")
        first = held_after(2400)  # more than any of its limits
        assert held_after(400) - first < first / 4
    finally:
        tracemalloc.stop()


def test_objects_printed_over_several_lines_are_read() -> None:
    fold = ProgressFold()
    stamp_ns = 1_748_772_672 * 10**9
    for step in (100, 200):
        text = f'{{\n  "step": {step},\n  "metrics": {{\n    "loss": 1.{step}\n  }},\n  "lr": 0.1\n}}'
        for row in text.split("\n"):
            for node in ("node-0", "node-1"):
                fold.add([LogLine(stamp_ns, row, node, None)])
                stamp_ns += 10**6
    assert fold.snapshot().loss_by_step == ((100, 1.1), (200, 1.2))
