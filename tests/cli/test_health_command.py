"""bt-tui health, status and top, and jobs with their health: what is wrong, in words and exit codes."""

import json
import re
import time

import pytest

from support.cli import RunCli
from support.fake_baseten import Answer, FakeBaseten, job
from support.fake_runs import STEADY, finished_run, iso, live_run
from support.terminal import AtTerminal
from tui.commands.jobs.top import read_fleet
from tui.commands.support.output import CommandOutput
from tui.readers.stored_health import FILE_NAME, StoredHealth, store_health, stored_health
from tui.settings.remembered import state_path
from tui.text.sanitize import cell_width

BROKEN = [*STEADY, *["nan"] * 60]


@pytest.mark.proves("docs/commands.md", "`metrics`")
def test_all_jobs_are_judged_sickest_first_with_a_total(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = []
    live_run(baseten, "well")
    baseten.jobs.append(job("queued", "PENDING", created_at=iso(time.time() - 5)))
    live_run(baseten, "nan", BROKEN)
    live_run(baseten, "fine")
    table, document, alone = cli("health", code=11), cli("health -o json", code=11), cli("health well")
    assert table.out.splitlines()[0].split()[0] == "nan"
    ids = [one["job_id"] for one in document.json]
    assert (ids[0], set(ids[1:3]), ids[3]) == ("nan", {"well", "fine"}, "queued")
    assert "loss-not-finite" in {one["kind"] for one in document.json[0]["findings"]}
    assert table.err == document.err == "bt-tui: 4 jobs: 1 critical, 2 healthy, 1 waiting\n"
    assert [one["job_id"] for one in cli("health well nan -o json", code=11).json] == ["well", "nan"]
    assert "✓ healthy" in alone.out


def test_of_several_jobs_the_gravest_counts(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = []
    live_run(baseten, "well")
    finished_run(baseten, "over", losses=[1.0], status="FAILED")
    live_run(baseten, "hangs", silent_s=1800)
    prices = [{"instance_type": baseten.jobs[0]["instance_type"], "price": 0.5}]
    baseten.on("GET", "/v1/instance_type_prices", Answer({"instance_types": prices}))
    named, everything = cli("health well over hangs -o json", code=11), cli("health -o json", code=11)
    assert [one["job_id"] for one in named.json] == ["well", "over", "hangs"]
    assert {one["job_id"] for one in everything.json} == {"well", "hangs"}
    cli("health well over", code=3)
    hangs = named.json[2]
    found = hangs["findings"][0]
    assert (hangs["verdict"], found["kind"]) == ("critical", "stalled")
    assert found["short"].startswith("no step or log line for") and 10 < found["lost_usd"] < 30
    assert "100%" in found["text"] or "95%" in found["text"]


@pytest.mark.proves("docs/health.md", "Health and cost")
def test_a_run_whose_metrics_cannot_be_read_is_not_called_healthy(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = []
    live_run(baseten, "well")
    live_run(baseten, "nan", BROKEN)
    baseten.on("GET", r".*/jobs/\w+/metrics", Answer({"code": "NO", "message": "not for you"}, status=403))
    cli("health well", code=6)
    baseten.on("GET", r".*/jobs/\w+/metrics", Answer({"cpu_usage": "soon"}))
    alone, both = cli("health well", code=1), cli("health -o json", code=11)
    assert "healthy" not in alone.out and "can't read the metrics" in alone.out
    assert "metrics of well could not be read" in alone.err
    told = {one["job_id"]: one for one in both.json}
    assert told["well"]["verdict"] == "unknown" and told["well"]["unread"] == ["metrics"]
    assert "loss-not-finite" in {one["kind"] for one in told["nan"]["findings"]}


@pytest.mark.proves("docs/commands.md", "`status`")
def test_a_line_of_all_jobs_and_of_one(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.jobs = [job("waits", "PENDING"), job("over", "FAILED")]
    live_run(baseten, "runs")
    assert (cli("status").out, cli("status over").out) == ("● 1 running ◌ 1 pending\n", "✗ over failed\n")
    assert cli("status runs").out.startswith("● runs 4% loss 1.21 1d ")
    told = cli("status runs -o json").json
    assert (told["job_id"], told["step"], told["loss"]) == ("runs", 360, 1.205)
    finished_run(baseten, "due", losses=[2.0] * 40, total=60, status="RUNNING")
    assert "67% loss 2" in (line := cli("status due").out) and "left" not in line, "it should have ended"


@pytest.mark.parametrize(("job_id", "problem"), [("hangs", "stalled"), ("nan", "loss is NaN")])
@pytest.mark.parametrize("option", ["", " --health"])
def test_a_run_that_is_stuck_has_its_problem_and_no_eta(
    cli: RunCli, baseten: FakeBaseten, job_id: str, problem: str, option: str
) -> None:
    baseten.jobs = []
    live_run(baseten, "hangs", silent_s=1800)
    live_run(baseten, "nan", BROKEN)
    line, record = cli(f"status {job_id}{option}").out, cli(f"status {job_id} -o json").json
    assert line.startswith(f"✗ {job_id} {problem} ") and " · 4% loss " in line and "left" not in line
    assert (record["eta_seconds"], record["findings"][0]["severity"]) == (None, "critical")
    assert cli(f"progress {job_id} -o json").json["eta_s"] is None
    assert "ETA" not in cli(f"progress {job_id}").out


HOSTILE_NAME = "#{pane_pid} ##{pane_pid} #[fg=red] #(id)"


@pytest.mark.parametrize(
    ("tmux", "expected"),
    [
        ({"TMUX": "/tmp/tmux-0/default,123,-1"}, "##{pane_pid} ####{pane_pid} ##[fg=red] ##(id)"),
        (
            {"TMUX": "/tmp/tmux-0/default,123,-1", "TMUX_PANE": "%9"},
            "##{pane_pid} ####{pane_pid} ##[fg=red] ##(id)",
        ),
        ({"TMUX": "/tmp/tmux-0/default,123,0", "TMUX_PANE": "%1"}, HOSTILE_NAME),
        ({"TMUX": ""}, HOSTILE_NAME),
    ],
)
def test_name_is_no_format_in_a_status_line_of_tmux(
    cli: RunCli, baseten: FakeBaseten, tmux: dict[str, str], expected: str
) -> None:
    baseten.jobs = [job("over", "FAILED", name=HOSTILE_NAME)]
    environ = baseten.environ() | tmux
    assert cli("status over", environ=environ).out == f"✗ {expected} failed\n"
    assert cli("status over -o json", environ=environ).json["name"] == HOSTILE_NAME


def test_it_gives_up_in_time(cli: RunCli, baseten: FakeBaseten) -> None:
    baseten.on("POST", ".*", Answer(hangs=True))
    late = cli("status --timeout 0.1", code=8)
    assert (late.out, "no response within 0.1 s" in late.err) == ("", True)


DAY_S = 86_400


@pytest.fixture
def fleet(baseten: FakeBaseten, monkeypatch: pytest.MonkeyPatch) -> FakeBaseten:
    monkeypatch.setattr("tui.feeds.fleet.PUBLISH_INTERVAL_S", 0.01)
    old, recent = time.time() - 2 * DAY_S, time.time() - 600
    baseten.jobs = [
        job("queued", "PENDING", created_at=iso(time.time() - 5)),
        job("forgotten", "FAILED", created_at=iso(old), updated_at=iso(old)),
    ]
    live_run(baseten, "well")
    live_run(baseten, "broken", [*STEADY, *["nan"] * 60])
    finished_run(baseten, "over", losses=[1.0])
    baseten.jobs[-1]["updated_at"] = iso(recent)
    return baseten


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize("command", ["top", "jobs --health"])
def test_job_that_cannot_be_read_is_printed_with_the_reason(
    command: str, cli: RunCli, baseten: FakeBaseten, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_fleet, "__defaults__", (None, 2.0))
    baseten.jobs = [job("runs", "RUNNING")]
    baseten.on("GET", ".*/logs", Answer({"message": "log store down"}, status=500))
    result = cli(command)
    assert "runs" in result.out
    assert "some data could not be read: can't read the log of job runs" in result.err


@pytest.mark.proves("docs/commands.md", "`top`")
def test_top_prints_jobs_by_need_once_all_have_been_checked(cli: RunCli, fleet: FakeBaseten) -> None:
    lines = cli("top").out.splitlines()
    assert "✗ 1 needs attention" in lines[0] and "5 jobs" in lines[0]
    first_words = [" ".join(line.split()[:2]) for line in lines[2:]]
    assert first_words == [
        "needs you",
        "✗ broken",
        "running 1",
        "● well",
        "waiting 1",
        "◌ queued",
        "ended 1",
        "✓ over",
        "1 ended",
    ]
    assert lines[-1] == "1 ended more than a day ago"
    broken = next(line for line in lines if "broken" in line)
    assert "loss is NaN" in broken and "%" in broken


def test_top_exports_progress_findings_and_cost_of_all_jobs(cli: RunCli, fleet: FakeBaseten) -> None:
    rows = cli("top -o json").json
    assert [row["id"] for row in rows][:2] == ["broken", "well"]
    assert {row["id"] for row in rows} == {"broken", "well", "queued", "over", "forgotten"}
    assert rows[0]["note"].startswith("loss is NaN") and rows[0]["loss"] is None
    assert rows[1]["progress"] == pytest.approx(0.036) and rows[1]["loss"] == 1.205
    assert [row["id"] for row in cli("top -o csv").csv] == [row["id"] for row in rows]


def log_requests(fleet: FakeBaseten) -> int:
    return sum(request.path.endswith("/logs") for request in fleet.asked)


@pytest.mark.proves("docs/commands.md", "`status`")
def test_status_counts_jobs_that_need_attention_from_what_was_read_lately(
    cli: RunCli, fleet: FakeBaseten
) -> None:
    assert cli("status").out == "● 2 running ◌ 1 pending\n", "nothing was read yet"
    assert "alarmed" not in cli("status -o json").json
    assert cli("status --health").out == "✗ 1 needs attention · ● 2 running ◌ 1 pending\n"
    requests = log_requests(fleet)
    for words in ("status", "status --health"):
        assert cli(words).out == "✗ 1 needs attention · ● 2 running ◌ 1 pending\n"
        assert cli(f"{words} -o json").json["alarmed"] == ["broken"]
    assert requests and log_requests(fleet) == requests, "no log is read for that"
    live_run(fleet, "new")
    fleet.jobs = [job for job in fleet.jobs if job["id"] != "broken"]
    assert cli("status").out == "● 2 running ◌ 1 pending\n", "one is not known to be well"
    assert cli("status --health").out == "no problems · ● 2 running ◌ 1 pending\n"
    logs = [request.path for request in fleet.asked if request.path.endswith("/logs")]
    assert logs[requests:] and all("/new/" in path for path in logs[requests:]), "others were read just now"


def test_status_reads_jobs_that_another_command_left_out(cli: RunCli, fleet: FakeBaseten) -> None:
    cli("job well --health")
    assert cli("status").out == "● 2 running ◌ 1 pending\n"
    assert cli("status --health").out == "✗ 1 needs attention · ● 2 running ◌ 1 pending\n"


@pytest.mark.parametrize(
    ("minutes_ago", "shown", "is_read_again"),
    [
        (-5, "", True),
        (4, "✗ 1 needs attention (4m ago) · ", False),
        (6, "✗ 1 needs attention (6m ago) · ", True),
        (16, "", True),
    ],
)
def test_status_tells_how_old_its_count_is_and_forgets_it(
    cli: RunCli, fleet: FakeBaseten, minutes_ago: int, shown: str, is_read_again: bool
) -> None:
    cli("status --health")
    file = state_path(FILE_NAME)
    state = json.loads(file.read_text())
    for kept in state["jobs"].values():
        kept["at_s"] -= minutes_ago * 60
    file.write_text(json.dumps(state))
    assert cli("status").out == f"{shown}● 2 running ◌ 1 pending\n"
    requests = log_requests(fleet)
    assert cli("status --health").out.startswith("✗ 1 needs attention")
    assert (log_requests(fleet) > requests) is is_read_again


def test_the_newest_reading_of_a_job_stays_whoever_writes_last() -> None:
    store_health("server", {"run": StoredHealth(at_s=1000.0, sign="✗")}, 1010.0)
    store_health("server", {"run": StoredHealth(at_s=900.0)}, 1020.0)
    assert stored_health("server", ["run"], 1030.0)["run"].sign == "✗"


@pytest.mark.proves("docs/commands.md", "`projects`")
def test_jobs_and_job_show_progress_health_and_cost_if_asked(cli: RunCli, fleet: FakeBaseten) -> None:
    lines = {line.split()[2]: line for line in cli("jobs --health").out.splitlines()[1:]}
    assert list(lines)[2:] == ["queued", "over", "forgotten"]
    assert "loss is NaN" in lines["broken"] and "%" in lines["broken"] and "no problems" in lines["well"]
    rows = {row["id"]: row for row in cli("jobs --health -o json").json}
    assert [rows[name]["verdict"] for name in ("broken", "well", "over")] == ["critical", "healthy", None]
    well = rows["well"]
    assert well["progress"] == pytest.approx(0.036) and well["current_status"] == "TRAINING_JOB_RUNNING"
    assert [row["verdict"] for row in cli("jobs --health --status running -o csv").csv].count("critical") == 1
    assert rows["over"]["loss"] == 1.0, "the end of the log of an ended job is read, too"
    facts = dict(line.split(maxsplit=1) for line in cli("job broken --health").out.splitlines())
    assert "loss is NaN" in facts["health"] and facts["loss"] == "nan" and "%" in facts["progress"]
    assert cli("job broken --health -o json").json["verdict"] == "critical"


@pytest.mark.proves("docs/commands.md", "`projects`")
def test_jobs_show_what_was_read_lately_but_read_no_log_unless_asked(cli: RunCli, fleet: FakeBaseten) -> None:
    before = cli("jobs")
    assert "progress, health and cost: bt-tui jobs --health" in before.err and "HEALTH" not in before.out
    assert not log_requests(fleet)
    checked = cli("jobs --health").out
    requests = log_requests(fleet)
    after = cli("jobs")
    assert "s ago; to update: bt-tui jobs --health" in after.err and log_requests(fleet) == requests
    lines = {line.split()[2]: line for line in after.out.splitlines()}
    for name in ("NAME", "broken", "well"):
        at_once = next(line for line in checked.splitlines() if name in line)
        assert lines[name].split()[:8] == at_once.split()[:8]
    assert "loss is NaN" in lines["broken"] and "no problems" in lines["well"]
    assert "health" not in cli("jobs -o json").json[0]
    one = cli("job broken")
    assert "loss is NaN" in one.out and "s ago; to update: bt-tui summary broken" in one.err
    assert log_requests(fleet) == requests


def test_what_is_known_in_time_is_printed_if_a_log_cannot_be_read(cli: RunCli, fleet: FakeBaseten) -> None:
    fleet.on("GET", ".*/jobs/broken/logs", Answer(hangs=True))
    late = cli("status --health --timeout 3")
    assert late.out == "● 2 running ◌ 1 pending\n", "not: no problems"


def test_jobs_with_health_fit_a_narrow_terminal(
    cli: RunCli, fleet: FakeBaseten, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CommandOutput, "width_cells", 60)
    lines = cli("jobs --health").out.splitlines()
    assert "loss is NaN" in next(line for line in lines if "broken" in line)
    assert max(map(cell_width, lines)) <= 60


def test_top_redraws_on_a_terminal_without_scrolling(
    fleet: FakeBaseten, clean_environ: dict[str, str]
) -> None:
    with AtTerminal("top", environ=clean_environ | fleet.environ(), lines=8, columns=60) as terminal:
        terminal.sees("loss is NaN")
        pictures = terminal.text.split("\x1b[H")
    assert all(picture.count("\n") < 8 for picture in pictures)
    lines = re.sub(r"\x1b\[[0-9;]*[mJ]", "", pictures[-1]).splitlines()
    assert max(map(cell_width, lines)) <= 60
