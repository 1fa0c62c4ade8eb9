"""Each question: its choices, its default, what it refuses and what it sets."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from api_client.models import Checkpoint
from support.wizard_facts import BASE, NOW, checkpoint, job, lora, state_of, step_named, to, walk_of
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.finding import FindingKind
from tui.analysis.run.snapshot import CheckpointFault, KeptLosses, RunSnapshot, saved_key
from tui.wizard.progress import WizardProgress
from tui.wizard.review import deploy_config, findings
from tui.wizard.state import (
    BASE_MODEL,
    CHECKPOINTS,
    ENVIRONMENT,
    GPU,
    LORA_RANK,
    MODEL_NAME,
    REVIEW,
    SECRETS,
    Facts,
    WizardState,
)


def test_the_newest_job_is_proposed_and_those_that_never_ran_are_shown_with_the_reason() -> None:
    jobs = (
        job("old", created_at="2026-01-01T00:00:00Z"),
        job("new", "RUNNING", created_at="2026-02-28T00:00:00Z", name="sft"),
        job("queued", "PENDING", created_at="2026-03-01T00:00:00Z"),
    )
    step = WizardProgress(WizardState(Facts(NOW, jobs=jobs))).started().step
    assert [each.value for each in step.choices] == ["queued", "new", "old"]
    assert step.default == "new"
    assert "has not run" in step.problem("queued")
    assert step.problem("new") == ""
    assert "no job 'other'" in step.problem("other")
    assert step.choices[1].label == "sft (new)"
    without = WizardProgress(WizardState(Facts(NOW))).started().step
    assert "no training jobs" in without.refusal
    assert without.problem("job1")


def test_what_cannot_be_deployed_is_shown_with_the_reason() -> None:
    walk = to(walk_of(checkpoint("a", "mystery"), lora("b"), lora("c", 600)), CHECKPOINTS)
    disabled = {each.value: bool(each.disabled_reason) for each in walk.step.choices}
    assert disabled == {"a": True, "b": False, "c": True}
    assert walk.step.default == ("b",)
    assert "a (sharded" in to(walk_of(checkpoint("a", "fsdp")), CHECKPOINTS).step.refusal


@pytest.mark.parametrize("rank", [24, 16.5, -8, "16.5", "", None, True, "9" * 5000])
def test_other_ranks_are_refused_with_the_list(rank: Any) -> None:
    walk = to(walk_of(lora("a", 8)), LORA_RANK)
    assert "8, 16, 32, 64, 128, 256, 320, 512" in walk.step.problem(rank)
    with pytest.raises(ValueError, match="16"):
        walk.answered(rank)


def test_ranks_below_the_adapter_s_own_are_refused_and_not_offered() -> None:
    step = to(walk_of(lora("a", 64)), LORA_RANK).step
    assert "64" in step.problem(32)
    offered = [each.value for each in step.choices if not each.disabled_reason]
    assert offered == ["64", "128", "256", "320", "512"]


def test_only_adapters_are_asked_for_a_rank_and_need_a_base_model() -> None:
    full = to(walk_of(checkpoint("a", "full")), BASE_MODEL)
    assert LORA_RANK not in [each.id for each in full.steps]
    assert full.step.problem("") == ""
    assert to(walk_of(lora("a", base_model=None)), BASE_MODEL).step.problem("") != ""


def test_what_is_proposed() -> None:
    walk = walk_of(lora("a"))  # 8B: 16 GB and a quarter more
    assert to(walk, BASE_MODEL).step.default == BASE
    assert to(walk, MODEL_NAME).step.default == "Llama-3.1-8B-Instruct"
    assert to(walk, MODEL_NAME, base_model="org/other-3B").step.default == "other-3B"
    machines = to(walk, GPU).step
    assert (machines.default, "16 GB" in machines.remark) == ("L4:1", True)
    assert "$1.20 an hour" in machines.choices[1].hint
    full = walk_of(checkpoint("a", "full", size_bytes=30_000_000_000))
    assert to(full, GPU, model_name="x").step.default == "A100_40GB:1"
    assert to(walk_of(lora("a", base_model="org/x-70B")), GPU).step.default == "H100:2"


@pytest.mark.parametrize(
    ("step_id", "answer", "words"),
    [
        (BASE_MODEL, "two words", "space"),
        (MODEL_NAME, "  ", "name"),
        (MODEL_NAME, "evil\x1b[2J", "characters"),
        *((GPU, gpu, "") for gpu in ("h100:2", "A100_40GB:1")),
        (GPU, "QUANTUM:1", "no GPU type QUANTUM"),
        *((GPU, gpu, "TYPE:COUNT") for gpu in ("H100:2:3", None)),
        (ENVIRONMENT, (("A", "x=y"), ("B", "")), ""),
        (ENVIRONMENT, (("HF_TOKEN", "1"),), "twice"),
        (ENVIRONMENT, (("1A", "1"),), "not a variable name"),
        (ENVIRONMENT, (("A", "x\0"),), "NUL"),
        (SECRETS, (("W", "wandb"),), ""),
        (SECRETS, (("W", ""),), "choose a secret"),
        (SECRETS, (("A", "wandb"),), "twice"),
    ],
)
def test_what_each_question_takes_and_refuses(step_id: str, answer: Any, words: str) -> None:
    environment = (("A", "1"),) if step_id == SECRETS else ()
    walk = to(walk_of(lora("a")), step_id, environment=environment)
    problem = step_named(walk, step_id).problem(answer)
    assert (words in problem) if words else problem == ""


def test_the_review_never_shows_the_value_of_a_variable() -> None:
    walk = to(walk_of(lora("a")), REVIEW, environment=(("TOKEN", "s3cret"),))
    assert "s3cret" not in str([(each.label, each.hint) for each in walk.step.choices])
    assert any("TOKEN" in each.hint for each in walk.step.choices)


def judged(*checkpoints: Checkpoint, faulty: Collection[str] = (), problem: str = "") -> WizardProgress:
    """The wizard, these checkpoints written after the loss became NaN, the others in good order."""
    fault = CheckpointFault(FindingKind.LOSS_NOT_FINITE, "the loss became NaN", NOW)
    run = RunSnapshot(
        job(),
        NOW,
        NOW,
        progress=ProgressSnapshot(loss_by_step=((100, 0.9), (200, 0.5), (300, 0.7))),
        log_read=True,
        kept_losses=KeptLosses(),
        faults={saved_key(one): fault if one.checkpoint_id in faulty else None for one in checkpoints},
    )
    state = state_of(*checkpoints)
    return WizardProgress(replace(state, facts=state.facts.with_evidence(run, problem))).started()


SAVED = tuple(lora(f"checkpoint-{n}", created_at=f"2026-03-01T1{n // 100}:00:00Z") for n in (100, 200, 300))


def test_a_checkpoint_after_a_broken_loss_is_marked_and_not_proposed() -> None:
    step = to(judged(*SAVED, faulty=("checkpoint-300",)), CHECKPOINTS).step
    assert [each.warning for each in step.choices] == ["after NaN", "", ""]
    assert step.choices[1].hint.startswith("★ best")
    assert "best: checkpoint-200, loss 0.500 at step 200" in step.remark
    assert step.default == ("checkpoint-200",)
    assert "written after the loss became NaN (2026-03-01 12:00 UTC): checkpoint-300" in step.remark
    assert step.problem(("checkpoint-300",)) == ""


def test_what_could_not_be_judged_is_said_and_not_claimed() -> None:
    walk = judged(*SAVED, problem="the log could not be read: no")
    unchecked = "checkpoints not checked: the log could not be read: no"
    assert unchecked in to(walk, CHECKPOINTS).step.remark
    state = to(walk, REVIEW).state
    (found,) = (one for one in findings(state, deploy_config(state)) if "checkpoints" in one.field)
    assert (found.severity, found.problem.startswith(unchecked)) == ("info", True)


@pytest.mark.parametrize(
    ("faulty", "proposed", "is_open"), [(SAVED, "checkpoint-300", True), ((), "checkpoint-200", False)]
)
def test_the_best_is_proposed_even_if_a_newer_one_is_sound_and_else_the_newest(
    faulty: tuple[Checkpoint, ...], proposed: str, is_open: bool
) -> None:
    step = to(judged(*SAVED, faulty=[one.checkpoint_id for one in faulty]), CHECKPOINTS).step
    assert (step.default, step.is_open) == ((proposed,), is_open)
