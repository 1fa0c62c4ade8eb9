"""Several jobs at once: marked on Home, asked about by name, each one's outcome told."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

from api_client.errors import RequestError
from api_client.models import TrainingJob
from support.dashboard import home, opened, text_of
from support.waiting import sees, to_screen, until
from support.worlds import JOBS, job
from tui.analysis.fleet.batches import Verb, batch_of
from tui.screens.dialogs import ConfirmScreen
from tui.screens.home.screen import HomeScreen


class RecordingSession:
    """Notes what it is asked for; refuses some jobs."""

    remote_name = "acme"
    is_unsure = False

    def __init__(self, refused: tuple[str, ...] = ()) -> None:
        self.calls: list[tuple[str, str]] = []
        self._refused = refused

        self.client = SimpleNamespace(
            jobs=SimpleNamespace(
                stop=partial(self._note, "stop"),
                recreate=partial(self._note, "recreate"),
                delete=partial(self._note, "delete"),
            ),
            projects=SimpleNamespace(delete=partial(self._note, "delete", "")),
        )

    async def _note(self, verb: str, _project_id: str, changed_id: str) -> TrainingJob | None:
        self.calls.append((verb, changed_id))
        if changed_id in self._refused:
            error = RequestError("the server said no")
            error.may_have_happened = self.is_unsure
            raise error
        return next((job for job in JOBS if job.id == changed_id), None)

    async def aclose(self) -> None:
        pass


def dashboard(session: RecordingSession) -> Any:
    app = home()
    app.use_session(session)  # type: ignore[arg-type]
    return app


MARK_SIX = ("space",) * 6
"""Three that run, one that starts, one that waits, one that was preempted: of the ten of the fixed world."""


async def test_marked_jobs_are_stopped_after_one_question_that_names_them() -> None:
    session = RecordingSession()
    app = dashboard(session)
    async with opened(app, (80, 24), notifications=True) as pilot:
        await to_screen(pilot, ConfirmScreen, *MARK_SIX, "s")
        asked = text_of(app)
        assert "Stop 5 jobs?" in asked
        assert "whisper-ft" in asked
        assert "Skipped" in asked
        assert "eval-sweep" in asked
        await pilot.press("y")
        await until(pilot, lambda: len(session.calls) == 5)
        assert {verb for verb, _ in session.calls} == {"stop"}
        assert "spot" not in {job_id for _, job_id in session.calls}
        await sees(pilot, "stopping")
        assert app.screen.marked_ids == ("spot",)


async def test_what_fails_is_told_by_name_beside_what_was_done() -> None:
    session = RecordingSession(refused=("grpo7",))
    app = dashboard(session)
    async with opened(app, (100, 30), notifications=True) as pilot:
        await to_screen(pilot, ConfirmScreen, "down", "space", "up", "up", "space", "R")
        await sees(pilot, "Not run again: 1 of 2", after=("y",))
        assert "qwen3-grpo-7: the server said no" in text_of(app)
        assert "whisper-ft: started again as whisper." in text_of(app)
        session.is_unsure = True
        await to_screen(pilot, ConfirmScreen, "up", "R")
        await sees(pilot, "Possibly not run again: 1 of 1", after=("y",))


async def test_only_jobs_that_have_ended_are_deleted_and_only_after_an_explicit_yes() -> None:
    session = RecordingSession()
    app = dashboard(session)
    async with opened(app, (100, 24), notifications=True) as pilot:
        await sees(pilot, "stop them first", after=("X",))
        for answer in ("n", "enter", "escape", "y"):
            await to_screen(pilot, ConfirmScreen, "G", "X")
            assert "flux-lora-2 (broken)" in text_of(app)
            assert session.calls == []
            await to_screen(pilot, HomeScreen, answer)
        await until(pilot, lambda: session.calls == [("delete", "broken")])


async def test_a_project_is_deleted_with_its_jobs_if_all_have_ended() -> None:
    session = RecordingSession(refused=("p-flux",))
    app = dashboard(session)
    async with opened(app, (120, 24), notifications=True) as pilot:
        screen = app.screen
        screen.query_one("#projects").focus()
        await sees(pilot, "Choose a project to delete.", after=("X",))
        screen._projects.move_to("p-llama-sft")
        await sees(pilot, "Not deleted, still active", after=("X",))
        for name in ("evals", "flux"):
            screen._projects.move_to(f"p-{name}")
            for answer in "ny":
                await to_screen(pilot, ConfirmScreen, "X")
                assert f"Delete project {name} (p-{name})?" in text_of(app)
                assert ("delete", f"p-{name}") not in session.calls
                await to_screen(pilot, HomeScreen, answer)
            outcome = {"evals": "evals: deleted.", "flux": "flux: the server said no"}[name]
            await sees(pilot, outcome)
        assert session.calls == [("delete", "p-evals"), ("delete", "p-flux")]


def test_a_hundred_jobs_are_asked_about_in_a_few_names() -> None:
    jobs = [job(f"j{number}", name=f"run-{number}") for number in range(100)]
    batch = batch_of(Verb.STOP, jobs)
    assert batch.question == "Stop 100 jobs?"
    assert batch_of(Verb.RECREATE, jobs).question == "Run 100 jobs again?"
    assert "and 94 more" in batch.consequence
    title, text = batch.outcome([(job, "no") for job in jobs])
    assert title == "Not stopped: 100 of 100"
    assert len(text.splitlines()) < 8
