"""A few pictures of the screens, to notice when their looks change. New ones: pytest --snapshot-update."""

from collections.abc import Callable

import pytest
from textual.pilot import Pilot

from support.dashboard import deploy_view, home, job_view, pressed, settle
from support.sick_runs import sick_log, sick_run
from support.wizard_facts import checkpoint, form_of, lora, to
from tui.app import BtTuiApp

Compare = Callable[..., bool]


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_home(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert snap_compare(home(), terminal_size=size, run_before=settle)


@pytest.mark.proves("README.md", "Try it")
def test_live(snap_compare: Compare) -> None:
    assert snap_compare(job_view(), terminal_size=(120, 40), run_before=settle)


@pytest.mark.parametrize(
    ("sickness", "mode"), [("straggler", "dark"), ("hang", "light"), ("explode", "no-colour")]
)
def test_live_run(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch, sickness: str, mode: str) -> None:
    if mode == "no-colour":
        monkeypatch.setenv("NO_COLOR", "1")

    async def in_mode(pilot: Pilot[None]) -> None:
        if mode == "light":
            pilot.app.theme = "bt-light"
        await settle(pilot)

    shown = job_view(sick_run(sickness), lines=sick_log(sickness))
    assert snap_compare(shown, terminal_size=(80, 24), run_before=in_mode)


def test_64_nodes(snap_compare: Compare) -> None:
    shown = job_view(sick_run("straggler", nodes=64), lines=())
    assert snap_compare(shown, terminal_size=(80, 24), run_before=settle)


METRICS = {
    "grid": ((120, 40), ()),
    "large-and-read": ((80, 24), ("m", "v", "M", *("left",) * 20)),
    "nodes-over-time": ((120, 40), ("n", "H")),
}


@pytest.mark.parametrize("name", METRICS)
def test_metrics(snap_compare: Compare, name: str) -> None:
    size, keys = METRICS[name]

    async def press(pilot: Pilot[None]) -> None:
        await settle(pilot)
        for key in keys:
            await pressed(pilot, key)  # the next one acts on what this one has drawn

    shown = job_view(sick_run("straggler"), tab="metrics", lines=())
    assert snap_compare(shown, terminal_size=size, run_before=press)


def test_home_without_colour(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(home(), terminal_size=(80, 24), run_before=settle)


def test_help(snap_compare: Compare) -> None:
    async def ask(pilot: Pilot[None]) -> None:
        await settle(pilot)
        await pressed(pilot, "question_mark")

    assert snap_compare(job_view(), terminal_size=(80, 24), run_before=ask)


@pytest.mark.proves("README.md", "On your own workspace")
def test_welcome(snap_compare: Compare) -> None:
    why = "no remote is configured: BASETEN_API_KEY is not set, ~/.trussrc not found"
    assert snap_compare(BtTuiApp(None, why_no_remote=why), terminal_size=(80, 24), run_before=settle)


ADAPTERS = (lora("checkpoint-300", r=24), lora("checkpoint-200", r=16), checkpoint("shards", "fsdp"))
CHOSEN = {"checkpoint_names": ("checkpoint-300", "checkpoint-200"), "model_name": "tuned"}
QUESTIONS = ("checkpoint_names", "lora_rank", "environment", "review")


@pytest.mark.parametrize("question", QUESTIONS, ids=["checkpoints", *QUESTIONS[1:]])
def test_wizard(snap_compare: Compare, question: str) -> None:
    form = to(form_of(*ADAPTERS), question, **CHOSEN)
    assert snap_compare(deploy_view(form), terminal_size=(80, 24), run_before=settle)
