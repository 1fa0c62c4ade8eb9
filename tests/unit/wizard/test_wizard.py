"""The deploy wizard: each question, the way through them forth and back, and what the answers make."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from api_client.definitions import CheckpointList, Compute, DeployCheckpointsConfig, FullCheckpoint
from api_client.models import Checkpoint, CheckpointFile
from support.wizard_facts import (
    BASE,
    NOW,
    checkpoint,
    job,
    lora,
    state_of,
    step_named,
    to,
    with_checkpoints,
    wizard_of,
)
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.checkpoints import CheckpointFault, KeptLosses, saved_key
from tui.analysis.run.finding import FindingKind
from tui.analysis.run.snapshot import RunSnapshot
from tui.wizard.given import conflict, initial_wizard_state, unanswered_questions
from tui.wizard.progress import WizardProgress, questions
from tui.wizard.review import DEPLOY, deploy_config, findings, review
from tui.wizard.state import (
    BASE_MODEL,
    CHECKPOINTS,
    ENVIRONMENT,
    GPU,
    HF_SECRET,
    JOB,
    LORA_RANK,
    MODEL_NAME,
    REVIEW,
    SECRETS,
    Answers,
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


@pytest.mark.parametrize("store", ["bt-tui --remote lab secrets set hf_access_token --team t1", ""])
def test_workspace_without_secrets_suggests_storing_one_if_it_can(store: str) -> None:
    state = state_of(lora("a"), secrets=())
    wizard = WizardProgress(replace(state, facts=replace(state.facts, store_secret=store))).started()
    remark = step_named(to(wizard, REVIEW), HF_SECRET).remark
    assert remark.endswith(f"The workspace has no secrets; store one: {store}" if store else "no secrets.")


def test_what_cannot_be_deployed_is_shown_with_the_reason() -> None:
    wizard = to(wizard_of(checkpoint("a", "mystery"), lora("b"), lora("c", 600)), CHECKPOINTS)
    disabled = {each.value: bool(each.disabled_reason) for each in wizard.step.choices}
    assert disabled == {"a": True, "b": False, "c": True}
    assert wizard.step.default == ("b",)
    assert "a (sharded" in to(wizard_of(checkpoint("a", "fsdp")), CHECKPOINTS).step.refusal


@pytest.mark.parametrize(
    ("sizes_gib", "l4", "h100"),
    [([50], "smaller than the weights", "fits"), ([70], "smaller than the weights", ""), (None, "", "")],
)
def test_gpus_say_if_weights_of_known_size_fit(sizes_gib: list[int] | None, l4: str, h100: str) -> None:
    files = None
    if sizes_gib is not None:
        names = {"relative_file_name": "a/model.safetensors"}
        files = [CheckpointFile(**names, size_bytes=size * 1024**3) for size in sizes_gib]
    state = state_of()
    facts = state.facts.with_checkpoints("job1", [checkpoint("a", "full")], files)
    step = to(WizardProgress(replace(state, facts=facts)).started(), GPU, model_name="x").step
    parts = {choice.value: choice.hint.split(" · ") for choice in step.choices}
    said = {"smaller than the weights", "fits"}
    assert [said & {*parts[gpu]} for gpu in ("L4:1", "H100:1")] == [{l4} - {""}, {h100} - {""}]


@pytest.mark.parametrize("rank", [24, 16.5, -8, "16.5", "", None, True, "9" * 5000])
def test_other_ranks_are_refused_with_the_list(rank: Any) -> None:
    wizard = to(wizard_of(lora("a", 8)), LORA_RANK)
    assert "8, 16, 32, 64, 128, 256, 320, 512" in wizard.step.problem(rank)
    with pytest.raises(ValueError, match="16"):
        wizard.answered(rank)


def test_ranks_below_the_adapter_s_own_are_refused_and_not_offered() -> None:
    step = to(wizard_of(lora("a", 64)), LORA_RANK).step
    assert "64" in step.problem(32)
    offered = [each.value for each in step.choices if not each.disabled_reason]
    assert offered == ["64", "128", "256", "320", "512"]


def test_what_is_proposed() -> None:
    wizard = wizard_of(lora("a"))  # 8B: 16 GB and a quarter more
    assert to(wizard, BASE_MODEL).step.default == BASE
    assert to(wizard, MODEL_NAME).step.default == "Llama-3.1-8B-Instruct"
    assert to(wizard, MODEL_NAME, base_model="org/other-3B").step.default == "other-3B"
    machines = to(wizard, GPU).step
    assert (machines.default, "16 GB" in machines.remark) == ("L4:1", True)
    assert "$1.20 an hour" in machines.choices[1].hint
    full = wizard_of(checkpoint("a", "full", size_bytes=30_000_000_000))
    assert to(full, GPU, model_name="x").step.default == "A100_40GB:1"
    assert to(wizard_of(lora("a", base_model="org/x-70B")), GPU).step.default == "H100:2"


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
    wizard = to(wizard_of(lora("a")), step_id, environment=environment)
    problem = step_named(wizard, step_id).problem(answer)
    assert (words in problem) if words else problem == ""


def test_the_review_never_shows_the_value_of_a_variable() -> None:
    wizard = to(wizard_of(lora("a")), REVIEW, environment=(("TOKEN", "s3cret"),))
    assert "s3cret" not in str([(each.label, each.hint) for each in wizard.step.choices])
    assert any("TOKEN" in each.hint for each in wizard.step.choices)


def judged(*checkpoints: Checkpoint, faulty: Collection[str] = (), problem: str = "") -> WizardProgress:
    """The wizard, these checkpoints written after the loss became NaN, the others in good order."""
    fault = CheckpointFault(FindingKind.LOSS_NOT_FINITE, "the loss became NaN", NOW)
    faults = {saved_key(one): fault if one.checkpoint_id in faulty else None for one in checkpoints}
    told = ProgressSnapshot(loss_by_step=((100, 0.9), (200, 0.5), (300, 0.7)))
    known = {"progress": told, "log_read": True, "kept_losses": KeptLosses(), "faults": faults}
    run = RunSnapshot(job(), NOW, NOW, **known)
    state = state_of(*checkpoints)
    return WizardProgress(replace(state, facts=state.facts.with_evidence(run, problem))).started()


SAVED = tuple(lora(f"checkpoint-{n}", created_at=f"2026-03-01T1{n // 100}:00:00Z") for n in (100, 200, 300))


@pytest.mark.proves("README.md", "Can I ship it?")
def test_a_checkpoint_after_a_broken_loss_is_marked_and_not_proposed() -> None:
    step = to(judged(*SAVED, faulty=("checkpoint-300",)), CHECKPOINTS).step
    assert [each.warning for each in step.choices] == ["after NaN", "", ""]
    assert step.choices[1].hint.startswith("★ best")
    assert "best: checkpoint-200, loss 0.500 at step 200" in step.remark
    assert step.default == ("checkpoint-200",)
    assert "written after the loss became NaN (2026-03-01 12:00 UTC): checkpoint-300" in step.remark
    assert step.problem(("checkpoint-300",)) == ""
    none = to(judged(*SAVED, faulty=[one.checkpoint_id for one in SAVED]), CHECKPOINTS).step
    sound = to(judged(*SAVED), CHECKPOINTS).step
    assert (none.default, none.is_open) == (("checkpoint-300",), True), "the newest, where all are faulty"
    assert (sound.default, sound.is_open) == (("checkpoint-200",), False), (
        "the best, though a newer one is sound"
    )


def test_what_could_not_be_judged_is_said_and_not_claimed() -> None:
    wizard = judged(*SAVED, problem="the log could not be read: no")
    unchecked = "checkpoints not checked: the log could not be read: no"
    assert unchecked in to(wizard, CHECKPOINTS).step.remark
    state = to(wizard, REVIEW).state
    (found,) = (one for one in findings(state, deploy_config(state)) if "checkpoints" in one.field)
    assert (found.severity, found.problem.startswith(unchecked)) == ("info", True)


def test_what_another_checkpoint_makes_doubtful_is_asked_again_and_nothing_else() -> None:
    saved = lora("a", 16), lora("b", 64), lora("c", 256)
    wizard = to(
        wizard_of(*saved), REVIEW, checkpoint_names=("a",), model_name="mine", gpu="H100:2", lora_rank=128
    )
    kept = to(wizard.at(CHECKPOINTS).answered(("b",)), REVIEW)
    assert (kept.state.answers.model_name, kept.state.answers.gpu) == ("mine", "H100:2")
    assert kept.state.answers.lora_rank == 128, "a typed rank that still holds"
    doubtful = wizard.at(CHECKPOINTS).answered(("c",))
    assert doubtful.current == BASE_MODEL
    doubtful = doubtful.answered(BASE)
    assert doubtful.current == LORA_RANK and "256" in doubtful.step.problem(doubtful.step.answer)
    assert doubtful.answered(256).current == REVIEW


def preset(*checkpoints: Checkpoint, secrets: tuple[str, ...] = ("hf_access_token",)) -> WizardProgress:
    """The wizard of a chosen job, as the screen begins it."""
    state = state_of(*checkpoints, secrets=secrets)
    chosen = replace(state.answers, job_id="job1")
    return WizardProgress(replace(state, answers=chosen, given=frozenset({JOB}))).prefilled()


def test_with_nothing_open_it_begins_at_the_review_and_a_changed_answer_derives_the_rest_again() -> None:
    wizard = preset(lora("a", 16), lora("b", 64))
    assert wizard.current == REVIEW and wizard.accepted == wizard.visited
    wizard = wizard.at(CHECKPOINTS).answered(("b",)).prefilled()
    assert (wizard.current, wizard.state.answers.lora_rank) == (REVIEW, 64)
    assert CHECKPOINTS not in wizard.accepted


def test_only_what_is_open_is_asked() -> None:
    unread = preset(lora("a"), lora("b"))
    facts = replace(unread.state.facts, unchecked_reason="the log is still being read")
    assert replace(unread, state=replace(unread.state, facts=facts)).prefilled().current == CHECKPOINTS
    assert preset(lora("a", base_model=None)).current == BASE_MODEL
    gated = preset(lora("a"), secrets=())
    assert (gated.current, gated.step.choices[-1].warning) == (HF_SECRET, "gated base model: needs a token")
    shown = gated.answered("")
    (warning,) = review(shown.prefilled().state, questions(shown.prefilled().state)).findings
    assert "is gated: it can't be downloaded without a Hugging Face token" in warning.problem
    assert preset(lora("a", base_model="Qwen/Qwen3-8B"), secrets=()).current == REVIEW


def test_the_review_cannot_deploy_what_is_in_error() -> None:
    wizard = to(wizard_of(lora("a")), REVIEW)
    assert wizard.step.problem(DEPLOY) == ""
    broken = replace(wizard.state, answers=replace(wizard.state.answers, lora_rank=8))
    step = WizardProgress(broken, wizard.visited, REVIEW).steps[-1]
    assert "below" in step.problem(DEPLOY)


@pytest.mark.proves("docs/commands.md", "`deploy_checkpoints`")
def test_a_file_is_asked_only_for_what_it_lacks_and_keeps_what_nothing_asks_for() -> None:
    full = FullCheckpoint(training_job_id="job1", checkpoint_name="a")
    details = CheckpointList(download_folder="/models", checkpoints=[full])
    config = DeployCheckpointsConfig(checkpoint_details=details, compute=Compute(cpu_count=7, memory="9Gi"))
    facts = state_of(checkpoint("a", "full")).facts
    state = replace(initial_wizard_state(Answers(), config, NOW), facts=facts)

    assert [each.flag for each in unanswered_questions(state)] == ["--model-name", "--gpu"]
    wizard = WizardProgress(state).started()
    asked = []
    while wizard.current != REVIEW:
        asked.append(wizard.current)
        wizard = wizard.answered("m" if wizard.current == MODEL_NAME else wizard.step.default)
    assert asked == [BASE_MODEL, MODEL_NAME, GPU, HF_SECRET, ENVIRONMENT, SECRETS]
    made = deploy_config(wizard.state)
    assert made.checkpoint_details.download_folder == "/models"
    assert (made.compute.cpu_count, made.compute.memory, str(made.compute.accelerator)) == (7, "9Gi", "L4")


def test_variables_of_options_go_before_those_of_the_file() -> None:
    wizard = to(wizard_of(lora("a")), REVIEW, environment=(("A", "1"), ("B", "2"), ("C", "3")))
    given = Answers(environment=(("A", "9"),), secrets=(("B", "wandb"),))
    answers = initial_wizard_state(given, deploy_config(wizard.state), NOW).answers
    assert (answers.environment, answers.secrets) == ((("C", "3"), ("A", "9")), (("B", "wandb"),))


def test_loops_checkpoints_are_asked_about_their_service_alone() -> None:
    loops = DeployCheckpointsConfig(checkpoint_details=CheckpointList(loops_checkpoint_ids=["l"]))
    facts = replace(state_of().facts, checkpoints_of="")
    state = replace(initial_wizard_state(Answers(), loops, NOW), facts=facts)
    wizard = to(WizardProgress(state).started(), REVIEW, model_name="m")
    assert [each.id for each in wizard.steps] == [MODEL_NAME, GPU, HF_SECRET, ENVIRONMENT, SECRETS, REVIEW]
    assert deploy_config(wizard.state).checkpoint_details.loops_checkpoint_ids == ["l"]
    assert "Loops" in conflict(Answers(job_id="job1"), loops)


def test_another_job_empties_the_choice_of_checkpoints_and_wants_its_own() -> None:
    state = state_of(lora("a"))
    state = replace(state, facts=replace(state.facts, jobs=(job(), job("job2"))))
    wizard = to(WizardProgress(state).started(), REVIEW, job_id="job1").at(JOB).answered("job2")
    assert wizard.state.needs_checkpoints
    wizard = with_checkpoints(wizard, [lora("z", training_job_id="job2")])
    assert wizard.current == CHECKPOINTS
    assert wizard.step.default == ("z",)
