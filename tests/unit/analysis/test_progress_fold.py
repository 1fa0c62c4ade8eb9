import json
import math
import random
from collections.abc import Iterable
from itertools import accumulate
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from api_client.models.logs import LogLine
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.progress.lines.custom import ProgressPattern
from tui.analysis.progress.snapshot import ProgressSnapshot, loss_trend, over_steps

START_S = 1_700_000_000
SECOND = 1_000_000_000


def line(at_s: float, message: str, replica: str | None = "node-0") -> LogLine:
    return LogLine(round((START_S + at_s) * SECOND), message, replica, None)


def fold(lines: list[LogLine], **options: int) -> ProgressSnapshot:
    folding = ProgressFold(**options)
    folding.add(lines)
    return folding.snapshot()


def steps(
    numbers: Iterable[float], text: str = "step={} loss=1.0", *, first: float = 0, start: float = 0
) -> list[LogLine]:
    return [line(start + number, text.format(first + number)) for number in numbers]


def later(lines: list[LogLine], seconds: int) -> list[LogLine]:
    return [entry._replace(timestamp_ns=entry.timestamp_ns + seconds * SECOND) for entry in lines]


def trainer_run(steps: int, *, every: int = 10, step_s: float = 5.0, total: int = 9000) -> list[LogLine]:
    lines = []
    for step in range(every, steps + 1, every):
        at = step * step_s
        bar = f"\r {step * 100 // total}%|██  | {step}/{total} [1:02:03<7:10:44,  {step_s:.2f}s/it]"
        told = f"{{'loss': {1 + 100 / step:.4f}, 'grad_norm': 0.71, 'learning_rate': 1.9e-05, 'epoch': 1.3}}"
        lines += [line(at, bar), line(at + 0.2, told), line(at + 1.0, "NCCL INFO something else", "node-1")]
    return lines


def test_the_lines_of_each_replica_are_counted_in_whatever_order_they_come():
    lines = [line(at, "hello", name) for at, name in ((9, "b"), (1, "a"), (5, "a"), (3, "a"), (7, None))]
    found = {one.name: (one.first_at_ns, one.last_at_ns, one.interval_s) for one in fold(lines).replicas}
    first, last, only = ((START_S + at) * SECOND for at in (1, 5, 9))
    assert found == {"a": (first, last, 2.0), "b": (only, only, 0.0)}


def evaluation(first: float, step: int = 1) -> list[LogLine]:
    bar = " {0}%|██  | {0}/100 [00:10<00:12,  1.00it/s]"
    return [line(first + batch, bar.format(batch)) for batch in range(0, 101, step)]


def test_the_bar_of_an_evaluation_is_not_the_run():
    lines = trainer_run(500) + evaluation(2510)
    during = fold(lines)
    assert (during.step, during.total_steps) == (500, 9000)
    lines.append(line(2620, "{'eval_loss': 1.05, 'eval_runtime': 101.0, 'epoch': 1.3}"))
    after = fold(lines + later(trainer_run(600)[150:], 120))
    assert (after.step, after.total_steps, after.eval_loss) == (600, 9000, 1.05)
    assert [step for step, _ in after.loss_by_step] == list(range(10, 601, 10))


def test_of_ranks_that_print_the_same_the_first_is_shown():
    lines = [
        line(at + rank / 10, f"step={at} loss={2 + rank}", f"node-{rank}")
        for at in range(20)
        for rank in (10, 2, 1)
    ]
    snapshot = fold(lines)
    assert (snapshot.replica, snapshot.loss) == ("node-1", 3)
    assert len(snapshot.loss_by_step) == 20
    # A replica that tells more is shown even if it is a later one: Megatron's last rank prints the loss.
    assert fold([*lines, line(50, "step=50 loss=9", "node-10")]).replica == "node-10"


KERAS_RUN = [
    line(epoch * 100 + step, text)
    for epoch in range(3)
    for step, text in [
        (0, f"Epoch {epoch + 1}/3"),
        *(
            (step, f"{step}/90 ━━━━━━━━━━ 12s 290ms/step - accuracy: 0.7 - loss: {3 - epoch}.5")
            for step in range(10, 91, 10)
        ),
    ]
]
OVER_BARS = [
    line(
        number * 20,
        "".join(
            f"\r {step // 5}%|█    | {step}/500 [00:10<10:00,  2.00s/it]"
            for step in range(number * 10 - 9, number * 10 + 1)
        )
        + f"\r{' ' * 60}\r{{'loss': {3 - number / 20:.2f}, 'epoch': 0.1}}",
    )
    for number in range(1, 30)
]
BELOW_HEADINGS = [
    line(number * 10 + at, text)
    for number in range(1, 20)
    for at, text in enumerate(
        (
            f"[batch={number}0/4800]:",
            f"\t Train loss/train/total: {3 - number / 10:.1f}",
            "\t Train throughput/tokens_per_sec: 40123.1",
        )
    )
]
TENS = list(range(10, 1001, 10))
BAR = " {0}%|██  | {0}/4000 [1:02:03<7:10:44,  1.00s/it]"
SAVING = "Saving model checkpoint to /mnt/ckpts/checkpoint-"
SAVES = [line(10, f"{SAVING}500"), line(90, f"{SAVING}1000", "node-1")]
SAVED = {"last_checkpoint": ("checkpoint-1000", START_S + 90)}
SUMMARY = "{'train_runtime': 48465.9, 'train_loss': 1.8789, 'epoch': 2.86}"
BAR_AND_SAVE = " 17%|█▋        | 2500/14754 [11:52<58:11,  3.51it/s]" + f"{SAVING}2500"
FOLDED: dict[str, tuple[list[LogLine], dict[str, Any]]] = {
    "losses take their step from the bar before them": (
        trainer_run(1000),
        {"step": 1000, "total_steps": 9000, "loss": 1.1, "loss_steps": TENS[:100], "epoch": 1.3,
         "learning_rate": 1.9e-05, "replica": "node-0", "rate_steps_per_s": 0.2, "rate_overall": 0.2,
         "eta_s": 40_000, "step_interval_s": 50, "last_step_at_ns": (START_S + 5000) * SECOND,
         "last_line_at_ns": (START_S + 5001) * SECOND}),
    "a single bar has the speed it prints": (steps([40], BAR), {"rate_steps_per_s": 1.0, "eta_s": 3960}),
    "a step repeated is no step": (
        [line(at, f"step={step} loss=1") for at, step in ((0, 39), (10, 40), (500, 40))],
        {"last_step_at_ns": (START_S + 10) * SECOND}),
    "a second stage takes over once it prints losses": (
        trainer_run(100) + later(trainer_run(80, total=300), 9000), {"step": 80, "total_steps": 300}),
    "the bar of evaluations, between which losses are printed, is none of the steps": (
        [each for begin in (0, 1000, 2000) for each in (
            *steps(range(0, 300, 10), "{{'loss': 1.0, 'epoch': 0.5}}", start=begin),
            *steps(range(100), BAR, start=begin + 400))]
        + steps(range(0, 30, 10), "{{'loss': 1.0, 'epoch': 0.5}}", start=2510),
        {"step": None}),
    "a replica without steps takes those of the one that tells them": (
        steps(range(20), BAR) + [line(at, f"epoch 1 loss {at}", "node-1") for at in range(20)],
        {"replica": "node-1", "step": 19, "total_steps": 4000}),
    "losses without any step are numbered": (steps(range(3), "{{'loss': {}, 'lr': 0.1, 'epoch': 0.5}}"),
        {"step": None, "loss_by_step": ((1, 0), (2, 1), (3, 2)), "last_step_at_ns": (START_S + 2) * SECOND}),
    "Keras counts over epochs": (KERAS_RUN, {"step": 270, "total_steps": 270, "loss_steps": TENS[:27]}),
    "a bar has the total of lines that name their step": (
        steps(range(1, 30), "step:{} - actor/pg_loss:0.5 - actor/lr:1e-06")
        + steps(range(1, 30), BAR, start=0.1),
        {"step": 29, "total_steps": 4000}),
    "the newest save": (SAVES, SAVED),
    "in whatever order they come": (SAVES[::-1], SAVED),
    "saves behind a bar, and late": ([line(3, BAR_AND_SAVE), line(40, "saved a checkpoint at step 2400")],
        {"step": 2500, "saved": ["checkpoint-2500", "step-2400"], "restarts": ()}),
    "an evaluation that names its epoch moves": (
        [line(n, f"[Eval][Epoch 3][Iter: {n}/49] loss: 1.9") for n in range(1, 5)], {"moved_at": START_S + 4}),
    "a save without a name": (
        [line(1, "step=500 loss=1"), line(2, "Saving the checkpoint (or staging if async is enabled)."),
         line(3, "step=510 loss=1")],
        {"last_checkpoint": ("step-500", START_S + 2)}),
    "a restart announced and seen counts once": (
        [*steps(range(1, 100)), line(110, "[agent] worker group restarting, restart_count=1"),
         *steps(range(30), first=50, start=300), line(2000, "BT_RETRY_COUNT=2"),
         *steps(range(30), first=10, start=2100)],
        {"restarts": (START_S + 110, START_S + 2000)}),
    "steps named only with checkpoints leave them to the bar": (
        [line(n * 10, f"Epoch {n // 60}: 9%|█ | {n % 60}/60 [00:10<00:20, 1.0it/s, loss=1]") for n in range(170)]
        + [line(601, "Epoch 0, global step 60: 'val_loss' reached 2.9 (best 2.9), saving model to '/x/a.ckpt'")],
        {"step": 169}),
    "a single count out of line is no restart": (
        [*steps(range(1, 90)), line(110, "step=0 loss=1"), line(140, "step=100 loss=1")], {"restarts": ()}),
    "a single higher count is no restart": (
        [*steps(range(1, 90)), line(910, "iter 360: val loss 1.0"), line(940, "step=91 loss=1"),
         line(970, "step=92 loss=1")], {"restarts": ()}),
    "ranks that tell their steps out of turn are no restart": (
        [line(n * 10 + rank / 10, f"step={n - rank % 2 * 3} loss=1") for n in range(60) for rank in range(4)],
        {"restarts": ()}),
    "values below a heading belong to its step": (BELOW_HEADINGS,
        {"step": 190, "total_steps": 4800, "tokens_per_s": 40123.1, "loss": 1.1, "loss_steps": TENS[:19]}),
    "losses over the bar in one line have its steps": (OVER_BARS,
        {"step": 290, "total_steps": 500, "rate_steps_per_s": 0.5, "loss_steps": TENS[:29]}),
    "rates that another stream tells are not lost": (
        steps(range(10), "[rank0]: step={} loss=1.0")
        + steps(range(10), "step={} lr=1e-05 grad_norm=0.7 tokens_per_s=1234", start=0.5),
        {"stream": "node-0[0]", "grad_norm": 0.7, "tokens_per_s": 1234}),
    **{
        f"the mean over the run is not the newest loss, printed {count} times": (
            [*trainer_run(500), *(line(2510 + 5 * number, SUMMARY) for number in range(count))],
            {"loss": 1.2, "metrics": {"train_runtime": (48465.9,) * count, "train_loss": (1.8789,) * count}})
        for count in (1, 2)
    },
    "the loss of a later phase is shown": (
        trainer_run(500) + later(steps(range(10, 60), "step={0} dpo_loss=0.{0}"), 3000),
        {"loss": 0.59, "metrics": {}}),
    **{
        f"steps beside iterations of other work are the run's, with a {measure}": (
            [line(600 * iteration + at, text) for iteration in range(1, 7) for at, text in (
                *((40 * part, f"play iteration={iteration} games={512 * part}") for part in range(1, 9)),
                *((500 + at, f"learn step={100 * iteration + at} {measure}=0.5 lr=1e-4")
                  for at in range(0, 100, 10)))],
            {"step": 690, "restarts": ()})
        for measure in ("loss", "grad_norm")
    },
    "epochs that an evaluator ends leave those of the trainer in order": (
        [line(1000 * epoch + at, text) for epoch in range(1, 5) for at, text in enumerate((
            *(f"Epoch[{epoch}] Iteration[{n}/100] Loss: 8.64" for n in range(100 * epoch - 80, 100 * epoch, 20)),
            "Engine:Epoch[1] Complete. Time taken: 00:00:00.009",
            f"Validation Results - Epoch: {epoch}  Avg loss: 0.33",
            f"Engine:Epoch[{epoch}] Complete. Time taken: 00:00:00.032"))],
        {"loss": 8.64}),
    "headings of many nodes are believed": (
        [line(10 * step, text, f"node-{node}") for step in range(1, 8)
         for text in (f"Step {10 * step}", f"loss: {2 - step / 100}", "acc: 0.5") for node in range(80)],
        {"step": 70, "loss": 1.93}),
    "a stage that counts by another name is followed before its first loss": (
        [line(10 * n, f"iter {n}: loss={2 - n / 1000}") for n in range(1, 200)]
        + [line(2000 + 10 * n, f"step {n}/5000: reward=0.5, response_length=300") for n in range(1, 60)],
        {"step": 59}),
    **{
        f"a record of a log agent with {what}": (
            [line(10 * n, json.dumps({"log": text % n, "stream": "stdout"})) for n in range(1, 20)], {"step": 19})
        for what, text in (("another record", '{"step": %d, "loss": 2.0}'), ("tabs", "step\t%d\tloss\t2.0"))
    },
    "samples of answers count no steps": (
        [line(10 * n + at, text) for n in range(1, 60) for at, text in enumerate((
            f"step {10 * n}/5900 loss {2.5 - n / 100:.2f}",
            json.dumps({"prompt": "What is 3 plus 7?", "completion": f"Step {n % 5}: add 3 to get {n}."})))],
        {"step": 590, "restarts": ()}),
    **{
        f"bars within a rollout are not the run's{' with names' * bool(actor)}": (
            [line(rollout * 77 + at, text) for rollout in range(1, 21) for at, text in enumerate((
                f"{trainer}Episode [1/2]:  {rollout}%|# | {rollout}/100 [10:10<91:30, 61.01s/it]",
                *(f"{actor}Train epoch [1/1]:  {update * 6}%|# | {update}/16 [00:10<01:30,  1.01s/it, policy_loss=0.1]"
                  for update in range(17))))],
            {"step": 20, "total_steps": 200, "restarts": (), "eta_s": 13860.0, "losses": 20 * 17})
        for actor, trainer in (("", ""), ("(PolicyModelActor pid=800) ", "(PPOTrainer pid=12) "))
    },
}  # fmt: skip


@pytest.mark.parametrize("name", FOLDED)
def test_log_is_folded_to_its_progress(name: str) -> None:
    lines, expected = FOLDED[name]
    progress = fold(lines)
    derived = {
        "loss_steps": [step for step, _ in progress.loss_by_step],
        "losses": len(progress.loss_series),
        "saved": [save for save, _ in progress.saves],
        "metrics": {name: series.values for name, series in progress.metrics.items()},
    }
    for field, value in expected.items():
        actual = derived[field] if field in derived else getattr(progress, field)
        assert actual == (pytest.approx(value) if isinstance(value, float) else value), field


@pytest.mark.parametrize(
    "text",
    [
        "bob: loss 2.{1} at step {0}",
        "{1}. epoch {0} val loss 2.{1}, train loss 3.{1}",
        "lr=1e-4 loss=2.{1} step {0}, or so",
        '{{"msg": "probe", "step": {0}, "loss": 2.{1}, "node": "edge-3"}}',
        "run-{1}: epoch {0}, loss 2.{1}, lr 1e-4",
    ],
)
@pytest.mark.parametrize("highest", [9, 3000])
def test_counts_in_no_order_are_no_progress(text: str, highest: int) -> None:
    rng = random.Random(7)
    said = [line(at, text.format(rng.randint(1, highest), rng.randint(10, 99))) for at in range(0, 200, 2)]
    told = fold([*said, line(200, "saved checkpoint 7")])
    assert (told.step, told.loss, told.eval_loss, told.streams, told.saves) == (None, None, None, (), ())


@pytest.mark.parametrize("is_reversed", [False, True])
@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Train: [{epoch}/300][{step}/100]  loss 2.5 (2.6)", 0),
        ("Epoch: [{epoch}]  [ {step}/100]  eta: 0:01:02  loss: 2.5 (2.6)", 0),
        ("Epoch [{epoch}/300] Step [{step}/100] Loss: 2.5", 1),
    ],
)
def test_epochs_are_counted_from_the_first_number_that_the_log_gives_them(
    text: str, first: int, is_reversed: bool
) -> None:
    lines = [
        line(number * 20, text.format(epoch=first + number // 10, step=number % 10 * 10))
        for number in range(25)
    ]
    told = fold(lines[::-1] if is_reversed else lines)
    assert list(told.step_series.values) == list(range(0, 250, 10))
    assert (told.step, told.epoch, told.restarts) == (240, 2.4, ())


@pytest.mark.parametrize("counts", [[1, 2] * 9, [*range(5), 2, 3], [8, 8, 9, 8, 9] * 3])
def test_counts_that_start_over_are_progress(counts: list[int]) -> None:
    assert fold([line(at, f"step={count} loss=1.0") for at, count in enumerate(counts)]).step is not None


def losses(values) -> ProgressSnapshot:
    return fold([line(step, f"step={step} loss={value!r}") for step, value in enumerate(values)])


def test_trend():
    rng = random.Random(11)
    noise = [rng.gauss(0, 0.05) for _ in range(400)]
    falling = [10 - step / 10 for step in range(50)]
    assert loss_trend(losses(falling)) == "↓"
    assert loss_trend(losses(1 + step / 10 for step in range(50))) == "↑"
    assert loss_trend(losses(2 - step / 400 + wobble for step, wobble in enumerate(noise))) == "↓"
    assert loss_trend(losses(2 + wobble for wobble in noise)) == "→"
    assert loss_trend(losses([2.0, 1.0, 1.5])) == ""
    assert loss_trend(losses([*falling, math.nan, math.nan])) == "↓"
    assert loss_trend(losses([1.0] * 20 + [math.inf] * 400)) == ""
    assert loss_trend(losses([1e308, 1e308, 5.0, 4.0])) == "→"


RUNS = {
    "trainer": trainer_run(300),
    "keras": KERAS_RUN,
    "plain": [line(step, f"step={step} loss={step % 7} lr=0.1", f"node-{step % 3}") for step in range(60)],
    "evaluated": trainer_run(100) + evaluation(510, 10) + later(trainer_run(200)[30:], 120),
}


@settings(max_examples=50)
@given(st.sampled_from(sorted(RUNS)), st.integers(1, 40), st.randoms(use_true_random=False), st.booleans())
def test_history_that_comes_later_changes_nothing_about_the_result(name, size, rng, look):
    ordered = sorted(RUNS[name], key=lambda entry: entry.timestamp_ns)
    batches = [ordered[start : start + size] for start in range(0, len(ordered), size)]
    rng.shuffle(batches)
    folding = ProgressFold()
    for batch in batches:
        folding.add(batch)
        if look:
            folding.snapshot()
    assert folding.snapshot() == fold(ordered)


def test_space_is_bounded_and_extremes_are_kept():
    values = [1.0 + step * 7 % 11 / 11 for step in range(2000)]
    values[1333], values[1444] = 99.0, -99.0
    lines = [line(at, f"step={at} loss={loss!r}") for at, loss in enumerate(values)]
    snapshot = fold(lines, max_points=200)
    assert len(snapshot.loss_by_step) == len(snapshot.loss_series) <= 200
    assert (max(snapshot.loss_series.values), min(snapshot.loss_series.values)) == (99.0, -99.0)
    assert list(snapshot.loss_series.times) == sorted(snapshot.loss_series.times)
    assert snapshot.step == 1999
    highest = max(snapshot.loss_by_step, key=itemgetter(1))
    assert 1320 < highest[0] <= 1333, "steps are thinned, too"


def test_long_curve_is_as_dense_at_its_beginning_as_later() -> None:
    lines = [line(at, f"step={at} loss={1.0 + at * 7 % 11 / 11!r}") for at in range(8_000)]
    times = fold(lines, max_points=200).loss_series.times
    quarters = [
        sum(at // 2_000 == quarter for at in (time - START_S for time in times)) for quarter in range(4)
    ]
    assert min(quarters) > 0.05 * len(times)


@pytest.mark.proves("README.md", "Is it healthy, how fast is it, which node is slow?")
def test_the_end_lies_in_a_range_that_narrows_with_a_steady_run():
    def run(step_s):
        ats = accumulate(map(step_s, range(1, 400)))
        return fold([line(at, f"step={step}/9000 loss=1.0") for step, at in enumerate(ats, 1)])

    steady, unsure = run(lambda _: 2), run(lambda step: 1 if (step // 50) % 2 else 5)
    for told in (steady, unsure):
        assert told.eta_low_s < told.eta_s < told.eta_high_s
    assert steady.eta_high_s / steady.eta_low_s < 1.1 < 1.5 < unsure.eta_high_s / unsure.eta_low_s


def test_the_curves_of_a_run_over_time_and_over_steps():
    text = "step={0} loss={1} lr=1e-4 grad_norm=0.5 tokens_per_s={0}0"
    lines = [line(step, text.format(step, 100 / step)) for step in range(1, 51)]
    lines += [line(step + 0.9, f"step={step}") for step in (0, 1, 2, 30)]  # as other ranks print it
    snapshot = fold([*lines, line(50.5, "step 50: val loss 2.5")])
    assert snapshot.throughput_series == (snapshot.tokens_per_s_series, "tok/s")
    assert (snapshot.tokens_per_s_series.values[-1], snapshot.eval_loss_series.values) == (500, (2.5,))
    assert over_steps(snapshot.grad_norm_series, snapshot).times == tuple(float(n) for n in range(1, 51))
    assert over_steps(snapshot.eval_loss_series, snapshot).times == (50.0,)
    assert set(snapshot.rate_series.values) == {1.0}


def test_what_was_lost_in_a_restart_is_not_in_the_curve_over_steps():
    again = steps(range(30), "step={}/1000 loss=2.0", first=50, start=200)
    snapshot = fold(steps(range(1, 100), "step={}/1000 loss=1.0") + again)
    assert (snapshot.step, snapshot.rate_steps_per_s) == (79, pytest.approx(1.0))
    curve = over_steps(snapshot.loss_series, snapshot)
    assert (curve.times, curve.values) == (tuple(map(float, range(1, 80))), (1.0,) * 49 + (2.0,) * 30)
    assert snapshot.restarts == (START_S + 200,)


def test_errors_are_counted_once_each_with_the_first_and_the_newest():
    lines = [
        line(20, "Traceback (most recent call last):"),
        line(20.1, '  File "train.py", line 3, in <module>'),
        line(20.2, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"),
        line(21, "[rank3]: torch.OutOfMemoryError: CUDA out of memory.", "node-1"),
        line(90, "could not reach the data server", "node-1")._replace(level="ERROR"),
        line(95, "INFO 0 errors so far, error rate 0.0"),
    ]
    tally = fold(lines).errors
    assert (tally.count, tally.first.text) == (2, lines[2].message)
    assert (tally.newest.text, tally.newest.replica) == ("could not reach the data server", "node-1")
    nodes = [(0, "a"), *((9 * n, "b") for n in range(60)), (0, None)]
    assert fold([line(at, "ERROR: no", node) for at, node in nodes]).errors.first.replica is None


def test_the_pauses_of_a_run_are_learnt():
    ats = list(accumulate(400 if step % 100 == 0 else 5 for step in range(1, 301)))
    lines = [line(at, f"step={step} loss=1.0") for step, at in enumerate(ats, 1)]
    snapshot = fold(lines)
    assert snapshot.step_pause_s == snapshot.line_pause_s == 400
    lines += steps(range(10), first=300, start=ats[-1] + 4000)
    assert fold(lines).line_pause_s == 400, "a single accident is no rhythm"


def test_a_stream_can_be_chosen():
    lines = [line(at, f"[rank{rank}]: step={at} loss={rank + 1}.0") for at in range(50) for rank in (1, 0)]
    folding = ProgressFold()
    folding.add(lines)
    assert [view.key for view in folding.snapshot().streams] == ["node-0[0]", "node-0[1]"]
    for key, loss in (("node-0[0]", 1.0), ("node-0[1]", 2.0)):
        folding.choose(key)
        assert (folding.snapshot().stream, folding.snapshot().loss) == (key, loss)
    folding.choose(None)
    assert folding.snapshot().stream == "node-0[0]"


@pytest.mark.proves("docs/health.md", "Progress: supported trainers")
def test_patterns_of_the_users_own_come_first():
    regex = r"@(?P<step>\d+)/(?P<total>\d+) L(?P<loss>[\d.]+|nan) (?P<step_time_ms>\d+)ms"
    folding = ProgressFold(patterns=[ProgressPattern("mine", regex)])
    folding.add(line(10 * at, f"\x1b[1m@{at}/100 L{2.5 - at / 100:.2f} 250ms\x1b[0m") for at in range(1, 11))
    snapshot = folding.snapshot()
    assert (snapshot.step, snapshot.total_steps, snapshot.loss) == (10, 100, 2.4)
    assert snapshot.streams[0].step_times_s == (0.25, 0.25)


REFUSED = {
    "(?P<loss>": "mine",
    r"(?<=loss )(?P<loss>\d+)": "look-ahead and look-behind are not supported",
    r"(?P<loss>\d+)(?=x)": "look-ahead and look-behind are not supported",
    r"(?P<loss>\d)\1": "no look-around, back-references",
    r"(?P<loss>\d++)": "mine",
    r"loss (\d+)": "names no group",
}


@pytest.mark.parametrize("regex", REFUSED)
def test_a_pattern_that_cannot_work_says_why(regex):
    with pytest.raises(ValueError, match=REFUSED[regex]):
        ProgressPattern("mine", regex)


def test_no_pattern_takes_long_on_any_line():
    slow = ProgressPattern("mine", r"(?P<loss>(?:\d+)+)!")
    folding = ProgressFold(patterns=[slow])
    folding.add([line(n, "loss " + "1" * 5000 + "\ud800") for n in range(20)])
    assert folding.snapshot().loss is None


@pytest.mark.parametrize(
    "message",
    [
        " {percent}%|# | {step}/938 [00:10<01:30,  1.01it/s, loss={loss:.3f}]",
        "step {step}/938 loss: {loss:.3f}",
        "[{step}/938] loss: {loss:.3f}",
        "Epoch {epoch} | Step {step} | Loss: {loss:.3f}",
    ],
    ids=["bar", "step", "brackets", "epochs"],
)
def test_steps_that_begin_anew_with_every_epoch_are_counted_on_and_no_restarts(message):
    lines = []
    for epoch in range(5):
        for at, step in enumerate(range(0, 939, 14)):
            loss = 3 - epoch / 3 - step / 5000
            text = message.format(epoch=epoch, step=step, percent=step // 10, loss=loss)
            lines.append(line(epoch * 113 + at, text))  # and an evaluation
    told = fold(lines)
    assert told.restarts == ()
    assert (told.step, told.total_steps) == (5 * 938, None), "nobody said how many epochs there will be"
    by_step = [step for step, _ in told.loss_by_step]
    assert by_step == sorted(by_step)
