"""Alerts of the app: notices, bell, terminal title and notifications, and the user's command or webhook."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from textual import events, on
from textual.app import App
from textual.notifications import SeverityLevel
from textual.reactive import var
from textual.screen import Screen

from tui.actions.keymap import key_for
from tui.alerts.alert import Alert, AlertTracker, fleet_title, run_title
from tui.alerts.delivery import (
    RESTORE_TITLE,
    SAVE_TITLE,
    AlertDelivery,
    DeliveryTargets,
    notification_sequence,
    osc_kind,
    title_sequence,
)
from tui.analysis.fleet.snapshot import JobRow, without_snoozed
from tui.analysis.run.finding import SEVERITIES
from tui.screens.base import AppScreen
from tui.screens.home.screen import HomeScreen
from tui.screens.kinds import is_job_screen
from tui.screens.messages import FleetChecked, RunChecked, SnoozeRequested
from tui.screens.welcome import WelcomeChoice
from tui.settings.loading import Loaded
from tui.settings.model import NotificationSettings
from tui.text.units import duration

TOAST_S = 12.0
AWAY_AFTER_S = 180.0
"""Idle time after which the user counts as away, for terminals that do not report their focus."""
SNOOZE_CHECK_S = 10.0
_TONES: dict[str, SeverityLevel] = {"critical": "error", "warning": "warning", "info": "information"}


class AlertsMixin(App[WelcomeChoice]):
    """App mixin that collects findings and reports new ones; the app sets ``_settings``."""

    snoozed: var[frozenset[tuple[str, str]]] = var(frozenset[tuple[str, str]]())
    _settings: Loaded
    _keys: Mapping[str, str] = {}
    _book: AlertTracker | None = None
    _alert_delivery: AlertDelivery | None = None
    _title_shown = ""
    _last_rows: Mapping[int, JobRow] = MappingProxyType({})
    _knows_focus = False
    _used_at = 0.0

    @property
    def _wanted(self) -> NotificationSettings:
        return self._settings.configuration.notifications

    @property
    def alert_tracker(self) -> AlertTracker:
        """The record of alerts that were reported before."""
        if self._book is None:
            self._book = AlertTracker(_now())
        return self._book

    def on_mount(self) -> None:
        """Start the record of alerts, so that existing findings are not reported as new."""
        self._used_at = time.monotonic()
        _ = self.alert_tracker
        wanted = self._wanted
        if wanted.command or wanted.webhook:
            self._alert_delivery = AlertDelivery(
                DeliveryTargets(tuple(wanted.command), wanted.webhook),
                self._report_delivery_failure,
                os.environ,
            )
            self.run_worker(
                self._alert_delivery.run(), name="notifications outside", group="alerts", exit_on_error=False
            )
        if wanted.title:
            self.write_to_terminal(SAVE_TITLE)
        self.set_interval(SNOOZE_CHECK_S, self._check_snoozes)

    async def on_unmount(self) -> None:
        if self._title_shown:
            self.write_to_terminal(title_sequence("") + RESTORE_TITLE)

    async def on_event(self, event: events.Event) -> None:
        """Track the terminal's focus and the time of the last input."""
        if isinstance(event, events.AppFocus | events.AppBlur):
            self._knows_focus = True
        elif isinstance(event, events.InputEvent):
            self._used_at = time.monotonic()
        await super().on_event(event)

    @property
    def is_unattended(self) -> bool:
        """True if the terminal has no focus, or, if it never reports focus, after a while without input."""
        if self._knows_focus:
            return not self.app_focus
        return time.monotonic() - self._used_at > AWAY_AFTER_S

    def write_to_terminal(self, sequence: str) -> None:
        """Write an escape sequence unchanged; do nothing if the app is headless."""
        if sequence and self._driver is not None and not self.is_headless:
            self._driver.write(sequence)
            self._driver.flush()

    # New findings

    @on(RunChecked)
    def _take_run(self, message: RunChecked) -> None:
        run = message.run
        if message.settled or run.job.is_finished:
            self._send_alerts(self.alert_tracker.update(run.job, run.findings, _now(), source="run"))
        front = self._front
        if is_job_screen(front) and front.job.id == run.job.id:
            awake = [found for found in run.findings if (run.job.id, found.key) not in self.snoozed]
            self._show_title(run_title(run, awake))

    @on(FleetChecked)
    def _take_fleet(self, message: FleetChecked) -> None:
        watched = {screen.job.id for screen in self.screen_stack if is_job_screen(screen)}
        looked, self._last_rows = self._last_rows, {id(row): row for row in message.fleet.jobs}
        for row in message.fleet.jobs:
            if looked.get(id(row)) is row and not row.findings:
                # an unchanged row without findings cannot have alerts, which skips most of ten thousand rows
                continue
            if row.id not in watched:  # the job's own screen knows more, and sooner
                source = "glance" if row.judged else "list"  # a listed job has not been inspected yet
                self._send_alerts(self.alert_tracker.update(row.job, row.findings, _now(), source=source))
        if isinstance(self._front, HomeScreen):
            rows = message.fleet.jobs
            awake = [without_snoozed(row, self.snoozed) for row in rows] if self.snoozed else rows
            self._show_title(fleet_title(awake))

    @property
    def _front(self) -> Screen[Any] | None:
        """The screen on top; None while the app is exiting."""
        return self.screen_stack[-1] if self.screen_stack else None

    def _show_title(self, title: str) -> None:
        if self._wanted.title and title != self._title_shown:
            self._title_shown = title
            self.write_to_terminal(title_sequence(title))

    # Reporting

    def _send_alerts(self, alerts: Iterable[Alert]) -> None:
        for alert in alerts:
            if self._is_wanted(alert):
                self.send_alert(alert)

    def _is_wanted(self, alert: Alert) -> bool:
        if alert.event == "job-ended":
            return self._wanted.job_end
        return SEVERITIES.index(alert.severity) <= SEVERITIES.index(self._wanted.min_severity)

    def send_alert(self, alert: Alert) -> None:
        """Report an alert in every way that the settings enable."""
        wanted = self._wanted
        if wanted.toast:
            self.notify(alert.short, title=alert.title, severity=_TONES[alert.severity], timeout=TOAST_S)
        if self.is_unattended or not wanted.only_when_unfocused:
            if wanted.bell:
                self.bell()
            kind = osc_kind(wanted.osc, os.environ)
            self.write_to_terminal(notification_sequence(kind, alert.title, alert.text, os.environ))
        if self._alert_delivery is not None:
            self._alert_delivery.send(alert)

    def _report_delivery_failure(self, words: str) -> None:
        self.notify(f"{words}\nShown only once.", severity="warning", timeout=TOAST_S)

    # Snoozing

    @on(SnoozeRequested)
    def _snooze(self, message: SnoozeRequested) -> None:
        job, keys = message.job, [found.key for found in message.findings]
        if all((job.id, key) in self.snoozed for key in keys):
            self.alert_tracker.wake(job.id, keys)
            self.notify("Alerts for this job are on again.")
        else:
            length = timedelta(minutes=self._wanted.snooze_minutes)
            self.alert_tracker.snooze(job.id, keys, _now() + length)
            what = "1 alert" if len(keys) == 1 else f"{len(keys)} alerts"
            key = key_for("home.snooze", self._keys)
            self.notify(f"{what} snoozed for {duration(length.total_seconds())}; press {key} again to undo.")
        self._check_snoozes()

    def _check_snoozes(self) -> None:
        self.snoozed = self.alert_tracker.snoozed(_now())

    def watch_snoozed(self, snoozed: frozenset[tuple[str, str]]) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, AppScreen):
                screen.snoozed = snoozed


def _now() -> datetime:
    return datetime.now(UTC)
