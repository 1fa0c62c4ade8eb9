"""The way through: forth, back, from the review; and what the answers make."""

from __future__ import annotations

from dataclasses import replace

from api_client.definitions import CheckpointList, Compute, DeployCheckpointsConfig, FullCheckpoint
from api_client.models import Checkpoint
from support.wizard_facts import BASE, NOW, checkpoint, job, lora, state_of, to, walk_of, with_checkpoints
from tui.wizard.given import conflict, initial_wizard_state, unanswered_questions
from tui.wizard.progress import WizardProgress, questions
from tui.wizard.review import DEPLOY, deploy_config, review
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
)


def test_what_another_checkpoint_makes_doubtful_is_asked_again_and_nothing_else() -> None:
    saved = lora("a", 16), lora("b", 64), lora("c", 256)
    walk = to(
        walk_of(*saved), REVIEW, checkpoint_names=("a",), model_name="mine", gpu="H100:2", lora_rank=128
    )
    kept = to(walk.at(CHECKPOINTS).answered(("b",)), REVIEW)
    assert (kept.state.answers.model_name, kept.state.answers.gpu) == ("mine", "H100:2")
    assert kept.state.answers.lora_rank == 128, "a typed rank that still holds"
    doubtful = walk.at(CHECKPOINTS).answered(("c",))
    assert doubtful.current == BASE_MODEL
    doubtful = doubtful.answered(BASE)
    assert doubtful.current == LORA_RANK and "256" in doubtful.step.problem(doubtful.step.answer)
    assert doubtful.answered(256).current == REVIEW


def preset(*checkpoints: Checkpoint, secrets: tuple[str, ...] = ("hf_access_token",)) -> WizardProgress:
    """The walk of a chosen job, as the screen begins it."""
    state = state_of(*checkpoints, secrets=secrets)
    chosen = replace(state.answers, job_id="job1")
    return WizardProgress(replace(state, answers=chosen, given=frozenset({JOB}))).prefilled()


def test_with_nothing_open_it_begins_at_the_review_and_a_changed_answer_derives_the_rest_again() -> None:
    walk = preset(lora("a", 16), lora("b", 64))
    assert walk.current == REVIEW and walk.accepted == walk.visited
    walk = walk.at(CHECKPOINTS).answered(("b",)).prefilled()
    assert (walk.current, walk.state.answers.lora_rank) == (REVIEW, 64)
    assert CHECKPOINTS not in walk.accepted


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
    walk = to(walk_of(lora("a")), REVIEW)
    assert walk.step.problem(DEPLOY) == ""
    broken = replace(walk.state, answers=replace(walk.state.answers, lora_rank=8))
    step = WizardProgress(broken, walk.visited, REVIEW).steps[-1]
    assert "below" in step.problem(DEPLOY)


def test_a_file_is_asked_only_for_what_it_lacks_and_keeps_what_nothing_asks_for() -> None:
    config = DeployCheckpointsConfig(
        checkpoint_details=CheckpointList(
            download_folder="/models",
            checkpoints=[FullCheckpoint(training_job_id="job1", checkpoint_name="a")],
        ),
        compute=Compute(cpu_count=7, memory="9Gi"),
    )
    facts = state_of(checkpoint("a", "full")).facts
    state = replace(initial_wizard_state(Answers(), config, NOW), facts=facts)

    assert [each.flag for each in unanswered_questions(state)] == ["--model-name", "--gpu"]
    walk = WizardProgress(state).started()
    asked = []
    while walk.current != REVIEW:
        asked.append(walk.current)
        walk = walk.answered("m" if walk.current == MODEL_NAME else walk.step.default)
    assert asked == [BASE_MODEL, MODEL_NAME, GPU, HF_SECRET, ENVIRONMENT, SECRETS]
    made = deploy_config(walk.state)
    assert made.checkpoint_details.download_folder == "/models"
    assert (made.compute.cpu_count, made.compute.memory, str(made.compute.accelerator)) == (7, "9Gi", "L4")


def test_variables_of_options_go_before_those_of_the_file() -> None:
    walk = to(walk_of(lora("a")), REVIEW, environment=(("A", "1"), ("B", "2"), ("C", "3")))
    given = Answers(environment=(("A", "9"),), secrets=(("B", "wandb"),))
    answers = initial_wizard_state(given, deploy_config(walk.state), NOW).answers
    assert (answers.environment, answers.secrets) == ((("C", "3"), ("A", "9")), (("B", "wandb"),))


def test_loops_checkpoints_are_asked_about_their_service_alone() -> None:
    loops = DeployCheckpointsConfig(checkpoint_details=CheckpointList(loops_checkpoint_ids=["l"]))
    state = replace(
        initial_wizard_state(Answers(), loops, NOW), facts=replace(state_of().facts, checkpoints_of="")
    )
    walk = to(WizardProgress(state).started(), REVIEW, model_name="m")
    assert [each.id for each in walk.steps] == [MODEL_NAME, GPU, HF_SECRET, ENVIRONMENT, SECRETS, REVIEW]
    assert deploy_config(walk.state).checkpoint_details.loops_checkpoint_ids == ["l"]
    assert "Loops" in conflict(Answers(job_id="job1"), loops)


def test_another_job_empties_the_choice_of_checkpoints_and_wants_its_own() -> None:
    state = state_of(lora("a"))
    state = replace(state, facts=replace(state.facts, jobs=(job(), job("job2"))))
    walk = to(WizardProgress(state).started(), REVIEW, job_id="job1").at(JOB).answered("job2")
    assert walk.state.needs_checkpoints
    walk = with_checkpoints(walk, [lora("z", training_job_id="job2")])
    assert walk.current == CHECKPOINTS
    assert walk.step.default == ("z",)
