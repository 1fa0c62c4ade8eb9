"""Healthy runs that look sick stay silent, and sick ones are named in time, with any noise."""

import pytest
from _pytest.mark import ParameterSet

from support.healthy_runs import CASES
from support.simulated_runs import NOISES, Case, Noise, looks
from tui.analysis.run.finding import HealthFinding

LOOK_S = 300.0


def problems(case: Case, noise: Noise) -> list[tuple[float, HealthFinding]]:
    """Return the findings of each look that are no remarks."""
    return [
        (minute, finding)
        for minute, findings in looks(case.run(noise), LOOK_S)
        for finding in findings
        if finding.severity != "info"
    ]


def in_all_noises(*cases: Case) -> list[ParameterSet]:
    return [pytest.param(case, noise, id=f"{case.name}-{noise.name}") for case in cases for noise in NOISES]


@pytest.mark.parametrize(("case", "noise"), in_all_noises(*[one for one in CASES if one.trouble is None]))
def test_healthy_run_is_silent(case: Case, noise: Noise) -> None:
    shown = [f"{minute:.0f}: {finding.text}" for minute, finding in problems(case, noise)]
    assert shown == []


@pytest.mark.parametrize(("case", "noise"), in_all_noises(*[one for one in CASES if one.trouble]))
def test_sick_run_is_named_in_time_and_not_before(case: Case, noise: Noise) -> None:
    trouble = case.trouble
    assert trouble is not None
    shown = problems(case, noise)
    early = [f"{minute:.0f}: {finding.text}" for minute, finding in shown if minute < trouble.begins]
    named = [minute for minute, finding in shown if trouble.is_named_by(finding)]
    assert early == []
    assert named and named[0] <= trouble.by
