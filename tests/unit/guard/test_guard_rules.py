"""Whatever a guard sees in a night, in whatever order: what holds for each of its decisions."""

import json
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from api_client.models import Checkpoint, JobMetrics
from support.worlds import CHECKPOINTS, ONE_O_CLOCK, job, run
from tui.alerts.alert import NEWS_AFTER_ABSENCE
from tui.analysis.health.registry import KINDS
from tui.analysis.run.finding import HealthFinding
from tui.guard.memory import RunMemory
from tui.guard.rules import (
    OUTAGE_REPORT_DELAY_S,
    REPEAT_STOP_S,
    Deadline,
    GuardRules,
    Poll,
    decide,
    is_worth_sending,
    record_stop_response,
    spent_usd,
)
from tui.settings.remembered import restored

NAN = HealthFinding(KINDS["loss-not-finite"], "critical", "loss is NaN")
SLOW = HealthFinding(KINDS["straggler"], "warning", "61% of the others", "node-2")
STALLED = HealthFinding(KINDS["stalled"], "critical", "no step for 9m")
IDLE = HealthFinding(KINDS["gpu-idle"], "warning", "GPUs idle")
BASE = run(findings=())
NEW = Checkpoint(checkpoint_id="checkpoint-5000", created_at=ONE_O_CLOCK, sync_status="COMPLETE")
STOP_ON_NAN = GuardRules(stop_on=frozenset({"loss-not-finite"}))
AFTER = replace(STOP_ON_NAN, after_checkpoint=True)


def seen(
    minute: float, *findings: HealthFinding, problem: str = "", judged: bool = True, **changes: Any
) -> Poll:
    at = ONE_O_CLOCK + timedelta(minutes=minute)
    snapshot = replace(BASE, at=at, seen_at=at, findings=findings, **changes)
    return Poll(snapshot, problem, is_judged=judged)


def ended(minute: float, status: str) -> Poll:
    return seen(minute, job=job("llama70", status))


def stored(memory: RunMemory) -> RunMemory:
    """Return what a restart reads of a memory."""
    return restored(RunMemory, json.loads(json.dumps(asdict(memory))))


@dataclass
class Story:
    """What a guard decided in a row of polls; a stop is answered with ``problem``."""

    rules: GuardRules = field(default_factory=GuardRules)
    memory: RunMemory = field(default_factory=RunMemory)
    problem: str = ""
    outage_end_s: float = 0.0
    stops: int = 0
    is_over: bool = False
    notified: list[str] = field(default_factory=list)

    def poll(self, poll: Poll) -> list[str]:
        decision = decide(self.memory, poll, self.rules, outage_end_s=self.outage_end_s)
        alerts = list(decision.alerts)
        self.notified += [each.event for each in alerts if is_worth_sending(self.memory, each)]
        self.memory, self.is_over = decision.memory, decision.is_over
        if decision.action == "stop":
            self.stops += 1
            answer = record_stop_response(self.memory, poll.run, self.problem)
            self.memory, alerts = answer.memory, [*alerts, *answer.alerts]
        return [f"{each.event}:{each.finding.key}" if each.finding else each.event for each in alerts]

    def polls(self, *polls: Poll) -> list[list[str]]:
        return [self.poll(poll) for poll in polls]


NAN_BEGINS, NAN_ENDS = "finding:loss-not-finite", "finding-ended:loss-not-finite"
AT_13_05 = GuardRules(until=Deadline("13:05", ONE_O_CLOCK + timedelta(minutes=5)))
BLIND_AFTER_MIN = OUTAGE_REPORT_DELAY_S / 60
UNSEEN = [
    seen(minute, problem="down", judged=False)
    for minute in (1, BLIND_AFTER_MIN - 1, BLIND_AFTER_MIN, BLIND_AFTER_MIN + 1)
]


@pytest.mark.parametrize(
    ("rules", "polls", "events"),
    [
        pytest.param(
            GuardRules(),
            [seen(0), seen(1, NAN), seen(2, NAN, SLOW), seen(3, SLOW), seen(4, SLOW)],
            [[], [NAN_BEGINS], ["finding:straggler:node-2"], [], [NAN_ENDS]],
            id="a finding begins and ends once",
        ),
        pytest.param(
            GuardRules(),
            [seen(0, NAN), seen(1), seen(2, NAN), seen(3)],
            [[NAN_BEGINS], [], [], []],
            id="one that a poll misses goes on",
        ),
        pytest.param(
            GuardRules(),
            [seen(0, NAN), seen(1), ended(2, "COMPLETED")],
            [[NAN_BEGINS], [], ["job-ended"]],
            id="none ends just before its run",
        ),
        pytest.param(
            GuardRules(),
            [
                *(seen(0, NAN), seen(1, problem="no metrics"), seen(2, problem="down", judged=False)),
                *(seen(3), seen(4)),
            ],
            [[NAN_BEGINS], [], [], [], [NAN_ENDS]],
            id="it ends only in complete polls",
        ),
        pytest.param(
            GuardRules(), [seen(0, NAN, problem="no metrics")], [[NAN_BEGINS]], id="it begins in any poll"
        ),
        pytest.param(
            AT_13_05,
            [seen(4), seen(6, problem="no log"), seen(7)],
            [[], [], ["stopped"]],
            id="a deadline stops a run once it has passed",
        ),
        pytest.param(
            STOP_ON_NAN,
            [seen(0), *UNSEEN, seen(BLIND_AFTER_MIN + 2)],
            [[], [], [], ["blind"], [], ["sighted"]],
            id="blindness and its end are reported once",
        ),
        pytest.param(
            GuardRules(),
            [seen(0, job=job("llama70", "DEPLOYING")), seen(1), ended(2, "FAILED"), ended(3, "FAILED")],
            [[], ["status"], ["job-ended"], []],
            id="changes of the status and the end are reported",
        ),
    ],
)
def test_looks_at_a_run_are_reported_as(
    rules: GuardRules, polls: list[Poll], events: list[list[str]]
) -> None:
    assert Story(rules).polls(*polls) == events


def test_run_is_stopped_after_two_complete_looks() -> None:
    story = Story(STOP_ON_NAN)
    events = story.polls(
        seen(0, NAN),
        seen(1, NAN, problem="no metrics"),
        seen(2, NAN, problem="down", judged=False),
        seen(3, NAN),
    )
    assert events[-1] == ["stopped"]
    assert story.stops == 1
    assert story.polls(seen(4, NAN), seen(90, NAN), seen(91, NAN)) == [[], ["not-stopped"], []]
    assert story.stops == 1


def test_other_findings_and_one_look_stop_nothing() -> None:
    story = Story(STOP_ON_NAN)
    story.polls(seen(0, SLOW), seen(1, SLOW), seen(2, NAN), seen(3), seen(4, NAN, problem="no log"))
    story.polls(seen(5, NAN), seen(6))
    assert story.stops == 0


def test_stop_waits_for_a_checkpoint_stored_after_the_plan() -> None:
    story = Story(AFTER)
    assert story.polls(seen(0, NAN), seen(1, NAN))[-1] == ["stop-planned"]
    uploading = NEW.model_copy(update={"sync_status": "SYNCING"})
    assert story.poll(seen(2, NAN, checkpoints=(*CHECKPOINTS, uploading))) == []
    assert story.poll(seen(3, NAN, checkpoints=(*CHECKPOINTS, NEW), problem="no log")) == []
    assert story.poll(seen(4, NAN, checkpoints=(*CHECKPOINTS, NEW))) == ["stopped"]


@pytest.mark.parametrize("finding", [STALLED, IDLE])
def test_stop_does_not_wait_for_a_checkpoint_that_never_comes(finding: HealthFinding) -> None:
    story = Story(GuardRules(stop_on=frozenset({str(finding.kind)}), after_checkpoint=True))
    assert story.polls(seen(0, finding), seen(1, finding))[-1] == ["stopped"]


def test_planned_stop_is_withdrawn_if_its_cause_is_over() -> None:
    story = Story(AFTER)
    story.polls(seen(0, NAN), seen(1, NAN), seen(2))
    assert story.poll(seen(3, checkpoints=(*CHECKPOINTS, NEW))) == [
        "finding-ended:loss-not-finite",
        "stop-withdrawn",
    ]
    assert story.stops == 0


def test_refused_stop_is_reported_once_and_tried_again() -> None:
    story = Story(STOP_ON_NAN, problem="403")
    story.poll(seen(0, NAN))
    again = REPEAT_STOP_S / 60
    assert story.polls(*(seen(1 + number * again, NAN) for number in range(3))) == [["not-stopped"], [], []]
    assert story.polls(seen(1.5 + 2 * again, NAN)) == [[]]
    assert story.stops == 3
    story.problem = ""
    assert story.poll(seen(1 + 3 * again, NAN)) == ["stopped"]


def test_stop_whose_answer_was_lost_is_reported_with_its_reason_before_the_end() -> None:
    first = decide(RunMemory(), seen(0, NAN), STOP_ON_NAN)
    asked = decide(first.memory, seen(1, NAN), STOP_ON_NAN)
    assert asked.action == "stop"
    after = decide(stored(asked.memory), ended(2, "STOPPED"), STOP_ON_NAN)
    assert [alert.event for alert in after.alerts] == ["stopped", "job-ended"]
    assert "loss-not-finite" in after.alerts[0].text
    failed = decide(stored(asked.memory), ended(2, "FAILED"), STOP_ON_NAN)
    assert [alert.event for alert in failed.alerts] == ["job-ended"]


def test_dry_run_reports_once_and_stops_nothing() -> None:
    story = Story(replace(STOP_ON_NAN, dry_run=True))
    assert story.polls(*(seen(minute, NAN) for minute in range(4)))[1:] == [["would-stop"], [], []]
    assert story.stops == 0
    story.rules = STOP_ON_NAN
    assert story.poll(seen(5, NAN)) == ["stopped"]


def test_what_stopping_loses_is_said() -> None:
    decision = decide(RunMemory(), seen(0, NAN), STOP_ON_NAN)
    decision = decide(decision.memory, seen(1, NAN), STOP_ON_NAN)
    (alert,) = record_stop_response(decision.memory, seen(1, NAN).run, "").alerts
    assert alert.text.startswith("stopped: loss-not-finite: loss is NaN. Unsaved work: ")


def test_budget_stops_a_run_that_has_cost_as_much() -> None:
    spent = spent_usd(BASE)
    assert spent is not None
    assert Story(GuardRules(budget_usd=spent + 1)).poll(seen(0)) == []
    assert Story(GuardRules(budget_usd=spent)).poll(seen(0)) == ["stopped"]


def test_budget_without_a_price_is_reported_once() -> None:
    story = Story(GuardRules(budget_usd=1.0))
    unpriced = replace(BASE, price_per_minute=None)
    polls = [Poll(replace(unpriced, at=BASE.at + timedelta(minutes=minute))) for minute in range(3)]
    assert story.polls(*polls) == [["not-stopped"], [], []]
    assert story.stops == 0


def test_without_history_the_time_in_the_queue_costs_nothing() -> None:
    """The job was created six hours ago; its samples are of one hour."""
    assert not BASE.cost.measured
    spent = spent_usd(BASE)
    assert spent == pytest.approx(60 * 0.65 * 4)
    assert BASE.cost.usd is not None and BASE.cost.usd > 5 * spent
    assert spent_usd(run(findings=(), metrics=JobMetrics(), health_metrics=None)) is None


def test_end_of_a_run_is_reported_although_the_next_look_failed() -> None:
    story, stopped = Story(), job("llama70", "TRAINING_JOB_STOPPED")
    story.polls(seen(0), seen(1, problem="down", judged=False, job=stopped))
    assert not story.is_over
    assert story.poll(seen(2, job=stopped)) == ["job-ended"]
    assert story.is_over


def test_outage_that_was_reported_of_another_run_is_not_reported_again() -> None:
    story = Story(outage_end_s=(ONE_O_CLOCK + timedelta(minutes=9)).timestamp())
    polls = (seen(minute, problem="down" if minute else "") for minute in (0, 1, 10, 13, 14.5))
    assert story.polls(*polls) == [[], [], [], [], ["blind"]]


def test_job_that_is_gone_is_watched_no_longer() -> None:
    story = Story()
    for minute in (0, 1, 6):
        story.poll(replace(seen(minute, problem="no such job", judged=False), is_gone=True))
        assert story.is_over == (minute == 6)


def due(*polls: Poll) -> list[str]:
    story = Story()
    story.polls(*polls)
    return story.notified


def test_finding_that_wavers_is_notified_once_a_while() -> None:
    away = NEWS_AFTER_ABSENCE.total_seconds() / 60
    polls = [seen(0, NAN), seen(1), seen(2), seen(3, NAN), seen(4), seen(5), seen(1 + away, NAN)]
    assert due(*polls) == ["finding"]
    assert due(seen(0, NAN), seen(1), seen(2), seen(1 + away, NAN)) == ["finding", "finding"]


def test_end_of_a_run_that_nobody_watched_is_not_notified() -> None:
    assert due(ended(0, "FAILED")) == []
    assert due(seen(0), ended(1, "FAILED")) == ["job-ended"]


LOOKS = st.lists(
    st.tuples(
        st.sampled_from([0.5, 1.0, 4.0, 40.0]),
        st.sets(st.sampled_from([NAN, SLOW, STALLED, IDLE]), max_size=3),
        st.sampled_from(["", "", "no metrics", "down"]),
        st.integers(0, 3),
    ),
    max_size=25,
)
RULES = st.builds(
    GuardRules,
    stop_on=st.sets(st.sampled_from(["loss-not-finite", "stalled", "gpu-idle"])).map(frozenset),
    budget_usd=st.sampled_from([None, 1.0, 1e6]),
    until=st.sampled_from([None, Deadline("13:30", ONE_O_CLOCK + timedelta(minutes=30))]),
    after_checkpoint=st.booleans(),
    dry_run=st.booleans(),
)


def rows(drawn: list[tuple[float, set[HealthFinding], str, int]]) -> list[Poll]:
    minute, polls = 0.0, []
    for passed, findings, problem, saved in drawn:
        minute += passed
        more = [NEW.model_copy(update={"checkpoint_id": f"new-{number}"}) for number in range(saved)]
        polls.append(
            seen(
                minute,
                *sorted(findings, key=lambda each: each.key),
                problem=problem,
                judged=problem != "down",
                checkpoints=(*CHECKPOINTS, *more),
            )
        )
    return polls


@given(LOOKS, RULES)
def test_no_night_stops_a_run_twice_or_blindly_or_without_cause(
    drawn: list[tuple[float, set[HealthFinding], str, int]], rules: GuardRules
) -> None:
    memory, stops = RunMemory(), 0
    for poll in rows(drawn):
        decision = decide(memory, poll, rules)
        memory = decision.memory
        if decision.action != "stop":
            continue
        stops += 1
        assert poll.is_complete and not rules.dry_run
        assert (
            any(str(each.kind) in rules.stop_on for each in poll.run.findings)
            or rules.budget_usd == 1.0
            or (rules.until is not None and poll.run.at >= rules.until.at)
        )
        memory = record_stop_response(memory, poll.run, "").memory
    assert stops <= 1


@given(LOOKS, RULES)
def test_restart_at_any_look_changes_no_decision(
    drawn: list[tuple[float, set[HealthFinding], str, int]], rules: GuardRules
) -> None:
    memory = restarted = RunMemory()
    for poll in rows(drawn):
        decision, again = decide(memory, poll, rules), decide(stored(restarted), poll, rules)
        assert (decision.alerts, decision.action) == (again.alerts, again.action)
        memory, restarted = decision.memory, again.memory


@given(LOOKS)
def test_every_finding_that_is_seen_is_reported_once_until_it_ends(
    drawn: list[tuple[float, set[HealthFinding], str, int]],
) -> None:
    memory, present, in_last_complete = RunMemory(), set[str](), set[str]()
    for poll in rows(drawn):
        decision = decide(memory, poll, GuardRules())
        memory = decision.memory
        told = [(each.event, each.finding.key) for each in decision.alerts if each.finding is not None]
        begun = [key for event, key in told if event == "finding"]
        over = {key for event, key in told if event == "finding-ended"}
        keys = {each.key for each in poll.run.findings} if poll.is_judged else set()
        assert sorted(begun) == sorted(keys - present)
        assert over == (present - keys - in_last_complete if poll.is_complete else set())
        in_last_complete = keys if poll.is_complete else in_last_complete
        present = (present | keys) - over
