"""The first evaluation or save that a run announces may take its time; a hang without one is told soon."""

import pytest
from metrics_payloads import series
from test_health_rules import START_S, checkpoint, kinds, metrics, run, steps, told

from tui.analysis.progress.announcements import announced

EVALUATION = "***** Running Evaluation *****"
ANNOUNCED = f"""{EVALUATION}
[rank0]: Running validation...
2026-01-02 10:00:00 - INFO - Starting evaluation on 3 data sets
▶ Starting validation at step 120...
Evaluating iter 1/8
(skyrl_entrypoint pid=12) Started: 'eval'
Saving the checkpoint (or staging if async is enabled).
Saving the consolidated state dict to /mnt/ckpts/step_120 ...
Uploading 14 files to s3://bucket/run
training finished, uploading the model""".splitlines()
AGAIN = [*steps(600), (601.0, EVALUATION), *((2e3 + at, one) for at, one in steps(600)), (2600.0, EVALUATION)]
BAR = "{}%|█ | {}/1000 [00:10<01:00,  5.00s/it]\r{{'loss': 1.0, 'epoch': 0.1}}"
EVALUATING = [(600 + n * 20.0, f" {n // 4}%|█ | {n}/400 [10:00<20:00, 20.00s/it]") for n in range(1, 100)]
RUNS = {
    **{line: ([*steps(600), (601.0, line)], 2300, 2460) for line in ANNOUNCED},
    "the next one is measured by the first": (AGAIN, 4330, 4370),
    # Transformers' bar of an evaluation has no title: it is no training, for it counts something else.
    "one that tells how it goes on": (
        [*((step * 5.0, BAR.format(step // 10, step)) for step in range(1, 121)), *EVALUATING], 2600, 3800),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_a_silent_evaluation_or_save_has_time_but_not_for_ever(name):
    lines, silent_s, stalled_s = RUNS[name]
    assert run(lines, silent_s) == ()
    assert kinds(run(lines, stalled_s)) == ["stalled"]


def test_what_was_announced_before_the_last_step_excuses_nothing():
    assert kinds(run(sorted([*steps(600), (300.5, EVALUATION)]), 1250)) == ["stalled"]


WARNINGS = """NCCL WARN socketProgress: no data for 60 s
[W1122 10:00:00.1 socket.cpp:464] the client has not answered
/opt/train.py:88: UserWarning: worker 3 is slow
2026-01-02 10:00:00 - WARNING - retrying to read the next batch""".splitlines()


@pytest.mark.parametrize("warning", WARNINGS)
def test_a_warning_announces_no_work(warning: str) -> None:
    assert run([*steps(610), (611.0, "Preparing the next stage")], 1260) == ()
    assert kinds(run([*steps(610), (611.0, warning)], 1260)) == ["stalled"]


def test_after_an_error_new_words_announce_no_work() -> None:
    failed = (611.0, "RuntimeError: the server has died")
    (stalled,) = run([*steps(610), failed, (615.0, "Trying to reach it again")], 1290)
    assert str(stalled.kind) == "stalled"
    assert stalled.text.endswith("; error: RuntimeError: the server has died")


@pytest.mark.parametrize(("level", "stalls"), [(1.0, ["stalled"]), (0.9, [])])
def test_gpus_that_begin_to_spin_halve_the_time_of_new_work(level: float, stalls: list[str]) -> None:
    use = metrics(series(range(0, 4080, 60), gpu=lambda at: 0.9 if at < 3000 else level))
    assert kinds(run([*steps(3000), (3001.0, EVALUATION)], 4080, health_metrics=use)) == stalls


ORDINARY = """evaluation_strategy: steps
Evaluation every 500 steps
eval_strategy=steps, eval_steps=500
Evaluation finished in 300 s
Skipping evaluation
Validation Sanity Check: 0it
  warnings.warn('compiling is disabled')
Saved checkpoint to /x
Finished: 'eval', time cost: 61.20s
re-evaluating the policy is disabled""".splitlines()


def test_lines_that_only_mention_it():
    assert [line for line in ORDINARY if announced(line) is not None] == []


def test_an_evaluation_begins_anew_though_the_one_before_was_minutes_ago():
    after = [(at + 50.0, line) for at, line in steps(800) if at > 600.0]
    phase = told([*steps(600), (601.0, EVALUATION), *after, (851.0, EVALUATION)]).run_phase
    assert phase is not None and not phase.first
    assert START_S + 850.0 <= phase.since <= START_S + 851.0


def test_a_first_checkpoint_that_is_listed_is_a_sign_too():
    once, twice = [checkpoint(620, 120)], [checkpoint(300, 60), checkpoint(620, 120)]
    assert kinds(run(steps(600), 1300)) == ["stalled"]
    assert run(steps(600), 1300, checkpoints=tuple(once)) == ()
    assert kinds(run(steps(600), 1300, checkpoints=tuple(twice))) == ["stalled"], "the first came and went"
