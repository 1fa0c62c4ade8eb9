from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


ROW = Row()


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True), ("   ", True), ("llama", True), ("LLAMA", True), ("whisper", False), ("llama sft", True),
        ("llama whisper", False), ("lsv3", True), ("l7sft", True), ("vs", False), ("3v7", False), ("l3", False), ("ada@", True),
        ("h100", True), ("running", True), ('"llama-70b"', True), ('"70b llama"', False), ("'70b-sft'", True),
        ("-whisper", True), ("!whisper", True), ("-llama", False), ('-"llama-70b"', False),
        ("status:running", True), ("status:RUNNING", True), ("status:run", True), ("status:failed", False),
        ("status:TRAINING_JOB_RUNNING", True), ("status:failed,running", True), ("status:active", True),
        ("status:waiting", False), ("status:finished", False), ("-status:running", False), ("status=running", True),
        ("gpu:h100", True), ("gpu:h200", False), ("gpu:h200,h100", True), ("!gpu:h200", True),
        ("project:llama", True), ('project:"llama sft"', False), ('project:"llama-sft"', True),
        ("user:ada", True), ("user:bob", False), ("name:70b", True), ("name:lsv3", False),
        ("age<7h", True), ("age<6h", False), ("age<=6h", True), ("age>30m", True), ("age>=2d", False),
        ("age<1w", True), ("age:1d", True), ("age:1h", False), ("age<21601s", True), ("-age<1d", False),
        ("vkcj4q7", True), ("VKCJ", True), ("cj4", True), ("kc", False), ("qx9z", True), ("-vkcj", False),
        ("id:vkcj", True), ("id:q7", True), ("id:9zr", False), ("project:qx9z", True), ("project:vkcj", False),
        ("age<0.5d", True), ("llama status:running gpu:h100 age<2d", True), ("llama status:running gpu:h200", False),
    ],
)  # fmt: skip
def test_queries(text, matches):
    query = parse(text)
    assert query.problems == ()
    assert query.matches(ROW) is matches


@pytest.mark.parametrize(
    ("text", "problem", "terms"),
    [
        ("llama node:3", "unknown field 'node'", 1),
        ("age<soon", "'soon' isn't a duration", 0),
        ("age<", "age< needs a value", 0),
        ("status:", "status: needs a value", 0),
        ("gpu<4", "only age can be compared", 0),
        ("foo<4 llama", "only age can be compared", 1),
        ('name:""', "name: needs a value", 0),
    ],
)
def test_what_is_not_understood_is_said_and_left_out(text, problem, terms):
    query = parse(text)
    assert len(query.problems) == 1
    assert problem in query.problems[0]
    assert len(query.terms) == terms
    assert query.matches(ROW)


@pytest.mark.parametrize(
    "text", ["status:runing", "-status:runing", "status:running,nope", "status:a status"]
)
def test_a_status_that_nobody_has_is_said_and_left_out(text):
    query = parse(f"{text} llama", {"TRAINING_JOB_RUNNING", "TRAINING_JOB_HIBERNATING"})
    assert len(query.problems) == 1
    assert query.problems[0].startswith("unknown status '")
    assert "pending, queued, created, deploying, running" in query.problems[0]
    assert [term.field for term in query.terms if term.field == "status"] == []


def test_a_status_is_known_by_its_beginning_and_from_the_jobs():
    for text in ("status:run", "status:hiber", "status:deploy", "status:TRAINING_JOB_FAILED"):
        assert parse(text, {"TRAINING_JOB_HIBERNATING"}).problems == parse(text).problems == ()


def test_failed_does_not_find_deploy_failed():
    statuses = ("TRAINING_JOB_FAILED", "TRAINING_JOB_DEPLOY_FAILED")
    failed, deploy_failed = (Row(status=status_view(status)) for status in statuses)
    assert [parse("status:failed").matches(row) for row in (failed, deploy_failed)] == [True, False]
    assert [parse("status:deploy-failed").matches(row) for row in (failed, deploy_failed)] == [False, True]
    assert parse("status:deploy_failed").matches(deploy_failed)


def test_an_unknown_status_is_found_by_its_name_and_as_finished():
    assert not parse("  ")
    for text in ("status:archived", "status:finished", "-status:active"):
        assert parse(text).matches(Row(status=status_view("TRAINING_JOB_ARCHIVED")))


pieces = st.sampled_from(["-", "!", '"', "'", ":", "=", "<", ">", ",", " ", "age", "status", "a", "2d", "x"])


@given(st.text() | st.lists(pieces).map("".join))
def test_no_query_is_too_strange(text):
    query = parse(text)
    query.matches(ROW)
    query.matches(Row(name="", project="", status=status_view(""), gpu="", user="", age_s=float("nan")))
