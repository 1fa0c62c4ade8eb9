"""The conditions on which a run is stopped, as somebody types them."""

from datetime import UTC, datetime, timedelta

import pytest

from tui.guard.conditions import parse_rules, parse_time, stop_causes

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def test_conditions_are_read_in_any_order() -> None:
    rules = parse_rules("200usd, stalled after-checkpoint 8h loss-not-finite", NOW)
    assert rules.stop_on == {"stalled", "loss-not-finite"}
    assert rules.budget_usd == 200 and rules.after_checkpoint and not rules.dry_run
    assert rules.until is not None and rules.until.at == NOW + timedelta(hours=8)
    assert stop_causes(rules).startswith("loss-not-finite, stalled, a budget of $200")


def test_date_with_a_time_is_one_condition() -> None:
    until = parse_rules("2030-03-02 06:00", NOW).until
    assert until is not None and until.at == parse_time("2030-03-02 06:00", NOW)


@pytest.mark.parametrize(
    "typed", ["", "after-checkpoint", "soon", "-5usd", "nanusd", "stalled soon", "99:99", "\x1b[31m"]
)
def test_line_without_a_condition_or_with_another_word_is_refused(typed: str) -> None:
    with pytest.raises(ValueError, match=r"finding|amount|time"):
        parse_rules(typed, NOW)


def test_next_moment_is_a_time_of_day_a_date_or_a_duration() -> None:
    now = datetime(2026, 3, 1, 22, 0, tzinfo=UTC)
    assert parse_time("06:00", now) == datetime(2026, 3, 2, 6, 0, tzinfo=UTC)
    assert parse_time("23:30", now) == datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
    assert parse_time("2026-03-04 05:00", now) == datetime(2026, 3, 4, 5, 0, tzinfo=UTC)
    assert parse_time("8h", now) == datetime(2026, 3, 2, 6, 0, tzinfo=UTC)
