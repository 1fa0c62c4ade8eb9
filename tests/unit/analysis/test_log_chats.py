"""Answers and agents' transcripts that talk about training report nothing."""

from __future__ import annotations

import json
import random

import pytest

from api_client.models.logs import NS_PER_S, LogLine
from support.log_reading import CLEAR, believed
from tui.analysis.progress.fold import ProgressFold
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


QUOTED = {
    "text": [f"  step {n}: loss {3 - n / 1000}, lr 3e-4" for n in (100, 200, 300)],
    "of a total": [f"step {n}/900 | loss: {3 - n / 1000} | lr: 3e-4" for n in (100, 200, 300)],
    "dicts": [f"{{'loss': {3 - n}, 'learning_rate': 3e-4, 'epoch': 0.{n}}}" for n in (1, 2)],
    "a list": ["Step 1: loss = 3 * 2 = 6", "Step 2: loss = 6 + 1 = 7", "Step 3: loss = 7"],
    "a save": ["Saved checkpoint to /mnt/out/checkpoint-300"],
}
SPEECHES = (
    "I'll look at the end of the log.",
    "Let me see whether the loss goes down.",
    "<|im_start|>assistant",
    "```",
    "Human: is that healthy?",
    "The curve is flat, so the rate has to change.",
    "• Next, lower the rate and start a run.",
    "The answer is 12.",
    "- Lower the rate",
    "[me@node run]$ tail -3 out.log",
    "1. Lower the rate",
    "这个 loss 太高了。",
    "La perte descend de 2.5 jusqu'à 1.5 pendant cette époque.",
    "mlflow=> select step, loss from metrics;",
    "def train(model):",
    "    for batch in loader:",
)


@pytest.mark.parametrize("speech", SPEECHES)
@pytest.mark.parametrize("quoted", QUOTED)
def test_log_that_somebody_quotes_reports_nothing(quoted: str, speech: str) -> None:
    speeches = [speech, f"Now again: {speech}", f"{speech} Then {speech}"] if " " in speech else [speech] * 3
    quotations = [[speech, *QUOTED[quoted]] for speech in speeches]
    assert believed([*quotations[0], *quotations[1], "done", *quotations[2]]) == []


@pytest.mark.parametrize("quoted", QUOTED)
def test_log_quoted_before_a_word_is_said_is_withdrawn(quoted: str) -> None:
    assert believed([*QUOTED[quoted], "I think that the rate is too high.", "Let me lower it."]) == []


def test_withdrawal_leaves_what_other_replicas_report() -> None:
    reader = Reader()
    assert len(reader.read(CLEAR, "a", at_ns=0)) == len(reader.read(CLEAR, "b", at_ns=1)) == 1
    told = reader.read("Let me see.", "b", at_ns=2)
    assert reader.withdrawals == 1
    assert [each.replica for each in told] == ["a"]


def test_run_shows_nothing_of_a_log_that_turns_out_to_be_quoted() -> None:
    fold = ProgressFold()
    lines = [
        "step 7/900 | loss: 2.5 | reward: 0.5",
        "Saved checkpoint to /mnt/out/checkpoint-7",
        "Let me see.",
    ]
    entries = [LogLine(index, line, None, None) for index, line in enumerate(lines)]
    fold.add(entries[:2])
    assert (fold.snapshot().step, list(fold.snapshot().metrics), len(fold.snapshot().saves)) == (
        7,
        ["reward"],
        1,
    )
    fold.add(entries[2:])
    assert (fold.snapshot().step, list(fold.snapshot().metrics), len(fold.snapshot().saves)) == (None, [], 0)


def test_warning_before_a_training_is_no_conversation() -> None:
    assert len(believed(["We recommend that you set the number of threads.", CLEAR])) == 1


@pytest.mark.parametrize(
    ("form", "count"), [("step {}/900 | loss: 2.5 | lr: 3e-4", 3), ("step {}: loss 2.5, lr 3e-4", 4)]
)
def test_training_that_prints_answers_is_read_once_it_counts_on(form: str, count: int) -> None:
    steps = [100 * number for number in range(1, count + 1)]
    lines = []
    for step in steps:
        lines += ["I think the answer is 12.", form.format(step)]
    assert believed(lines[:-2]) == []
    assert [told.reading.step for told in believed(lines)] == steps


@pytest.mark.parametrize("steps", [(100, 200, 350), (100, 200, 800, 810)])
def test_quotations_of_other_steps_do_not_count_on(steps: tuple[int, ...]) -> None:
    lines = []
    for step in steps:
        lines += ["I think the answer is 12.", f"step {step}: loss 2.5, lr 3e-4, grad norm 1.5"]
    assert believed(lines) == []


@pytest.mark.proves("docs/health.md", "Progress: supported trainers")
@pytest.mark.parametrize(
    "intro",
    (
        ("This script trains a model on the digits.", "It saves the weights to a folder at the end."),
        ("[emulator] INFO /data (the working directory) is the folder of this machine",) * 2,
    ),
)
def test_short_script_that_tells_what_it_does_is_read_from_its_third_step(intro: tuple[str, str]) -> None:
    steps = [f"step={step}/100 loss=1.{step}" for step in (4, 5, 6)]
    assert [told.reading.step for told in believed([*intro, *steps])] == [4, 5, 6]


def test_log_below_a_single_remark_is_read_once_it_is_long() -> None:
    lines = ["Let me begin.", *(f"step {n}/900 | loss: 2.5 | lr: 3e-4" for n in range(40))]
    assert len(believed(lines)) == 40
    assert believed(lines[:10]) == []


def test_samples_that_a_training_prints_are_not_its_own_lines() -> None:
    own = [f"step {n}/900 | loss: 2.5 | lr: 3e-4" for n in range(40)]
    sample = ["Let me see.", "epoch 7: loss 0.5, lr 0.1", "epoch 8: loss 0.4, lr 0.1"]
    told = believed([*own[:30], *sample, *own[30:]])
    assert [each.reading.step for each in told] == list(range(40))


def test_evaluation_beside_samples_is_the_training_s_if_it_is_at_its_step() -> None:
    own = [f"step {n}/900 | loss: 2.5 | lr: 3e-4" for n in range(40)]
    told = believed([*own, "Let me see.", "step 40/900 | val loss: 2.4", "step 700/900 | val loss: 0.1"])
    assert [each.reading.eval_loss for each in told[40:]] == [2.4]


def test_log_that_takes_minutes_is_no_quotation() -> None:
    lines = ["Let me begin.", CLEAR, CLEAR.replace("1/", "2/"), "I think that it is healthy.", "Let me see."]
    assert believed(lines, apart_ns=20 * NS_PER_S) == []
    assert len(believed(lines, apart_ns=150 * NS_PER_S)) == 2


def test_results_of_several_runs_in_one_object_report_nothing() -> None:
    line = "{'add': {'train_loss': 0.31, 'val_loss': 0.42}, 'mul': {'train_loss': 0.29, 'val_loss': 0.4}}"
    assert believed([line]) == []
