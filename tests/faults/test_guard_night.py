"""A night with a guard: it reports each problem once, and stops what is sick, whatever happens to it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from api_client.emulator.fleet.plans import JobPlan
from api_client.models import TrainingJob
from support.faulty import FaultyServer
from support.guarded_nights import BEGAN_AGO_S, PLANS, night, plan
from support.webhooks import Webhook
from tui.guard.rules import GuardRules

REPEATED = ("500", "503@handled", "429(retry-after=2)", "reset@during", "cut")
KINDS = (*(f"{kind};share=0.06" for kind in REPEATED), "html;share=0.02", "truncated;share=0.02")
OUTAGE = "restart=600s;skip=150;times=1"
TROUBLE = "|".join([OUTAGE, *KINDS])
"""Of all requests, 30 % fail, and none is answered for ten minutes."""
KILLED_AT_S = (400.0, 1200.0, 1700.0, 2300.0)
BREAKS_AT_S = 1200
"""The loss is no number any more this long after the evening began."""
HUNG_FOR_S = 540
STOPS = GuardRules(stop_on=frozenset({"loss-not-finite", "gpu-idle"}), after_checkpoint=True)


def breaking() -> JobPlan:
    """A run whose loss breaks in the night."""
    scenario = PLANS["mistral-24b-dpo-2"].scenario
    step = scenario.curves.steps_done(int((BEGAN_AGO_S + BREAKS_AT_S) * 1e9))
    scenario = replace(scenario, curves=replace(scenario.curves, nan_from=step))
    return plan("sick", "mistral-24b-dpo-2", hours=3, scenario=scenario)


def hanging() -> JobPlan:
    """A run that has made no step for a while."""
    scenario = PLANS["qwen3-grpo-7"].scenario
    curves = replace(scenario.curves, halts_after_s=BEGAN_AGO_S - HUNG_FOR_S)
    scenario = replace(scenario, curves=curves)
    return plan("hung", "qwen3-grpo-7", hours=0.5, scenario=scenario)


ENDS = ["✓ hung: completed", "■ sick: stopped", "✓ well: completed"]


def problems(told: list[str]) -> list[str]:
    return [each for each in told if each not in ("blind", "sighted")]


@pytest.mark.proves("docs/guard.md", "What it reports")
async def test_guard_in_a_bad_night_loses_and_repeats_nothing(faulty: FaultyServer, tmp_path: Path) -> None:
    well = plan("well", "llama-70b-sft-v3", hours=0.75)
    with Webhook() as hook, night(faulty, tmp_path, breaking(), well, hanging()) as dark:
        faulty.set_faults(TROUBLE)
        dark.clock.kills_at_s = list(KILLED_AT_S)
        dark.kills_after_stop = True
        dark.webhook = hook.url
        await dark.guard(["sick", "well", "hung"], STOPS)
        struck = len(faulty.struck()) / len(faulty.layer.asked)
        assert dark.stop_requests == 1
        assert dark.saved_between_plan_and_stop("sick")
    assert problems(dark.told("well")) == ["job-ended"]
    assert problems(dark.told("hung")) == ["finding stalled", "job-ended"]
    assert problems(dark.told("sick")) == [
        "finding loss-not-finite",
        "stop-planned",
        "stopped",
        "job-ended",
    ]
    assert dark.starts == 2 + len(KILLED_AT_S)
    assert struck > 0.3
    texts = [re.sub(r"[\d:]{2,}", "", text) for text in hook.texts]
    assert Counter(texts).most_common(1)[0][1] == 1, "each once, although it was killed five times"
    expected = {
        "no run could be read since": 1,
        "the server answers again": 1,
        "no step or log line": 1,
        "loss is NaN": 3,
        "will be stopped": 1,
    }
    told = {words: sum(words in text for text in texts) for words in expected}
    assert told == expected, texts
    assert [text for text in texts if text.endswith(("completed", ": stopped"))] == ENDS


@pytest.mark.proves("docs/guard.md", "What it resumes")
async def test_preempted_run_is_resumed_twice_and_then_reported(faulty: FaultyServer, tmp_path: Path) -> None:
    lives = {"spot": 0.2, "spot-r2": 0.35, "spot-r3": 0.5}
    plans = [plan(name, "qwen3-14b-titan", hours=hours, outcome="PREEMPTED") for name, hours in lives.items()]
    requests: list[str] = []
    with night(faulty, tmp_path, *plans) as dark:
        faulty.set_faults(TROUBLE)
        dark.clock.kills_at_s = [400.0, 1000.0, 1500.0]

        async def resume(job: TrainingJob, *_since_and_others: object) -> TrainingJob:
            requests.append(job.name or "")
            return await dark.job(list(lives)[len(requests)])

        rules = GuardRules(resume_on=frozenset({"preempted"}), max_resumes=2)
        await dark.guard(["spot"], rules, resume=resume)
    assert requests == ["spot", "spot-r2"]
    assert problems(dark.told("spot")) == ["job-ended", "resumed"]
    assert problems(dark.told("spot-r2")) == ["job-ended", "resumed"]
    assert problems(dark.told("spot-r3")) == ["job-ended", "not-resumed"]
