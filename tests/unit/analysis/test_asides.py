"""The first evaluation or save that a run announces may take its time; a hang without one is told soon."""

import pytest
from test_health_rules import START_S, checkpoint, kinds, look, steps, told

from tui.analysis.progress.phases import announces_phase

MINUTE_S = 60.0


@pytest.mark.parametrize(
    "line",
    [
        "***** Running Evaluation *****",
        "[rank0]: Running validation...",
        "2026-01-02 10:00:00 - INFO - Starting evaluation on 3 data sets",
        "▶ Starting validation at step 120...",
        "Evaluating iter 1/8",
        "(skyrl_entrypoint pid=12) Started: 'eval'",
        "Saving the checkpoint (or staging if async is enabled).",
        "Saving the consolidated state dict to /mnt/ckpts/step_120 ...",
        "Uploading 14 files to s3://bucket/run",
    ],
)
def test_a_first_silent_evaluation_or_save_has_time(line):
    run = told([*steps(600), (601.0, line)])
    assert look(600 + 15 * MINUTE_S, progress=run) == ()
    assert kinds(look(600 + 21 * MINUTE_S, progress=run)) == ["stalled"], "but not for ever"


def test_the_next_one_is_measured_by_the_first():
    evaluation = "***** Running Evaluation *****"
    lines = [*steps(600), (601.0, evaluation), *((1000 + at, text) for at, text in steps(600))]
    run = told([*lines, (1600.0, evaluation)])
    assert look(1600 + 480, progress=run) == ()
    assert kinds(look(1600 + 520, progress=run)) == ["stalled"]


def test_what_was_announced_before_the_last_step_excuses_nothing():
    lines = [*steps(600), (300.5, "***** Running Evaluation *****")]
    assert kinds(look(900, progress=told(sorted(lines)))) == ["stalled"]


def test_an_evaluation_that_tells_how_it_goes_on_has_not_stalled():
    """Transformers' bar of an evaluation has no title: it is no training, for it counts something else."""
    bar = "{}%|█ | {}/1000 [00:10<01:00,  5.00s/it]\r{{'loss': 1.0, 'epoch': 0.1}}"
    training = [(step * 5.0, bar.format(step // 10, step)) for step in range(1, 121)]
    evaluating = [(600 + n * 20.0, f" {n // 4}%|█ | {n}/400 [10:00<20:00, 20.00s/it]") for n in range(1, 100)]
    run = told([*training, *evaluating])
    assert run.step == 120
    assert look(600 + 100 * 20, progress=run) == ()
    assert kinds(look(600 + 100 * 20 + 20 * MINUTE_S, progress=run)) == ["stalled"]


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
    assert [line for line in ORDINARY if announces_phase(line) is not None] == []


def test_an_evaluation_begins_anew_though_the_one_before_was_minutes_ago():
    evaluation = "***** Running Evaluation *****"
    after = [(at + 50.0, line) for at, line in steps(800) if at > 600.0]
    run = told([*steps(600), (601.0, evaluation), *after, (851.0, evaluation)])
    assert run.run_phase is not None
    assert START_S + 850.0 <= run.run_phase.since <= START_S + 851.0
    assert not run.run_phase.first


def test_a_first_checkpoint_that_is_listed_is_a_sign_too():
    run = told(steps(600))
    assert kinds(look(1000, progress=run)) == ["stalled"]
    assert look(1000, progress=run, checkpoints=(checkpoint(620, 120),)) == ()
    both = (checkpoint(300, 60), checkpoint(620, 120))
    assert kinds(look(1000, progress=run, checkpoints=both)) == ["stalled"], "the first one came and went"
