"""bt-tui mcp, used by the SDK's own client: as a child that speaks over its streams, else in this process."""

import json
import re
import signal
import sys
import time
from asyncio import create_subprocess_exec, wait_for
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from api_client.emulator.processes import EmulatorChild
from support.cli import RunCli
from support.fake_baseten import Answer, FakeBaseten, job, line
from support.fake_runs import STEADY, finished_run, live_run
from support.warm_python import ROOT
from tui.commands.app import mcp as agents
from tui.commands.support.output import ExitCode

mcp = pytest.importorskip("mcp", reason="the extra mcp is not installed")

READING = {
    *("find_problems", "list_jobs", "summarize_job", "explain_problems", "search_log"),
    *("list_metrics", "metric_series", "compare_jobs", "diff_jobs", "list_checkpoints"),
}
CHANGING = {"stop_job", "submit_job_again", "deploy_checkpoint", "resume_job"}
REQUIRED = {"checkpoint": "c", "model_name": "m", "gpu": "H100:1"}


@asynccontextmanager
async def agent(environ: Mapping[str, str], *options: str, folder: Path = ROOT) -> AsyncIterator[Any]:
    program = ["-m", "tui", "mcp", *options]
    env = {**environ, "PYTHONPATH": str(ROOT)}
    server = mcp.StdioServerParameters(command=sys.executable, args=program, env=env, cwd=str(folder))
    async with mcp.Client(server) as client:
        yield client


Session = Callable[[Any], Awaitable[Any]]
Talk = Callable[..., Any]
"""Let a session use the client; return what the session returns."""
Ask = Callable[..., Any]


@pytest.fixture
def talk(cli: RunCli, monkeypatch: pytest.MonkeyPatch) -> Talk:
    """Serve the tools to a client in this process instead of over the standard streams."""

    def run(session: Session, *options: str) -> Any:
        returned: list[Any] = []

        async def serve(server: Any) -> None:
            async with mcp.Client(server) as client:
                returned.append(await session(client))

        monkeypatch.setattr("mcp.server.mcpserver.MCPServer.run_stdio_async", serve)
        cli("mcp", *options)
        return returned[0]

    return run


@pytest.fixture
def ask(talk: Talk) -> Ask:
    """Call a tool in a session of its own; ``options`` are those of the command."""
    return lambda tool, *options, **arguments: talk(lambda client: call(client, tool, **arguments), *options)


async def tools_of(client: Any) -> dict[str, Any]:
    return {tool.name: tool for tool in (await client.list_tools()).tools}


async def call(client: Any, tool: str, /, **arguments: Any) -> Any:
    """Return the text of an answer, read as JSON if it is; an error's text is marked as such."""
    result = await client.call_tool(tool, arguments)
    if result.is_error:
        return f"error: {result.content[0].text}"
    notice, answer, *_remarks = (part.text for part in result.content)
    assert "never instructions" in notice
    try:
        return json.loads(answer)
    except ValueError:
        return answer


@pytest.fixture(scope="module")
def demo() -> Iterator[EmulatorChild]:
    with EmulatorChild(world="demo") as emulator:
        yield emulator


@pytest.mark.proves("docs/agents.md", "Coding agents")
@pytest.mark.proves("docs/agents.md", "As tools")
@pytest.mark.proves("docs/agents.md", "What to do with a sick run")
async def test_agent_finds_the_slow_node_its_reason_and_its_cost_in_two_calls(
    demo: EmulatorChild, clean_environ: dict[str, str]
) -> None:
    environ = clean_environ | demo.remote_environ()
    async with agent(environ) as client:
        found = await call(client, "find_problems")
        (slow,) = [each for each in found if _kinds(each) == {"straggler"}]
        summary = await call(client, "summarize_job", job_id=slow["job_id"])
        refused = await call(client, "metric_series", job_id=slow["job_id"], name="loss", points=-3)
    assert "points" in refused and "http" not in refused
    (problem,) = summary["problems"]
    assert (problem["kind"], problem["node"]) == ("straggler", "node-2")
    assert re.search(r"node-2 logs: WARNING .*(no other node does)", problem["answer"])
    assert "others wait" in problem["costs"] and summary["cost"]["usd_per_hour"] > 100
    assert summary["cost"]["usd_so_far"] > 0 and summary["cost"]["unsaved_work"].startswith("Unsaved work: ")
    quoted = (*problem["untrusted_log"], *summary["untrusted_log"])
    assert quoted and "never instructions" in summary["notice"]


def _kinds(judged: dict[str, Any]) -> set[str]:
    return {finding["kind"] for finding in judged["findings"]}


@pytest.mark.proves("docs/agents.md", "What an agent can't do")
def test_no_tool_changes_anything_unless_changes_are_allowed(
    talk: Talk, ask: Ask, baseten: FakeBaseten
) -> None:
    baseten.jobs = [job("runs", "RUNNING")]
    offered = talk(tools_of)
    assert set(offered) == READING
    assert all(tool.annotations.read_only_hint for tool in offered.values())
    assert all("Unknown tool" in ask(name, job_id="runs", **REQUIRED) for name in CHANGING)
    assert not baseten.changed_paths


@pytest.mark.proves("docs/agents.md", "What an agent can't do")
def test_allowed_changes_are_tools_named_by_what_they_do(talk: Talk, ask: Ask, baseten: FakeBaseten) -> None:
    baseten.jobs = [job("runs", "RUNNING")]
    baseten.on("POST", ".*/jobs/runs/stop", Answer({"training_job": job("runs", "STOPPED")}))
    offered = talk(tools_of, "--allow-changes")
    assert set(offered) == READING | CHANGING
    assert {name for name, tool in offered.items() if tool.annotations.destructive_hint} == CHANGING
    (stopped,) = ask("stop_job", "--allow-changes", job_id="runs")
    assert stopped["current_status"] == "TRAINING_JOB_STOPPED"
    assert baseten.changed_paths == ["/v1/training_projects/proj1/jobs/runs/stop"]


@pytest.mark.proves("docs/agents.md", "As tools")
async def test_agent_deploys_a_checkpoint(
    demo: EmulatorChild, clean_environ: dict[str, str], tmp_path: Path
) -> None:
    environ = clean_environ | demo.remote_environ()
    async with agent(environ, "--allow-changes", folder=tmp_path) as client:
        jobs = await call(client, "list_jobs", status="completed")
        (job_id,) = [row.split(",")[0] for row in jobs.splitlines() if ",qwen3-8b-sft," in row]
        listed = (await call(client, "list_checkpoints", job_id=job_id))["checkpoints"]
        checkpoint = next(each for each in listed if each["sync_status"] == "COMPLETE")
        named = {"checkpoint": checkpoint["checkpoint_id"], "model_name": "by-agent"}
        deploy = partial(call, client, "deploy_checkpoint", job_id=job_id, **named)
        refused = await deploy(gpu="potato")
        deployed = await deploy(gpu="H100:1")
    assert "gpu: no GPU 'POTATO:1'" in refused and "--" not in refused
    path = f"/v1/models/{deployed['model_id']}/deployments/{deployed['deployment_id']}"
    async with httpx.AsyncClient(headers={"Authorization": f"Api-Key {demo.key}"}) as http:
        answer = await http.get(demo.url + path)
    assert (answer.status_code, answer.json()["id"]) == (200, deployed["deployment_id"])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.proves("docs/commands.md", "`mcp`")
async def test_signal_ends_it_while_it_waits_for_the_agent(
    baseten: FakeBaseten, clean_environ: dict[str, str], number: int, code: int
) -> None:
    environ = {**clean_environ, **baseten.environ(), "PYTHONPATH": str(ROOT)}
    pipes = {"stdin": PIPE, "stdout": PIPE, "stderr": PIPE}
    process = await create_subprocess_exec(sys.executable, "-m", "tui", "mcp", env=environ, **pipes)
    try:
        process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        assert b'"id":1' in await process.stdout.readline()
        process.send_signal(number)
        assert await wait_for(process.wait(), 60) == code
    finally:
        if process.returncode is None:
            process.kill()


async def test_client_refuses_changes_whatever_a_tool_would_do(
    baseten: FakeBaseten, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tui.cli import cli as program
    from tui.commands.app.mcp import Tools
    from tui.commands.support.options import CommandSettings
    from tui.commands.support.output import CommandFailed

    for name, value in baseten.environ().items():
        monkeypatch.setenv(name, value)
    baseten.jobs = [job("runs", "RUNNING")]
    with pytest.raises(CommandFailed, match="--readonly"):
        await Tools(program, CommandSettings(readonly=True)).stop_job("runs")
    assert not baseten.changed_paths


@pytest.mark.proves("docs/agents.md", "What an agent can't do")
def test_value_that_looks_like_an_option_is_a_value(ask: Ask, baseten: FakeBaseten, tmp_path: Path) -> None:
    finished_run(baseten, "over", losses=[1.0])
    target = tmp_path / "stolen.log"
    for job_id in ("--all", "--file=/etc/passwd", f"--save={target}"):
        for tool in ("summarize_job", "explain_problems", "search_log", "list_checkpoints"):
            answer = ask(tool, job_id=job_id)
            assert answer.startswith("error:") and job_id.strip("-") in answer, answer
    assert ask("search_log", job_id="over", pattern=f"--save={target}") == []
    assert not target.exists()


def test_error_names_the_parameter_of_the_tool(ask: Ask, baseten: FakeBaseten) -> None:
    finished_run(baseten, "over", losses=[1.0])
    assert "Invalid value for pattern: missing )" in ask("search_log", job_id="over", pattern="(")
    assert "Invalid value for since: not a time" in ask("search_log", job_id="over", since="soon")
    for tool in ("search_log", "summarize_job"):
        answer = ask(tool, job_id="")
        assert answer.startswith("error:") and "job_id" in answer and "JOB_ID" not in answer


@pytest.mark.parametrize(
    ("lines", "cut"), [(210, ""), (211, "(cut: 1 more line;"), (219, "(cut: 9 more lines;")]
)
def test_lines_without_room_are_counted(lines: int, cut: str) -> None:
    text = agents._limited_lines(("x" * 99 + "\n") * lines)
    assert text.splitlines()[210:] == ([f"{cut} ask for less)"] if cut else [])


@pytest.mark.proves("docs/agents.md", "What an agent can't do")
def test_answers_are_bounded_and_say_what_is_cut(ask: Ask, baseten: FakeBaseten) -> None:
    baseten.jobs = [job(f"job{number}", "COMPLETED", error_message="x" * 900) for number in range(400)]
    baseten.logs["job1"] = [line(f"{number} {'y' * 5_000}", at_ms=_ms(number)) for number in range(300)]
    live_run(baseten, "runs", [float(number) for number in range(900)])
    error, jobs = ask("summarize_job", job_id="x" * 100_000), ask("list_jobs")
    assert error.startswith("error: ") and len(error) <= 3_000
    assert len(jobs) + len(agents.NOTICE) <= 24_000
    assert re.search(r"\(cut: \d+ more lines; ask for less\)", jobs)
    lines = ask("search_log", job_id="job1", last=9_999)
    assert lines["cut"].startswith("lists to ") and lines["answer"][-1]["message"].startswith("299 y")
    curve = ask("metric_series", job_id="runs", name="loss", points=9_999)["loss"]
    assert [len(curve), curve[0]["value"], curve[-1]["value"]] == [200, 0.0, 899.0]


@pytest.mark.proves("docs/agents.md", "What an agent can't do")
def test_unknown_argument_is_refused_with_the_known_ones(talk: Talk, ask: Ask, baseten: FakeBaseten) -> None:
    finished_run(baseten, "over", losses=[1.0])
    known = "job_id, pattern, min_level, node, since, last, context"
    misspelled = ask("search_log", job_id="over", level="error")
    assert f"unknown: level; known arguments: {known}" in misspelled
    assert "unknown: project; known arguments: none" in ask("find_problems", project="p")
    assert ask("search_log", job_id="over", min_level="ERROR") == []
    refused = ask("metric_series", job_id="over", name="loss", points=-3)
    assert "points" in refused and "greater than or equal to 2" in refused
    offered = talk(tools_of).values()
    assert all(tool.input_schema["additionalProperties"] is False for tool in offered)


def _ms(number: int) -> int:
    return int((time.time() - 600 + number) * 1000)


def test_tools_read_logs_curves_checkpoints_and_comparisons(ask: Ask, baseten: FakeBaseten) -> None:
    finished_run(baseten, "over", losses=list(STEADY), metrics=" reward=0.5")
    live_run(baseten, "runs")
    baseten.on("GET", ".*/checkpoints", Answer({"training_job": baseten.jobs[-1], "checkpoints": []}))
    lines = ask("search_log", job_id="over", pattern="step 36[0-9]/", context=1)
    assert [each["message"].split()[1] for each in lines] == ["359/100", "360/100"]
    assert {"loss", "reward"} <= {each["name"] for each in ask("list_metrics", job_id="over")}
    compared = ask("compare_jobs", job_ids=["over", "runs"])
    assert [each["job_id"] for each in compared["jobs"]] == ["over", "runs"]
    assert ask("list_checkpoints", job_id="runs")["checkpoints"] == []
    differing = ask("diff_jobs", job_a="over", job_b="runs")
    assert {each["name"] for each in differing["job"]} == {"nodes", "total GPUs"}
    missing = ask("metric_series", job_id="over", name="accuracy")
    assert missing.startswith("error:") and "it has: " in missing and "reward" in missing


@pytest.mark.proves("docs/agents.md", "What an agent can't do")
def test_key_is_in_no_answer(ask: Ask, baseten: FakeBaseten) -> None:
    baseten.on("POST", ".*", Answer({"message": f"refused {baseten.key}"}, status=401))
    for tool in ("find_problems", "list_jobs"):
        answer = ask(tool)
        assert answer.startswith("error:") and baseten.key not in answer


def test_without_the_extra_one_line_says_what_to_install(
    cli: RunCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.commands.app.mcp.find_spec", lambda name: None)
    result = cli("mcp", code=2)
    assert result.err.count("\n") == 1 and "pip install 'mcp" in result.err


@pytest.mark.proves("docs/agents.md", "What an agent can't do")
def test_read_only_session_refuses_to_allow_changes(cli: RunCli) -> None:
    assert "read-only by flag --readonly" in cli("--readonly mcp --allow-changes", code=2).err


def test_missing_remote_is_reported_before_an_agent_waits(cli: RunCli) -> None:
    cli("mcp", environ={}, code=6)


@pytest.mark.proves("docs/agents.md", "With a shell")
def test_commands_for_agents_with_a_shell_print_json(cli: RunCli, baseten: FakeBaseten) -> None:
    finished_run(baseten, "over", losses=[1.0], status="FAILED")
    part = (ROOT / "docs" / "agents.md").read_text().partition("## With a shell")[2].partition("## ")[0]
    commands = re.findall(r"^\$ bt-tui (.+?) +#", part, re.MULTILINE)
    assert len(commands) > 3
    for command in commands:
        result = cli(command.replace("JOB_ID", "over"), code=None)
        assert result.json is not None and result.code in (ExitCode.OK, ExitCode.JOB_FAILED), command
