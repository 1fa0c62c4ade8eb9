from dataclasses import dataclass

import pytest
from hypothesis import given, strategies as st

from tui.analysis.fleet.query import parse
from tui.analysis.status import StatusView, status_view

RUNNING = status_view("TRAINING_JOB_RUNNING")


@dataclass(frozen=True)
class Row:
    name: str = "llama-70b-sft-v3"
    id: str = "vkcj4q7"
    project_id: str = "Qx9zRT0"
    project: str = "llama-sft"
    status: StatusView = RUNNING
    gpu: str = "4×8 H100"
    user: str = "ada@demo.example"
    age_s: float = 6 * 3600.0
    note: str = "node-2 lags"


ROW = Row()


FOUND = """|   |llama|LLAMA|node-2|"node-2 lags"|llama sft|lsv3|l7sft|ada@|h100|running|"llama-70b"|'70b-sft'|-whisper|!whisper|
status:running|status:RUNNING|status:run|status:TRAINING_JOB_RUNNING|status:failed,running|status:active|status=running|
gpu:h100|gpu:h200,h100|!gpu:h200|project:llama|project:"llama-sft"|user:ada|name:70b|project:qx9z|
age<7h|age<=6h|age>30m|age<1w|age:1d|age<21601s|age<0.5d|vkcj4q7|VKCJ|cj4|qx9z|id:vkcj|id:q7|
llama status:running gpu:h100 age<2d"""
OTHER = """whisper|-node-2|llama whisper|vs|3v7|l3|"70b llama"|-llama|-"llama-70b"|status:failed|status:waiting|status:finished|
-status:running|gpu:h200|project:"llama sft"|user:bob|name:lsv3|age<6h|age>=2d|age:1h|-age<1d|kc|-vkcj|id:9zr|project:vkcj|
llama status:running gpu:h200"""


@pytest.mark.parametrize(("texts", "matches"), [(FOUND, True), (OTHER, False)], ids=["found", "other"])
def test_queries(texts, matches):
    queries = {text: parse(text) for text in texts.replace("\n", "").split("|")}
    assert [
        text for text, query in queries.items() if query.problems or query.matches(ROW) is not matches
    ] == []


@pytest.mark.parametrize(
    ("text", "problem", "terms"),
    [
        ("llama node:3", "unknown field 'node'", 1),
        ("age<soon", "'soon' isn't a duration", 0),
        ("status:", "status: needs a value; use pending, ", 0),
        ("foo<4 llama", "only age can be compared", 1),
        ("is:", "is: needs a value; use bookmarked, alarmed, spot", 0),
        ('name:""', "name: needs a value", 0),
        *((f"{text} llama", "unknown status '", 1) for text in ("-status:runing", "status:running,nope")),
    ],
)
def test_what_is_not_understood_is_said_and_left_out(text, problem, terms):
    query = parse(text, {"TRAINING_JOB_RUNNING"})
    assert [problem in one for one in query.problems] == [True]
    assert len(query.terms) == terms
    assert query.matches(ROW)


def test_a_status_is_known_by_its_beginning_and_from_the_jobs():
    known = {"TRAINING_JOB_RUNNING", "TRAINING_JOB_HIBERNATING"}
    for text in ("status:run", "status:hiber", "status:deploy", "status:TRAINING_JOB_FAILED"):
        assert parse(text, known).problems == ()
    (problem,) = parse("status:runing", known).problems
    assert "pending, queued, created, deploying, running" in problem
    for text in ("status:archived", "status:finished", "-status:active"):
        assert parse(text).matches(Row(status=status_view("TRAINING_JOB_ARCHIVED")))


def test_failed_does_not_find_deploy_failed():
    failed, deploy_failed = (Row(status=status_view(f"TRAINING_JOB_{one}FAILED")) for one in ("", "DEPLOY_"))
    for row, other, texts in (
        (failed, deploy_failed, ["status:failed"]),
        (deploy_failed, failed, ["status:deploy-failed", "status:deploy_failed"]),
    ):
        assert all(parse(text).matches(row) and not parse(text).matches(other) for text in texts)


pieces = st.sampled_from(["-", "!", '"', "'", ":", "=", "<", ">", ",", " ", "age", "status", "a", "2d", "x"])


@given(st.text() | st.lists(pieces).map("".join))
def test_no_query_is_too_strange(text):
    query = parse(text)
    query.matches(ROW)
    query.matches(Row(name="", project="", status=status_view(""), gpu="", user="", age_s=float("nan")))
