from dataclasses import replace
from datetime import timedelta

import pytest
from textual.message import Message

from api_client.models import JobMetrics, NodeSeries, QueueContext
from api_client.models.logs import LogGap, LogLine
from support.dashboard import job_view, settle, text_of
from support.sick_runs import sick_run
from support.worlds import CHECKPOINTS, JOBS, ONE_O_CLOCK, job, job_metrics, log_lines, run, series
from tui.analysis.connection import LOG, METRICS
from tui.analysis.progress.phases import RunPhase
from tui.analysis.run.finding import FindingKind, HealthFinding
from tui.analysis.run.snapshot import RunSnapshot
from tui.feeds.run_log import LogPart
from tui.screens.job import header
from tui.screens.job.chart_view import ChartView
from tui.screens.job.charts import ChartBuilder
from tui.screens.job.screen import TAB_IDS, JobScreen
from tui.screens.messages import StopJobRequested

SIZE = (80, 24)
NOW_S = ONE_O_CLOCK.timestamp()


async def test_the_header_answers_is_it_healthy() -> None:
    app = job_view()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        screen = text_of(app)
    assert "● llama-70b-sft-v3  RUNNING 6h 12m  4×8 H100  data 0s old  198 GPU·h ≈ $967" in screen
    assert "step 4,117/9,000 46 %" in screen
    assert "loss 1.1" in screen
    assert "▲" in screen and "node-2" in screen
    assert "checkpoint-4000 12m ago" in screen


async def test_the_slow_node_is_marked_and_all_gpus_are_seen() -> None:
    app = job_view()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        rows = [line for line in text_of(app).splitlines() if line.lstrip().startswith("node-")]
    assert "61 %" in rows[2] and "▲" in rows[2]
    assert all("▲" not in row for row in (rows[0], rows[1], rows[3]))


async def test_every_tab_by_number_by_tab_key_and_by_click() -> None:
    app = job_view()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        screen = app.screen
        assert isinstance(screen, JobScreen)
        for number, tab in enumerate(TAB_IDS, start=1):
            await pilot.press(str(number))
            assert screen.tab == tab
        await pilot.press("1", "tab", "tab")
        assert screen.tab == "metrics"
        await pilot.press("shift+tab")
        assert screen.tab == "logs"
        await pilot.click("#tabs", offset=(4, 0))
        assert screen.tab == "live"


async def test_checkpoints_newest_first_with_type_rank_and_storage() -> None:
    app = job_view(tab="checkpoints")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        lines = [line for line in text_of(app).splitlines() if line.lstrip().startswith("checkpoint-")]
    assert [line.split()[0] for line in lines] == [f"checkpoint-{step}" for step in (4000, 3000, 2000, 1000)]
    assert "LoRA r=16" in lines[0] and "uploading" in lines[0]
    assert "stored" in lines[1]


async def test_no_checkpoints_says_how_there_come_to_be_some() -> None:
    app = job_view(run(checkpoints=()), tab="checkpoints")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert "BT_CHECKPOINT_DIR" in text_of(app)


async def test_one_node_alone_in_log_and_charts_then_all_again() -> None:
    app = job_view()
    async with app.run_test(size=(100, 40)) as pilot:
        await settle(pilot)
        await pilot.press("right_square_bracket", "right_square_bracket")
        await settle(pilot)
        alone = text_of(app)
        assert "Log node-1" in alone
        assert " n1 " in alone and " n2 " not in alone
        await pilot.press("escape")
        await settle(pilot)
        assert "Log all nodes" in text_of(app)
        assert isinstance(app.screen, JobScreen)


async def test_following_pauses_when_reading_back_and_counts_what_is_new() -> None:
    app = job_view(lines=log_lines(200), tab="logs")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert "following" in text_of(app)
        await pilot.press("pageup")
        await settle(pilot)
        before = text_of(app)
        assert "paused" in before
        newer = tuple(
            LogLine(int(ONE_O_CLOCK.timestamp() * 1e9) + number, f"news {number}", "node-0", None)
            for number in range(7)
        )
        app.screen.post_message(JobScreen.LogArrived(LogPart(newer)))
        await settle(pilot)
        after = text_of(app)
        assert "↓ 7 new" in after
        assert [line[:70] for line in before.splitlines()[6:20]] == [
            line[:70] for line in after.splitlines()[6:20]
        ]
        await pilot.press("f")
        await settle(pilot)
        assert "news 6" in text_of(app)


async def test_finding_and_filtering_in_the_log() -> None:
    app = job_view(tab="logs")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("ampersand", *"loss", "enter")
        await settle(pilot)
        shown = text_of(app)
        assert "only loss" in shown
        assert "all_gather" not in shown
        await pilot.press("escape", "slash", *"in 42 ms", "enter")
        await settle(pilot)
        assert "in 42 ms" in text_of(app)
        assert isinstance(app.screen, JobScreen)


async def test_esc_forgets_what_was_found_before_it_leaves() -> None:
    app = job_view(tab="logs")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("slash", *"Loss", "enter")
        await settle(pilot)
        assert "/Loss" in text_of(app)
        await pilot.press("escape")
        await settle(pilot)
        assert "/Loss" not in text_of(app)
        assert isinstance(app.screen, JobScreen)


async def test_while_the_log_is_read_nothing_is_claimed_of_it() -> None:
    app = job_view(run(progress=None, log_read=False, history_known=False), lines=())
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        screen = text_of(app)
        assert "reading the log" in screen
        assert "no training progress" not in screen
        assert "GPU·h" not in screen


def test_a_curve_is_of_the_whole_run_once_all_of_the_log_is_read() -> None:
    titles = [
        next(chart.spec.title for chart in ChartBuilder().charts(seen, ChartView()) if chart.id == "loss")
        for seen in (run(log_read=False), run())
    ]
    assert titles == ["loss, still reading", "loss, whole run"]


def test_a_run_is_called_healthy_once_log_and_metrics_have_been_looked_at() -> None:
    well = run(findings=(), slow_nodes=frozenset())
    for seen, said in (
        (replace(well, checked_sources=frozenset({METRICS})), "checking health…"),
        (replace(well, checked_sources=frozenset({LOG})), "checking health…"),
    ):
        assert said in _first_lines(seen) and "healthy" not in _first_lines(seen)
    assert "✓ healthy" in _first_lines(well)


def _first_lines(snapshot: RunSnapshot) -> str:
    return " · ".join(span for fact in header.health(snapshot, 80) for span, _ in fact)


@pytest.mark.parametrize("width", [58, 78, 118])
def test_a_long_checkpoint_leaves_room_for_what_is_wrong_and_keeps_its_step(width: int) -> None:
    name = "megatron_gpt--val_loss=1.23-step=4000-consumed_samples=8000.0-last"
    long = CHECKPOINTS[-1].model_copy(update={"checkpoint_id": name})
    facts = header.health(replace(sick_run("hang"), checkpoints=(long,)), width)
    line = " · ".join("".join(text for text, _ in fact) for fact in facts)
    assert len(line) <= width
    assert "no log line for 24m" in line
    assert "step=4000" in line


def test_a_run_that_evaluates_says_so_and_since_when() -> None:
    evaluating = RunPhase("evaluation", NOW_S - 370, NOW_S - 370, first=True)
    stepped = round((NOW_S - 375) * 1e9)
    told = run().progress
    assert told is not None
    run_phase = run(progress=replace(told, run_phase=evaluating, last_step_at_ns=stepped))
    just = run(progress=replace(told, run_phase=evaluating, last_step_at_ns=round((NOW_S - 3) * 1e9)))
    said = [
        " · ".join("".join(text for text, _ in fact) for fact in header.progress(one))
        for one in (run_phase, just)
    ]
    assert "evaluating for 6m" in said[0]
    assert "evaluating" not in said[1]


async def test_a_run_that_stands_still_promises_no_end() -> None:
    stalled = HealthFinding(FindingKind.STALLED, "critical", "no step and no log for 17m")
    app = job_view(run(findings=(stalled,)))
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        line = text_of(app).splitlines()[1]
        assert "· no ETA ·" in line
        assert line.count("ETA") == 1


@pytest.mark.parametrize(
    ("width", "said"),
    [
        (130, "▲ node-2 lags behind the other nodes: GPUs at 58 %, others at 95 % · checkpoint-4000 12m ago"),
        (80, "▲ node-2 slow: GPU 58 % vs 95 % · checkpoint-4000 12m ago"),
        (50, "▲ node-2 slow · checkpoint-4000 12m ago"),
    ],
)
async def test_a_finding_is_told_in_the_longest_form_that_fits(width: int, said: str) -> None:
    app = job_view(sick_run("straggler"))
    async with app.run_test(size=(width, 24)) as pilot:
        await settle(pilot)
        assert text_of(app).splitlines()[2].strip() == said


async def test_a_long_name_gives_way_to_what_is_essential() -> None:
    named = JOBS[0].model_copy(update={"name": "日本語" * 20})
    app = job_view(run(named))
    async with app.run_test(size=(60, 20)) as pilot:
        await settle(pilot)
        first = text_of(app).splitlines()[0]
        assert "RUNNING 6h 12m" in first and "4×8 H100" in first and "data 0s old" in first


async def test_older_history_goes_before_and_a_gap_is_seen() -> None:
    app = job_view(tab="logs")
    async with app.run_test(size=(80, 60)) as pilot:
        await settle(pilot)
        start = log_lines()[0].timestamp_ns
        older = (
            LogLine(start - 9_000_000_000, "the very first", "node-0", None),
            LogGap(start - 8_000_000_000, start - 2_000_000_000, "the server failed"),
        )
        app.screen.post_message(JobScreen.LogArrived(LogPart(older, older=True)))
        await settle(pilot)
        screen = text_of(app)
        assert screen.index("the very first") < screen.index("the server failed") < screen.index("'loss'")


async def test_stop_asks_for_this_job() -> None:
    heard: list[str] = []

    def listen(message: Message) -> None:
        if isinstance(message, StopJobRequested):
            heard.append(message.job.id)

    app = job_view()
    async with app.run_test(size=SIZE, message_hook=listen) as pilot:
        await settle(pilot)
        await pilot.press("s")
        await settle(pilot)
        assert "Stop llama-70b-sft-v3 (llama70)?" in text_of(app)
    assert heard[:1] == ["llama70"]


async def test_a_longer_time_is_asked_of_the_feed() -> None:
    app = job_view()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("plus", "plus", "minus")
        await settle(pilot)
        feed = app.screen._feed  # type: ignore[attr-defined]
        assert feed.spans == [timedelta(hours=hours) for hours in (1, 6, 24, 6)]
        assert "charts: 6 h" in text_of(app)


async def test_a_job_on_cpus_shows_cores_memory_and_disk_instead_of_gpus() -> None:
    answer = JobMetrics(
        cpu_usage=series(3.5),
        cpu_memory_usage_bytes=series(2e9),
        ephemeral_storage={"usage_bytes": series(5e9)},
    )
    app = job_view(run(job("cpu", gpus=(None, 0), node_count=1), metrics=answer))
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        screen = text_of(app)
    assert "cores" in screen and "1.86 GiB" in screen and "4.66 GiB" in screen
    assert "GPU use" not in screen


async def test_what_waits_says_for_how_long_and_behind_whom() -> None:
    queue = QueueContext(
        target_job_id="ablate", pending_ahead_at_submit=[{"training_job_id": "a"}, {"training_job_id": "b"}]
    )
    waiting = run(JOBS[3], metrics=JobMetrics(), queue=queue, progress=None, checkpoints=())
    app = job_view(waiting, lines=())
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        screen = text_of(app)
    assert "waiting 15m for 8 H100; at submission 2 ahead" in screen
    assert "No log lines yet" in screen


async def test_the_history_is_the_job_s_own_and_not_its_neighbours() -> None:
    events = [
        {"training_job_id": "llama70", "status": "TRAINING_JOB_CREATED", "created": "2026-03-01T06:48:00Z"},
        {"training_job_id": "other", "status": "TRAINING_JOB_FAILED", "created": "2026-03-01T06:49:00Z"},
        {"training_job_id": "llama70", "status": "TRAINING_JOB_RUNNING", "created": "2026-03-01T07:00:00Z"},
    ]
    app = job_view(run(queue=QueueContext(target_job_id="llama70", events=events)), tab="details")
    async with app.run_test(size=(80, 40)) as pilot:
        await settle(pilot)
        screen = text_of(app)
    assert "RUNNING 6h 00m" in screen
    assert "◍ created" in screen
    assert "failed" not in screen


async def test_why_a_job_failed_is_in_the_header() -> None:
    app = job_view(run(JOBS[6]))
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert "CUDA out of memory" in text_of(app)


async def test_hostile_log_text_is_inert() -> None:
    stamp = int(ONE_O_CLOCK.timestamp() * 1e9)
    hostile = (
        "\x1b[2J\x1b[31mcleared?\x1b]52;c;AAAA\x07",
        "[bold red]markup[/bold red] [@click=app.quit]x[/]",
        "nul\x00bell\x07back\x08",
        "x" * 1_000_000,
        "\ud800 lone and \u202e turned",
    )
    lines = tuple(LogLine(stamp + number, text, "node-0", None) for number, text in enumerate(hostile))
    app = job_view(lines=lines, tab="logs")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        screen = text_of(app)
    assert "cleared?" in screen
    assert "[bold red]markup[/bold red] [@click=app.quit]x[/]" in screen
    assert not {chr(code) for code in (*range(10), *range(11, 32), *range(127, 160), 0x202E, 0xD800)} & set(
        screen
    )


@pytest.mark.parametrize("size", [(60, 20), (40, 10), (220, 70), (12, 4)])
@pytest.mark.parametrize("tab", TAB_IDS)
async def test_any_size_shows_something_and_nothing_breaks(size: tuple[int, int], tab: str) -> None:
    app = job_view(tab=tab)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.resize_terminal(*size)
        await settle(pilot)
        assert text_of(app).strip()


async def test_metrics_may_lack_anything() -> None:
    bare = JobMetrics(
        per_node_metrics=[{"node_id": "node-0", "metrics": NodeSeries()}, *job_metrics().per_node_metrics]
    )
    app = job_view(run(metrics=bare, progress=None, checkpoints=None))
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert "GPU use" in text_of(app)
