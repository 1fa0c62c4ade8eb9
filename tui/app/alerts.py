"""Alerts about runs, as toasts, bells, terminal titles, notifications, commands and webhooks."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from textual import events
from textual.notifications import SeverityLevel

from tui.actions.table import Scope
from tui.alerts.alert import Alert, AlertTracker, fleet_title, run_title
from tui.alerts.delivery import (
    RESTORE_TITLE,
    SAVE_TITLE,
    AlertDelivery,
    notification_sequence,
    osc_kind,
    title_sequence,
)
from tui.analysis.fleet.snapshot import JobRow, without_snoozed
from tui.app.service import BaseApp, Service
from tui.screens.base import AppScreen
from tui.screens.home.screen import HomeScreen
from tui.screens.messages import FleetChecked, Handlers, RunChecked, SnoozeRequested
from tui.text.units import counted, duration

TOAST_S = 12.0
_TOAST_SEVERITIES: dict[str, SeverityLevel] = {
    "critical": "error",
    "warning": "warning",
    "info": "information",
}


class Alerts(Service):
    """Alerts the user to new findings, and snoozes the alerts of a job on request."""

    def __init__(self, app: BaseApp) -> None:
        super().__init__(app)
        self._settings = app.settings.configuration.notifications
        self._tracker = AlertTracker(_now())
        self._delivery: AlertDelivery | None = None
        self._shown_title = ""
        self._last_rows_by_identity: Mapping[int, JobRow] = MappingProxyType({})
        self._reports_focus = False
        self._last_input_at = time.monotonic()

    @property
    def handlers(self) -> Handlers:
        return {
            FleetChecked: self.alert_about_fleet,
            RunChecked: self.alert_about_run,
            SnoozeRequested: self.snooze,
        }

    def start(self) -> None:
        settings = self._settings
        if settings.command or settings.webhook:
            self._delivery = AlertDelivery(
                settings.command,
                settings.webhook,
                self._report_delivery_failure,
                os.environ,
                body_format=settings.webhook_format,
            )
            self._run(self._delivery.run, "alert delivery", "alerts")
        if settings.title:
            self._app.write_to_terminal(SAVE_TITLE)
        self._app.set_interval(10.0, self._check_snoozes)

    def stop(self) -> None:
        if self._shown_title:
            self._app.write_to_terminal(title_sequence("") + RESTORE_TITLE)

    def track_activity(self, event: events.Event) -> None:
        """Record the time of a key or mouse event; record whether the terminal reports focus changes."""
        if isinstance(event, events.AppFocus | events.AppBlur):
            self._reports_focus = True
        elif isinstance(event, events.InputEvent):
            self._last_input_at = time.monotonic()

    @property
    def idle_s(self) -> float:
        """Seconds since the last key or mouse event."""
        return time.monotonic() - self._last_input_at

    @property
    def _is_unattended(self) -> bool:
        """True if the user seems to be away.

        The terminal has lost the focus or, if it does not report the focus, there was no input for three
        minutes.
        """
        if self._reports_focus:
            return not self._app.app_focus
        return self.idle_s > 180.0

    # New findings

    def alert_about_run(self, message: RunChecked) -> None:
        run = message.run
        if message.all_checked or run.job.is_finished:
            self._send_alerts(self._tracker.update(run.job, run.findings, _now(), source="run"))
        screen = self._top_screen
        if screen is not None and screen.job is not None and screen.job.id == run.job.id:
            snoozed = self._app.snoozed
            not_snoozed = [finding for finding in run.findings if (run.job.id, finding.key) not in snoozed]
            self._show_title(run_title(run, not_snoozed))

    def alert_about_fleet(self, message: FleetChecked) -> None:
        screens = [screen for screen in self._app.screen_stack if isinstance(screen, AppScreen)]
        open_job_ids = {screen.job.id for screen in screens if screen.job is not None}
        previous_rows, self._last_rows_by_identity = (
            self._last_rows_by_identity,
            {id(row): row for row in message.fleet.jobs},
        )
        for row in message.fleet.jobs:
            if previous_rows.get(id(row)) is row and not row.findings:
                # An unchanged job without findings causes no alert: this skips most of 10,000 rows.
                continue
            if row.id not in open_job_ids:  # the job's own screen reports more, and earlier
                # "list" means that log and metrics of the job have not been checked yet
                source = "preview" if row.judged else "list"
                self._send_alerts(self._tracker.update(row.job, row.findings, _now(), source=source))
        self._tracker.prune(open_job_ids.union(row.id for row in message.fleet.jobs), _now())
        if isinstance(self._top_screen, HomeScreen):
            rows, snoozed = message.fleet.jobs, self._app.snoozed
            not_snoozed = [without_snoozed(row, snoozed) for row in rows] if snoozed else rows
            self._show_title(fleet_title(not_snoozed))

    @property
    def _top_screen(self) -> AppScreen | None:
        screen = self._app.screen_stack[-1] if self._app.screen_stack else None
        return screen if isinstance(screen, AppScreen) else None

    def _show_title(self, title: str) -> None:
        if self._settings.title and title != self._shown_title:
            self._shown_title = title
            self._app.write_to_terminal(title_sequence(title))

    # Reporting

    def _send_alerts(self, alerts: Iterable[Alert]) -> None:
        for alert in alerts:
            if alert.is_wanted(self._settings.min_severity, job_end=self._settings.job_end):
                self._send(alert)

    def _send(self, alert: Alert) -> None:
        settings = self._settings
        screen = self._top_screen
        shown_job = screen.job if screen is not None and Scope.JOB in screen.SCOPES else None
        if settings.toast and (shown_job is None or alert.job is None or shown_job.id != alert.job.id):
            self._app.notify(
                alert.toast_text,
                title=alert.title,
                severity=_TOAST_SEVERITIES[alert.severity],
                timeout=TOAST_S,
            )
        if self._is_unattended or not settings.only_when_unfocused:
            if settings.bell:
                self._app.bell()
            kind = osc_kind(settings.osc, os.environ)
            self._app.write_to_terminal(notification_sequence(kind, alert.title, alert.text, os.environ))
        if self._delivery is not None:
            self._delivery.send(alert)

    def _report_delivery_failure(self, message: str) -> None:
        self._app.notify(f"{message}\nThis notice appears only once.", severity="warning", timeout=TOAST_S)

    # Snoozing

    def snooze(self, message: SnoozeRequested) -> None:
        job, keys = message.job, [finding.key for finding in message.findings]
        if all((job.id, key) in self._app.snoozed for key in keys):
            self._tracker.end_snooze(job.id, keys)
            self._app.notify("Alerts for this job are on again.")
        else:
            snooze_time = timedelta(minutes=self._settings.snooze_minutes)
            self._tracker.snooze(job.id, keys, _now() + snooze_time)
            key = self._app.key_for("home.snooze")
            snoozed_text = (
                f"{counted(len(keys), 'alert')} snoozed for {duration(snooze_time.total_seconds())}"
            )
            self._app.notify(f"{snoozed_text}; press {key} again to undo.")
        self._check_snoozes()

    def _check_snoozes(self) -> None:
        self._app.snoozed = self._tracker.snoozed(_now())


def _now() -> datetime:
    return datetime.now(UTC)
