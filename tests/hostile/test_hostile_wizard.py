"""The deploy wizard at a terminal: no name that a server gives, and no key, ends it with a traceback."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from hostile_answers import HARM, HostileServer, harmful, hidden_in
from hypothesis import HealthCheck, given, settings, strategies as st
from prompt_toolkit.application import application, create_app_session
from prompt_toolkit.input import create_pipe_input

from api_client import models
from support.fake_baseten import Answer
from support.terminal import AtTerminal
from support.wizard_facts import MACHINES, NOW, checkpoint, form_of, job, lora, machine, to
from tui.commands.deploy.command import Deployer, DeployOptions
from tui.commands.support.output import CommandFailed, CommandOutput, ExitCode
from tui.commands.support.questions import FormMove, ask
from tui.forms.deployment import ALL_QUESTION_IDS, SAVE, DeployForm
from tui.forms.draft import Facts
from tui.forms.question import Question

ENTER, DOWN, UP, SPACE = "\r", "\x1b[B", "\x1b[A", " "
WIPE, ERASE, INTERRUPT = "\x15", "\x7f", "\x03"
TEXTS = (
    *("", " ", ".", "..", "a", "A", "-x", "a\nb", "a\0b", "\ud800", "[b]x[/]", "<b>&amp;", "{x} %s", "=1+1"),
    *("ünï", "日本" * 20, "\u202eabc", "\U000e0041", "x" * 500, "change:job", "None", HARM),
)
NAMES = st.sampled_from(TEXTS)
KEYS = st.lists(
    st.sampled_from([ENTER, DOWN, UP, SPACE, WIPE, ERASE, "m", "z", "64", "A=b", "=", "-A", "~x/y"]),
    max_size=12,
).map("".join)


@st.composite
def forms(draw: st.DrawFn) -> DeployForm:
    """At the first question, of a world in which something can always be chosen, among much that cannot."""
    some_jobs = st.builds(job, NAMES, st.sampled_from(["COMPLETED", "PENDING"]), name=NAMES)
    jobs = draw(st.lists(some_jobs, max_size=6, unique_by=lambda one: one.id))
    loras = st.builds(lora, NAMES, st.sampled_from([8, 64, 10**30, "8", HARM]), base_model=NAMES)
    others = st.builds(checkpoint, NAMES, st.sampled_from(["full", "whisper"]) | NAMES)
    kinds = st.sampled_from(["H100", "h100", "L4", "QUANTUM", "", HARM])
    machines = draw(st.lists(st.builds(machine, kinds, st.integers(-1, 3)), max_size=6))
    facts = Facts(
        NOW,
        jobs=(*jobs, job()),
        instances=(*machines, *MACHINES),
        secret_names=draw(st.lists(NAMES, max_size=20).map(tuple) | st.none()),
    )
    found = [*draw(st.lists(loras | others, max_size=4)), lora("good")]
    return DeployForm(facts.with_checkpoints("job1", found, None), always_asked=ALL_QUESTION_IDS)


@pytest.fixture(autouse=True, scope="module")
def _bind_keys_once() -> Iterator[None]:
    """Share prompt_toolkit's own key bindings between the questions; each makes some 500 otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("load_key_bindings", "load_page_navigation_bindings"):
            place = f"prompt_toolkit.application.application.{name}"
            patch.setattr(place, cache(getattr(application, name)))
        yield


@contextmanager
def typed(keys: str) -> Iterator[None]:
    """These keys lie ready, and then nothing but interruptions."""
    with create_pipe_input() as pipe, create_app_session(input=pipe):
        pipe.send_text(keys + INTERRUPT * 5)
        yield


def asked(question: Question, keys: str) -> None:
    """An answer that will do, a way out, or an interruption comes of these keys."""

    async def ask_it() -> None:
        with typed(keys):
            answer = await ask(question, 1, lambda _line: None)
        assert isinstance(answer, FormMove) or not question.problem(answer)

    try:
        asyncio.run(ask_it())
    except KeyboardInterrupt:
        return


def deployer() -> Deployer:
    return Deployer(None, CommandOutput(), DeployOptions(False, False, False, None, "table"))  # type: ignore[arg-type]


GOOD = {
    "job_id": "job1",
    "checkpoint_names": ("good",),
    "base_model": "m/x",
    "lora_rank": 64,
    "model_name": "m",
    "gpu": "H100:2",
}


@given(form=forms(), keys=KEYS)
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_name_and_no_key_ends_a_question_otherwise_than_by_its_answer(
    capsys: pytest.CaptureFixture[str], form: DeployForm, keys: str
) -> None:
    while True:
        asked(form.question, keys)
        if form.question.kind == "review":
            break
        form = form.answered(GOOD.get(form.question.id, form.question.default))
    assert hidden_in(capsys.readouterr().err.replace("\r", "").replace("\x08", "")) == []


def test_in_a_long_list_filtered_to_what_cannot_be_chosen_every_key_still_works() -> None:
    waiting = [job(f"waits{number}", "PENDING") for number in range(20)]
    form = DeployForm(Facts(NOW, jobs=(job("ran"), *waiting)))
    asked(form.question, f"waits{DOWN}{DOWN}{UP}{ENTER}")


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (Facts(NOW, jobs=(job("a", "PENDING"), job("b", "DEPLOYING"))), "none of these jobs has run yet"),
        (Facts(NOW), "there are no training jobs"),
    ],
)
def test_where_nothing_can_be_chosen_it_says_why(facts: Facts, why: str) -> None:
    with pytest.raises(CommandFailed, match=why):
        asyncio.run(deployer().run(DeployForm(facts)))


@pytest.mark.parametrize("name", ["~nobody-is-called-so/x.py", "no/such/folder/x.py"])
def test_a_name_to_save_as_that_cannot_be_is_a_sentence(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    review = to(form_of(lora("good")), "review", model_name="m", gpu="H100:1")

    async def save() -> DeployForm | ExitCode:
        with typed(WIPE + name + ENTER):
            return await deployer().act(review, f"{SAVE}python")

    assert asyncio.run(save()) is review
    assert "the folder does not exist; create it first" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_whole_way_on_a_world_of_hostile_names(tmp_path: Path) -> None:
    with HostileServer() as server:
        checkpoint = harmful(models.Checkpoint) | {"checkpoint_type": "full"}
        path = "/v1/training_projects/[^/]+/jobs/[^/]+/checkpoints"
        server.on("GET", path, Answer({"checkpoints": [checkpoint, checkpoint]}))
        own = {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "HOME": str(tmp_path)}
        environ = {**os.environ, **server.environ(), **own}
        with AtTerminal("deploy", environ=environ, folder=tmp_path) as someone:
            for question, keys in (
                ("Which job's checkpoints?", ENTER),
                ("Which checkpoints?", ENTER),
                ("Which base model?", WIPE + "m/x" + ENTER),
                ("What's the model's name?", WIPE + "m" + ENTER),
            ):
                someone.sees(question)
                someone.types(keys.encode())
            remark = b"no GPU instance type that configs can name"
            someone.read_until(lambda shown: b"model's name?" in shown.partition(remark)[2])
            someone.types(INTERRUPT.encode())
            assert someone.end() == 130
    assert "Traceback" not in someone.text
