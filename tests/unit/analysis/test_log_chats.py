"""Answers and agents' transcripts that talk about training report nothing."""

from __future__ import annotations

import json
import random

import pytest

from api_client.models.logs import NS_PER_S
from support.log_reading import believed
from tui.analysis.progress.lines.reader import Reader

SENTENCES = """At step {n} the loss was {x}, so I would lower the learning rate to {x}.
Step {n}: reduce the loss by a factor of {n}.
In epoch {n} of {n} the validation loss rose to {x} while the training loss fell.
The loss after {n} steps is about {x}; with a batch size of {n} that is normal.
Iteration {n} of the loop: x = {n}, loss = {x}
If the loss stays at {x} for {n} epochs, stop at step {n}.
For example, `loss = {x}` at `step = {n}` means that epoch {n} has not converged.
We train for {n} epochs ({n} steps each) and log the loss every {n} steps.
Step {n} of {n}: open the file and look for "loss".
So the answer is loss = {x} * {n} / step = {x}.
1. Set epochs={n}. 2. Check that the loss is below {x} by step {n}.
Your run diverged: loss {x} at step {n}, then {x} at step {n}.
The perplexity is exp({x}) = {n}, since the loss per token is {x} in epoch {n}.
loss_fn(model(x), y).backward()  # step {n}
for epoch in range({n}): loss = train(lr={x}, steps={n})
optimizer.step(); print(f"step {{step}} loss {{loss:.{n}f}}")
assert abs(loss - {x}) < 1e-{n}, "step {n}"
The user asked for step {n}; the tool returned epoch {n} with a loss of {x}.
Save the model at step {n} if the loss is under {x}.
You can see the checkpoint that I saved for epoch {n} when the loss was {x}.""".splitlines()
FORMS = (
    "{}",
    "- {}",
    "> {}",
    "[assistant] {}",
    "2026-01-02 12:00:00 INFO agent: {}",
    '{{"role": "assistant", "content": {}}}',
    '{{"tool": "search", "arguments": {{"query": {}, "step": 3}}, "epoch": 1}}',
    "Thought: {}",
    "### {}",
)


def with_numbers(rng: random.Random, form: str) -> str:
    form = form.replace("{n}", str(rng.randint(1, 5000)))
    return form.replace("{x}", f"{rng.uniform(0, 9):.{rng.randint(1, 4)}f}")


def transcript(rng: random.Random) -> list[str]:
    """Return lines with a sentence or two each, none of which is said twice."""
    sentences = [
        with_numbers(rng, sentence) for sentence in rng.sample(SENTENCES, rng.randint(4, len(SENTENCES)))
    ]
    lines = []
    while sentences:
        text = " ".join(sentences.pop() for _ in range(min(len(sentences), rng.randint(1, 2))))
        form = rng.choice(FORMS)
        lines.append(form.format(json.dumps(text) if form.startswith("{{") else text))
    return lines


@pytest.mark.proves("docs/health.md", "Progress: supported trainers")
def test_answers_and_transcripts_about_training_report_nothing() -> None:
    rng = random.Random(1)
    assert [told for _ in range(500) for told in believed(transcript(rng))] == []


REPEATED = """tool_result: {'step': {n}, 'loss': {x}}
{"step": {n}, "thought": "the loss of {x} is too high", "tokens": {n}}
>>> trainer.log({'loss': {x}, 'step': {n}})
You said: "step {n}/{n} loss={x} lr=1e-4". Is that per GPU?
Total steps = {n} / {n} * {n} = {n}
  "total_steps": {n},
    loss_test.go:{n}: step {n}: got {x}, want {x}
packet loss {x}%, {n} packets, step {n}
> step {n}: loss {x}
self.loss = {x}  # step {n}
{"method": "step", "params": {"step": {n}, "reward": {x}}}""".splitlines()


def test_forms_that_come_again_with_any_numbers_report_nothing() -> None:
    rng = random.Random(1)
    transcripts_with_readings = 0
    for _ in range(200):
        lines = [with_numbers(rng, form) for form in rng.choices(REPEATED, k=20)]
        transcripts_with_readings += bool(believed(lines))
    assert transcripts_with_readings <= 3, "numbers rise evenly by chance, but seldom"


SAMPLES = [
    "<think>",
    "I think that the answer is 12.",
    "</think>",
    "The answer is 12.",
    "- Is it? Let me see.",
]


@pytest.mark.parametrize(
    "form", ["step {}/900 | loss: 2.5 | lr: 3e-4", "{{'loss': 2.5, 'lr': 3e-4, 'epoch': 0.{}}}"]
)
def test_training_that_prints_answers_is_read_from_its_first_step(form: str) -> None:
    own = [form.format(number) for number in range(1, 6)]
    assert len(believed([*SAMPLES, *own[:2], *SAMPLES, *own[2:4], *SAMPLES, own[4], *SAMPLES])) == 5


QUOTED = (
    [f"step {n}/900 | loss: 2.5 | lr: 3e-4" for n in (100, 200, 300)],
    [f"{{'loss': 2.5, 'learning_rate': 3e-4, 'epoch': 0.{n}}}" for n in (1, 2)],
    ["| step | loss | lr |", "|---|---|---|", "| 100 | 2.5 | 0.1 |", "| 200 | 2.4 | 0.1 |"],
    ["Saved checkpoint to /out/checkpoint-100", "Saved checkpoint to /out/checkpoint-200"],
)


@pytest.mark.proves("docs/health.md", "Progress: supported trainers")
@pytest.mark.parametrize("quoted", QUOTED, ids=["of a total", "dicts", "a table", "saves"])
@pytest.mark.parametrize(
    "said",
    [
        "I'll look at the end of the log.",
        "Let me see.",
        "Is my run healthy?",
        "Assistant: here it is",
        "```text",
        "### How to read a log",
        "<|im_start|>assistant",
        "This **step** is slow.",
        "Sure! Here it is as of now.",
        "From out/train.log:",
        "Maria said:",
        "$ cat train.log",
        "const LOG = [",
    ],
)
def test_log_quoted_below_what_is_said_reports_nothing(said: str, quoted: list[str]) -> None:
    assert believed([said, "tail train.log", *quoted, "The loss goes down.", said, *quoted]) == []


OWN = [f"step {n}/900 | loss: 2.5 | lr: 3e-4" for n in range(100, 900, 100)]


def test_log_quoted_in_a_sample_is_not_the_training_s() -> None:
    sample = ["User: is it fine?", "epoch 7: loss 0.5, lr 0.1", "epoch 8: loss 0.4, lr 0.1"]
    lines = [*OWN[:2], *sample, *OWN[2:]]
    assert [told.at_ns for told in believed(lines)] == [0, 1, 5, 6, 7, 8, 9, 10]


def test_evaluation_below_a_sample_is_the_training_s_if_it_is_at_its_step() -> None:
    own = believed([*OWN[:2], "Let me see.", "step 200/900 | val loss: 2.4"])
    quoted = believed([*OWN[:2], "Let me see.", "step 700/900 | val loss: 0.1"])
    assert [len(own), len(quoted)] == [3, 2]


def test_training_is_read_where_nothing_is_said() -> None:
    assert len(believed(["12:00:21.123456: I tensorflow/core/util/port.cc:113] oneDNN is on.", OWN[0]])) == 1


@pytest.mark.parametrize(("every_s", "read"), [(11, [0, 2, 1, 1]), (4, [0, 0, 0, 4]), (2, [0, 0, 0, 0])])
def test_log_below_a_remark_is_read_at_once_if_it_takes_its_time(every_s: int, read: list[int]) -> None:
    reader = Reader()
    reader.read("Let me begin.")
    told = [reader.read(line, at_ns=every_s * NS_PER_S * index) for index, line in enumerate(OWN[:4])]
    assert [len(each) for each in told] == read


def test_log_quoted_in_parts_of_other_lengths_reports_nothing() -> None:
    said = "Let me see."
    assert believed([said, OWN[0], said, *OWN[1:4], said, *OWN[4:6], said, OWN[6]]) == []
    assert len(believed([said, *OWN[:2], said, *OWN[2:4], said, OWN[4]])) == 5


def test_log_quoted_again_further_on_reports_nothing() -> None:
    assert believed(["Let me see.", *OWN[:3], *["Let me see.", OWN[0]] * 20]) == []
    assert believed(["Let me see.", *OWN[:2], "Is it fine?", OWN[4], "Let me see.", OWN[5]]) == []


def test_log_quoted_below_sentences_without_numbers_reports_nothing() -> None:
    said = "The training log for this run shows the following."
    assert believed([said, *["", "$ tail train.log", "loading"] * 5, *OWN]) == []


def test_values_below_a_heading_are_its_own_whatever_is_said() -> None:
    lines = []
    for epoch in (1, 2):
        lines += ["Is this the best model of this run?", f"Epoch {epoch}", f"train_loss 0.{epoch}5"]
    assert [told.at_ns for told in believed(lines)] == [1, 2, 4, 5]


def test_log_below_a_remark_is_read_once_it_is_long() -> None:
    lines = ["Let me begin.", *(f"step {n}/900 | loss: 2.5 | lr: 3e-4" for n in range(17))]
    assert (len(believed(lines[:-1])), len(believed(lines))) == (0, 17)


def test_results_of_several_runs_in_one_object_report_nothing() -> None:
    line = "{'add': {'train_loss': 0.31, 'val_loss': 0.42}, 'mul': {'train_loss': 0.29, 'val_loss': 0.4}}"
    assert believed([line]) == []
