"""The deploy form: each question, the way through them forth and back, and what the answers make."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from api_client.definitions import (
    CheckpointList,
    Compute,
    DeployCheckpointsConfig,
    FullCheckpoint,
    LoRACheckpoint,
    LoRADetails,
)
from api_client.deployment import DeployAnswers
from api_client.models import Checkpoint, CheckpointFile
from support.wizard_facts import (
    BASE,
    NOW,
    checkpoint,
    form_of,
    job,
    lora,
    question_named,
    to,
    with_checkpoints,
)
from tui.analysis.health.registry import KINDS
from tui.analysis.progress.snapshot import ProgressSnapshot
from tui.analysis.run.checkpoints import CheckpointFault, KeptLosses, saved_key
from tui.analysis.run.snapshot import RunSnapshot
from tui.forms.deployment import (
    ALL_QUESTION_IDS,
    DEPLOY,
    REVIEW,
    DeployForm,
    conflict,
    deploy_config,
    filled_form,
    findings,
    with_defaults,
)
from tui.forms.draft import Facts


def test_the_newest_job_is_proposed_and_those_that_never_ran_are_shown_with_the_reason() -> None:
    jobs = (
        job("old", created_at="2026-01-01T00:00:00Z"),
        job("new", "RUNNING", created_at="2026-02-28T00:00:00Z", name="sft"),
        job("queued", "PENDING", created_at="2026-03-01T00:00:00Z"),
    )
    question = DeployForm(Facts(NOW, jobs=jobs)).question
    assert [each.value for each in question.options] == ["queued", "new", "old"]
    assert question.default == "new"
    assert "has not run" in question.problem("queued")
    assert question.problem("new") == ""
    assert "no job 'other'" in question.problem("other")
    assert question.options[1].label == "sft (new)"
    without = DeployForm(Facts(NOW)).question
    assert "no training jobs" in without.refusal
    assert without.problem("job1")


@pytest.mark.parametrize("store", ["bt-tui --remote lab secrets set hf_access_token --team t1", ""])
def test_workspace_without_secrets_suggests_storing_one_if_it_can(store: str) -> None:
    form = form_of(lora("a"), secrets=())
    form = replace(form, facts=replace(form.facts, store_secret_command=store))
    remark = question_named(to(form, REVIEW), "hf_secret").remark
    assert remark.endswith(f"The workspace has no secrets; store one: {store}" if store else "no secrets.")


def test_what_cannot_be_deployed_is_shown_with_the_reason() -> None:
    form = to(form_of(checkpoint("a", "mystery"), lora("b"), lora("c", 600)), "checkpoint_names")
    disabled = {each.value: bool(each.disabled_reason) for each in form.question.options}
    assert disabled == {"a": True, "b": False, "c": True}
    assert form.question.default == ("b",)


def test_reasons_why_no_checkpoint_can_be_deployed_are_given_once() -> None:
    one_reason = to(form_of(checkpoint("a", "fsdp"), checkpoint("b", "fsdp")), "checkpoint_names").question
    assert one_reason.refusal.count("unknown type 'fsdp'") == 1 and "(a" not in one_reason.refusal
    assert {option.disabled_reason for option in one_reason.options} == {"can't be deployed"}
    two_reasons = to(
        form_of(checkpoint("a", "fsdp"), lora("b", 600), checkpoint("c", "fsdp")), "checkpoint_names"
    )
    assert "checkpoints can be deployed (a, c)" in two_reasons.question.refusal.replace("c, a", "a, c")


@pytest.mark.parametrize(
    ("sizes_gib", "l4", "h100"),
    [([50], "smaller than the weights", "fits"), ([70], "smaller than the weights", ""), (None, "", "")],
)
def test_gpus_say_if_weights_of_known_size_fit(sizes_gib: list[int] | None, l4: str, h100: str) -> None:
    files = None
    if sizes_gib is not None:
        names = {"relative_file_name": "a/model.safetensors"}
        files = [CheckpointFile(**names, size_bytes=size * 1024**3) for size in sizes_gib]
    facts = form_of().facts.with_checkpoints("job1", [checkpoint("a", "full")], files)
    question = to(replace(form_of(), facts=facts), "gpu", model_name="x").question
    parts = {choice.value: choice.hint.split(" · ") for choice in question.options}
    said = {"smaller than the weights", "fits"}
    assert [said & {*parts[gpu]} for gpu in ("L4:1", "H100:1")] == [{l4} - {""}, {h100} - {""}]


def test_ranks_below_the_adapter_s_own_are_refused_and_not_offered() -> None:
    form = to(form_of(lora("a", 64)), "lora_rank")
    question = form.question
    with pytest.raises(ValueError, match="64"):
        form.answered(32)
    offered = [each.value for each in question.options if not each.disabled_reason]
    assert offered == ["64", "128", "256", "320", "512"]


def test_what_is_proposed() -> None:
    form = form_of(lora("a"))  # 8B: 16 GB and a quarter more
    assert to(form, "base_model").question.default == BASE
    assert to(form, "model_name").question.default == "Llama-3.1-8B-Instruct"
    assert to(form, "model_name", base_model="org/other-3B").question.default == "other-3B"
    machines = to(form, "gpu").question
    assert (machines.default, "16 GB" in machines.remark) == ("L4:1", True)
    assert "$1.20 an hour" in machines.options[1].hint
    full = form_of(checkpoint("a", "full", size_bytes=30_000_000_000))
    assert to(full, "gpu", model_name="x").question.default == "A100_40GB:1"
    assert to(form_of(lora("a", base_model="org/x-70B")), "gpu").question.default == "H100:2"


@pytest.mark.parametrize(
    ("step_id", "answer", "words"),
    [
        ("base_model", "two words", "space"),
        ("model_name", "  ", "name"),
        ("model_name", "evil\x1b[2J", "characters"),
        *(("gpu", gpu, "") for gpu in ("h100:2", "A100_40GB:1")),
        ("gpu", "QUANTUM:1", "config files have no name"),
        *(("gpu", gpu, "GPU") for gpu in ("H100:2:3", "H100:3", None)),
        ("environment", (("A", "x=y"), ("B", "")), ""),
        ("environment", (("HF_TOKEN", "1"),), "twice"),
        ("environment", (("1A", "1"),), "not a variable name"),
        ("environment", (("A", "x\0"),), "NUL"),
        ("secrets", (("W", "wandb"),), ""),
        ("secrets", (("W", ""),), "choose a secret"),
        ("secrets", (("A", "wandb"),), "twice"),
    ],
)
def test_what_each_question_takes_and_refuses(step_id: str, answer: Any, words: str) -> None:
    environment = (("A", "1"),) if step_id == "secrets" else ()
    form = to(form_of(lora("a")), step_id, environment=environment)
    problem = question_named(form, step_id).problem(answer)
    assert (words in problem) if words else problem == ""


def test_the_review_never_shows_the_value_of_a_variable() -> None:
    form = to(form_of(lora("a")), REVIEW, environment=(("TOKEN", "s3cret"),))
    assert "s3cret" not in str([(each.label, each.hint) for each in form.question.options])
    assert any("TOKEN" in each.hint for each in form.question.options)


def judged(*checkpoints: Checkpoint, faulty: Collection[str] = (), problem: str = "") -> DeployForm:
    """The form, these checkpoints written after the loss became NaN, the others in good order."""
    fault = CheckpointFault(KINDS["loss-not-finite"], "the loss became NaN", NOW)
    faults = {saved_key(one): fault if one.checkpoint_id in faulty else None for one in checkpoints}
    told = ProgressSnapshot(loss_by_step=((100, 0.9), (200, 0.5), (300, 0.7)))
    known = {"progress": told, "log_read": True, "kept_losses": KeptLosses(), "faults": faults}
    run = RunSnapshot(job(), NOW, NOW, **known)
    form = form_of(*checkpoints)
    return replace(form, facts=form.facts.with_evidence(run, problem))


SAVED = tuple(lora(f"checkpoint-{n}", created_at=f"2026-03-01T1{n // 100}:00:00Z") for n in (100, 200, 300))


@pytest.mark.proves("README.md", "Can I ship it?")
def test_a_checkpoint_after_a_broken_loss_is_marked_and_not_proposed() -> None:
    question = to(judged(*SAVED, faulty=("checkpoint-300",)), "checkpoint_names").question
    assert [each.warning for each in question.options] == ["after NaN", "", ""]
    assert question.options[1].hint.startswith("★")
    assert "best: checkpoint-200, loss 0.500 at step 200" in question.remark
    assert question.default == ("checkpoint-200",)
    assert "written after the loss became NaN (2026-03-01 12:00 UTC): checkpoint-300" in question.remark
    assert question.problem(("checkpoint-300",)) == ""
    none = to(judged(*SAVED, faulty=[one.checkpoint_id for one in SAVED]), "checkpoint_names").question
    sound = to(judged(*SAVED), "checkpoint_names").question
    assert (none.default, none.is_open) == (("checkpoint-300",), True), "the newest, where all are faulty"
    assert (sound.default, sound.is_open) == (("checkpoint-200",), False), (
        "the best, though a newer one is sound"
    )


def test_what_could_not_be_judged_is_said_and_not_claimed() -> None:
    form = judged(*SAVED, problem="the log could not be read: no")
    unchecked = "checkpoints not checked: the log could not be read: no"
    assert unchecked in to(form, "checkpoint_names").question.remark
    form = to(form, REVIEW)
    (found,) = (one for one in findings(form, deploy_config(form)) if "checkpoints" in one.field)
    assert (found.severity, found.problem.startswith(unchecked)) == ("info", True)


def test_what_another_checkpoint_makes_doubtful_is_asked_again_and_nothing_else() -> None:
    saved = lora("a", 16), lora("b", 64), lora("c", 256)
    form = to(
        form_of(*saved), REVIEW, checkpoint_names=("a",), model_name="mine", gpu="H100:2", lora_rank=128
    )
    kept = to(replace(form, selected_id="checkpoint_names").answered(("b",)), REVIEW)
    assert (kept.answers.model_name, kept.answers.gpu) == ("mine", "H100:2")
    assert kept.answers.lora_rank == 128, "a typed rank that still holds"
    doubtful = replace(form, selected_id="checkpoint_names").answered(("c",))
    assert doubtful.current == "lora_rank" and "256" in doubtful.question.objection
    assert doubtful.answered(256).current == REVIEW


def preset(*checkpoints: Checkpoint, secrets: tuple[str, ...] = ("hf_access_token",)) -> DeployForm:
    """The form of a chosen job, as the screen begins it."""
    form = filled_form(DeployAnswers(job_id="job1"), None, NOW)
    return replace(form, facts=form_of(*checkpoints, secrets=secrets).facts)


def test_with_nothing_open_it_begins_at_the_review_and_a_changed_answer_derives_the_rest_again() -> None:
    form = preset(lora("a", 16), lora("b", 64))
    assert (form.current, form.lora_rank, form.confirmed_ids) == (REVIEW, 16, frozenset())
    form = replace(form, selected_id="checkpoint_names").answered(("b",))
    assert (form.current, form.lora_rank) == (REVIEW, 64)
    assert form.confirmed_ids == {"checkpoint_names"}


def test_only_what_is_open_is_asked() -> None:
    unread = preset(lora("a"), lora("b"))
    facts = replace(unread.facts, unchecked_reason="the log is still being read")
    assert replace(unread, facts=facts).current == "checkpoint_names"
    assert preset(lora("a", base_model=None)).current == "base_model"
    gated = preset(lora("a"), secrets=())
    assert gated.current == "hf_secret"
    assert gated.question.options[-1].warning == "gated base model: needs a token"
    (warning,) = gated.answered("").review.findings
    assert "is gated: it can't be downloaded without a Hugging Face token" in warning.problem
    assert preset(lora("a", base_model="Qwen/Qwen3-8B"), secrets=()).current == REVIEW


def test_the_review_cannot_deploy_what_is_in_error() -> None:
    form = to(form_of(lora("a")), REVIEW)
    assert form.question.problem(DEPLOY) == ""
    broken = replace(form, answers=replace(form.answers, lora_rank=8))
    assert "below" in broken.questions[-1].problem(DEPLOY)


@pytest.mark.proves("docs/commands.md", "`deploy_checkpoints`")
def test_a_file_is_asked_only_for_what_it_lacks_and_keeps_what_nothing_asks_for() -> None:
    full = FullCheckpoint(training_job_id="job1", checkpoint_name="a")
    details = CheckpointList(download_folder="/models", checkpoints=[full])
    config = DeployCheckpointsConfig(checkpoint_details=details, compute=Compute(cpu_count=7, memory="9Gi"))
    facts = form_of(checkpoint("a", "full")).facts
    form = replace(filled_form(DeployAnswers(), config, NOW), facts=facts, always_asked=ALL_QUESTION_IDS)

    assert [each.flag for each in form.missing] == ["--model-name", "--gpu"]
    asked = []
    while form.current != REVIEW:
        asked.append(form.current)
        form = form.answered("m" if form.current == "model_name" else form.question.default)
    assert asked == ["base_model", "model_name", "gpu", "hf_secret", "environment", "secrets"]
    made = deploy_config(form)
    assert made.checkpoint_details.download_folder == "/models"
    assert (made.compute.cpu_count, made.compute.memory, str(made.compute.accelerator)) == (7, "9Gi", "L4")


@pytest.mark.parametrize(("rank", "saved"), [(None, 32), (64, 64)])
def test_config_file_with_adapters_of_two_jobs_deploys_both(rank: int | None, saved: int) -> None:
    adapters = [
        LoRACheckpoint(training_job_id=job_id, checkpoint_name=name, lora_details=LoRADetails(rank=own))
        for job_id, name, own in (("job1", "a", 16), ("job2", "b", 32))
    ]
    gpu = Compute.model_validate({"accelerator": "H100"})
    details = CheckpointList(base_model_id=BASE, checkpoints=adapters)
    config = DeployCheckpointsConfig(model_name="m", checkpoint_details=details, compute=gpu)
    form = filled_form(DeployAnswers(lora_rank=rank), config, NOW)
    assert form.job_ids == ("job1", "job2")
    listed = [lora("a"), lora("b", training_job_id="job2")]
    form, _remarks = with_defaults(
        replace(form, facts=form_of().facts.with_checkpoints("job1", listed, None))
    )
    assert (form.problems, form.review.errors) == ({}, ())
    made = form.review.config.checkpoint_details.checkpoints
    assert [(each.training_job_id, each.lora_details.rank) for each in made] == [
        ("job1", saved),
        ("job2", saved),
    ]
    assert set(form.review.config_texts) == {"python", "json"}, "no option names a second job"


def test_variables_of_options_go_before_those_of_the_file() -> None:
    form = to(form_of(lora("a")), REVIEW, environment=(("A", "1"), ("B", "2"), ("C", "3")))
    given = DeployAnswers(environment=(("A", "9"),), secrets=(("B", "wandb"),))
    answers = filled_form(given, deploy_config(form), NOW).answers
    assert (answers.environment, answers.secrets) == ((("C", "3"), ("A", "9")), (("B", "wandb"),))


def test_loops_checkpoints_are_asked_about_their_service_alone() -> None:
    loops = DeployCheckpointsConfig(checkpoint_details=CheckpointList(loops_checkpoint_ids=["l"]))
    facts = replace(form_of().facts, checkpoints_job_id="")
    form = replace(filled_form(DeployAnswers(), loops, NOW), facts=facts, always_asked=ALL_QUESTION_IDS)
    form = to(form, REVIEW, model_name="m")
    asked = ["model_name", "gpu", "hf_secret", "environment", "secrets", REVIEW]
    assert [question.id for question in form.questions] == asked
    assert deploy_config(form).checkpoint_details.loops_checkpoint_ids == ["l"]
    assert "Loops" in conflict(DeployAnswers(job_id="job1"), loops)


def test_another_job_empties_the_choice_of_checkpoints_and_wants_its_own() -> None:
    form = form_of(lora("a"))
    form = replace(form, facts=replace(form.facts, jobs=(job(), job("job2"))))
    form = replace(to(form, REVIEW, job_id="job1"), selected_id="job_id").answered("job2")
    assert form.needs_checkpoints
    form = with_checkpoints(form, [lora("z", training_job_id="job2")])
    assert form.current == "checkpoint_names"
    assert form.question.default == ("z",)
