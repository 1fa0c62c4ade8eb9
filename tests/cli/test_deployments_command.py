"""``bt-tui deployments``: what it lists and shows, what it asks, and what it changes."""

from collections.abc import Callable, Iterator

import pytest

from support.cli import RunCli
from support.deploying_server import DeployingServer
from support.fake_baseten import LONG_AGO, LONG_AGO_MS, Answer, line

PATHS = ["rank-0/checkpoint-100/", "rank-0/a/b/"]
JOB_CONFIG = {"training_checkpoints": {"artifact_references": [{"training_job_id": "job1", "paths": PATHS}]}}
STARTUP = {
    "started_at_epoch_millis": 1,
    "duration_ms": 71_000,
    "outcome": "FAILED",
    "phase_summary": [
        {"phase": "WEIGHT_DOWNLOAD", "status": "COMPLETED", "offset_ms": 0, "duration_ms": 60_000},
        {"phase": "READINESS", "status": "FAILED", "offset_ms": 60_000, "duration_ms": None},
    ],
}


def deployment(name: str, model: str, status: str, **more: object) -> dict[str, object]:
    about = {"id": name, "name": f"name-{name}", "model_id": model, "status": status}
    return about | {"created_at": LONG_AGO} | more


@pytest.fixture
def baseten() -> Iterator[DeployingServer]:
    """Two models: one with deployments in several states, of a job; and one of somebody else's."""
    with DeployingServer() as server:
        server.models = [{"id": "m1", "name": "tuned"}, {"id": "m2", "name": "other"}]
        server.deployments = [
            deployment("live", "m1", "ACTIVE", is_production=True, environment="production"),
            deployment("spare", "m1", "SCALED_TO_ZERO"),
            deployment("off", "m1", "INACTIVE"),
            deployment("broken", "m1", "DEPLOY_FAILED"),
            deployment("far", "m2", "NEW\x1b[2JSTATUS"),
        ]
        server.on("GET", ".*/m1/deployments/[^/]+/config", Answer({"config": JOB_CONFIG}))
        server.on("GET", ".*/m2/deployments/[^/]+/config", Answer({"message": "not yours"}, status=403))
        server.on("GET", ".*/deployments/broken/startups", Answer({"items": [STARTUP]}))
        server.on("POST", ".*/(activate|deactivate)", Answer({"success": True, "no_op": False}))
        server.on("POST", ".*/promote", Answer(deployment("spare", "m1", "ACTIVE", is_production=True)))
        retried = {"retried": True, "deployment": deployment("broken", "m1", "BUILDING")}
        server.on("POST", ".*/retry", Answer(retried))
        yield server


def changes(server: DeployingServer) -> list[str]:
    return [asked.path.partition("deployments/")[2] for asked in server.asked if asked.method == "POST"]


OF_LIVE = ["active", "tuned", "name-live"]


@pytest.mark.proves("docs/commands.md", "`deployments`")
def test_it_lists_what_a_model_or_a_job_is_served_by(cli: RunCli, baseten: DeployingServer) -> None:
    table = cli("deployments")
    first, second = table.out.splitlines()[1:3]
    assert (first.split()[:3], second.split()[:3]) == (OF_LIVE, ["scaled", "to", "zero"])
    assert "newstatus" in table.out
    of_m1 = ["live", "spare", "off", "broken"]
    for options, ids in (("", [*of_m1, "far"]), ("--model tuned", of_m1), ("--model m2", ["far"])):
        assert [each["id"] for each in cli(f"deployments {options} -o json").json] == ids
    cli("deployments --model none", code=7)
    csv = cli("deployments", "--model", "m2", "-o", "csv").out.splitlines()
    assert csv[0].startswith("id,name,model_id,model_name,status")
    assert csv[1].startswith("far,name-far,m2,other,NEW")


def test_those_of_a_job_are_found_by_what_they_serve(cli: RunCli, baseten: DeployingServer) -> None:
    baseten.on("GET", ".*/m2/deployments/[^/]+/config", Answer({"config": None}))
    listed = cli("deployments --job-id job1 -o json").json
    assert [each["id"] for each in listed] == ["live", "spare", "off", "broken"]
    baseten.jobs[0]["name"] = "llama-8b-lora"
    assert cli("deployments --job-id llama-8b -o json").json == listed
    assert "no deployments of checkpoints of job job2" in cli("deployments", "--job-id", "job2").err


@pytest.mark.proves("docs/commands.md", "`deployments`")
def test_one_is_shown_with_its_start_and_how_to_call_it(cli: RunCli, baseten: DeployingServer) -> None:
    shown = cli("deployments", "show", "broken").out
    assert "checkpoint-100 of job1, a/b of job1" in shown
    assert "1m (failed): weight download 1m · readiness ✗" in shown
    assert '"model": "checkpoint-100"' in shown
    document = cli("deployments show broken -o json").json
    assert (document["status"], document["model_name"]) == ("DEPLOY_FAILED", "tuned")
    assert document["startups"][0]["phase_summary"][0]["duration_ms"] == 60_000
    assert "/deployment/broken/" in document["url"]
    # Without the right to read it, nothing is said of what it serves.
    far = cli("deployments", "show", "far", "--model", "other")
    assert ("curl" in far.out, "checkpoints" in far.out) == (False, False)
    cli("deployments", "show", "nobody", code=7)


@pytest.mark.usefixtures("no_waits")
@pytest.mark.proves("docs/commands.md", "`deployments`")
def test_a_log_is_followed_until_it_serves_or_has_failed(cli: RunCli, baseten: DeployingServer) -> None:
    baseten.lines = [line("pulling"), line("pulled", at_ms=LONG_AGO_MS + 1000)]
    for end, code in (("ACTIVE", 0), ("BUILD_FAILED", 5)):
        baseten.statuses = ["BUILDING", end]
        followed = cli("deployments logs live --follow -o ndjson", code=code)
        assert [each["message"] for each in followed.ndjson] == ["pulling", "pulled"]
        assert "status: building" in followed.err
    read = cli("deployments logs live -o json").json
    assert [each["message"] for each in read] == ["pulling", "pulled"]
    assert cli("deployments logs live --since 1h").out == ""
    cli("deployments logs live --follow -o json", code=2)


@pytest.mark.parametrize(
    ("arguments", "code", "words", "sent"),
    [
        ("promote spare --yes", 0, "promoted name-spare of tuned (spare)", ["spare/promote"]),
        ("deactivate live --yes", 0, "deactivated name-live of tuned (live)", ["live/deactivate"]),
        ("activate off --yes", 0, "activated name-off of tuned (off)", ["off/activate"]),
        ("retry broken --yes", 0, "retried name-broken of tuned (broken)", ["broken/retry"]),
        ("retry far --yes", 0, "retried", ["far/retry"]),  # of an unknown status the server decides
        ("promote live --yes", 2, "is the production deployment already", []),
        ("promote broken --yes", 2, "it is deploy failed", []),
        ("activate live --yes", 2, "it is active", []),
        ("deactivate off --yes", 2, "it is inactive", []),
        ("retry live --yes", 2, "it is active", []),
        ("retry nobody --yes", 7, "no deployment 'nobody'", []),
        ("promote spare", 2, "Promote name-spare of tuned (spare) to production? (no terminal", []),
    ],
)
@pytest.mark.proves("docs/commands.md", "After the deployment")
def test_what_is_changed(
    cli: RunCli, baseten: DeployingServer, arguments: str, code: int, words: str, sent: list[str]
) -> None:
    result = cli("deployments", *arguments.split(), code=code)
    assert words in result.err, result.err
    assert changes(baseten) == sent
    assert result.out == (f"{sent[0].partition('/')[0]}\n" if sent else "")


@pytest.mark.proves("docs/commands.md", "After the deployment")
def test_a_lost_answer_is_not_asked_for_again(cli: RunCli, baseten: DeployingServer) -> None:
    baseten.on("POST", ".*/retry", Answer({"message": "the gateway lost it"}, status=502))
    result = cli("deployments", "retry", "broken", "--yes", code=8)
    assert changes(baseten) == ["broken/retry"]
    assert "deployment broken may not have been retried" in result.err


def test_what_the_server_did_not_do_is_said(cli: RunCli, baseten: DeployingServer) -> None:
    no_build = {"retried": False, "reason": "no build to retry"}
    no_op = {"success": True, "no_op": True}
    for change, answer, code, words in (
        ("retry broken", no_build, 1, "nothing changed: no build to retry"),
        ("activate off", {"success": False}, 1, "nothing changed: the server gave no reason"),
        ("deactivate live", no_op, 0, "it was deactivated already"),
    ):
        baseten.on("POST", f".*/{change.partition(' ')[0]}", Answer(answer))
        result = cli(f"deployments {change} --yes -o json", code=code)
        assert words in result.err, result.err
        assert result.json.items() >= answer.items()


def test_at_a_terminal_it_asks(cli: RunCli, baseten: DeployingServer, typed: Callable[[str], None]) -> None:
    for answer, code, sent in (("n", 130, []), ("y", 0, ["live/deactivate"])):
        typed(answer)
        result = cli("deployments deactivate live", code=code)
        assert changes(baseten) == sent
        assert "requests to it fail until it is activated again" in result.err
