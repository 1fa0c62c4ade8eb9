"""Parse the conditions for stopping a run: ``200usd``, ``06:00``, ``8h``, ``stalled``."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from api_client.words import listed
from tui.analysis.health.registry import KINDS
from tui.guard.rules import Deadline, GuardRules
from tui.text.times import DATE_AND_MINUTE, local_time, parse_duration
from tui.text.units import money


def parse_dollars(text: str) -> float:
    """Parse US dollars: ``200usd``, ``$200`` or ``200``. Raises ValueError."""
    with suppress(ValueError):
        amount = float(text.strip().lower().removeprefix("$").removesuffix("usd"))
        if 0 < amount < float("inf"):
            return amount
    raise ValueError(f"{text[:40]!r} is not an amount such as 200usd")


def parse_time(text: str, now: datetime) -> datetime:
    """Parse a time: the next ``06:00``, ``2026-11-25 06:00``, or ``8h`` from now. Raises ValueError."""
    text, local_now = text.strip(), now.astimezone()
    with suppress(ValueError):
        time_of_day = datetime.strptime(text, "%H:%M").time()  # noqa: DTZ007 – a local time of day
        today = datetime.combine(local_now.date(), time_of_day).astimezone()
        tomorrow = datetime.combine(local_now.date() + timedelta(days=1), time_of_day).astimezone()
        return (today if today > now else tomorrow).astimezone(UTC)
    with suppress(ValueError):
        return datetime.fromisoformat(text).astimezone(UTC)
    return now + parse_duration(text)


def parse_deadline(text: str, now: datetime) -> Deadline:
    """Parse a deadline. Raises ValueError if ``text`` is not a time."""
    try:
        return Deadline(text, parse_time(text, now))
    except (ValueError, OverflowError):
        raise ValueError(f"{text[:40]!r} is not a time such as 06:00 or 8h") from None


def parse_rules(text: str, now: datetime) -> GuardRules:
    """Parse a line of conditions for stopping a run: findings, an amount and a time, in any order.

    Raises ValueError for an unknown word, or if there is no condition.
    """
    rules = GuardRules()
    for word in re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d|[^\s,;]+", text):
        rules = _with_condition(rules, word, now)
    if not rules.may_stop:
        raise ValueError("name a finding, an amount or a time, such as stalled, 200usd or 06:00")
    return rules


def _with_condition(rules: GuardRules, word: str, now: datetime) -> GuardRules:
    if word in KINDS:
        return replace(rules, stop_on=rules.stop_on | {word})
    if word == "after-checkpoint":
        return replace(rules, after_checkpoint=True)
    if "$" in word or word.lower().endswith("usd"):
        return replace(rules, budget_usd=parse_dollars(word))
    try:
        until = parse_deadline(word, now)
    except ValueError:
        raise ValueError(
            f"{word[:40]!r} is no finding of docs/health.md, no amount such as 200usd, no time such as 06:00"
        ) from None
    check_deadline(until, now)
    return replace(rules, until=until)


def check_deadline(until: Deadline, now: datetime) -> None:
    """Raise ValueError if the deadline has passed."""
    if until.at <= now:
        raise ValueError(f"{until.typed[:40]!r} is not in the future")


def stop_causes(rules: GuardRules) -> str:
    """Describe what stops a run: ``stalled, a budget of $200.00 and 2026-11-28 06:00``; may be empty."""
    names = [*sorted(rules.stop_on)]
    if rules.budget_usd is not None:
        names.append(f"a budget of {money(rules.budget_usd)}")
    if rules.until is not None:
        names.append(local_time(rules.until.at, DATE_AND_MINUTE))
    return listed(names, len(names)) if names else ""
