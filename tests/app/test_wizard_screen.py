"""What the wizard's screen makes of answers: the rules are the steps', the screen must show them."""

import asyncio
from dataclasses import replace
from functools import partial

import pytest
from rich.style import Style
from textual import events
from textual._compositor import Compositor
from textual.widgets import Input

from api_client.deployment import DeployAnswers
from support.dashboard import Heard, StubDeployFeed, deploy_view, opened, pressed, resized, settle, text_of
from support.waiting import PATIENCE_S, until
from support.wizard_facts import NOW, checkpoint, form_of, lora, to
from tui.analysis.health.registry import KINDS
from tui.analysis.run.checkpoints import CheckpointFault, KeptLosses, saved_key
from tui.analysis.run.snapshot import RunSnapshot
from tui.app import BtTuiApp, typed_keys
from tui.feeds.deployment import DeploySnapshot
from tui.forms.deployment import REVIEW, DeployForm, filled_form
from tui.screens.deploy.answers import CheckboxList, QuestionPane
from tui.screens.deploy.screen import DeployScreen
from tui.screens.messages import CopyRequested
from tui.widgets.text_panel import WrappedText

SIZE = (80, 24)


def step_of(screen: object) -> str:
    return screen.snapshot.form.question.id


def review_of(app: BtTuiApp) -> DeployForm:
    """The state of the wizard, which shows the review."""
    assert app.screen.snapshot.form.current == REVIEW
    return app.screen.snapshot.form


def deploying(*names: str, of: tuple[object, ...]) -> DeployForm:
    """The wizard as it opens on checkpoints that were chosen on another screen."""
    facts = form_of(*of).facts  # type: ignore[arg-type]
    form = filled_form(DeployAnswers(job_id="job1", checkpoint_names=names), None, facts.now)
    return replace(form, facts=facts)


def words_of(app: BtTuiApp) -> str:
    return " ".join(line.strip() for line in text_of(app).splitlines())


async def test_what_cannot_be_chosen_or_stand_together_says_the_whole_reason() -> None:
    saved = (checkpoint("one", "full"), checkpoint("two", "full"), checkpoint("shards", "fsdp"))
    app = deploy_view(to(form_of(*saved), "checkpoint_names"))
    async with opened(app, SIZE) as pilot:
        assert "only lora, full and whisper checkpoints can be deployed" in words_of(app)
        marks = app.screen.query_one(CheckboxList)
        for position in (0, 1):
            marks.highlighted = position
            if marks.get_option_at_index(position).id not in marks.marked_values:
                marks.action_mark()
        await pressed(pilot, "enter")
        assert step_of(app.screen) == "checkpoint_names"
        assert "✗" in text_of(app)


async def test_list_grows_with_warnings_and_shrinks_without_them() -> None:
    saved = [lora(f"checkpoint-{number}") for number in range(1, 6)]
    app = deploy_view(to(form_of(*saved), "checkpoint_names"))
    async with opened(app, SIZE) as pilot:
        pane, marks = app.screen.query_one(QuestionPane), app.screen.query_one(CheckboxList)
        calm = pane.question
        warned = replace(calm, options=tuple(replace(each, warning="exploded") for each in calm.options))
        for question, lines in ((warned, 10), (calm, 5)):
            assert pane.revise(question)
            await settle(pilot)
            assert (marks.size.height, marks.show_vertical_scrollbar) == (lines, False)


async def test_variables_are_read_a_line_each_and_the_review_copies_the_config_in_each_form() -> None:
    app, copied = deploy_view(to(form_of(lora("checkpoint-1")), "environment")), Heard(CopyRequested)
    async with opened(app, (100, 50), message_hook=copied) as pilot:
        assert "is not NAME=value" in await pressed(pilot, *"NAME", "ctrl+s")
        app.screen.watch_snapshot(app.screen.snapshot)  # as when the feed reads new facts
        await settle(pilot)
        assert "is not NAME=value" in text_of(app)
        await pressed(pilot, *"=1", "ctrl+s")
        assert step_of(app.screen) == REVIEW
        await pilot.press("down", "down", "down")
        for words in ('"model_name":', "--model-name", "DeployCheckpointsConfig("):
            await pressed(pilot, "enter", "ctrl+y")
            assert words in text_of(app)
    assert [one.noun for one in copied.messages] == ["json", "command", "python"]


async def test_each_step_shows_the_config_of_the_answers_where_there_is_room() -> None:
    app = deploy_view(to(form_of(lora("checkpoint-1")), "gpu"))
    async with opened(app, (120, 36)) as pilot:
        assert "checkpoint_name='checkpoint-1'" in text_of(app)
        await resized(pilot, *SIZE)
        assert "checkpoint_name" not in text_of(app)
        app.screen.post_message(DeployScreen.Published(DeploySnapshot(stage="asking", form=form_of())))
        await resized(pilot, 120, 36)
        assert "deploy_config" not in text_of(app), "nothing can be deployed"


async def test_back_leads_to_a_checkpoint_that_was_chosen_on_another_screen_and_no_further() -> None:
    app = deploy_view(deploying("a", of=(lora("a"), lora("b"))))
    async with opened(app, SIZE) as pilot:
        assert step_of(app.screen) == REVIEW
        await pressed(pilot, *["ctrl+b"] * 8)
        assert step_of(app.screen) == "checkpoint_names"
        assert "^b" not in text_of(app).splitlines()[-1]
        app.clear_notifications()
        await pressed(pilot, "ctrl+b")
        answers = [notice.message for notice in app._notifications]
        assert answers == ["No earlier step can be changed; esc returns to the review."]
        assert step_of(app.screen) == "checkpoint_names"
        await pressed(pilot, "space", "j", "space", "ctrl+s")
        assert review_of(app).answers.checkpoint_names == ("b",)


async def test_confirmation_names_checkpoints_that_were_only_proposed() -> None:
    form = filled_form(DeployAnswers(job_id="job1"), None, NOW)
    app = deploy_view(replace(form, facts=form_of(lora("checkpoint-1")).facts))
    async with opened(app, SIZE) as pilot:
        assert review_of(app).answers.checkpoint_names == ()
        dialog = (await pressed(pilot, "enter")).partition("Deploy Llama-3.1-8B-Instruct?")[2]
        assert "checkpoint-1" in dialog.partition("Builds")[0]


UPLOADING = lora("checkpoint-2800", sync_status="SYNCING")


async def test_a_checkpoint_that_is_still_uploaded_is_named_and_never_in_the_answer() -> None:
    app = deploy_view(deploying("checkpoint-2800", of=(UPLOADING, lora("checkpoint-2000"), lora("other"))))
    async with opened(app, SIZE) as pilot:
        assert "✗ checkpoint-2800: still uploading" in words_of(app)
        assert app.screen.query_one(CheckboxList).marked_values == ()
        await pilot.press("enter")  # with nothing marked, the cursor is the answer
        await settle(pilot)
        assert review_of(app).answers.checkpoint_names == ("checkpoint-2000",)


async def test_a_judgement_that_comes_later_keeps_what_was_marked() -> None:
    saved = (lora("checkpoint-200"), lora("checkpoint-100"))
    form = to(form_of(*saved), "checkpoint_names")
    app = deploy_view(form)
    async with opened(app, SIZE) as pilot:
        await pilot.press("j", "space")
        marks = app.screen.query_one(CheckboxList)
        before, cursor = marks.marked_values, marks.highlighted
        fault = CheckpointFault(KINDS["loss-not-finite"], "the loss became NaN")
        faults = {saved_key(saved[0]): fault, saved_key(saved[1]): None}
        facts = form.facts
        run = RunSnapshot(
            facts.jobs[0], facts.now, facts.now, log_read=True, kept_losses=KeptLosses(), faults=faults
        )
        judged = replace(form, facts=facts.with_evidence(run))
        app.screen.post_message(DeployScreen.Published(DeploySnapshot(stage="asking", form=judged)))
        await settle(pilot)
        screen = " ".join(words_of(app).split())
        assert "checkpoint-200 lora r=16 1000 B 1h ▲ after NaN" in screen
        assert "written after the loss became NaN: checkpoint-200" in screen
        assert app.screen.query_one(CheckboxList) is marks
        assert (marks.marked_values, marks.highlighted) == (before, cursor)


async def go_back_to_secrets(screen: object) -> None:
    """Go back from the review; return when the question's pane is mounted, but not the field in it."""
    screen.action_previous()
    for _ in range(1000):
        if any(pane.question.id == "secrets" for pane in screen.query(QuestionPane)):
            break
        await asyncio.sleep(0)
    assert not screen.query("#pairs")


async def test_a_second_snapshot_may_come_before_the_question_is_drawn() -> None:
    app = deploy_view(to(form_of(lora("checkpoint-1")), REVIEW))
    async with opened(app, SIZE) as pilot:
        screen = app.screen
        await go_back_to_secrets(screen)
        screen.receive(replace(screen.snapshot, note="checked"))
        await settle(pilot)
        assert step_of(screen) == "secrets"
        assert screen.query_one("#pairs").has_focus


async def test_key_waits_until_the_next_question_is_mounted() -> None:
    app = deploy_view(to(form_of(lora("checkpoint-1")), REVIEW))
    async with opened(app, SIZE) as pilot:
        await go_back_to_secrets(app.screen)
        app.post_message(events.Key("ctrl+s", None))
        await until(pilot, lambda: step_of(app.screen) == REVIEW)


@pytest.mark.parametrize("turns", range(0, 12, 2))
async def test_dashboard_survives_questions_that_replace_each_other(turns: int) -> None:
    app = deploy_view(to(form_of(lora("checkpoint-1")), REVIEW))
    async with opened(app, SIZE) as pilot:
        screen = app.screen
        for _ in range(3):
            screen.action_previous()
            for _ in range(turns):  # the pane may be removed halfway
                await asyncio.sleep(0)
        await settle(pilot)
        assert app.is_running and step_of(screen) == screen.query_one(QuestionPane).question.id
        screen.action_previous()
        for _ in range(turns):
            await asyncio.sleep(0)
        screen.leave()
        await until(pilot, lambda: app.screen is not screen)
        assert app.is_running


async def test_action_waits_until_the_next_question_is_mounted(monkeypatch: pytest.MonkeyPatch) -> None:
    until_true = typed_keys._wait_until
    monkeypatch.setattr(typed_keys, "_wait_until", lambda is_so, _limit_s: until_true(is_so, PATIENCE_S))
    app = deploy_view(to(form_of(lora("checkpoint-1")), REVIEW))
    async with opened(app, SIZE) as pilot:
        await go_back_to_secrets(app.screen)
        assert await app.run_action("screen.next")
        await until(pilot, lambda: step_of(app.screen) == REVIEW)


async def test_review_takes_keys_after_a_failed_deployment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual sends no event for a widget that is shown again if anything has scrolled meanwhile."""
    reflow = Compositor.reflow
    app = deploy_view(to(form_of(lora("checkpoint-1")), REVIEW))
    async with opened(app, SIZE) as pilot:
        screen = app.screen
        screen._feed._change(stage="working")
        await settle(pilot)
        monkeypatch.setattr(Compositor, "reflow", lambda *given: reflow(*given)._replace(shown=set()))
        screen._feed._change(stage="asking", error="no")
        await settle(pilot)
        assert screen.query_one(QuestionPane).has_focus_within


async def test_escape_in_a_question_opened_from_the_review_returns_there() -> None:
    app = deploy_view(to(form_of(lora("checkpoint-1")), REVIEW))
    async with opened(app, SIZE) as pilot:
        before = review_of(app)
        for keys in (("ctrl+b",), ("ctrl+b", "ctrl+b", "ctrl+b")):
            await pressed(pilot, *keys)
            assert step_of(app.screen) != REVIEW
            assert "esc review" in text_of(app).splitlines()[-1]
            await pressed(pilot, "escape")
            assert review_of(app) == before


async def test_escape_asks_before_a_change_is_discarded() -> None:
    app = deploy_view(to(form_of(lora("checkpoint-1")), REVIEW))
    async with opened(app, SIZE) as pilot:
        before = review_of(app)
        assert "Discard the change?" in await pressed(pilot, "ctrl+b", *"A=b", "escape")
        await pressed(pilot, "n")
        assert step_of(app.screen) == "secrets"
        await pressed(pilot, "escape", "y")
        assert review_of(app) == before


async def test_quitting_asks_before_answers_are_lost() -> None:
    app = deploy_view(to(form_of(lora("checkpoint-1")), REVIEW))
    async with opened(app, SIZE) as pilot:
        assert "Quit?" in await pressed(pilot, "q") and "Your answers will be lost." in text_of(app)
        await pressed(pilot, "escape")
        assert isinstance(app.screen, DeployScreen) and app._exit is False


async def test_escape_at_the_first_open_question_leaves_the_wizard() -> None:
    app = deploy_view(to(form_of(lora("checkpoint-1")), "checkpoint_names"))
    async with opened(app, SIZE) as pilot:
        app.push_screen(
            DeployScreen(partial(StubDeployFeed, to(form_of(lora("a")), "checkpoint_names")), "acme")
        )
        await settle(pilot)
        above = app.screen
        await pressed(pilot, "escape")
        await until(pilot, lambda: app.screen is not above)


async def test_refused_answer_does_not_move_the_question() -> None:
    app = deploy_view(to(form_of(lora("checkpoint-1")), "lora_rank"))
    async with opened(app, (120, 36)) as pilot:
        asked = text_of(app).splitlines()[1:12]
        app.screen.query_one("#text", Input).value = "1"
        refused = (await pressed(pilot, "enter")).splitlines()
        assert refused[1:12] == asked
        assert any("✗ 1 is not a LoRA rank" in line for line in refused[12:17])


@pytest.mark.parametrize("arrow", ["up", "down"])
async def test_arrow_moves_from_the_field_to_the_options_above(arrow: str) -> None:
    app = deploy_view(to(form_of(lora("checkpoint-1")), "lora_rank"))
    async with opened(app, (120, 36)) as pilot:
        await pressed(pilot, arrow, "down", "enter")
        assert app.screen.query_one("#text", Input).value == "32"
        assert isinstance(app.focused, Input)


async def test_list_of_questions_is_drawn_in_the_colors_of_a_theme_chosen_later() -> None:
    app = deploy_view(form_of(lora("checkpoint-100")))
    async with opened(app, SIZE) as pilot:

        def colors() -> set[str]:
            steps = app.screen.query_one("#steps", WrappedText).text
            return {
                str(span.style.color)
                for span in steps.spans
                if isinstance(span.style, Style) and span.style.color
            }

        dark = colors()
        app.theme = "bt-light"
        await until(pilot, lambda: not dark & colors())


async def test_a_click_on_a_question_that_was_answered_leads_back_to_it() -> None:
    app = deploy_view(to(form_of(lora("checkpoint-1")), "environment"))
    async with opened(app, (120, 40)) as pilot:
        steps = app.screen.query_one("#steps", WrappedText)
        for title, expected in (("Review", "environment"), ("LoRA rank", "lora_rank")):
            lines = [line[steps.region.x :] for line in text_of(app).splitlines()]
            row = next(number for number, line in enumerate(lines) if line[2:].startswith(title))
            await pilot.click(steps, offset=(3, row - steps.region.y))
            await settle(pilot)
            assert step_of(app.screen) == expected
